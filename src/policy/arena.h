/* arena.h - memory of one analysis: taken in pieces, given back at once.
 *
 * Owns:    its blocks, until arena_done.
 * Never:   returns NULL. Past its limit, or without memory, it leaves through `fail`, which
 *          analysis_guard() set: nothing else of an analysis holds anything. */
#ifndef COVE_POLICY_ARENA_H
#define COVE_POLICY_ARENA_H

#include <setjmp.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t used, total, most;
    jmp_buf *fail; /* borrowed from the guard */
};

void arena_init(struct arena *arena, size_t most, jmp_buf *fail);
void arena_done(struct arena *arena);

/* Zeroed. */
void *arena_alloc(struct arena *arena, size_t size);
/* NUL-terminated. */
char *arena_text(struct arena *arena, const char *text, size_t len);

#endif
