/* guest.h - starting what the bridge leads to. One function for each isolation that has a bridge; main.c has the table.
 *
 * Runs with the rights of the jail around a guest (jail/machine.h), before the bridge gives them up and before any byte of the guest's
 * is read. */
#ifndef COVE_BRIDGE_GUEST_H
#define COVE_BRIDGE_GUEST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a virtual machine: who reads the template for it, where that is no disk, and who has its volumes, if there are any. */
enum guest_helper { GUEST_TEMPLATE, GUEST_VOLUMES, GUEST_HELPERS };

/* As argv[6] of the bridge says (wire/boot.h). */
enum guest_way { GUEST_START, GUEST_LOAD, GUEST_MAKE, GUEST_COPY };

struct guest_start {
    /* of the agent: its program as the guest sees it, then its arguments; NULL at the end */
    char **argv;
    char **envp;
    const char *volumes; /* as wire/boot.h has them */
    int trunk;           /* the guest's end: becomes its standard input */
    int log; /* for what the guest's program says: the end of a pipe, which is never waited for */
    /* each of the programs beside the guest's own holds one as long as it lives: its end is the guest's */
    int helper[GUEST_HELPERS];
    int monitor; /* of a virtual machine: QEMU's end of the line for qmp.h */
    enum guest_way way;
    /* of a virtual machine */
    bool emulated;        /* without KVM */
    const char *roots;    /* what the template is: argv[7] of the bridge */
    uint32_t patience_ms; /* with its start */
    /* of the sandbox's limits; for a virtual machine */
    uint32_t cpus;
    uint64_t memory; /* of the machine */
    uint64_t inodes;
    const char *processes; /* in decimal */
};

/* The last line that was said on the log, in plain characters; "nothing" if there is none. */
void guest_last_words(char *out, size_t size);

/* gVisor, by runsc: returns when the guest's first process was started or, of one that is to be loaded, when its kernel waits. */
int guest_start_gvisor(struct guest_start *start, struct err *err);

/* A virtual machine, by QEMU, on KVM or without: returns when QEMU was started. */
int guest_start_vm(struct guest_start *start, struct err *err);
int guest_start_vm_emulated(struct guest_start *start, struct err *err);

#endif
