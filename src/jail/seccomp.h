/* seccomp.h - the system call filter of every sandbox, compiled once at start.
 *
 * Owns:    two BPF programs: with a listener for refused calls, and without.
 * Callers: keeper/main.c compiles, confine.c installs. */
#ifndef COVE_JAIL_SECCOMP_H
#define COVE_JAIL_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

#define SECCOMP_FILTER_MOST 1200

struct seccomp_filter {
    struct sock_filter code[SECCOMP_FILTER_MOST];
    unsigned short len;
};

/* With `listen`, refused calls wait for a listener's answer; otherwise the filter says EPERM. */
void seccomp_compile(struct seccomp_filter *filter, bool listen);

/* Installs the filter on the calling thread, which must have no_new_privs. Returns the listener's
 * descriptor with `listen`, else 0, or -1 with errno. No heap, no locks: runs between clone and exec. */
int seccomp_install(const struct seccomp_filter *filter, bool listen);

#endif
