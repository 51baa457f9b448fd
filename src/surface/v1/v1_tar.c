/* Trees as tar archives, both ways. The agent sends and takes entries (wire/agent.h, PACK and UNPACK); the archive is
 * made and read here, one entry at a time: a hostile sandbox cannot make an archive that does harm where
 * it is unpacked, and a hostile archive reaches no path that was not looked at. Memory is the same for any size. */
#include "surface/v1/v1.h"

#include "base/own.h"
#include "http/gzip.h"
#include "server/ops/ops_tar.h"

#include <string.h>

#define PIECE 65536

_Static_assert(TAR_PATH_MAX == AGENT_PATH_MAX, "what tar.h lets pass, the agent takes");

/* ---- download ---- */

struct tar_out {
    struct exchange *x;
    struct gzip *gzip; /* NULL: as it is */
};

static int to_client(void *context, const void *data, size_t len, struct err *err)
{
    return exchange_write(context, data, len, err);
}

static int pass_on(void *arg, const void *data, size_t len, bool end, struct err *err)
{
    struct tar_out *out = arg;

    if (out->gzip)
        return gzip_write(out->gzip, data, len, end, to_client, out->x, err);
    return exchange_write(out->x, data, len, err);
}

static const char *tar_type(bool gzip)
{
    return gzip ? "application/gzip" : "application/x-tar";
}

int v1_tar_get(struct exchange *x, struct err *err)
{
    struct tar_out out = { .x = x };
    auto_free struct file_info *info = calloc(1, sizeof *info);
    bool gzip = false, readable = false;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    struct stream stream;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for a download");
    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "gzip", &gzip, err) < 0 ||
        query_bool(x, "skip_unreadable", &readable, err) < 0)
        return -1;
    if (gzip && !(out.gzip = gzip_new(err)))
        return -1;
    r = ops_file_pack(&ops, &file, readable ? AGENT_READABLE : 0, &stream, info, err);
    if (r == 0) {
        r = exchange_begin(x, 200, tar_type(gzip), -1, err);
        if (r == 0 && exchange_head(x)->method == METHOD_HEAD)
            r = exchange_end(x, err);
        else if (r == 0)
            r = ops_tar_pack(&ops, &file, info->type == ENTRY_FILE, &stream, pass_on, &out, err);
        if (r == 0 && exchange_head(x)->method != METHOD_HEAD)
            r = exchange_end(x, err);
        stream_close(&stream);
    }
    gzip_free(out.gzip);
    return r;
}

/* ---- upload ---- */

static int take_body(struct exchange *x, struct ops_tar *in, char *buf, struct err *err)
{
    ssize_t n;

    while ((n = exchange_read(x, buf, PIECE, err)) > 0)
        if (ops_tar_take(in, buf, (size_t) n, err) < 0)
            return -1;
    return n < 0 ? -1 : 0;
}

int v1_tar_put(struct exchange *x, struct err *err)
{
    auto_free struct ops_tar *in = calloc(1, sizeof *in);
    auto_free char *buf = malloc(PIECE);
    uint64_t entries, bytes;
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_file file;
    bool parents = true;
    int r;

    if (!in || !buf)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    if (v1_query_file(x, &file, err) < 0 || query_bool(x, "parents", &parents, err) < 0 ||
        exchange_accept_encoding(x, err) < 0)
        return -1;
    if (ops_tar_begin(&ops, &file, parents ? AGENT_PARENTS : 0, in, err) < 0)
        return -1;
    r = take_body(x, in, buf, err);
    if (ops_tar_end(in, r, &entries, &bytes, err) < 0)
        return -1;
    return exchange_reply_json(
        x, 200,
        json_pack("{s:I, s:I}", "entries", (json_int_t) entries, "bytes", (json_int_t) bytes), err);
}
