/* image_store.h - the files of templates that are images: <state>/templates/.layers.
 *
 *   .layers/<key>.erofs      an image, or the upper part of one; templates have hard links to it, so that two of the same image share it
 *   .layers/<key>.manifest   what its templates' manifests say
 *   .layers/<key>.erofs      without a manifest: a file below others, which images with the same lower layers share, or a tenant's image
 *   .layers/new.<pid>.<n>    being made; its maker holds a lock on it
 *   .layers/blobs/<hex>      a layer or config that was downloaded; <hex>.part: as far as it came
 *   .layers/lock             held, shared, by imports; by a collection, alone
 *
 * Owns:    that directory. A file with one link is no template's, and goes with 'cove gc'. */
#ifndef COVE_TEMPLATE_IMAGE_STORE_H
#define COVE_TEMPLATE_IMAGE_STORE_H

#include "base/err.h"
#include "template/manifest.h"

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_KEY_MAX   65 /* 64 hex digits and the NUL */
#define IMAGE_FILES_MAX (MANIFEST_BELOW_MAX + 1)

struct image_store {
    int dir_fd, lock_fd;
    size_t new_count;            /* files that were begun, the lowest first */
    int new_fd[IMAGE_FILES_MAX]; /* -1: kept */
};

/* Makes the directory if it is missing; removes what makers that died have left. */
int image_store_open(struct image_store *store, int templates_fd, struct err *err);
/* An image that was begun and not kept goes. */
void image_store_close(struct image_store *store);

/* An empty file to write an image to, or its next file: the last of store->new_fd. ERR_TOO_MANY. */
int image_store_begin(struct image_store *store, struct err *err);
/* Of a file that only its own import believes, and of those that images share: a key that stands for the bytes of the file. No
 * process may write to the file any more. */
int image_store_name(const struct image_store *store, size_t file, char ret_key[IMAGE_KEY_MAX],
                     struct err *err);
/* It is whole, and gets its name. manifest NULL: later imports do not find it. One that is there already is kept instead: its content is the same. */
int image_store_keep(struct image_store *store, size_t file, const char *key,
                     const struct manifest *manifest, struct err *err);

/* Whether there is an image of that key, with all its files, and what its manifest says. */
bool image_store_find(const struct image_store *store, const char *key, struct manifest *ret);
/* Another link to it. */
int image_store_link(const struct image_store *store, const char *key, int dir_fd, const char *name,
                     struct err *err);

/* An empty file without a name, for what is downloaded and not kept. */
int image_store_temporary(int templates_fd, int *ret_fd, struct err *err);
/* The directory of what was downloaded, made if it is missing. */
int image_store_blobs(int templates_fd, int *ret_fd, struct err *err);

/* Removes images that no template has and later imports do not find: a tenant's. Does nothing while an import runs. */
int image_store_prune(int templates_fd, struct err *err);

/* Removes downloads, and images that no template has, and calls `removed` for each. Does nothing while an import runs. dry_run: only calls. */
int image_store_collect(int templates_fd, bool dry_run,
                        void (*removed)(void *context, const char *key, uint64_t bytes),
                        void *context, struct err *err);

#endif
