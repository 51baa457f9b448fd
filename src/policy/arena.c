#include "policy/arena.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_LEAST 16384
#define ALIGN       16

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(ALIGN) char data[];
};

void arena_init(struct arena *arena, size_t most, jmp_buf *fail)
{
    *arena = (struct arena){ .most = most, .fail = fail };
}

void arena_done(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;

        free(arena->blocks);
        arena->blocks = next;
    }
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t rounded = (size + ALIGN - 1) & ~(size_t) (ALIGN - 1);
    void *piece;

    if (size > arena->most)
        longjmp(*arena->fail, 1);
    if (!arena->blocks || arena->blocks->size - arena->used < rounded) {
        size_t block_size = rounded > BLOCK_LEAST ? rounded : BLOCK_LEAST;
        struct arena_block *block;

        if (arena->total + block_size > arena->most)
            longjmp(*arena->fail, 1);
        block = calloc(1, sizeof *block + block_size);
        if (!block)
            longjmp(*arena->fail, 1);
        block->next = arena->blocks;
        block->size = block_size;
        arena->blocks = block;
        arena->total += block_size;
        arena->used = 0;
    }
    piece = arena->blocks->data + arena->used;
    arena->used += rounded;
    return piece;
}

char *arena_text(struct arena *arena, const char *text, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);

    memcpy(copy, text, len);
    return copy;
}
