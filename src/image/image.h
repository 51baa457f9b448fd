/* image.h - saved sandboxes on disk: <state>/images/<id>/, with meta and, with processes, memory/ for criu's files.
 *
 * An image is written as <id>.new and gets its name by one rename, when everything in it is there: a name without
 * ".new" is whole. A process that works on an image holds a lock on its directory, so that a keeper that comes after a crash knows
 * whether a worker still does.
 *
 * meta carries a code (HMAC, with a key that only root reads) over itself and over the hashes of all of memory/: criu
 * parses those files as root, so it gets none that the keeper did not write. The disk is not hashed: it is
 * of any size, and the kernel's to read, as is the file of every disk.
 *
 * Owns:    <state>/images, <state>/image.key, and the table of what is there.
 * Callers: save.c and loader.c in their workers, ops_image.c, adopt.c and code that asks which disks are whose. */
#ifndef COVE_IMAGE_IMAGE_H
#define COVE_IMAGE_IMAGE_H

#include "base/err.h"
#include "base/sha256.h"
#include "image/chunks.h"
#include "wire/keeper.h"
#include "wire/layers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGES_MAX     8192
#define IMAGE_KEY_LEN  32
#define IMAGE_FILE_MAX 64

/* For the caller; what was being written is in the log. */
#define IMAGE_NO_ROOM "the host's disk has no room for the image"

/* A volume that a sandbox has although it sleeps. */
struct image_claim {
    char volume[VOLUME_ID_MAX]; /* "": none */
    bool writes;
};

struct image_entry {
    char id[ID_LEN + 1]; /* "": free */
    struct layers layers;
    /* bit n: layers.number[n] counts for this one: each for one image of those that have it */
    uint32_t charged;
    struct image_claim claims[VOLUMES_MAX]; /* of a paused sandbox; a snapshot has none */
};

struct images {
    int dir_fd;
    unsigned char key[IMAGE_KEY_LEN];
    size_t count;
    size_t unread; /* of those that are there, how many do not even say which disks they need */
    struct image_entry *entry; /* IMAGES_MAX of them */
};

struct image_meta {
    char magic[8];
    uint32_t size; /* of this struct: another layout, another size */
    /* of a virtual machine, as in the journal; others and the version before wrote 0 */
    uint32_t template_disks;
    struct keeper_image image;
    struct layers layers;
    struct volume_use volumes[VOLUMES_MAX];
    uint64_t template_inode; /* of the tree below all layers */
    char hostname[KEEPER_NAME_MAX];
    char kernel[KEEPER_NAME_MAX];  /* release that the processes were saved under */
    char ids_file[IMAGE_FILE_MAX]; /* of memory/: the one with the id map, which a load replaces */
    /* of memory/: what criu parses, and what it only copies; if that is compressed, the list of its chunks */
    unsigned char small[SHA256_LEN], pages[SHA256_LEN];
    unsigned char code[SHA256_LEN];
};

int images_open(struct images *images, int state_fd, struct err *err);

bool images_have(const struct images *images, const char *id);
/* Of an image in the table, or NULL. */
const struct image_entry *images_entry(const struct images *images, const char *id);
/* NULL: there is no place for more. volumes: of a paused sandbox, NULL of a snapshot. */
struct image_entry *images_add(struct images *images, const char *id, const struct layers *layers,
                               const struct volume_use volumes[VOLUMES_MAX]);
void images_forget(struct images *images, const char *id);

/* A directory for a new image, locked, with memory/ in it. In a worker. */
int image_begin(const struct images *images, const char *id, int *ret_dir_fd, struct err *err);
/* Signs meta, and gives the image its name once all of it is on the host's disk. */
int image_commit(const struct images *images, const char *id, int dir_fd, struct image_meta *meta,
                 struct err *err);
/* Of one that is there: another meta is signed and laid beside the old, which counts until the swap. In between the
 * caller sees to it that it is on the host's disk for good. */
int image_prepare(const struct images *images, const char *id, struct image_meta *meta,
                  struct err *err);
int image_swap(const struct images *images, const char *id, struct err *err);
/* A lock on one that is there, with others or alone; ERR_STATE: another worker works on it. */
int image_lock(const struct images *images, const char *id, bool alone, int *ret_dir_fd,
               struct err *err);
/* Whether a worker works on it, in whatever state it is. */
bool image_busy(const struct images *images, const char *id);

/* ERR_NO_IMAGE: there is none; ERR_DENIED: it is not as we wrote it. */
int image_read(const struct images *images, const char *id, struct image_meta *ret,
               struct err *err);

/* When it was last loaded, or else saved: seconds since 1970. And: now it is. */
uint32_t image_used(const struct images *images, const char *id);
void image_use(int dir_fd);

/* Of what is in memory/ but the pages (criu parses it), without or with pages that are compressed. */
enum image_part { IMAGE_PARSED, IMAGE_PARSED_BESIDE_PACK };
int image_hash(const struct images *images, int memory_fd, enum image_part part,
               unsigned char ret[SHA256_LEN], struct err *err);

/* Of the pages, by the hashes of their chunks. */
int image_hash_pages(const struct images *images, const struct chunks *chunks,
                     unsigned char ret[SHA256_LEN], struct err *err);

/* Whether the file system of a descriptor is full: some failures do not say that it is. */
bool image_disk_full(int fd);

/* To disk, with everything in it, for good. */
int image_sync(int dir_fd, struct err *err);
/* To disk: which images there are, by which names. Takes milliseconds: in a worker. */
int image_sync_name(const struct images *images, struct err *err);

/* A resumed sandbox's image loses its name, and gets it back should that fail (false: there is none, or it was
 * spent). Once its processes run it is spent: from then on they are the sandbox. */
int image_retire(const struct images *images, const char *id, struct err *err);
bool image_unretire(struct images *images, const char *id);
bool image_retired(const struct images *images, const char *id);
void image_spend(const struct images *images, const char *id);
/* One that is of no more use goes out of the way at once, for images_clear: its files, thousands for a sandbox with as many
 * processes, take longer to remove than the keeper can wait. */
void image_discard(const struct images *images, const char *id, const char *suffix);
/* Removes what was discarded. */
void images_clear(const struct images *images);
/* Discards what retired ones are left once it is clear which of them count again. */
void images_sweep(struct images *images);

/* The name goes at once, the rest after it. "": what is unfinished. */
void image_remove(const struct images *images, const char *id, const char *suffix);

#endif
