/* volume.h - which volumes there are, and which sandbox has which: at most one writes, any number reads.
 *
 * Who has what is in the sandboxes' own records and, of those that sleep on disk, in their images, so it is known again
 * after a restart; the files are <state>/volumes/<id>.img.
 * Mounts are made by the disk maker (disk/volume_maker.c) and held by the sandboxes' mount namespaces alone: there is nothing
 * to unmount.
 *
 * Callers: create.c, ops.c.
 * Never:   names and tenants; those are the server's. */
#ifndef COVE_KEEPER_VOLUME_H
#define COVE_KEEPER_VOLUME_H

#include "keeper/keeper.h"

/* ---- in a sandbox ---- */

/* They are there, and no other sandbox writes to what that sandbox wants to write (ERR_NO_VOLUME, ERR_VOLUME_BUSY). */
int volumes_check(struct keeper *keeper, const char *sandbox,
                  const struct volume_use uses[VOLUMES_MAX], struct err *err);
/* ---- on request ---- */

/* A request of KEEPER_VOLUME_*. 0 or -1: answer at once; 1: *ret_order is under way, and ops_order_done is called. */
int volume_serve(struct keeper *keeper, const struct keeper_request *request,
                 struct keeper_reply *reply, uint32_t *ret_order, struct err *err);

#endif
