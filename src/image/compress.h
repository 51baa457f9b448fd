/* compress.h - the memory of an image that was not needed for long, made smaller; and made plain again for a load.
 *
 * A compressed image is a directory of its own beside the plain one, <id>.pack, in which the files that criu parses are
 * the same (linked), pages-*.img are empty, and `packed` has their chunks, `chunks` the list of them (pack.h). When it is
 * on disk for good the two change names at once: whenever a process is killed, <id> is whole, and the other is swept away.
 * What was signed of the parsed files stays signed as it was; of the pages, the list is, in their place.
 *
 * Plain pages for a load are files without names: they are gone with the last who reads them.
 *
 * Callers: driver/shrink.c; driver/jail/loader.c, driver/guest/loader.c. */
#ifndef COVE_IMAGE_COMPRESS_H
#define COVE_IMAGE_COMPRESS_H

#include "image/image.h"
#include "image/pack.h"

/* Makes <id>.pack. The image itself is not locked: a load, a drop may come meanwhile, and this fails then. Before it is done its
 * chunks are opened again, and compared with what was signed. In a worker, which ends soon after: until then it
 * holds the new one's lock. */
int compress_image(const struct images *images, const char *id, struct image_meta *ret,
                   struct err *err);
/* It takes its place. ERR_STATE: another worker works on the image. By the keeper, who alone drops images. */
int compress_commit(const struct images *images, const char *id, struct err *err);
/* What is left of one that was not to be. */
void compress_undo(const struct images *images, const char *id);

#define DECOMPRESS_WAYS 4

struct decompress {
    struct pack pack;
    int from_fd; /* -1: nothing was begun */
    int *to_fd;
    pid_t child[DECOMPRESS_WAYS];
};

struct decompress_place {
    /* the image's directory, by a name of our own mounts: what is in it can be attached */
    const char *dir;
    /* where criu will look for its files: plain pages are attached over the empty ones */
    const char *at;
};

/* Begins, once the list is compared with what was signed. dir_fd: the image's directory, to write in. place: NULL of pages that are
 * read from d->to_fd alone. */
int decompress_begin(struct decompress *d, const struct images *images,
                     const struct image_meta *meta, int dir_fd,
                     const struct decompress_place *place, struct err *err);
/* Waits. ERR_DENIED: the pages were changed by another process. */
int decompress_wait(struct decompress *d, struct err *err);
/* A file without a name in the image's directory, with room for so many bytes: for plain pages of an image that is not compressed. */
int decompress_room(int dir_fd, uint64_t size, struct err *err);
/* On whatever was begun, or not. */
void decompress_done(struct decompress *d);

#endif
