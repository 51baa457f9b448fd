/* doctor_probes.h - what only trying tells: each probe does the thing in a child and reports.
 *
 * Callers: the checks of doctor_checks.h, through a struct of pointers, so that tests can put
 *          answers of their own there.
 * Never:   changes the host. Whatever a probe makes dies with its child. */
#ifndef COVE_CLI_DOCTOR_PROBES_H
#define COVE_CLI_DOCTOR_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Answers of probes that say yes or no: PROBE_YES, or the errno that came in the way. */
#define PROBE_YES 0

struct doctor_keeper {
    uint32_t pid, sandboxes, sandboxes_max;
    char isolation[128];
};

/* The private criu that tools/criu unpacks, with its own loader and libraries; the keeper takes it
 * before an installed one. */
#define CRIU_PREFIX    "/usr/local/lib/cove/criu"
#define CRIU_INSTALLED "/usr/sbin/criu"

struct doctor_criu {
    char version[32];
    char said[120]; /* last line of `criu check` */
};

struct doctor_probes {
    int (*user_namespace)(void); /* one with a mapped root, and mounts in it */
    int (*idmapped_mount)(const char *state);
    int (*detached_clone)(void); /* EINVAL: only what is attached can be cloned */
    int (*overlay)(void);        /* mounted on a tmpfs, in a mount namespace */
    int (*seccomp_notify)(void); /* a filter with a listener */
    int (*landlock_abi)(void);   /* 0: none */
    const char *(*kvm)(void);    /* by running code; why not, or NULL */
    int (*disk_free)(const char *state, uint64_t *ret_bytes, uint64_t *ret_inodes);
    uint32_t (*runsc)(const char *path); /* its date, as a number; 0: it does not say */
    uint32_t (*qemu)(void); /* that of virtual machines: its first number; 0: it does not say */
    int (*criu)(bool from_prefix, bool check, struct doctor_criu *ret); /* 0: passes its check */
    int (*keeper)(const char *state, struct doctor_keeper *ret, char *why, size_t size);
    int (*templates)(const char *state, char *out, size_t size); /* count; names in out */
};

extern const struct doctor_probes doctor_probes;

#endif
