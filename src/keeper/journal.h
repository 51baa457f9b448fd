/* journal.h - what was meant: one record per slot, in one file of fixed-size records.
 *
 * A record is written before the first act of a create or destroy and cleared after the last. Each is
 * one pwrite of one page-aligned part, so that a killed keeper leaves the old or the new, and a
 * checksum, so that a torn one after a power cut counts as empty: sandboxes do not outlive
 * the kernel, so nothing is lost by not waiting for the disk. The boot id tells a
 * record of this boot from one whose processes are gone with the machine's last run. */
#ifndef COVE_KEEPER_JOURNAL_H
#define COVE_KEEPER_JOURNAL_H

#include "base/err.h"
#include "base/sha256.h"
#include "wire/keeper.h"
#include "wire/layers.h"

/* How the sandbox's filter answers what it refuses. */
enum filter_form {
    FILTER_UNKNOWN, /* made by a version that did not write it down */
    FILTER_LISTENS, /* by a listener: the agent has it, and the keeper a duplicate */
    FILTER_QUIET,   /* by itself: processes that were restored */
};

struct journal {
    int fd;
    uint8_t boot[16];
};

struct journal_record {
    struct keeper_sandbox sandbox;
    struct layers layers;
    uint64_t template_inode;
    char hostname[KEEPER_NAME_MAX];
    struct volume_use volumes[VOLUMES_MAX];
    char image[KEEPER_NAME_MAX];  /* while STARTING, and in the pool: what it is loaded from */
    uint64_t pid_started;         /* field 22 of /proc/<pid>/stat: tells a pid from its reuse */
    uint64_t build;               /* of its template: template.h */
    char cgroup[KEEPER_NAME_MAX]; /* name of its cgroups */
    /* What is new is behind what was: records of the version before end here, and are read. */
    uint32_t was_frozen;              /* while PAUSING: before it was saved, and is to be again */
    uint32_t filter_form;             /* enum filter_form; the version before wrote 0 */
    unsigned char filter[SHA256_LEN]; /* name of the filter that it was made with: jail/seccomp.h */
    uint32_t doomed;                  /* while PAUSING or STARTING: it was destroyed meanwhile */
    uint32_t io_device; /* number of its loop device + 1; the version before wrote 0 */
    /* of a virtual machine: the layers below its disk are disks of it, too; the version before wrote 0 */
    uint32_t template_disks;
};

int journal_open(struct journal *journal, int state_fd, struct err *err);
void journal_close(struct journal *journal);

int journal_write(const struct journal *journal, uint32_t slot, const struct journal_record *record,
                  struct err *err);
int journal_clear(const struct journal *journal, uint32_t slot, struct err *err);

/* How many slots the journal has; those behind were never written. */
uint32_t journal_slots(const struct journal *journal);
/* 1 a record of this boot, 0 none (or of an earlier boot, or torn), -1 error. */
int journal_read(const struct journal *journal, uint32_t slot, struct journal_record *ret,
                 struct err *err);

#endif
