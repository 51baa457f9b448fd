/* image_import.h - an image becomes a template: starts cove-import, serves it the image's files, keeps what it made.
 *
 * cove-import reads the image; this side opens files for it, by names of a fixed form, and believes nothing it says:
 * lines of the manifest go through the manifest's own parser.
 *
 * Callers: the template verb, cli/up/pulls.c. Needs root. */
#ifndef COVE_TEMPLATE_IMAGE_IMPORT_H
#define COVE_TEMPLATE_IMAGE_IMPORT_H

#include "base/err.h"
#include "template/maker.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct image_spec {
    const char *name;    /* of the template */
    const char *program; /* the path of cove-import */
    uid_t uid;           /* whom cove-import runs as */
    gid_t gid;
    int archive_fd;       /* a file of docker save or of OCI; -1: a layout */
    int layout_fd;        /* a directory with index.json and blobs/sha256 */
    const char *manifest; /* a digest to begin with instead of index.json; NULL */
    /* Opens the blob of that digest, in hex; used instead of layout_fd if it is not NULL. */
    int (*open_blob)(void *context, const char *hex, int *ret_fd, struct err *err);
    void *context;
    const char *tag; /* which image of several; NULL: there is one */
    bool squash_ids;
    /* Of a tenant: every layer is read, though the image may be here already, and what cove-import made is believed by no
     * other import. So none learns what another has, and a cove-import that a layer has taken over harms its own image alone. */
    bool alone;
    uint64_t bytes_most; /* of all content; 0: as any image */
    const char *from;    /* what the manifest says of its origin */
};

struct image_result {
    bool was_there; /* another template has the same image: nothing was written */
    uint64_t bytes, files, wall_ms;
};

int template_import(const struct template_maker *maker, const char *state,
                    const struct image_spec *spec, struct image_result *ret, struct err *err);

#endif
