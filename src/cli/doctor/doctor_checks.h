/* doctor_checks.h - what a host must, should and could offer: one table of checks.
 *
 * A check reads files below doctor_host.root_fd ("/", or a made-up tree in tests) or asks a probe,
 * and finds a status and a value. What it means and how to fix it stand in its row.
 *
 * Callers: doctor.c, tests.
 * Never:   changes anything. */
#ifndef COVE_CLI_DOCTOR_CHECKS_H
#define COVE_CLI_DOCTOR_CHECKS_H

#include "cli/doctor/doctor_probes.h"

#include <stdbool.h>
#include <stddef.h>

enum doctor_status {
    DOCTOR_OK,
    DOCTOR_NOTE, /* good to know: something is not offered, or less than a big host has */
    DOCTOR_WARN, /* sandboxes run, but a layer is missing or weakened */
    DOCTOR_FAIL, /* sandboxes cannot run */
    DOCTOR_STATUS_COUNT
};
const char *doctor_status_name(enum doctor_status status);

struct doctor_host {
    int root_fd;
    const char *state;
    const struct doctor_probes *probes;
};

struct doctor_finding {
    enum doctor_status status;
    char value[160];
    char fix[200]; /* "" : the row's */
};

enum doctor_test { TEST_NONE, TEST_EQUALS, TEST_LEAST, TEST_EXISTS };

struct doctor_check {
    const char *id; /* in JSON */
    const char *group;
    const char *title;
    void (*run)(const struct doctor_host *host, const struct doctor_check *check,
                struct doctor_finding *ret);
    const char *meaning; /* why one wants it */
    const char *fix;     /* a command, or a sentence; NULL: nothing to do */
    /* For the runners that many rows share: */
    const char *name; /* a file, a namespace, a controller, a program */
    enum doctor_test test;
    long long wanted;
    enum doctor_status otherwise; /* when it is not so */
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_check_count;

/* What sandboxes get here, as one sentence; `findings` in the table's order. */
void doctor_verdict(const struct doctor_finding *findings, char *out, size_t size);

/* Sandboxes can run: nothing failed. */
int doctor_can_run(const struct doctor_finding *findings);

/* Shared by the files of checks. */
void doctor_set(struct doctor_finding *ret, enum doctor_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The first line of a file, without its newline; -1 when there is none. */
int doctor_line(const struct doctor_host *host, const char *path, char *out, size_t size);
/* The value of "Key:\tvalue" in a file such as /proc/self/status; -1 when there is none. */
int doctor_field(const struct doctor_host *host, const char *file, const char *key, char *out,
                 size_t size);
/* A whole file for the caller to free, or NULL. */
char *doctor_text(const struct doctor_host *host, const char *path);
int doctor_exists(const struct doctor_host *host, const char *path);
bool doctor_is_root(const struct doctor_host *host);
bool doctor_has_word(const char *list, const char *word, const char *separators);

/* Runners of rows, by file. */
#define DOCTOR_RUN(name)                                                                           \
    void name(const struct doctor_host *host, const struct doctor_check *check,                    \
              struct doctor_finding *ret)
DOCTOR_RUN(check_kernel);
DOCTOR_RUN(check_root);
DOCTOR_RUN(check_namespace);
DOCTOR_RUN(check_user_namespace);
DOCTOR_RUN(check_controller);
DOCTOR_RUN(check_cgroup_kill);
DOCTOR_RUN(check_io);
DOCTOR_RUN(check_swap);
DOCTOR_RUN(check_filesystem);
DOCTOR_RUN(check_overlay);
DOCTOR_RUN(check_idmap);
DOCTOR_RUN(check_layers);
DOCTOR_RUN(check_loop);
DOCTOR_RUN(check_seccomp);
DOCTOR_RUN(check_landlock);
DOCTOR_RUN(check_device);
DOCTOR_RUN(check_kvm);
DOCTOR_RUN(check_criu);
DOCTOR_RUN(check_swap_space);
DOCTOR_RUN(check_lazy_restore);
DOCTOR_RUN(check_program);
DOCTOR_RUN(check_gvisor);
DOCTOR_RUN(check_vm);
DOCTOR_RUN(check_number);
DOCTOR_RUN(check_switch);
DOCTOR_RUN(check_core_pattern);
DOCTOR_RUN(check_vulnerabilities);
DOCTOR_RUN(check_open_files);
DOCTOR_RUN(check_capability);
DOCTOR_RUN(check_disk);
DOCTOR_RUN(check_memory);
DOCTOR_RUN(check_keeper);
DOCTOR_RUN(check_templates);

#endif
