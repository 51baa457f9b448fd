/* lockdown.h - what one of our own programs gives up once it knows what it needs: capabilities, system calls, files.
 *
 * A program has a table of the calls that it makes. Whatever else it calls gets one of two answers:
 *
 *   ENOSYS  the rule (ENOTTY of ioctl). Libraries fall back as on an older kernel, so that the next C library, with calls that were
 *           unknown when the table was written, does not end the service.
 *   death   for calls that none of our programs makes by mistake, and that a hijacked program would make next: run a program,
 *           trace a process, mount, load code into the kernel (`never` in lockdown.c). The kernel logs the call; `cove up` starts
 *           the program again.
 *
 * COVE_LOCKDOWN=report in the environment: each refused call is reported on stderr, too. The answer stays the same; but
 * another program that is run under the same filter, such as mkfs, ends at a refused call.
 *
 * Built with a sanitizer, whose own needs are no part of the tables, a program keeps its calls and its files.
 *
 * Owns:    nothing. What is given up cannot be taken back.
 * Callers: each program, once, before its first thread and before it reads anything that others wrote. */
#ifndef COVE_BASE_LOCKDOWN_H
#define COVE_BASE_LOCKDOWN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Compared are the low 32 bits of an argument: as many as the kernel looks at where a test is of use. */
enum lockdown_test {
    CALL_ANY,     /* whatever its arguments */
    CALL_IS,      /* the argument is the value */
    CALL_HAS,     /* it has all of those bits */
    CALL_HAS_NONE /* it has none of them */
};

struct lockdown_call {
    uint32_t number;
    uint8_t test;
    uint8_t arg;
    uint32_t value;
};

/* clang-format off */
#define CALL(name)                      { __NR_##name, CALL_ANY, 0, 0 }
#define CALL_IF(name, test, arg, value) { __NR_##name, test, arg, value }
/* clang-format on */

/* Calls that are needed for the same reason. A call with a test may have several rows: one that holds is enough. */
struct lockdown_rows {
    const char *reason;
    const struct lockdown_call *calls;
    size_t count;
};

#define LOCKDOWN_ROWS_MAX 12

struct lockdown {
    const char *program;
    uint64_t capabilities; /* LOCKDOWN_CAP(…) that it keeps, if it has them */
    bool no_tcp;           /* neither binds nor connects a TCP socket by itself (Linux 6.7) */
    bool alone;    /* sends no signals to others, nor to their abstract sockets (Linux 6.12) */
    bool any_file; /* Landlock says nothing about its files */
    /* a call without a row is allowed, but for the deadly ones and clone3: of a program that runs others */
    bool any_call;
    const struct lockdown_rows *rows[LOCKDOWN_ROWS_MAX]; /* up to the first NULL */
};

#define LOCKDOWN_CAP(name) (1ull << (name))

/* What every program needs; most of it the C library's. */
extern const struct lockdown_rows lockdown_runtime; /* memory, signals, time, identity */
extern const struct lockdown_rows lockdown_threads;
extern const struct lockdown_rows lockdown_bytes; /* files, pipes and sockets that are open */
extern const struct lockdown_rows
    lockdown_names; /* files by name; which ones is Landlock's to say */
extern const struct lockdown_rows
    lockdown_sockets; /* once they are made: socket() is each program's own */
extern const struct lockdown_rows lockdown_data_only; /* memory that is never executable */
extern const struct lockdown_rows
    lockdown_code; /* any memory: programs that load libraries later */

enum lockdown_right {
    LOCKDOWN_READ,
    LOCKDOWN_CHANGE, /* read and write files that are there */
    LOCKDOWN_WRITE,  /* read, write, make and remove regular files and directories */
    LOCKDOWN_FILL,   /* the same, and links, pipes, sockets and nodes */
    LOCKDOWN_REMOVE, /* remove files, and nothing else */
    LOCKDOWN_RUN     /* read and execute */
};

/* A file, or a directory with all below: an open descriptor, or a path, which need not be there. */
struct lockdown_path {
    enum lockdown_right right;
    int fd; /* used if path is NULL */
    const char *path;
};

/* The calling thread, and what it starts from now on. On failure the caller must end: half of it may be done. */
int lockdown_enter(const struct lockdown *lockdown, const struct lockdown_path *paths, size_t count,
                   struct err *err);

/* Capabilities alone, from every set; for a program whose children must not inherit a filter. */
int lockdown_capabilities(uint64_t keep, struct err *err);

/* The bounding set alone; for a program that still has to change its user. */
int lockdown_bounds(uint64_t keep, struct err *err);

/* Version of the kernel's Landlock; 0: it has none, and files are protected by user ids only. */
int lockdown_landlock_version(void);

/* Whether this build filters calls: not with a sanitizer. */
bool lockdown_filters(void);

#endif
