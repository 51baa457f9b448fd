/* files.h - files of a sandbox, by its agent, with the rights of a user inside.
 *
 * Every call is one agent operation. `at` says which sandbox and whose rights; paths are absolute
 * or relative to that user's home, and are resolved inside, never on this host.
 *
 * Owns:    nothing between calls; files_read and files_write streams until closed.
 * Callers: the command line, later the API's operations. Replies count as hostile: a listing is
 * names to be checked, not paths to be used. */
#ifndef COVE_CLIENT_FILES_H
#define COVE_CLIENT_FILES_H

#include "client/exec.h"

struct files_at {
    struct link *link;
    const char *sandbox;
    const char *user; /* NULL: the template's */
    bool as_root;     /* AGENT_AS_ROOT wherever it means something */
    /* Extended attributes by the beginning of their names: told with entries, and set by a write. NULL: none. */
    const char *attr_prefix;
    struct texts attrs;
    const char *owner,
        *group; /* of UNPACK: whose everything is that it makes; NULL: the user's, the owner's own group */
};

/* What is known of one file. Texts are copies, cut to fit. */
struct file_info {
    char path[2 * AGENT_PATH_MAX];
    char target[2 * AGENT_PATH_MAX]; /* of a link; "" when there is none */
    char owner[64], group[64];
    enum agent_entry_type type;
    uint32_t mode, uid, gid;
    uint64_t size;
    int64_t mtime_ns;
};

/* `flags`: AGENT_NOFOLLOW */
int files_stat(const struct files_at *at, const char *path, uint32_t flags, struct file_info *ret,
               struct err *err);

/* One call per entry; a callback that returns -1 ends it. */
int files_list(const struct files_at *at, const char *path, uint32_t depth, uint64_t limit,
               exec_item_fn each, void *context, bool *ret_truncated, struct err *err);
/* GLOB and GREP: op, path, pattern, include, flags, limit and context of `request`. */
int files_search(const struct files_at *at, const struct agent_request *request, exec_item_fn each,
                 void *context, bool *ret_truncated, struct err *err);

/* STAT, or LIST with depth and limit: entries as the agent tells them, with flags, as_root and attr_prefix. */
int files_entries(const struct files_at *at, const struct agent_request *request, exec_item_fn each,
                  void *context, bool *ret_truncated, struct err *err);

/* Reading: open, then data until 0, then close. Who asked for FILES_PIPED bytes or more can take data without a copy: files_read_piped
 * says how many bytes stream_splice is to take next. */
#define FILES_PIPED (1u << 20)
int files_read_piped(struct stream *stream, uint32_t *ret_len, struct err *err);
int files_read_open(const struct files_at *at, const char *path, uint64_t offset, uint64_t length,
                    struct stream *ret, struct file_info *ret_info, struct err *err);
/* 1 and a piece (borrowed until the next call), 0 at the end of the file. */
int files_read_next(struct stream *stream, const void **ret_data, uint32_t *ret_len,
                    struct err *err);

/* Writing: open, data, end. Closing without end leaves what ATOMIC promises. `mode`: bits, or
 * UINT32_MAX for the default. `flags`: AGENT_ATOMIC, PARENTS, APPEND, CREATE. */
int files_write_open(const struct files_at *at, const char *path, uint32_t mode, uint32_t flags,
                     struct stream *ret, struct err *err);
int files_write_next(struct stream *stream, const void *data, size_t len, struct err *err);
/* What is in a pipe, at most FRAME_DATA_MAX bytes. */
int files_write_piped(struct stream *stream, int pipe_fd, uint32_t len, struct err *err);
int files_write_end(struct stream *stream, struct file_info *ret_info, struct err *err);

int files_mkdir(const struct files_at *at, const char *path, uint32_t mode, uint32_t flags,
                bool *ret_existed, struct err *err);
int files_move(const struct files_at *at, const char *path, const char *to, uint32_t flags,
               struct err *err);
int files_remove(const struct files_at *at, const char *path, uint32_t flags, uint64_t *ret_count,
                 struct err *err);
int files_chmod(const struct files_at *at, const char *path, uint32_t mode, uint32_t flags,
                struct err *err);
/* Of a link inside: there is no operation of its own, `ln` does it as the user. */
int files_symlink(const struct files_at *at, const char *target, const char *path, struct err *err);

/* A whole tree, entry by entry, in one operation. Of PACK: stream_item for the next entry, whose path is relative; behind
 * one of type ENTRY_FILE, files_read_next until 0. `flags`: AGENT_READABLE. */
int files_pack_open(const struct files_at *at, const char *path, uint32_t flags, struct stream *ret,
                    struct file_info *ret_info, struct err *err);
/* Of UNPACK: entries with path, type, mode, size, mtime_ns and target; behind a file without a target,
 * files_write_next and files_unpack_entry_end. A file with one is another name of that path. `flags`: AGENT_PARENTS, AGENT_THROUGH. */
int files_unpack_open(const struct files_at *at, const char *path, uint32_t flags,
                      struct stream *ret, struct err *err);
int files_unpack_entry(struct stream *stream, const struct agent_reply *entry, struct err *err);
int files_unpack_entry_end(struct stream *stream, struct err *err);
int files_unpack_end(struct stream *stream, uint64_t *ret_entries, uint64_t *ret_bytes,
                     struct err *err);

/* Watching: open, then events until the caller closes the stream. */
int files_watch_open(const struct files_at *at, const char *path, uint32_t flags,
                     struct stream *ret, struct err *err);
/* Without waiting: 1 with an event, 0 when there is none now. What was watched is gone: ERR_NO_PATH. */
int files_watch_poll(struct stream *stream, struct agent_reply *ret, struct err *err);

#endif
