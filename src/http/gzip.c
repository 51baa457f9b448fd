#include "http/gzip.h"

#include "base/own.h"

#include <limits.h>
#include <stdint.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16)
#define GZIP_LEVEL  1 /* the server's time is dearer than the last few per cent */
#define GZIP_MEMORY 8

struct gzip {
    z_stream z;
    bool ready;
    unsigned char out[32768];
};

struct gzip *gzip_new(struct err *err)
{
    struct gzip *g = calloc(1, sizeof *g);

    if (g && deflateInit2(&g->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                          Z_DEFAULT_STRATEGY) == Z_OK) {
        g->ready = true;
        return g;
    }
    gzip_free(g);
    err_set(err, ERR_NO_MEMORY, "no memory to compress an answer");
    return NULL;
}

void gzip_free(struct gzip *g)
{
    if (g && g->ready)
        (void) deflateEnd(&g->z);
    free(g);
}

int gzip_write(struct gzip *g, const void *data, size_t len, bool end, gzip_sink *sink,
               void *context, struct err *err)
{
    if (len > UINT_MAX)
        return err_set(err, ERR_INTERNAL, "too much at once for gzip");
    g->z.next_in = (Bytef *) (uintptr_t) data; /* zlib only reads there */
    g->z.avail_in = (uInt) len;
    do {
        size_t made;

        g->z.next_out = g->out;
        g->z.avail_out = sizeof g->out;
        if (deflate(&g->z, end ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
            return err_set(err, ERR_INTERNAL, "gzip is in no state to continue");
        made = sizeof g->out - g->z.avail_out;
        if (made > 0 && sink(context, g->out, made, err) < 0)
            return -1;
    } while (g->z.avail_out == 0);
    return 0;
}
