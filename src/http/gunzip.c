#include "http/gunzip.h"

#include "base/own.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#define GZIP_ONLY (15 + 16) /* the greatest window; gzip's header, and no other, is expected */

struct gunzip {
    z_stream z;
    bool ready;   /* z has memory */
    bool between; /* a member ended, and no byte of another was seen */
    bool broken;
    uint64_t in, out, members;
};

struct gunzip *gunzip_new(struct err *err)
{
    struct gunzip *g = calloc(1, sizeof *g);

    if (g && inflateInit2(&g->z, GZIP_ONLY) == Z_OK) {
        g->ready = true;
        return g;
    }
    gunzip_free(g);
    err_set(err, ERR_NO_MEMORY, "no memory to decode a body");
    return NULL;
}

void gunzip_free(struct gunzip *g)
{
    if (g && g->ready)
        (void) inflateEnd(&g->z);
    free(g);
}

static int broken(struct gunzip *g, struct err *err)
{
    g->broken = true;
    if (g->members > 0 && g->z.total_out == 0 && g->z.total_in < 10)
        return err_set(err, ERR_INVALID, "something that is not gzip follows the gzip data");
    return err_set(err, ERR_INVALID, "the body is not gzip, or damaged: %s",
                   g->z.msg ? g->z.msg : "it cannot be decoded");
}

/* One call of zlib's. The end of a member makes ready for another. */
static int step(struct gunzip *g, struct err *err)
{
    int r = inflate(&g->z, Z_NO_FLUSH);

    if (r == Z_STREAM_END) {
        g->members++;
        g->between = true;
        return inflateReset(&g->z) == Z_OK ? 0 : broken(g, err);
    }
    if (r == Z_MEM_ERROR)
        return err_set(err, ERR_NO_MEMORY, "no memory to decode a body");
    return r == Z_OK || r == Z_BUF_ERROR ? 0 : broken(g, err);
}

int gunzip_read(struct gunzip *g, const void *in, size_t len, size_t *ret_used, void *out,
                size_t size, size_t *ret_made, struct err *err)
{
    size_t used = 0, made = 0;

    if (g->broken)
        return broken(g, err);
    while (made < size) {
        uInt give = (uInt) (len - used < UINT_MAX ? len - used : UINT_MAX);
        uInt room = (uInt) (size - made < UINT_MAX ? size - made : UINT_MAX);

        if (g->between && give == 0)
            break;
        g->between = false;
        g->z.next_in = (Bytef *) (uintptr_t) in + used; /* zlib only reads there */
        g->z.avail_in = give;
        g->z.next_out = (Bytef *) out + made;
        g->z.avail_out = room;
        if (step(g, err) < 0)
            return -1;
        used += give - g->z.avail_in;
        made += room - g->z.avail_out;
        if (give == g->z.avail_in && room == g->z.avail_out && !g->between)
            break; /* it can go no further with what it has */
    }
    g->in += used;
    g->out += made;
    if (g->out > GUNZIP_FREE && g->out / GUNZIP_RATIO > g->in)
        return err_set(err, ERR_TOO_BIG, "the gzip body grows more than %u times", GUNZIP_RATIO);
    *ret_used = used;
    *ret_made = made;
    return 0;
}

int gunzip_end(const struct gunzip *g, struct err *err)
{
    if (g->between && !g->broken)
        return 0;
    return err_set(err, ERR_INVALID, "the gzip data ended early");
}
