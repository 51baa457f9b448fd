/* copy.h - files and trees between this host and a sandbox.
 *
 * Owns:    on the host, nothing but what is below the destination it was given.
 * Callers: cp.c.
 * Never:   follows a link or leaves the destination on the host because of what a sandbox said.
 * Every name out of a sandbox is one component, checked, and used relative to a descriptor; files
 *          are made under a name of our own and renamed. Bits beyond 0777 stay behind: a setuid
 *          program of the sandbox's making must not be one of ours.
 *
 * Links are copied as links; FIFOs, sockets and devices are left out, with a note. */
#ifndef COVE_CLI_COPY_H
#define COVE_CLI_COPY_H

#include "client/files.h"

#include <stdbool.h>

/* Deeper trees are refused: each level holds a descriptor. */
#define COPY_DEPTH_MAX 200
/* Names of one directory, in bytes: what a hostile listing may take of our memory. */
#define COPY_LISTING_MAX (64u << 20)

struct copy {
    struct files_at at;
    uint64_t most_bytes; /* from a sandbox: more is refused; 0: any */
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
int copy_join(char out[AGENT_PATH_MAX], const char *dir, const char *name, struct err *err);

/* Counts, and shows how far it is when somebody looks. */
void copy_progress(struct copy *copy, uint64_t bytes, uint64_t files);
void copy_progress_end(struct copy *copy);
void copy_skip(struct copy *copy, const char *path, const char *what);

#endif
