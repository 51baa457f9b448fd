/* document.h - the JSON documents of an image: index, manifest, config, and docker's manifest.json; pure, fuzzed.
 *
 * Strict about what is used, silent about the rest. Digests are sha256 only.
 *
 * Owns:    what oci_config_parse() allocates, until oci_config_done(). */
#ifndef COVE_OCI_DOCUMENT_H
#define COVE_OCI_DOCUMENT_H

#include "base/err.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCI_LAYERS_MAX   127u
#define OCI_MANIFEST_MAX (4u << 20)
#define OCI_CONFIG_MAX   (8u << 20)
#define OCI_LAYER_MAX    (5ull << 30) /* compressed */
#define OCI_ENV_MAX      64u
#define OCI_WORDS_MAX    256u
#define OCI_WORDS_BYTES  16384u

/* "sha256:" and 64 hex digits. */
#define OCI_DIGEST 72
bool oci_digest_ok(const char *text);
/* The hex digits of one that is ok. */
const char *oci_digest_hex(const char *digest);

struct oci_descriptor {
    char digest[OCI_DIGEST];
    uint64_t size;
};

struct oci_platform {
    char os[16], architecture[32], variant[16];
};

/* Of this machine: linux/amd64. */
extern const struct oci_platform oci_platform_here;

enum oci_kind { OCI_INDEX, OCI_MANIFEST };
/* By its content; -1: neither (ERR_UNSUPPORTED for Docker's schema 1). */
int oci_kind_of(const char *text, size_t len, struct err *err);

/* The one for this platform; with `tag`, of that name (NULL: any). ERR_UNSUPPORTED: none is, and the message says which there are. */
int oci_index_choose(const char *text, size_t len, const struct oci_platform *platform,
                     const char *tag, struct oci_descriptor *ret, struct err *err);

struct oci_manifest {
    struct oci_descriptor config;
    size_t layer_count;
    struct oci_descriptor layers[OCI_LAYERS_MAX];
};
int oci_manifest_parse(const char *text, size_t len, struct oci_manifest *ret, struct err *err);

/* Texts, one behind the other, each with its NUL. */
struct oci_words {
    size_t count, len;
    char text[OCI_WORDS_BYTES];
};

struct oci_config {
    struct oci_platform platform;
    char user[128];
    char workdir[4096]; /* "" or absolute */
    struct oci_words env, entrypoint, cmd;
    unsigned env_dropped; /* variables with control characters */
    size_t diff_count;
    char diff[OCI_LAYERS_MAX][SHA256_HEX];
};
int oci_config_parse(const char *text, size_t len, struct oci_config *ret, struct err *err);
/* ERR_UNSUPPORTED unless the image is for that platform. */
int oci_config_check(const struct oci_config *config, const struct oci_platform *platform,
                     struct err *err);

/* docker save: names of files in the archive. */
#define OCI_NAME_MAX 256
struct oci_saved {
    char config[OCI_NAME_MAX];
    size_t layer_count;
    char layers[OCI_LAYERS_MAX][OCI_NAME_MAX];
};
/* `tag` NULL: the only image there is. ERR_INVALID: several, and the message says which. */
int oci_saved_parse(const char *text, size_t len, const char *tag, struct oci_saved *ret,
                    struct err *err);

/* NULL at the end. */
const char *oci_word_next(const struct oci_words *words, const char *before);
int oci_word_add(struct oci_words *words, const char *word, struct err *err);

#endif
