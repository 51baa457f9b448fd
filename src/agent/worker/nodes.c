#include "agent/worker/nodes.h"

#include "base/own.h"

#include <string.h>

static struct node **slot_of(const struct nodes *nodes, int wd)
{
    return &nodes->slots[(size_t) wd & (nodes->slot_count - 1)];
}

static bool grow(struct nodes *nodes)
{
    size_t count = nodes->slot_count ? nodes->slot_count * 2 : 64;
    struct node **old = nodes->slots, **slots = calloc(count, sizeof(struct node *));
    size_t old_count = nodes->slot_count;

    if (!slots)
        return false;
    nodes->slots = slots;
    nodes->slot_count = count;
    for (size_t i = 0; i < old_count; i++)
        while (old[i]) {
            struct node *node = old[i], **slot = slot_of(nodes, node->wd);

            old[i] = node->same_slot;
            node->same_slot = *slot;
            *slot = node;
        }
    free(old);
    return true;
}

static void hang(struct nodes *nodes, struct node *node, struct node *above)
{
    node->above = above;
    node->link = above ? &above->first : &nodes->root;
    node->next = *node->link;
    if (node->next)
        node->next->link = &node->next;
    *node->link = node;
}

static void unhang(struct node *node)
{
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
}

/* Takes the node out of its slot. */
static void unslot(struct nodes *nodes, const struct node *node)
{
    struct node **at = slot_of(nodes, node->wd);

    while (*at != node)
        at = &(*at)->same_slot;
    *at = node->same_slot;
}

static void put_into_slot(struct nodes *nodes, struct node *node)
{
    struct node **slot = slot_of(nodes, node->wd);

    node->same_slot = *slot;
    *slot = node;
}

static struct node *make(int wd, const char *name)
{
    size_t len = strlen(name) + 1;
    struct node *node = malloc(sizeof *node + len);

    if (!node)
        return NULL;
    *node = (struct node){ .wd = wd };
    memcpy(node->name, name, len);
    return node;
}

struct node *nodes_add(struct nodes *nodes, int wd, struct node *above, const char *name)
{
    struct node *node;

    if (nodes->count >= nodes->slot_count && !grow(nodes))
        return NULL;
    node = make(wd, name);
    if (!node)
        return NULL;
    put_into_slot(nodes, node);
    hang(nodes, node, above);
    nodes->count++;
    return node;
}

struct node *nodes_find(const struct nodes *nodes, int wd)
{
    struct node *node = nodes->slot_count ? *slot_of(nodes, wd) : NULL;

    while (node && node->wd != wd)
        node = node->same_slot;
    return node;
}

struct node *nodes_child(const struct node *above, const char *name)
{
    struct node *node = above->first;

    while (node && strcmp(node->name, name) != 0)
        node = node->next;
    return node;
}

bool nodes_within(const struct node *node, const struct node *top)
{
    while (node && node != top)
        node = node->above;
    return node != NULL;
}

struct node *nodes_move(struct nodes *nodes, struct node *node, struct node *above,
                        const char *name)
{
    struct node *moved = make(node->wd, name);

    if (!moved)
        return NULL;
    unslot(nodes, node);
    unhang(node);
    moved->first = node->first;
    if (moved->first)
        moved->first->link = &moved->first;
    for (struct node *child = moved->first; child; child = child->next)
        child->above = moved;
    free(node);
    put_into_slot(nodes, moved);
    hang(nodes, moved, above);
    return moved;
}

void nodes_remove(struct nodes *nodes, struct node *node)
{
    unslot(nodes, node);
    unhang(node);
    nodes->count--;
    free(node);
}

struct node *nodes_leaf(struct node *node)
{
    while (node->first)
        node = node->first;
    return node;
}

/* Prepends to what begins at *at. */
static bool prepend(char *out, size_t *at, const char *text, size_t len)
{
    if (*at < len)
        return false;
    *at -= len;
    memcpy(out + *at, text, len);
    return true;
}

bool nodes_path(const struct node *node, const char *name, char *out, size_t size)
{
    size_t at = size - 1;

    out[at] = '\0';
    if (name && (!prepend(out, &at, name, strlen(name)) || !prepend(out, &at, "/", 1)))
        return false;
    for (; node->above; node = node->above)
        if (!prepend(out, &at, node->name, strlen(node->name)) || !prepend(out, &at, "/", 1))
            return false;
    /* A root "/" has its slash already, unless it is all there is. */
    if (strcmp(node->name, "/") != 0 || out[at] == '\0')
        if (!prepend(out, &at, node->name, strlen(node->name)))
            return false;
    memmove(out, out + at, size - at);
    return true;
}

void nodes_done(struct nodes *nodes)
{
    struct node *node = nodes->root ? nodes_leaf(nodes->root) : NULL;

    while (node) {
        struct node *above = node->above;

        nodes_remove(nodes, node);
        node = above ? nodes_leaf(above) : NULL;
    }
    free(nodes->slots);
    *nodes = (struct nodes){ 0 };
}
