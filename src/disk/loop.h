/* loop.h - the loop device that has a file.
 *
 * Callers: volume_maker.c, and the keeper for the disk of a sandbox that was killed. */
#ifndef COVE_DISK_LOOP_H
#define COVE_DISK_LOOP_H

#include <sys/stat.h>

/* Open for reading; -1: no device has the file. As long as it is open, the kernel does not take the device apart.
 * dev_fd: the host's /dev. */
int loop_find(int dev_fd, const struct stat *file);

#endif
