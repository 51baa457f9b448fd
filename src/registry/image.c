#include "registry/image.h"

#include "base/own.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void registry_mirror_find(const char *list, const char *host, char *out, size_t size)
{
    out[0] = '\0';
    for (; *(list += strspn(list, ", ")); list += strcspn(list, ", ")) {
        size_t len = strlen(host);

        if (strncasecmp(list, host, len) == 0 && list[len] == '=' &&
            strcspn(list + len + 1, ", ") < size) {
            (void) snprintf(out, size, "%.*s", (int) strcspn(list + len + 1, ", "), list + len + 1);
            return;
        }
    }
}

static int find(struct registry *r, struct registry_image *image, struct err *err)
{
    struct oci_descriptor at;
    int kind;

    if (registry_manifest(r, reference_wanted(&r->reference), &image->text, &image->len,
                          image->digest, err) < 0)
        return -1;
    kind = oci_kind_of(image->text, image->len, err);
    if (kind == OCI_INDEX) {
        if (oci_index_choose(image->text, image->len, &oci_platform_here, NULL, &at, err) < 0)
            return -1;
        free(take_ptr(&image->text));
        if (registry_manifest(r, at.digest, &image->text, &image->len, image->digest, err) < 0)
            return -1;
        kind = oci_kind_of(image->text, image->len, err);
        if (kind == OCI_INDEX)
            return err_set(err, ERR_INVALID, "the image has an index in its index");
    }
    return kind < 0 ? -1 : oci_manifest_parse(image->text, image->len, &image->manifest, err);
}

int registry_image_find(struct registry *r, struct registry_image *ret, struct err *err)
{
    if (find(r, ret, err) == 0)
        return 0;
    if (!registry_leave_mirror(r, err))
        return -1;
    registry_image_done(ret);
    return find(r, ret, err);
}

int registry_image_check(const struct oci_manifest *manifest, uint64_t most, struct err *err)
{
    char has[SIZE_TEXT_MAX], may_have[SIZE_TEXT_MAX];
    uint64_t all = manifest->config.size;

    if (manifest->config.size > OCI_CONFIG_MAX)
        return err_set(err, ERR_TOO_BIG, "the config has more than %u bytes", OCI_CONFIG_MAX);
    for (size_t i = 0; i < manifest->layer_count; i++) {
        if (manifest->layers[i].size > OCI_LAYER_MAX)
            return err_set(err, ERR_TOO_BIG, "a layer has more than %s",
                           size_text(may_have, sizeof may_have, OCI_LAYER_MAX));
        all += manifest->layers[i].size;
    }
    return all > most ? err_set(err, ERR_TOO_BIG,
                                "the layers of the image have more than %s together (%s)",
                                size_text(may_have, sizeof may_have, most),
                                size_text(has, sizeof has, all))
                      : 0;
}

const struct oci_descriptor *registry_image_blob(const struct registry_image *image,
                                                 const char *hex)
{
    if (strcmp(oci_digest_hex(image->manifest.config.digest), hex) == 0)
        return &image->manifest.config;
    for (size_t i = 0; i < image->manifest.layer_count; i++)
        if (strcmp(oci_digest_hex(image->manifest.layers[i].digest), hex) == 0)
            return &image->manifest.layers[i];
    return NULL;
}

void registry_image_done(struct registry_image *image)
{
    free(take_ptr(&image->text));
}
