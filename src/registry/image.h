/* image.h - one image of a registry: from its name to the manifest of this host's platform, and its blobs.
 *
 * Callers: the command line's pull, cove-pull. */
#ifndef COVE_REGISTRY_IMAGE_H
#define COVE_REGISTRY_IMAGE_H

#include "registry/registry.h"

struct registry_image {
    char *text; /* of the manifest */
    size_t len;
    char digest[OCI_DIGEST];
    struct oci_manifest manifest;
};

/* Pure: of a list "HOST=http[s]://MIRROR[:PORT], …" the mirror of the host; "": none. */
void registry_mirror_find(const char *list, const char *host, char *out, size_t size);

/* Through an index to the manifest. A mirror that does not have the image, or does not answer, is asked nothing more. */
int registry_image_find(struct registry *registry, struct registry_image *ret, struct err *err);
#define REGISTRY_IMAGE_MAX (20ull << 30) /* packed; as many as the content may have */
/* Whether the sizes that it states are within bounds. ERR_TOO_BIG. */
int registry_image_check(const struct oci_manifest *manifest, uint64_t most, struct err *err);
/* The config or a layer of that digest, in hex; NULL: the image has none. */
const struct oci_descriptor *registry_image_blob(const struct registry_image *image,
                                                 const char *hex);
void registry_image_done(struct registry_image *image);

#endif
