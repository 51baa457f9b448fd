/* volume.h - which volumes there are, and which sandbox has which: at most one writes, any number reads.
 *
 * Who has what is in the sandboxes' own records and, of those that sleep on disk, in their images, so it is known again
 * after a restart; the files are <state>/volumes/<id>.img.
 * Mounts are made by the disk maker (volume_maker.c) and held by the sandboxes' mount namespaces alone: there is nothing
 * to unmount.
 *
 * Owns:    the descriptors of a sandbox's volumes while it starts.
 * Callers: create.c, ops.c, sandbox.c; whoever saves or loads a sandbox.
 * Never:   names and tenants; those are the server's. */
#ifndef COVE_KEEPER_VOLUME_H
#define COVE_KEEPER_VOLUME_H

#include "keeper/keeper.h"

/* ---- in a sandbox ---- */

/* They are there, and nobody else writes to what that sandbox wants to write (ERR_NO_VOLUME, ERR_VOLUME_BUSY). */
int volumes_check(struct keeper *keeper, const char *sandbox,
                  const struct volume_use uses[VOLUMES_MAX], struct err *err);
/* Orders a mount of each of sandbox->volumes. They come by create_got_disk. */
int volumes_order(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
/* Whether that order is one of them. It takes the descriptor. */
bool volumes_take(struct sandbox *sandbox, uint32_t order, int mount_fd);
bool volumes_here(const struct sandbox *sandbox);
/* Gives each mount the sandbox's ids and, where asked for, makes it read-only. */
int volumes_map(const struct sandbox *sandbox, int userns_fd, struct err *err);
/* The starting sandbox has them now, or never will. */
void volumes_let_go(struct sandbox *sandbox);

/* What a sandbox has mounted beyond its root, /proc, /sys and /dev, in the order in which it was mounted: to a checkpoint
 * these are external mounts. A sandbox that is loaded takes them again by volumes_check and volumes_order. */
size_t volumes_of(const struct sandbox *sandbox, const struct volume_use **ret);

/* ---- on request ---- */

/* A request of KEEPER_VOLUME_*. 0 or -1: answer at once; 1: *ret_order is under way, and ops_order_done is called. */
int volume_serve(struct keeper *keeper, const struct keeper_request *request,
                 struct keeper_reply *reply, uint32_t *ret_order, struct err *err);

#endif
