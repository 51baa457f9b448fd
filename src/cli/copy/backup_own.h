/* backup_own.h - what the modules of the verb `backup` share: one backup while it is made.
 *
 * A backup is the state of one moment, its end: images first, each only if it stayed as it was until the end; then the trees of templates that they stand
 * on; then volumes; the store last. Nothing is locked and no program waits, except those that write to a volume which must be
 * copied on a file system without clones (backup_volumes.c).
 *
 * Owns:    the lists of what was taken.
 * Callers: backup.c, backup_images.c, backup_templates.c, backup_volumes.c. */
#ifndef COVE_CLI_BACKUP_OWN_H
#define COVE_CLI_BACKUP_OWN_H

#include "backup/keys.h"
#include "backup/manifest.h"
#include "backup/sink.h"
#include "base/parse.h"
#include "cli/progress.h"
#include "image/image.h"

/* An image that is in the backup. */
struct backup_image {
    char id[ID_LEN + 1];
    unsigned char meta[SHA256_LEN]; /* hash of its meta: another one, another image */
    char template[KEEPER_NAME_MAX];
    uint64_t template_inode;
    uint64_t own_disk; /* 0: it has none of its own; the one that a resume writes to again */
};

struct backup {
    int state_fd;
    struct sink *sink;
    struct backup_manifest manifest;
    struct keys keys;
    struct images images; /* dir_fd and key: for reading metas */
    struct backup_image *taken;
    size_t taken_count, taken_room;
    void *disks; /* tsearch: numbers of disks that are in the backup */
    uint64_t hold_ms;
    bool all_trees;
    uint64_t total;  /* bytes to read, about */
    size_t left_out; /* things that are not in it and should be */
    struct progress progress;
};

/* One file of the state, into the backup. 1: it is not there, or changed while it was read. */
int backup_take(struct backup *b, int at, const char *name, const char *path, struct err *err);
/* An open one. */
int backup_take_fd(struct backup *b, int fd, const char *path, uint32_t mode, struct err *err);
/* Says what is not in the backup, and why. */
void backup_left_out(struct backup *b, const char *what, const char *why);
void backup_show(struct backup *b, const char *step);

/* Every image that is whole and was not taken yet, with its disks. late: volumes are copied already, so that an image that writes to one
 * would not fit to it. */
int backup_images(struct backup *b, bool late, struct err *err);
/* Those that are no longer as they were are dropped. */
int backup_images_check(struct backup *b, struct err *err);
/* About what images take, with their disks. */
uint64_t backup_images_bytes(struct backup *b);

/* Settings of all templates, and the trees that images stand on, or all. */
int backup_templates(struct backup *b, struct err *err);
uint64_t backup_templates_bytes(struct backup *b);

int backup_volumes(struct backup *b, struct err *err);
uint64_t backup_volumes_bytes(struct backup *b);

#endif
