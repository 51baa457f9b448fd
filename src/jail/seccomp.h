/* seccomp.h - the system call filter of every sandbox, compiled once at start.
 *
 * Owns:    BPF programs: with a listener for refused calls, and without; and for jails around guests.
 * Callers: driver/host.c compiles, confine.c installs; image/filters.c and driver/jail/posture.c look at filters that
 *          are there already, which may be another version's. */
#ifndef COVE_JAIL_SECCOMP_H
#define COVE_JAIL_SECCOMP_H

#include "base/sha256.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#define SECCOMP_FILTER_MOST 1200

struct seccomp_filter {
    struct sock_filter code[SECCOMP_FILTER_MOST];
    unsigned short len;
};

/* With `listen`, refused calls wait for a listener's answer; otherwise the filter says EPERM. */
void seccomp_compile(struct seccomp_filter *filter, bool listen);

/* For the jail around a guest (machine.h): the same, without a listener, but for what makes namespaces and mounts. */
void seccomp_compile_machine(struct seccomp_filter *filter);

/* For the jail around a virtual machine that has KVM: a sandbox's, without a listener, and with the commands of KVM. */
void seccomp_compile_kvm(struct seccomp_filter *filter);

/* Installs the filter on the calling thread, which must have no_new_privs. Returns the listener's
 * descriptor with `listen`, else 0, or -1 with errno. No heap, no locks: runs between clone and exec. */
int seccomp_install(const struct seccomp_filter *filter, bool listen);

/* seccomp_check.c: of programs of any version. */

/* Makes the quiet form, in place: what waits for a listener says EPERM by itself. */
void seccomp_quiet(struct sock_filter *code, size_t len);
bool seccomp_is_quiet(const struct sock_filter *code, size_t len);
/* A program's name is the hash of its quiet form: both forms have the same. */
void seccomp_name(const struct sock_filter *code, size_t len, unsigned char ret[SHA256_LEN]);
/* Whether a quiet program refuses, by itself, what no version of cove allows: it is one of ours, or as good. */
bool seccomp_confines(const struct sock_filter *code, size_t len);

#endif
