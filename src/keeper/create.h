/* create.h - a sandbox from a request to its agent's first word.
 *
 * Callers: ops.c begins, main.c's loop brings disks; the rest happens on events. */
#ifndef COVE_KEEPER_CREATE_H
#define COVE_KEEPER_CREATE_H

#include "keeper/keeper.h"

/* Begins; the end is announced by ops_sandbox_started or ops_sandbox_gone. */
int create_begin(struct keeper *keeper, const struct keeper_request *request, int connection,
                 struct sandbox **ret, struct err *err);

/* Whose it is: id, name, host name, flags, the time of its create, and what it is tied to. */
void create_name(struct sandbox *sandbox, const struct keeper_request *request, int connection);
/* From an image: the sandbox that it is, on its disk, or another one on a disk over it. */
int create_from_image(struct keeper *keeper, const struct keeper_request *request,
                      const struct image_meta *meta, bool same, bool files_only,
                      struct sandbox **ret, struct err *err);

/* What comes of it, once the image has no more layers than can be: its disks are ordered. */
void create_over_image(struct keeper *keeper, struct sandbox *sandbox, const struct image_meta *meta);

/* Starts it, if all its disks are there. */
void create_go_on(struct keeper *keeper, struct sandbox *sandbox);
/* It runs: written down, and told to whoever waits. */
void create_running(struct keeper *keeper, struct sandbox *sandbox);

/* The id maps of a process in a user namespace of its own. */
int create_write_maps(int pid, uint32_t base, struct err *err);

/* A disk on order arrived (mount_fd, or -1 and why). False: nobody waits for it any more; it is still the caller's. */
bool create_got_disk(struct keeper *keeper, uint32_t order, int mount_fd, const struct err *why);

/* The child's word on the control socket: its failure, or the end of the socket at exec. */
void create_on_control(struct keeper *keeper, struct watch *watch);

/* A failure (its length is that of *ret), a word about the filter, which is taken (1), or the end (0); -1 with EAGAIN:
 * nothing yet. */
ssize_t create_hear_child(struct sandbox *sandbox, int control, struct err *ret);
/* Once the agent listens: what kind of filter there is is known, and the listener is ours, too; or it is an error. */
int create_take_listener(struct keeper *keeper, struct sandbox *sandbox, struct err *err);

#endif
