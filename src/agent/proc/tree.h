/* tree.h - who descends from whom, from /proc.
 *
 * A snapshot is never atomic: callers that must reach all processes take another one until none is
 * left. Orphans below a shepherd become its children, so no process leaves its tree.
 *
 * Callers: shepherd.c (signals, kills), strays.c, ops.c (whose descendant asks for sudo).
 */
#ifndef COVE_AGENT_PROC_TREE_H
#define COVE_AGENT_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_node {
    pid_t pid, ppid, pgrp;
    bool dead;                       /* a zombie. One whose other threads live is not dead */
    bool below;                      /* descends from the root given to tree_read */
    uint64_t own_ticks, child_ticks; /* processor time: its own, and of children that it reaped */
};

struct tree {
    struct tree_node *nodes; /* owned, by pid */
    size_t count;
};

/* -1 with errno; the tree is then empty. */
int tree_read(struct tree *ret, pid_t root);
void tree_done(struct tree *tree);

/* Processor time in milliseconds of every process below the root, those that ended and were reaped included. */
uint64_t tree_cpu_ms(const struct tree *tree, pid_t root);

/* The text of /proc/<pid>/stat. False: not one. Pure. */
bool tree_parse_stat(const char *text, struct tree_node *ret);

/* One process; false: gone. */
bool tree_node_of(pid_t pid, struct tree_node *ret);

#endif
