/* image_own.h - what image.c and compress.c share, and no other file needs. */
#ifndef COVE_IMAGE_IMAGE_OWN_H
#define COVE_IMAGE_IMAGE_OWN_H

#include "image/image.h"

#define NAME_ROOM (ID_LEN + 8)
#define NEW       ".new"
#define META      "meta"
#define OLD       ".old"  /* being removed */
#define FILL      ".fill" /* of fill.c: a file */
#define PACK      ".pack" /* to take the place of the one without, or what it took the place of */

/* Of memory/, when its pages are compressed. */
#define PACK_LIST "chunks"
#define PACK_DATA "packed"

int image_open_dir(const struct images *images, const char *id, const char *suffix);
int image_read_meta(const struct images *images, const char *id, const char *suffix,
                    struct image_meta *ret, struct err *err);
int image_write_meta(const struct images *images, int dir_fd, const char *name,
                     struct image_meta *meta, struct err *err);

typedef int image_file_fn(int fd, const char *name, void *arg, struct err *err);
int image_each_file(int dir_fd, const char *skip, image_file_fn *fn, void *arg, struct err *err);

/* One more file of this name and hash, into a sum as image_hash() makes it. */
int image_hash_join(const struct images *images, const char *name,
                    const unsigned char hash[SHA256_LEN], unsigned char sum[SHA256_LEN],
                    struct err *err);

#endif
