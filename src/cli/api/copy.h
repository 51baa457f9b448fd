/* copy.h - files and trees between this host and a sandbox, over the API: one file as its bytes, a tree as a tar archive.
 *
 * Owns:    on the host, nothing but what is below the destination that was given.
 * Callers: cp.c.
 * Never:   follows a link or leaves the destination on the host because of what a server said. http/tar.h hands out paths without
 *          ".."; each of their parts is opened relative to a descriptor, and never through a link. Files are made under a name of
 *          our own and renamed. Bits beyond 0777 are dropped: a setuid program of a sandbox must not become one of this host.
 *
 * Links are copied as links; FIFOs, sockets and devices are left out, with a note. */
#ifndef COVE_CLI_API_COPY_H
#define COVE_CLI_API_COPY_H

#include "remote/call.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define COPY_PATH_MAX  4096 /* with its NUL */
#define COPY_DEPTH_MAX 200  /* on the host: each level holds a descriptor */

struct copy {
    const struct remote *remote;
    const char *sandbox, *user; /* user NULL: the template's */
    uint64_t most_bytes;        /* from a sandbox: more is refused; 0: any */
    uint64_t bytes, files;
    bool reader_gone;      /* of stdout */
    unsigned skipped;      /* entries left out, with a note each */
    uint64_t shown_ms;     /* progress: when it was last shown */
    bool shows, has_shown; /* stderr is a terminal */
};

/* `from` on the host to `to`, a path in the sandbox that is the new name itself. */
int copy_in(struct copy *copy, const char *from, const char *to, struct err *err);
/* Standard input as a file. */
int copy_in_stdin(struct copy *copy, const char *to, struct err *err);

/* `from` in the sandbox to the name `name` in the host directory dir_fd. */
int copy_out(struct copy *copy, const char *from, int dir_fd, const char *name, struct err *err);
/* The entries of `from` into the host directory itself. */
int copy_out_into(struct copy *copy, const char *from, int dir_fd, struct err *err);
int copy_out_stdout(struct copy *copy, const char *from, struct err *err);

/* A name that may be used in a host directory: one component, not "." or "..". */
bool copy_name_ok(const char *name);
/* dir/name, in out; ERR_TOO_BIG when it does not fit. */
int copy_join(char out[COPY_PATH_MAX], const char *dir, const char *name, struct err *err);

/* ---- of the API ---- */

/* "/v1/sandboxes/ID/files<what>?path=…&user=…<more>"; what and more as they are. The caller's to free. */
char *copy_path(const struct copy *copy, const char *what, const char *path, const char *more);
/* The entry of a path as GET …/files/stat answers; the caller's to decref. */
int copy_stat(const struct copy *copy, const char *path, bool follow, json_t **ret,
              struct err *err);
/* "type" and "mode" of it. */
bool copy_is(json_t *entry, const char *type);
unsigned copy_mode(json_t *entry);

/* ---- what is said ---- */

/* Counts, and shows how far it is when stderr is a terminal. */
void copy_progress(struct copy *copy, uint64_t bytes, uint64_t files);
void copy_progress_end(struct copy *copy);
void copy_skip(struct copy *copy, const char *path, const char *what);

#endif
