/* image_pull.h - the files of an image for a tenant, out of a registry: starts cove-pull and asks it for one after the other.
 *
 * What cove-pull says of a file is not believed: cove-import compares each with its digest. Files have no names, and are gone with
 * their last descriptor.
 *
 * Callers: cli/up/pulls.c. Needs root. */
#ifndef COVE_TEMPLATE_IMAGE_PULL_H
#define COVE_TEMPLATE_IMAGE_PULL_H

#include "template/maker.h"
#include "wire/pull.h"

#include <sys/types.h>

struct image_pull {
    const struct template_maker *maker;
    const char *program, *dialer; /* paths of cove-pull and cove-dial */
    uid_t uid;                    /* whom cove-pull runs as */
    gid_t gid;
    int templates_fd;             /* borrowed */
    char digest[PULL_DIGEST_MAX]; /* of the manifest, after image_pull_begin */
    /* its own */
    int manifest_fd, sock;
    pid_t pid;
    uint64_t until_ms; /* all downloads: one that a registry has taken over could just wait */
};

/* Gets the manifest. The order's credentials are used for this pull and kept nowhere. */
int image_pull_begin(struct image_pull *pull, const struct pull_order *order, struct err *err);
/* For image_spec.open_blob. */
int image_pull_blob(void *pull, const char *hex, int *ret_fd, struct err *err);
void image_pull_end(struct image_pull *pull);

#endif
