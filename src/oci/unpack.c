#include "oci/unpack.h"

#include "base/own.h"
#include "http/gunzip.h"

#include <string.h>
#include <zstd.h>

#define PIECE (256u * 1024)

enum packing { PACKING_UNKNOWN, PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

struct unpack {
    struct merge *merge;
    enum packing packing;
    struct gunzip *gzip;
    ZSTD_DStream *zstd;
    bool zstd_between; /* a frame ended, and no other began */
    unsigned char head[4];
    size_t head_len;
    uint64_t in, out;
    struct sha256 sha;
    struct tar tar;
    char piece[PIECE];
};

struct unpack *unpack_new(struct merge *merge, struct err *err)
{
    struct unpack *u = calloc(1, sizeof *u);

    if (!u) {
        err_set(err, ERR_NO_MEMORY, "no memory for a layer");
        return NULL;
    }
    u->merge = merge;
    u->tar.layer = true;
    sha256_init(&u->sha);
    merge_layer(merge);
    return u;
}

void unpack_free(struct unpack *u)
{
    if (!u)
        return;
    gunzip_free(u->gzip);
    (void) ZSTD_freeDStream(u->zstd);
    free(u);
}

/* ---- tar ---- */

static int take_plain(struct unpack *u, const char *data, size_t len, struct err *err)
{
    sha256_add(&u->sha, data, len);
    u->out += len;
    if (u->out > UNPACK_FREE && u->out / UNPACK_RATIO > u->in)
        return err_set(err, ERR_TOO_BIG, "a layer grows more than %u times", UNPACK_RATIO);
    for (size_t at = 0;;) {
        struct slice piece = { 0 };
        size_t used = 0;
        int event = tar_read(&u->tar, data + at, len - at, &used, &piece, err);

        if (event < 0)
            return -1;
        at += used;
        if (event == TAR_MORE)
            return 0;
        if (event != TAR_END && merge_event(u->merge, &u->tar, event, piece, err) < 0)
            return -1;
    }
}

/* ---- compression ---- */

static int take_gzip(struct unpack *u, const char *data, size_t len, struct err *err)
{
    for (size_t at = 0;;) {
        size_t used = 0, made = 0;

        if (gunzip_read(u->gzip, data + at, len - at, &used, u->piece, PIECE, &made, err) < 0)
            return -1;
        at += used;
        if (made > 0 && take_plain(u, u->piece, made, err) < 0)
            return -1;
        if (made == 0 && at == len)
            return 0;
    }
}

static int take_zstd(struct unpack *u, const char *data, size_t len, struct err *err)
{
    ZSTD_inBuffer in = { data, len, 0 };

    for (;;) {
        ZSTD_outBuffer out = { u->piece, PIECE, 0 };
        size_t r;

        if (in.pos == in.size && u->zstd_between)
            return 0;
        r = ZSTD_decompressStream(u->zstd, &out, &in);
        if (ZSTD_isError(r))
            return err_set(err, ERR_INVALID, "a layer is damaged zstd: %s", ZSTD_getErrorName(r));
        u->zstd_between = r == 0;
        if (out.pos > 0 && take_plain(u, u->piece, out.pos, err) < 0)
            return -1;
        if (in.pos == in.size && out.pos < out.size)
            return 0;
    }
}

static int take(struct unpack *u, const char *data, size_t len, struct err *err)
{
    if (len == 0)
        return 0;
    return (u->packing == PACKING_GZIP   ? take_gzip
            : u->packing == PACKING_ZSTD ? take_zstd
                                         : take_plain)(u, data, len, err);
}

/* zstd:chunked begins with an ordinary frame; a skippable frame may be first, too. */
static bool is_zstd(const unsigned char head[4])
{
    return memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ||
           ((head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0);
}

static int find_packing(struct unpack *u, struct err *err)
{
    u->packing = PACKING_NONE;
    if (u->head[0] == 0x1f && u->head[1] == 0x8b) {
        u->packing = PACKING_GZIP;
        u->gzip = gunzip_new(err);
        return u->gzip ? 0 : -1;
    }
    if (!is_zstd(u->head))
        return 0;
    u->packing = PACKING_ZSTD;
    u->zstd = ZSTD_createDStream();
    if (!u->zstd ||
        ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG)))
        return err_set(err, ERR_NO_MEMORY, "no memory for a layer");
    return 0;
}

int unpack_feed(struct unpack *u, const void *data, size_t len, struct err *err)
{
    const char *at = data;

    u->in += len;
    while (u->packing == PACKING_UNKNOWN && len > 0) {
        u->head[u->head_len++] = (unsigned char) *at++;
        len--;
        if (u->head_len < sizeof u->head)
            continue;
        if (find_packing(u, err) < 0 || take(u, (const char *) u->head, u->head_len, err) < 0)
            return -1;
    }
    return take(u, at, len, err);
}

int unpack_end(struct unpack *u, char ret_diff[SHA256_HEX], struct err *err)
{
    unsigned char digest[SHA256_LEN];

    if (u->packing == PACKING_UNKNOWN)
        return err_set(err, ERR_INVALID, "a layer is empty");
    if (u->packing == PACKING_GZIP && gunzip_end(u->gzip, err) < 0)
        return -1;
    if (u->packing == PACKING_ZSTD && !u->zstd_between)
        return err_set(err, ERR_INVALID, "the zstd data of a layer ended early");
    if (tar_read_end(&u->tar, err) < 0)
        return -1;
    sha256_done(&u->sha, digest);
    sha256_hex(digest, sizeof digest, ret_diff);
    return 0;
}
