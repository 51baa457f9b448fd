/* root.h - a sandbox's root file system, as a detached mount: template below, disk above.
 *
 * Callers: keeper/sandbox.c, with the sandbox's user namespace made and its maps written. */
#ifndef COVE_KEEPER_ROOT_H
#define COVE_KEEPER_ROOT_H

#include "base/err.h"
#include "keeper/template.h"
#include "wire/keeper.h"

#include <stdint.h>

/* disk_fd: the detached mount of disk.c; a DISK_IMAGE gets its id mapping here. */
int root_assemble(const struct template *t, int disk_fd, enum keeper_disk kind, int userns_fd,
                  uint32_t uid_base, int *ret_root_fd, struct err *err);

/* From now on as on a kernel that cannot mount an overlay of detached layers: for tests of that path. */
void root_stage_layers(void);

#endif
