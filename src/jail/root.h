/* root.h - a sandbox's root file system, as a detached mount: template below, disk above.
 *
 * Callers: driver/jail/launch.c and stage.c, with the sandbox's user namespace made and its maps written. */
#ifndef COVE_JAIL_ROOT_H
#define COVE_JAIL_ROOT_H

#include "base/err.h"
#include "jail/template.h"
#include "wire/keeper.h"
#include "wire/layers.h"

#include <stdint.h>

/* Detached mounts, of disk.c: the sandbox's own, and those it only reads, the nearest first. */
struct root_layers {
    int disk_fd; /* a DISK_IMAGE gets its id mapping here */
    enum keeper_disk kind;
    size_t base_count;
    int base_fd[LAYERS_MAX];               /* clones of the sandbox's own: root_own_bases() */
    size_t template_count;                 /* 0, until root_assemble() */
    int template_fd[1 + LAYERS_BELOW_MAX]; /* its clones of the template's: root_close_template() */
};

/* Replaces each descriptor of a disk's mount by one of a detached clone of that mount, which the caller owns. -1: none of
 * them was replaced. */
int root_own_bases(int *base_fd, size_t count, struct err *err);
/* A disk's mount as root_own_bases() needs it. Linux before 6.15 clones only what is attached in the caller's mount namespace:
 * then the mount is attached at /bases/<place>, until root_base_close(). */
int root_base_open(int mount_fd, size_t place, struct err *err);
void root_base_close(int *mount_fd, size_t place);

/* ret_shm_fd: what becomes /dev/shm, where that is not simply the disk's; else -1. The overlay needs none of the layers' descriptors any
 * more, but each close of a clone that was never attached waits for a grace period: better when no process waits for the caller. */
int root_assemble(const struct template *t, struct root_layers *layers, int userns_fd,
                  uint32_t uid_base, int *ret_root_fd, int *ret_shm_fd, struct err *err);

void root_close_template(struct root_layers *layers);

/* Once, at start: whether this kernel clones and joins detached mounts. */
int root_learn(struct err *err);
/* Before that: as on a kernel that does not, for tests of that path. */
void root_stage_layers(void);

#endif
