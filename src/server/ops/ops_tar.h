/* ops_tar.h - an archive into a sandbox, as it arrives: every entry is looked at before the agent gets it. And one out of it.
 *
 * Owns:    the stream to the agent, from begin to end.
 * Callers: uploads and downloads of trees, server/build. */
#ifndef COVE_SERVER_OPS_OPS_TAR_H
#define COVE_SERVER_OPS_OPS_TAR_H

#include "http/tar.h"
#include "server/ops/ops.h"

struct ops_tar {
    struct ops *ops;
    const struct ops_file *file; /* borrowed, as ops */
    struct stream stream;
    struct tar tar;
};

/* flags: AGENT_PARENTS */
int ops_tar_begin(struct ops *ops, const struct ops_file *file, uint32_t flags, struct ops_tar *ret,
                  struct err *err);
int ops_tar_take(struct ops_tar *in, const char *data, size_t len, struct err *err);
/* failed: -1 if a take failed, or what it takes from, and err says why; 0: the archive is to be whole. */
int ops_tar_end(struct ops_tar *in, int failed, uint64_t *ret_entries, uint64_t *ret_bytes,
                struct err *err);

/* ---- out of a sandbox: ops_tar_out.c ---- */

/* Pieces of an archive; end: the last one, which may be empty. */
typedef int ops_tar_sink(void *arg, const void *data, size_t len, bool end, struct err *err);
/* stream: of ops_file_pack; stays open. single: what was packed is a file, and was asked for by its name. */
int ops_tar_pack(struct ops *ops, const struct ops_file *file, bool single, struct stream *stream,
                 ops_tar_sink *sink, void *arg, struct err *err);

#endif
