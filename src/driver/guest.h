/* guest.h - what drivers share whose sandbox is a guest in a jail, behind a bridge (src/bridge).
 *
 * Callers: driver/gvisor, driver/vm. */
#ifndef COVE_DRIVER_GUEST_H
#define COVE_DRIVER_GUEST_H

#include "driver/host.h"

/* Disk use is that of the file system at `path`, a name of the jail around the guest, which no process of the tenant's sees. */
int guest_stats(struct keeper *keeper, const struct sandbox *sandbox, const char *path, bool brief,
                struct keeper_stats *ret, struct err *err);

/* vm: which limits a keeper sets again (jail/machine.h). */
void guest_adopt(struct keeper *keeper, struct sandbox *sandbox, bool vm);

/* Of struct driver, as they are. */
int guest_resumed(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
void guest_leave_disk(struct keeper *keeper, const struct sandbox *sandbox);
const char *guest_why_lost(struct keeper *keeper, const struct sandbox *sandbox);
bool guest_settle(struct keeper *keeper, struct sandbox *sandbox);

#endif
