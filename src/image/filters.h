/* filters.h - the system call filters of saved processes: criu's seccomp.img, core-*.img and pstree.img.
 *
 * After a restore there is no listener: a call that the sandbox's filter refuses must be refused by the filter itself.
 * So a save makes that filter quiet (jail/seccomp.h), and a save or a load where any thread lacks it fails.
 *
 * Owns:    nothing. Callers: save.c and loader.c, in workers. */
#ifndef COVE_IMAGE_FILTERS_H
#define COVE_IMAGE_FILTERS_H

#include "base/err.h"
#include "base/sha256.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTERS_NONE UINT32_MAX

/* One of seccomp.img. A thread's chain begins at its oldest filter; `newer` leads on. */
struct saved_filter {
    struct sock_filter *code; /* borrowed from the list's */
    uint32_t len;             /* instructions */
    uint32_t newer;           /* index, FILTERS_NONE: none */
    uint32_t flags;           /* of seccomp() */
    size_t at;                /* of the code, in the file */
};

struct saved_filters {
    struct saved_filter *filter; /* owned */
    size_t count;
    struct sock_filter *code; /* owned: of all */
};

/* What a core-*.img says of its thread. */
struct saved_thread {
    bool dead;       /* waits to be reaped, runs nothing */
    uint32_t mode;   /* of seccomp; 0: none */
    uint32_t oldest; /* index of its oldest filter */
};

/* Pure; of whole files. False: not in the form that is known here. */
bool filters_parse(const uint8_t *text, size_t len, struct saved_filters *ret);
void filters_free(struct saved_filters *filters);
bool filters_parse_core(const uint8_t *text, size_t len, struct saved_thread *ret);

/* Save: every thread must have the filter of that name (all zero: not recorded, the one of process 1). It becomes quiet. */
int filters_make_quiet(int memory_fd, const unsigned char name[SHA256_LEN], struct err *err);

/* Load: every thread must have one filter of process 1, which is quiet and confines. Returns its name. */
int filters_check(int memory_fd, unsigned char ret_name[SHA256_LEN], struct err *err);

#endif
