#include "oci/document.h"

#include "base/own.h"
#include "base/parse.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

const struct oci_platform oci_platform_here = { .os = "linux", .architecture = "amd64" };

static void drop_json(json_t **json)
{
    json_decref(*json);
}
#define auto_json __attribute__((cleanup(drop_json)))

bool oci_digest_ok(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strlen(text) == 71 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}

const char *oci_digest_hex(const char *digest)
{
    return digest + 7;
}

/* ---- JSON ---- */

static json_t *load(const char *text, size_t len, const char *what, json_type type, struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);

    if (!root) {
        err_set(err, ERR_INVALID, "%s is not JSON: %.100s", what, why.text);
        return NULL;
    }
    if (json_typeof(root) != type) {
        err_set(err, ERR_INVALID, "%s is not what it should be", what);
        json_decref(root);
        return NULL;
    }
    return root;
}

/* A text of a bounded length; absent is "". */
static int get_text(const json_t *object, const char *key, char *out, size_t size, struct err *err)
{
    const json_t *value = json_object_get(object, key);
    size_t len = json_string_length(value);

    out[0] = '\0';
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value) || len >= size || strlen(json_string_value(value)) != len)
        return err_set(err, ERR_INVALID, "'%s' is not a text of at most %zu bytes", key, size - 1);
    memcpy(out, json_string_value(value), len + 1);
    return 0;
}

static int get_descriptor(const json_t *object, const char *what, struct oci_descriptor *ret,
                          struct err *err)
{
    const json_t *size = json_object_get(object, "size");

    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "%s is missing", what);
    if (get_text(object, "digest", ret->digest, sizeof ret->digest, err) < 0 ||
        !oci_digest_ok(ret->digest))
        return err_set(err, ERR_UNSUPPORTED, "%s has no sha256 digest", what);
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return err_set(err, ERR_INVALID, "%s has no size", what);
    ret->size = (uint64_t) json_integer_value(size);
    return 0;
}

/* ---- index and manifest ---- */

int oci_kind_of(const char *text, size_t len, struct err *err)
{
    auto_json json_t *root = load(text, len, "the manifest", JSON_OBJECT, err);

    if (!root)
        return -1;
    if (json_integer_value(json_object_get(root, "schemaVersion")) == 1)
        return err_set(err, ERR_UNSUPPORTED,
                       "the image has a manifest of version 1, which is not supported");
    if (json_is_array(json_object_get(root, "manifests")))
        return OCI_INDEX;
    if (json_is_array(json_object_get(root, "layers")))
        return OCI_MANIFEST;
    return err_set(err, ERR_INVALID, "the manifest has neither layers nor manifests");
}

static int get_platform(const json_t *object, struct oci_platform *ret, struct err *err)
{
    return get_text(object, "os", ret->os, sizeof ret->os, err) < 0 ||
                   get_text(object, "architecture", ret->architecture, sizeof ret->architecture,
                            err) < 0 ||
                   get_text(object, "variant", ret->variant, sizeof ret->variant, err) < 0
               ? -1
               : 0;
}

static bool platform_fits(const struct oci_platform *have, const struct oci_platform *want)
{
    return strcmp(have->os, want->os) == 0 && strcmp(have->architecture, want->architecture) == 0;
}

static const char *name_in_index(const json_t *item)
{
    return json_string_value(
        json_object_get(json_object_get(item, "annotations"), "org.opencontainers.image.ref.name"));
}

/* Whether an index's entry may be the one. An index of one image need not say for which platform: its config does. */
static bool entry_fits(const json_t *item, bool only, const struct oci_platform *have,
                       const struct oci_platform *want, const char *tag)
{
    const char *name = name_in_index(item);

    if (tag && (!name || strcmp(name, tag) != 0))
        return false;
    return platform_fits(have, want) || (!have->os[0] && (only || tag));
}

int oci_index_choose(const char *text, size_t len, const struct oci_platform *want, const char *tag,
                     struct oci_descriptor *ret, struct err *err)
{
    auto_json json_t *root = load(text, len, "the index", JSON_OBJECT, err);
    const json_t *list = json_object_get(root, "manifests"), *item;
    char seen[160] = "";
    size_t i;

    if (!root)
        return -1;
    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "the index has no manifests");
    json_array_foreach(list, i, item)
    {
        struct oci_platform have = { .os = "" };
        const char *name = name_in_index(item);
        size_t used = strlen(seen);

        if (get_platform(json_object_get(item, "platform"), &have, err) < 0)
            return -1;
        if (entry_fits(item, json_array_size(list) == 1, &have, want, tag))
            return get_descriptor(item, "a manifest of the index", ret, err);
        if (strcmp(have.os, "unknown") != 0) /* that is an attestation */
            (void) snprintf(seen + used, sizeof seen - used, "%s%s%s%s%s", used ? ", " : "",
                            have.os, have.os[0] ? "/" : "", have.os[0] ? have.architecture : "",
                            have.os[0] ? ""
                            : name     ? name
                                       : "untagged");
    }
    return err_set(err, ERR_UNSUPPORTED, "there is no image for %s/%s%s%.60s; there are: %s",
                   want->os, want->architecture, tag ? " with the tag " : "", tag ? tag : "",
                   seen[0] ? seen : "none");
}

/* Layers that are elsewhere, or that need a key. */
static int check_layer_type(const json_t *layer, struct err *err)
{
    char type[160];

    if (get_text(layer, "mediaType", type, sizeof type, err) < 0)
        return -1;
    if (strstr(type, "foreign") || strstr(type, "nondistributable") || strstr(type, "encrypted"))
        return err_set(err, ERR_UNSUPPORTED, "a layer of the type %.120s is not supported", type);
    return 0;
}

int oci_manifest_parse(const char *text, size_t len, struct oci_manifest *ret, struct err *err)
{
    auto_json json_t *root = load(text, len, "the manifest", JSON_OBJECT, err);
    const json_t *layers = json_object_get(root, "layers"), *layer;
    char most[SIZE_TEXT_MAX];
    size_t i;

    if (!root)
        return -1;
    if (get_descriptor(json_object_get(root, "config"), "the config", &ret->config, err) < 0)
        return -1;
    if (ret->config.size > OCI_CONFIG_MAX)
        return err_set(err, ERR_TOO_BIG, "the config has more than %u bytes", OCI_CONFIG_MAX);
    if (!json_is_array(layers) || json_array_size(layers) > OCI_LAYERS_MAX)
        return err_set(err, ERR_TOO_BIG, "the image has no layers, or more than %u",
                       OCI_LAYERS_MAX);
    ret->layer_count = 0;
    json_array_foreach(layers, i, layer)
    {
        struct oci_descriptor *d = &ret->layers[ret->layer_count++];

        if (check_layer_type(layer, err) < 0 || get_descriptor(layer, "a layer", d, err) < 0)
            return -1;
        if (d->size > OCI_LAYER_MAX)
            return err_set(err, ERR_TOO_BIG, "a layer has more than %s",
                           size_text(most, sizeof most, OCI_LAYER_MAX));
    }
    return 0;
}

/* ---- config ---- */

const char *oci_word_next(const struct oci_words *words, const char *before)
{
    const char *next = before ? before + strlen(before) + 1 : words->text;

    return next < words->text + words->len ? next : NULL;
}

int oci_word_add(struct oci_words *words, const char *word, struct err *err)
{
    size_t len = strlen(word) + 1;

    if (words->count == OCI_WORDS_MAX || len > sizeof words->text - words->len)
        return err_set(err, ERR_TOO_BIG, "more than %u words or %u bytes", OCI_WORDS_MAX,
                       OCI_WORDS_BYTES);
    memcpy(words->text + words->len, word, len);
    words->len += len;
    words->count++;
    return 0;
}

static int get_words(const json_t *object, const char *key, struct oci_words *ret, struct err *err)
{
    const json_t *list = json_object_get(object, key), *item;
    size_t i;

    ret->count = ret->len = 0;
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return err_set(err, ERR_INVALID, "'%s' is not a list", key);
    json_array_foreach(list, i, item)
    {
        const char *word = json_string_value(item);

        if (!word || strlen(word) != json_string_length(item))
            return err_set(err, ERR_INVALID, "'%s' has something that is not a text", key);
        if (oci_word_add(ret, word, err) < 0)
            return err_wrap(err, "'%s'", key);
    }
    return 0;
}

static bool is_variable(const char *pair)
{
    size_t name = strcspn(pair, "=");

    for (const char *c = pair; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            return false;
    return pair[name] == '=' && name > 0 && !strchr("0123456789", pair[0]) &&
           strspn(pair, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") >= name;
}

static int get_env(const json_t *object, struct oci_config *ret, struct err *err)
{
    struct oci_words *all = &ret->env;
    auto_free struct oci_words *given = calloc(1, sizeof *given);

    if (!given)
        return err_set(err, ERR_NO_MEMORY, "no memory for a config");
    if (get_words(object, "Env", given, err) < 0)
        return -1;
    all->count = all->len = 0;
    for (const char *pair = NULL; (pair = oci_word_next(given, pair));) {
        if (!is_variable(pair))
            ret->env_dropped++;
        else if (all->count == OCI_ENV_MAX)
            return err_set(err, ERR_TOO_BIG, "the image has more than %u variables", OCI_ENV_MAX);
        else if (oci_word_add(all, pair, err) < 0)
            return -1;
    }
    return 0;
}

static int get_diffs(const json_t *root, struct oci_config *ret, struct err *err)
{
    const json_t *list = json_object_get(json_object_get(root, "rootfs"), "diff_ids"), *item;
    size_t i;

    ret->diff_count = 0;
    if (!json_is_array(list) || json_array_size(list) > OCI_LAYERS_MAX)
        return err_set(err, ERR_INVALID, "the config has no list of at most %u layers",
                       OCI_LAYERS_MAX);
    json_array_foreach(list, i, item)
    {
        const char *digest = json_string_value(item);

        if (!digest || !oci_digest_ok(digest))
            return err_set(err, ERR_INVALID, "a layer of the config has no sha256 digest");
        memcpy(ret->diff[ret->diff_count++], oci_digest_hex(digest), SHA256_HEX);
    }
    return 0;
}

int oci_config_parse(const char *text, size_t len, struct oci_config *ret, struct err *err)
{
    auto_json json_t *root = load(text, len, "the config", JSON_OBJECT, err);
    const json_t *run = json_object_get(root, "config");

    if (!root)
        return -1;
    memset(ret, 0, sizeof *ret);
    if (get_platform(root, &ret->platform, err) < 0 ||
        get_text(run, "User", ret->user, sizeof ret->user, err) < 0 ||
        get_text(run, "WorkingDir", ret->workdir, sizeof ret->workdir, err) < 0 ||
        get_env(run, ret, err) < 0 || get_words(run, "Entrypoint", &ret->entrypoint, err) < 0 ||
        get_words(run, "Cmd", &ret->cmd, err) < 0 || get_diffs(root, ret, err) < 0)
        return err_wrap(err, "the config");
    return 0;
}

int oci_config_check(const struct oci_config *config, const struct oci_platform *want,
                     struct err *err)
{
    if (platform_fits(&config->platform, want))
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "the image is for %.16s/%.32s, this host is %s/%s",
                   config->platform.os, config->platform.architecture, want->os,
                   want->architecture);
}

/* ---- docker save ---- */

static bool has_tag(const json_t *image, const char *tag)
{
    const json_t *tags = json_object_get(image, "RepoTags"), *item;
    size_t i;

    json_array_foreach(tags, i, item) if (json_is_string(item) &&
                                          strcmp(json_string_value(item), tag) == 0) return true;
    return false;
}

static void list_tags(const json_t *root, char *out, size_t size)
{
    const json_t *image;
    size_t i;

    out[0] = '\0';
    json_array_foreach(root, i, image)
    {
        const char *tag = json_string_value(json_array_get(json_object_get(image, "RepoTags"), 0));
        size_t used = strlen(out);

        (void) snprintf(out + used, size - used, "%s%s", used ? ", " : "", tag ? tag : "untagged");
    }
}

static int get_saved(const json_t *image, struct oci_saved *ret, struct err *err)
{
    const json_t *layers = json_object_get(image, "Layers"), *item;
    size_t i;

    if (get_text(image, "Config", ret->config, sizeof ret->config, err) < 0 || !ret->config[0])
        return err_set(err, ERR_INVALID, "manifest.json names no config");
    if (!json_is_array(layers) || json_array_size(layers) > OCI_LAYERS_MAX)
        return err_set(err, ERR_TOO_BIG, "manifest.json names no layers, or more than %u",
                       OCI_LAYERS_MAX);
    ret->layer_count = 0;
    json_array_foreach(layers, i, item)
    {
        size_t len = json_string_length(item);

        if (!json_is_string(item) || len == 0 || len >= OCI_NAME_MAX)
            return err_set(err, ERR_INVALID, "manifest.json names a layer by no name");
        memcpy(ret->layers[ret->layer_count++], json_string_value(item), len + 1);
    }
    return 0;
}

int oci_saved_parse(const char *text, size_t len, const char *tag, struct oci_saved *ret,
                    struct err *err)
{
    auto_json json_t *root = load(text, len, "manifest.json", JSON_ARRAY, err);
    const json_t *image, *chosen = NULL;
    char tags[160];
    size_t i;

    if (!root)
        return -1;
    json_array_foreach(root, i, image) if (tag ? has_tag(image, tag) : json_array_size(root) == 1)
        chosen = image;
    if (chosen)
        return get_saved(chosen, ret, err);
    list_tags(root, tags, sizeof tags);
    return err_set(err, ERR_INVALID, "%s; the archive has: %s",
                   tag ? "no image has that tag" : "--tag has to say which image", tags);
}
