/* restore_disk.h - the disk of a paused sandbox on a template's tree that is another directory than it was.
 *
 * An overlay notes in its upper layer which directories below it belong to which of its own, by handles of the file system. Those of a tree that was
 * unpacked elsewhere are different, and the kernel then refuses the overlay, or leaves out what is below. So the notes go; the
 * next mount makes new ones.
 *
 * Callers: restore.c. Needs root.
 * Never:   follows a link, or uses a name of the sandbox's but relative to its directory. */
#ifndef COVE_CLI_RESTORE_DISK_H
#define COVE_CLI_RESTORE_DISK_H

#include "base/err.h"

/* disk_fd: the disk's file, open for writing; it is mounted nowhere. */
int restore_disk(int disk_fd, struct err *err);

#endif
