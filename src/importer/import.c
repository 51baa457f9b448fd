/* Everything that is read is compared with what named it: documents and compressed layers with their digests and sizes, decompressed
 * layers with the config's. An archive of docker save has no digests of compressed layers; there the config's alone count. */
#include "importer/import.h"

#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/sha256.h"
#include "importer/message.h"
#include "importer/source.h"
#include "oci/cut.h"
#include "oci/finish.h"
#include "oci/merge.h"
#include "oci/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE       (256u * 1024)
#define LEVELS_MAX  3 /* of indexes in indexes */
#define FORMAT_NAME "cove-image-2"

struct import {
    const struct import_options *options;
    struct source source;
    struct oci_config config;
    char config_hex[SHA256_HEX];
    char digest[OCI_DIGEST]; /* of the manifest; "": docker save has none */
    size_t layer_count;
    char layers[OCI_LAYERS_MAX][OCI_NAME_MAX];
    struct oci_descriptor layer_is[OCI_LAYERS_MAX]; /* digest "": unknown */
    unsigned char key[SHA256_LEN];
    struct merge merge;
    uint64_t bytes_all, bytes_done;
    uint64_t bytes_below; /* of the files below the last one */
    unsigned percent;
};

/* ---- what the parent is told ---- */

static int tell(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int tell(struct err *err, const char *fmt, ...)
{
    static char text[IMPORT_MESSAGE_MAX];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len < 0 || len >= (int) sizeof text)
        return err_set(err, ERR_TOO_BIG, "a text of the image is too long");
    return io_send_fds(IMPORT_SOCKET, text, (size_t) len, NULL, 0) == len
               ? 0
               : err_sys(err, errno, "the parent is gone");
}

/* A list as JSON, in one line whatever is in it. */
static int tell_words(const char *key, const struct oci_words *words, struct err *err)
{
    json_t *list = json_array();
    char *text;
    int rc;

    if (words->count == 0) {
        json_decref(list);
        return 0;
    }
    for (const char *word = NULL; (word = oci_word_next(words, word));)
        (void) json_array_append_new(list, json_string(word));
    text = json_dumps(list, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(list);
    rc = !text || strlen(text) >= 4096 ? tell(err, "n %s is too long to be shown", key)
                                       : tell(err, "m %s=%s", key, text);
    free(text);
    return rc;
}

/* ---- documents ---- */

static char *document(struct import *im, const char *name, const char *want, size_t most,
                      size_t *ret_len, char ret_hex[SHA256_HEX], struct err *err)
{
    struct blob blob;
    char *text;

    if (source_find(&im->source, name, &blob, err) < 0)
        return NULL;
    text = blob_text(&blob, most, ret_len, ret_hex, err);
    blob_close(&blob);
    if (text && want && strcmp(want, ret_hex) != 0) {
        err_set(err, ERR_INVALID, "a document of the image is not what its digest says: %.100s",
                name);
        free(text);
        return NULL;
    }
    return text;
}

static void blob_name(char out[OCI_NAME_MAX], const char *digest)
{
    (void) snprintf(out, OCI_NAME_MAX, IMPORT_BLOBS "%s", oci_digest_hex(digest));
}

static int read_config(struct import *im, const char *name, const char *want, struct err *err)
{
    size_t len;
    auto_free char *text = document(im, name, want, OCI_CONFIG_MAX, &len, im->config_hex, err);

    return !text || oci_config_parse(text, len, &im->config, err) < 0 ||
                   oci_config_check(&im->config, &oci_platform_here, err) < 0
               ? -1
               : 0;
}

static int take_manifest(struct import *im, const char *text, size_t len, struct err *err)
{
    auto_free struct oci_manifest *manifest = malloc(sizeof *manifest);
    char name[OCI_NAME_MAX];

    if (!manifest)
        return err_set(err, ERR_NO_MEMORY, "no memory for a manifest");
    if (oci_manifest_parse(text, len, manifest, err) < 0)
        return -1;
    im->layer_count = manifest->layer_count;
    memcpy(im->layer_is, manifest->layers, sizeof im->layer_is);
    for (size_t i = 0; i < manifest->layer_count; i++)
        blob_name(im->layers[i], manifest->layers[i].digest);
    blob_name(name, manifest->config.digest);
    return read_config(im, name, oci_digest_hex(manifest->config.digest), err);
}

/* From a manifest or an index, through indexes, to the image. */
static int read_manifests(struct import *im, struct oci_descriptor at, struct err *err)
{
    for (int level = 0; level < LEVELS_MAX; level++) {
        char name[OCI_NAME_MAX], hex[SHA256_HEX];
        size_t len;
        auto_free char *text = NULL;
        int kind;

        blob_name(name, at.digest);
        text = document(im, name, oci_digest_hex(at.digest), OCI_MANIFEST_MAX, &len, hex, err);
        kind = text ? oci_kind_of(text, len, err) : -1;
        if (kind < 0)
            return -1;
        if (kind == OCI_MANIFEST) {
            memcpy(im->digest, at.digest, sizeof im->digest);
            return take_manifest(im, text, len, err);
        }
        if (oci_index_choose(text, len, &oci_platform_here, NULL, &at, err) < 0)
            return -1;
    }
    return err_set(err, ERR_INVALID, "the image has indexes in indexes in indexes");
}

static int read_index(struct import *im, struct err *err)
{
    struct oci_descriptor at;
    char hex[SHA256_HEX];
    size_t len;
    auto_free char *text = document(im, IMPORT_INDEX, NULL, OCI_MANIFEST_MAX, &len, hex, err);

    if (!text)
        return err->kind == ERR_NO_PATH
                   ? err_set(err, ERR_INVALID,
                             "neither an archive of docker save nor an OCI image: it has neither "
                             "manifest.json nor index.json")
                   : -1;
    return oci_index_choose(text, len, &oci_platform_here, im->options->tag, &at, err) < 0
               ? -1
               : read_manifests(im, at, err);
}

/* 1: the archive has no manifest.json. */
static int read_saved(struct import *im, struct err *err)
{
    auto_free struct oci_saved *saved = calloc(1, sizeof *saved);
    char hex[SHA256_HEX];
    size_t len;
    auto_free char *text = NULL;

    if (!saved)
        return err_set(err, ERR_NO_MEMORY, "no memory for a manifest");
    text = document(im, "manifest.json", NULL, OCI_MANIFEST_MAX, &len, hex, err);
    if (!text)
        return err->kind == ERR_NO_PATH ? 1 : -1;
    if (oci_saved_parse(text, len, im->options->tag, saved, err) < 0)
        return -1;
    im->layer_count = saved->layer_count;
    memcpy(im->layers, saved->layers, sizeof im->layers);
    return read_config(im, saved->config, NULL, err);
}

static int read_documents(struct import *im, struct err *err)
{
    struct oci_descriptor at = { .digest = "" };
    int rc = 1;

    if (im->options->manifest) {
        (void) snprintf(at.digest, sizeof at.digest, "%s", im->options->manifest);
        rc = read_manifests(im, at, err);
    } else if (im->options->archive) {
        rc = read_saved(im, err);
    }
    if (rc == 1)
        rc = read_index(im, err);
    if (rc == 0 && im->config.diff_count != im->layer_count)
        return err_set(err, ERR_INVALID, "the image has %zu layers, and its config names %zu",
                       im->layer_count, im->config.diff_count);
    return rc;
}

/* ---- layers ---- */

static int tell_percent(struct import *im, struct err *err)
{
    unsigned percent = im->bytes_all ? (unsigned) (im->bytes_done * 99 / im->bytes_all) : 99;

    if (percent == im->percent)
        return 0;
    im->percent = percent;
    return tell(err, "p %u", percent);
}

/* Feeds all of a file to a new layer. sha: of what was read. */
static int feed(struct import *im, const struct blob *blob, struct sha256 *sha,
                char ret_diff[SHA256_HEX], struct err *err)
{
    auto_free char *piece = malloc(PIECE);
    struct unpack *unpack = unpack_new(&im->merge, err);
    uint64_t at = 0;
    int rc = unpack && piece ? 0 : -1;

    while (rc == 0 && at < blob->size) {
        size_t want = blob->size - at < PIECE ? (size_t) (blob->size - at) : PIECE;
        ssize_t n = pread(blob->fd, piece, want, (off_t) (blob->at + at));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            rc = err_set(err, ERR_INVALID, "it ended early");
            break;
        }
        at += (size_t) n;
        im->bytes_done += (size_t) n;
        sha256_add(sha, piece, (size_t) n);
        rc = unpack_feed(unpack, piece, (size_t) n, err);
        if (rc == 0)
            rc = tell_percent(im, err);
    }
    if (rc == 0)
        rc = unpack_end(unpack, ret_diff, err);
    unpack_free(unpack);
    return rc;
}

static int take_layer(struct import *im, size_t i, struct err *err)
{
    const struct oci_descriptor *is = &im->layer_is[i];
    unsigned char digest[SHA256_LEN];
    char hex[SHA256_HEX], diff[SHA256_HEX] = "", most[SIZE_TEXT_MAX];
    struct sha256 sha;
    struct blob blob;
    int rc;

    if (source_find(&im->source, im->layers[i], &blob, err) < 0)
        return -1;
    sha256_init(&sha);
    if (is->digest[0] && blob.size != is->size)
        rc = err_set(err, ERR_INVALID, "it has %" PRIu64 " bytes, not %" PRIu64, blob.size,
                     is->size);
    else if (blob.size > OCI_LAYER_MAX && is->digest[0])
        rc = err_set(err, ERR_TOO_BIG, "it has more than %s",
                     size_text(most, sizeof most, OCI_LAYER_MAX));
    else
        rc = feed(im, &blob, &sha, diff, err);
    blob_close(&blob);
    sha256_done(&sha, digest);
    sha256_hex(digest, sizeof digest, hex);
    if (rc == 0 && is->digest[0] && strcmp(hex, oci_digest_hex(is->digest)) != 0)
        return err_set(err, ERR_INVALID, "its content is not what its digest says");
    if (rc == 0 && strcmp(diff, im->config.diff[i]) != 0)
        return err_set(err, ERR_INVALID, "its decompressed content is not what the config says");
    return rc;
}

/* What a file below depends on: the layers that are in it and below it. */
static void below_key(const struct import *im, size_t layers, unsigned char ret[SHA256_LEN])
{
    static const char kind[] = FORMAT_NAME " below";
    struct sha256 sha;

    sha256_init(&sha);
    sha256_add(&sha, kind, sizeof kind);
    sha256_add(&sha, im->options->squash_ids ? "s" : "-", 1);
    for (size_t i = 0; i < layers; i++)
        sha256_add(&sha, im->config.diff[i], sizeof im->config.diff[i]);
    sha256_done(&sha, ret);
}

/* What came up to here is a file of its own, if it is worth one. */
static int cut(struct import *im, size_t layers, struct err *err)
{
    unsigned char key[SHA256_LEN];
    struct erofs_size size;
    int fd;

    if (!cut_above(im->merge.below_count, im->merge.writer.arrived - im->merge.cut_at,
                   layers == im->layer_count))
        return 0;
    below_key(im, layers, key);
    if (cut_finish(&im->merge, key, &size, err) < 0 || source_ask("c", &fd, err) < 0)
        return -1;
    im->bytes_below += size.bytes;
    return cut_next(&im->merge, fd, err);
}

static int take_layers(struct import *im, struct err *err)
{
    for (size_t i = 0; i < im->layer_count; i++) {
        struct blob blob;

        if (im->layer_is[i].digest[0]) {
            im->bytes_all += im->layer_is[i].size;
        } else {
            if (source_find(&im->source, im->layers[i], &blob, err) < 0)
                return -1;
            im->bytes_all += blob.size;
            blob_close(&blob);
        }
    }
    for (size_t i = 0; i < im->layer_count; i++)
        if (take_layer(im, i, err) < 0 || cut(im, i + 1, err) < 0)
            return err_wrap(err, "layer %zu of %zu", i + 1, im->layer_count);
    return 0;
}

/* ---- what cove adds ---- */

static int open_tools(struct blob *ret, struct err *err)
{
    struct stat st;

    if (fstat(IMPORT_TOOLS, &st) < 0)
        return err_sys(err, errno, "look at cove's own files");
    *ret = (struct blob){ .fd = IMPORT_TOOLS, .size = (uint64_t) st.st_size };
    return 0;
}

/* All that the image file depends on. */
static int make_key(struct import *im, struct err *err)
{
    char tools_hex[SHA256_HEX], hex[SHA256_HEX];
    auto_free char *tools = NULL;
    struct sha256 sha;
    struct blob blob;
    size_t len;

    if (open_tools(&blob, err) < 0)
        return -1;
    tools = blob_text(&blob, 64u << 20, &len, tools_hex, err);
    if (!tools)
        return -1;
    sha256_init(&sha);
    sha256_add(&sha, FORMAT_NAME, sizeof FORMAT_NAME);
    sha256_add(&sha, im->config_hex, sizeof im->config_hex);
    sha256_add(&sha, tools_hex, sizeof tools_hex);
    sha256_add(&sha, im->options->squash_ids ? "s" : "-", 1);
    sha256_done(&sha, im->key);
    sha256_hex(im->key, sizeof im->key, hex);
    if (im->digest[0] && tell(err, "m digest=%s", im->digest) < 0)
        return -1;
    return tell(err, "k %s", hex);
}

static int add_tools(struct import *im, struct err *err)
{
    char diff[SHA256_HEX];
    struct sha256 sha;
    struct blob blob;

    sha256_init(&sha);
    return open_tools(&blob, err) < 0 || feed(im, &blob, &sha, diff, err) < 0
               ? err_wrap(err, "cove's own files")
               : 0;
}

/* ---- the result ---- */

static int tell_dropped(const struct import *im, struct err *err)
{
    const struct merge_dropped *d = &im->merge.dropped;
    const struct {
        uint64_t count;
        const char *what;
    } rows[] = {
        { d->nodes, "devices and FIFOs are left out" },
        { d->system, "entries of /dev, /proc and /sys are left out" },
        { d->set_ids, "files lost their set-user-id or set-group-id bit" },
        { d->xattrs, "extended attributes other than user.* are left out" },
        { d->squashed, "owners above 65535 became 65534" },
        { im->config.env_dropped,
          "variables with an invalid name or control characters are left out" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].count > 0 && tell(err, "n %" PRIu64 " %s", rows[i].count, rows[i].what) < 0)
            return -1;
    return 0;
}

static int tell_manifest(const struct import *im, const struct finish *finish, uint64_t bytes,
                         uint64_t files, struct err *err)
{
    if (tell(err, "m user=%s", finish->user) < 0 ||
        tell(err, "m workdir=%s", finish->workdir) < 0 ||
        tell(err, "m bytes=%" PRIu64, bytes) < 0 || tell(err, "m files=%" PRIu64, files) < 0)
        return -1;
    for (const char *pair = NULL; (pair = oci_word_next(&im->config.env, pair));)
        if (tell(err, "m env=%s", pair) < 0)
            return -1;
    return tell_words("entrypoint", &im->config.entrypoint, err) < 0
               ? -1
               : tell_words("cmd", &im->config.cmd, err);
}

static int run(struct import *im, struct err *err)
{
    struct finish finish;
    struct erofs_size size;
    uint64_t files;

    if (source_open(&im->source, im->options->archive, err) < 0 || read_documents(im, err) < 0 ||
        make_key(im, err) < 0 || take_layers(im, err) < 0 || add_tools(im, err) < 0 ||
        finish_image(&im->merge, &im->config, &finish, err) < 0)
        return -1;
    files = im->merge.tree.inodes; /* without those that only hide */
    if (cut_finish(&im->merge, im->key, &size, err) < 0 || tell_dropped(im, err) < 0 ||
        tell_manifest(im, &finish, im->bytes_below + size.bytes, files, err) < 0)
        return -1;
    return tell(err, "d");
}

int import_run(const struct import_options *options, struct err *err)
{
    static struct import im; /* large */
    struct err ignored;
    int rc;

    im.options = options;
    if (merge_init(&im.merge, IMPORT_IMAGE, &options->limits, options->bytes_max, err) < 0)
        return -1;
    im.merge.squash_ids = options->squash_ids;
    rc = run(&im, err);
    if (rc < 0)
        (void) tell(&ignored, "e %s %s", err_kind_info(err->kind)->name, err->msg);
    source_close(&im.source);
    merge_done(&im.merge);
    return rc;
}
