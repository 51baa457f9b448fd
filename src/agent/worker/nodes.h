/* nodes.h - the directories that a watch watches, as a tree of names.
 *
 * A node knows its name and the one above, not its path: when a directory is renamed, all below it
 * has its new path at once. They are found by watch descriptor.
 *
 * Callers: watch.c. Never: talks to the kernel. */
#ifndef COVE_AGENT_WORKER_NODES_H
#define COVE_AGENT_WORKER_NODES_H

#include <stdbool.h>
#include <stddef.h>

struct node {
    int wd;
    struct node *above; /* NULL: the root */
    struct node *first; /* below */
    struct node *next, **link;
    struct node *same_slot;
    char name[]; /* of the root: its whole path */
};

struct nodes {
    struct node *root;
    struct node **slots; /* by wd */
    size_t slot_count, count;
};

/* NULL: no memory. */
struct node *nodes_add(struct nodes *nodes, int wd, struct node *above, const char *name);
struct node *nodes_find(const struct nodes *nodes, int wd);
struct node *nodes_child(const struct node *above, const char *name);

/* The same node under another one, or by another name. Returns it, or NULL: no memory, and then it
 * is as it was. Other pointers to it are no longer good. */
/* Whether node is top, or below it. */
bool nodes_within(const struct node *node, const struct node *top);

struct node *nodes_move(struct nodes *nodes, struct node *node, struct node *above,
                        const char *name);

/* One without any below it. */
void nodes_remove(struct nodes *nodes, struct node *node);

/* The deepest first one of a tree: for taking it down leaf by leaf. */
struct node *nodes_leaf(struct node *node);

/* "<path of node>/<name>", or without a name the path itself. False: does not fit. */
bool nodes_path(const struct node *node, const char *name, char *out, size_t size);

void nodes_done(struct nodes *nodes);

#endif
