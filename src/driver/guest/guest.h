/* guest.h - what drivers share whose sandbox is a guest in a jail, behind a bridge (src/bridge).
 *
 * Callers: driver/gvisor, driver/vm. */
#ifndef COVE_DRIVER_GUEST_GUEST_H
#define COVE_DRIVER_GUEST_GUEST_H

#include "driver/host.h"
#include "driver/worker.h"
#include "jail/machine.h"

#include <sys/stat.h>

/* How guests of a driver are saved and loaded: driver->guest. */
struct guest_kind {
    const char *program; /* who writes and reads a guest's state, by name */
    /* what one version of it saved no other loads; "": there is none here, or it does not tell; or `file`, if not NULL, is another than
     * this host has */
    void (*version)(const struct stat *file, char *out, size_t size);
    const char *file; /* of the program, where the jail around the guest has it */
    const char *disk; /* where the jail around the guest has the sandbox's disk */
    uint64_t beside;  /* a state is as large as the sandbox's memory and so much more, at most */
    bool from_file;   /* it is loaded from a file, not out of a pipe */
    /* a loaded guest answers while its commands stand still, and changes nothing on its disk by that */
    bool answers;
    /* The jail around it; the sandbox has the template that this is of, from then on. `done` closes what that opened. */
    int (*machine)(const struct keeper *keeper, struct sandbox *sandbox, int templates_fd,
                   struct machine *ret, struct err *err);
    void (*done)(struct machine *machine);
};

/* Disk use is that of the file system at `path`, a name of the jail around the guest, which no process of the tenant's sees. */
int guest_stats(struct keeper *keeper, const struct sandbox *sandbox, const char *path, bool brief,
                struct keeper_stats *ret, struct err *err);

/* vm: which limits a keeper sets again (jail/machine.h). */
void guest_adopt(struct keeper *keeper, struct sandbox *sandbox, bool vm);

/* ERR_UNSUPPORTED: the memory of that image is another version's. */
int guest_check_version(const struct guest_kind *kind, const struct image_meta *meta,
                        struct err *err);

/* The worker of one that is loaded with its memory; loader.c. */
int guest_loader(struct worker *worker, const struct keeper_request *request, struct err *err);

/* Of struct driver, as they are. */
int guest_save(struct keeper *keeper, struct sandbox *sandbox, const struct keeper_request *request,
               struct err *err);
int guest_resumed(struct keeper *keeper, struct sandbox *sandbox, struct err *err);
void guest_leave_disk(struct keeper *keeper, const struct sandbox *sandbox);
const char *guest_why_lost(struct keeper *keeper, const struct sandbox *sandbox);
bool guest_settle(struct keeper *keeper, struct sandbox *sandbox);

#endif
