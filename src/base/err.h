/* err.h - why something failed.
 *
 * Whatever can fail takes a struct err last and returns 0 or -1 (or a count). The
 * return says whether, the struct says why. The struct is the caller's, of fixed size,
 * and crosses fork and the wire unchanged. Inner code explains, outer code adds context
 * with err_wrap, the outermost code reports, once.
 *
 * A kind is what a caller can act on: one table gives its name in JSON and logs, its
 * HTTP status and the exit code of the command line. */
#ifndef COVE_BASE_ERR_H
#define COVE_BASE_ERR_H

#include <stdint.h>

#define ERR_MSG_MAX 240

enum err_kind {
    ERR_NONE,
    ERR_INTERNAL,    /* our fault or the kernel's: details are in the log */
    ERR_USAGE,       /* a command line that makes no sense */
    ERR_INVALID,     /* a field with an invalid value */
    ERR_LIMIT,       /* a limit that does not parse or is out of its bounds */
    ERR_LIMIT_HOST,  /* a limit that this host cannot give */
    ERR_NO_TEMPLATE, /* no such template */
    ERR_NO_USER,     /* no such user in the sandbox */
    ERR_NAME_TAKEN,  /* another sandbox has that name or id */
    ERR_NO_SANDBOX,  /* never was, or is gone */
    ERR_NO_PROCESS,  /* no such process in the sandbox */
    ERR_NO_PATH,     /* no such file or directory */
    ERR_EXISTS,      /* it is there already */
    ERR_NOT_DIR,     /* a directory was needed */
    ERR_IS_DIR,      /* a directory was not wanted */
    ERR_NOT_FILE,    /* a FIFO, device or socket where a regular file was needed */
    ERR_NOT_EMPTY,   /* a directory with entries in it */
    ERR_DENIED,      /* the sandbox's own permissions say no */
    ERR_NO_ROOT,     /* root asked for in a sandbox without root */
    ERR_DISK_FULL,   /* bytes or inodes of the sandbox's disk, or of the host's, are used up */
    ERR_NO_MEMORY,   /* not enough memory */
    ERR_NO_IDS,      /* every user id range is in use */
    ERR_TOO_MANY,    /* as many sandboxes, processes or connections as allowed */
    ERR_TOO_BIG,     /* a request or value larger than its limit */
    ERR_STATE,       /* not possible in the state it is in */
    ERR_TIMEOUT,     /* it took longer than allowed */
    ERR_OOM,         /* ended because the sandbox ran out of memory */
    ERR_UNAVAILABLE, /* the keeper or the agent does not answer */
    ERR_PROTOCOL,    /* a peer said something it must not say */
    ERR_UNSUPPORTED, /* this host or template cannot do it */
    ERR_NO_PORT,     /* nothing listens on that port of the sandbox */
    ERR_NO_IMAGE,    /* no such saved sandbox */
    ERR_NO_VOLUME,   /* no such volume */
    ERR_VOLUME_BUSY, /* another sandbox has the volume, and that excludes this */
    ERR_KIND_COUNT
};

struct err {
    uint32_t kind; /* enum err_kind */
    char msg[ERR_MSG_MAX];
};

struct err_kind_info {
    const char *name;
    uint16_t http_status;
    uint8_t exit_code;
    const char *help;
};

/* Never NULL: a number that is no kind counts as ERR_INTERNAL. */
const struct err_kind_info *err_kind_info(uint32_t kind);

/* All three return -1, so that `return err_set(...)` reads as the failure it is. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "<text>: <strerror>", with the kind that the errno stands for. */
int err_sys(struct err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "<text>: <what was there>": context, added by the callers above. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The kind that an errno stands for when nothing more is known. */
enum err_kind err_kind_of_errno(int errnum);

#endif
