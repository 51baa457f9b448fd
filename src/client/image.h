/* image.h - saved sandboxes, as asked of the keeper.
 *
 * An image is a sandbox on disk: its files, and its processes where wanted. A sandbox that is paused to disk is
 * the image of its own id and is not among the sandboxes any more; a snapshot is an image with an id of its own.
 *
 * Callers: the command line, the API's operations. */
#ifndef COVE_CLIENT_IMAGE_H
#define COVE_CLIENT_IMAGE_H

#include "client/link.h"

#include <stdbool.h>

/* Saves a sandbox; flags are KEEPER_SAVE_*. Connections to its agent are closed by it; its processes continue and can be
 * attached again. ERR_UNSUPPORTED says that it cannot be saved, and why: then it continues as if nothing had
 * been asked, as after every failure. */
int image_save(struct link *link, const char *sandbox, const char *image, const char *owner,
               uint32_t flags, struct keeper_image *ret, struct err *err);

struct image_load_spec {
    const char *image;
    const char *owner; /* as it was saved with; NULL: "" */
    const char *id; /* the image's own: the sandbox that was saved continues; another: a new one */
    const char *name;          /* NULL: none */
    const char *hostname;      /* NULL: the name, or else the id */
    bool files_only;           /* without the processes that it has */
    const uint32_t *isolation; /* enum isolation, of files alone; NULL: the image's */
    struct limits limits;      /* of a new one; what is 0 is as the image has it */
    /* KEEPER_FLAG_POOLED: for the pool; KEEPER_FLAG_TAKE: out of it, if there is one */
    uint32_t flags;
};

/* A sandbox from an image. On failure the image is as it was; ERR_DENIED: the owner is another, or the image
 * is not as it was written. */
int image_load(struct link *link, const struct image_load_spec *spec, struct keeper_sandbox *ret,
               struct err *err);

int image_get(struct link *link, const char *image, struct keeper_image *ret, struct err *err);
/* ERR_NOT_FOUND: it is gone already. */
int image_drop(struct link *link, const char *image, struct err *err);

/* Its memory, made smaller, which may take long; wait: until it is done. One that is compressed already is no error.
 * ERR_TOO_MANY: another one is being compressed; ERR_STATE: it has none, or was needed meanwhile. */
int image_compress(struct link *link, const char *image, bool wait, struct keeper_image *ret,
                   struct err *err);

/* All of them, in one array for the caller to free. */
int image_list(struct link *link, struct keeper_image **ret_list, size_t *ret_count,
               struct err *err);

/* The memory of a frozen sandbox goes to swap, as much as the kernel can; ERR_UNSUPPORTED: there is no swap. */
int sandbox_reclaim(struct link *link, const char *sandbox, uint64_t *ret_bytes, struct err *err);

#endif
