/* document_fuzz.c - documents of images, names of images, users of images, and what registries ask for. The first byte says which. */
#include "oci/document.h"
#include "oci/passwd.h"
#include "oci/reference.h"
#include "registry/auth.h"
#include "registry/registry.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void name(const char *text)
{
    struct reference one, two;
    char whole[1200];
    struct err err;

    if (reference_parse(text, &one, &err) < 0)
        return;
    must(one.host[0] && one.path[0] && (one.tag[0] || one.digest[0]));
    must(!strstr(one.path, "..") && one.path[0] != '/');
    reference_text(&one, whole, sizeof whole);
    must(reference_parse(whole, &two, &err) == 0 && memcmp(&one, &two, sizeof one) == 0);
    reference_template_name(&one, whole, sizeof whole);
}

static void users(const char *text)
{
    struct passwd_user user;

    if (passwd_by_name(text, "user", &user))
        must(strcmp(user.name, "user") == 0 && user.uid <= 65535);
    if (passwd_by_id(text, 1000, &user))
        must(user.uid == 1000 && !passwd_id_free(text, "", 1000));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oci_manifest manifest;
    static struct oci_config config;
    static struct oci_saved saved;
    struct oci_descriptor chosen;
    struct challenge challenge;
    struct registry_place place;
    static struct auth_found found;
    char auth[AUTH_MAX], *text;
    struct err err;

    if (size == 0)
        return 0;
    text = calloc(1, size + 1);
    memcpy(text, data + 1, size - 1);
    switch (data[0] % 9) {
    case 0:
        (void) oci_kind_of(text, size - 1, &err);
        if (oci_manifest_parse(text, size - 1, &manifest, &err) == 0)
            for (size_t i = 0; i < manifest.layer_count; i++)
                must(oci_digest_ok(manifest.layers[i].digest));
        break;
    case 1:
        if (oci_index_choose(text, size - 1, &oci_platform_here, NULL, &chosen, &err) == 0)
            must(oci_digest_ok(chosen.digest));
        break;
    case 2:
        if (oci_config_parse(text, size - 1, &config, &err) == 0)
            must(config.env.count <= OCI_ENV_MAX && config.diff_count <= OCI_LAYERS_MAX);
        break;
    case 3:
        (void) oci_saved_parse(text, size - 1, NULL, &saved, &err);
        break;
    case 4:
        name(text);
        break;
    case 5:
        users(text);
        break;
    case 6:
        if (challenge_parse(text, &challenge, &err) == 0)
            must(challenge.basic || challenge.realm[0]);
        break;
    case 7:
        if (auth_find(text, size - 1, "example.com", &found, &err) == 0)
            must(!found.helper[0] || (!strchr(found.helper, '/') && !found.basic[0]));
        (void) auth_helper_read(text, size - 1, auth, &err);
        break;
    case 8:
        if (registry_place(text, &place, &err) == 0)
            must(place.host[0] && place.path[0] == '/' && place.port > 0);
        break;
    }
    free(text);
    return 0;
}
