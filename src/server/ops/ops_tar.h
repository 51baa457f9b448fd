/* ops_tar.h - an archive into a sandbox, as it arrives: every entry is looked at before the agent gets it. And one out of it.
 *
 * Owns:    the stream to the agent, from begin to end.
 * Callers: uploads and downloads of trees, server/build. */
#ifndef COVE_SERVER_OPS_OPS_TAR_H
#define COVE_SERVER_OPS_OPS_TAR_H

#include "http/tar.h"
#include "server/ops/ops.h"

struct ops_tar;
/* Whether in->entry goes in, and as what: its path, target and mode may be changed. 1: it does; 0: it does not; -1. */
typedef int ops_tar_pick(struct ops_tar *in, struct err *err);

struct ops_tar {
    struct ops *ops;
    const struct ops_file *file; /* borrowed, as ops */
    struct stream stream;
    bool open; /* the stream is there */
    struct tar tar;
    struct tar_entry entry; /* as it goes in */
    ops_tar_pick *pick;     /* NULL: every entry goes in */
    void *pick_arg;
    bool left_out;
};

/* flags: AGENT_PARENTS, AGENT_THROUGH */
int ops_tar_begin(struct ops *ops, const struct ops_file *file, uint32_t flags, struct ops_tar *ret,
                  struct err *err);
/* The second half of begin: a pick that learns from the first entry where all of them go calls it then, in an ops_tar of which only
 * ops, pick and pick_arg are set. */
int ops_tar_open(struct ops_tar *in, const struct ops_file *file, uint32_t flags, struct err *err);
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

/* The same, of several streams: new, then add for each, then end; and free. */
struct tar_out;
struct tar_out *ops_tar_out_new(ops_tar_sink *sink, void *arg, struct err *err);
/* prefix: a directory of the archive that the entries are in, and for which there is an entry; "": none. */
int ops_tar_out_add(struct tar_out *out, struct ops *ops, const struct ops_file *file, bool single,
                    const char *prefix, struct stream *stream, struct err *err);
int ops_tar_out_end(struct tar_out *out, struct err *err);

#endif
