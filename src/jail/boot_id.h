/* boot_id.h - what a sandbox reads as the id of this boot: its own, from one start of its PID 1 to the next.
 *
 * The host's would tell two sandboxes that they share a machine, and would not change when one starts again. The id is a
 * file of the sandbox's disk, beside what it sees of that disk, so that a saved sandbox has the same after a restore.
 *
 * Callers: mounts.c, for a start; driver/jail/stage.c, for a restore. Both with the disk attached at /disk. */
#ifndef COVE_JAIL_BOOT_ID_H
#define COVE_JAIL_BOOT_ID_H

#include "base/err.h"

#include <stdbool.h>

#define BOOT_ID_NAME "sys/kernel/random/boot_id" /* below /proc */

/* again: also where there is one. With the file ids of the sandbox's root. A disk that is full has none, which is no failure. */
int boot_id_make(bool again, struct err *err);

/* A detached, read-only mount of it; of /dev/null, if there is none. -1 and errno. */
int boot_id_mount(void);

#endif
