/* escape.h - attempts to leave a sandbox.
 *
 * One program, one table per subject, one row per attempt. The same row is run inside (where every
 * one must be HELD) and outside (where every one must get through, or be impossible for a reason
 * that is written down), so that a HELD inside means something.
 *
 * Owns:    a scratch directory below /tmp, which is the cwd of every attempt.
 * Callers: tests/e2e/escape_test.
 * Never:   harms the host it runs on. What would change it is done in throw-away namespaces, or
 *          with arguments that the kernel refuses behind its permission check. */
#ifndef COVE_TESTS_ESCAPE_H
#define COVE_TESTS_ESCAPE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum verdict { HELD, ESCAPED, IMPOSSIBLE };

struct outcome {
    enum verdict verdict;
    int errnum; /* HELD: why, or 0 */
    char detail[200];
};

struct outcome escaped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct outcome held(int errnum, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Outside only: this host cannot show it. */
struct outcome impossible(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A call that must fail. errno is taken here. */
struct outcome by_call(long rc, const char *what);

/* A call with arguments that cannot work: whoever hears more than "not permitted" or "no such
 * call" got past the check. */
struct outcome past_check(long rc, const char *what);

/* Where the attempt is shown to work without the jail. */
enum outside {
    ON_HOST,    /* as root of the host: it only looks, or tidies up behind itself */
    IN_SPACES,  /* as root in throw-away namespaces (no user namespace), PID 1 a stand-in */
    NOT_AT_ALL, /* the kernel itself does not allow it any more: `reason` says since when */
};

struct attempt {
    const char *name;
    const char *why; /* what would be lost */
    struct outcome (*run)(const struct attempt *attempt);
    const char *path; /* argument of generic attempts */
    long number;      /* likewise */
    enum outside outside;
    int lacking[3];     /* outside, these errnos mean that the host lacks the subject … */
    const char *reason; /* … for this reason */
};

struct attempt_class {
    const char *name;
    const struct attempt *attempts;
    size_t count;
};

extern const struct attempt manager_attempts[];
extern const size_t manager_attempt_count;
extern const struct attempt leak_attempts[];
extern const size_t leak_attempt_count;
extern const struct attempt file_attempts[];
extern const size_t file_attempt_count;
extern const struct attempt root_attempts[];
extern const size_t root_attempt_count;
extern const struct attempt mount_attempts[];
extern const size_t mount_attempt_count;
extern const struct attempt kernel_attempts[];
extern const size_t kernel_attempt_count;
extern const struct attempt resource_attempts[];
extern const size_t resource_attempt_count;

/* What the test laid out on the host: `key=value` arguments. */
struct bait {
    const char *token; /* the secret in all of it */
    const char *state; /* the keeper's state directory */
    const char *host;  /* host name of the host */
    int port;          /* TCP and UDP on the host's 127.0.0.1 */
    int neighbour_port;
    int pid;                /* of the process that holds it */
    unsigned long shadow;   /* hash of the host's /etc/shadow */
    unsigned long machine;  /* hash of the host's /etc/machine-id */
    unsigned long disk_mib; /* more than the sandbox may write */
    bool outside;
};
extern struct bait bait;

/* bait.c */
int bait_serve(bool whole);
void bait_name(char *out, size_t size, const char *prefix, const char *suffix);
unsigned long bait_hash_file(const char *path);
int bait_key(void); /* System V key of the shared memory */

/* True when `path` can be opened and has the token in its first page. */
bool bait_readable(const char *path);

/* Whether this process has a capability in its effective set. */
bool has_cap(int cap);

/* Copies this very program to `name` in the cwd. 0 or -1. */
int copy_self(const char *name, mode_t mode);

/* Runs argv in a child (setresuid to `uid` first, unless that is 0 or we are not root) and returns
 * its exit status, or -1. */
int run_child(uid_t uid, char *const argv[]);

/* What the program answers when an attempt started it again: `escape <word>`. */
#define WORD_EUID    "euid-is-zero"
#define WORD_CAPS    "has-sys-admin"
#define WORD_STARTED "was-started"
#define SAID_YES     42

#endif
