/* manifest.h - what a template says of itself: templates/<name>/manifest, key=value lines.
 *
 * Owns:    the format. The keeper has a reader of its own for the few keys it needs.
 * Callers: the template verb and whatever builds templates.
 * Never:   a half-written file: manifest_write renames a whole one into place, and that rename is
 *          what makes a template, or a new version of it, exist. */
#ifndef COVE_TEMPLATE_MANIFEST_H
#define COVE_TEMPLATE_MANIFEST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_ENV_MAX   64
#define MANIFEST_ENV_BYTES 16384 /* of all variables together */
#define MANIFEST_TEXT_MAX  256
#define MANIFEST_WORDS_MAX 4096
#define MANIFEST_FILE_MAX  32768
#define MANIFEST_BELOW_MAX 3 /* files that an image's own stands on */

enum manifest_kind { MANIFEST_NONE, MANIFEST_HOST, MANIFEST_TREE, MANIFEST_IMAGE };

struct manifest {
    uint32_t kind; /* enum manifest_kind */
    char root[64]; /* directory beside the manifest, [a-z0-9.-]+; of an image: an EROFS file */
    char user[33]; /* whom commands run as */
    char workdir[MANIFEST_TEXT_MAX]; /* absolute */
    char recipe[65];                 /* lower-case hex: what it was made from; "" is unknown */
    char description[MANIFEST_TEXT_MAX];
    uint64_t created;      /* seconds since 1970 */
    uint64_t bytes, files; /* of the tree */
    /* of an image */
    char image[MANIFEST_TEXT_MAX]; /* where it came from: a reference, or a file's name */
    char digest[80]; /* sha256:…, of the manifest that its name meant; "": not known */
    char layer[65];  /* the key of its file: image_store.h */
    char below[MANIFEST_BELOW_MAX *
               65]; /* keys of the files below that one, the lowest first, with commas; "": none */
    char entrypoint[MANIFEST_WORDS_MAX]; /* JSON */
    char cmd[MANIFEST_WORDS_MAX];
    size_t env_count, env_used;
    uint16_t env_at[MANIFEST_ENV_MAX]; /* in env_text: manifest_env_at() */
    char env_text[MANIFEST_ENV_BYTES];
};

/* K=V */
static inline const char *manifest_env_at(const struct manifest *manifest, size_t i)
{
    return manifest->env_text + manifest->env_at[i];
}

/* The files below: how many, and the key of one of them, the lowest first. */
size_t manifest_below_count(const struct manifest *manifest);
void manifest_below_at(const struct manifest *manifest, size_t i, char ret_key[65]);

const char *manifest_kind_name(uint32_t kind);

/* Whole text or an error that names the line: unknown, repeated and missing keys, control
 * characters and values that cannot be are refused. */
int manifest_parse(struct manifest *ret, const char *text, struct err *err);

/* Adds K=V; -1 when it is no such thing or there is no room. */
int manifest_env(struct manifest *manifest, const char *pair, struct err *err);
bool manifest_has_env(const struct manifest *manifest, const char *name);

/* One line, key=value, but for kind and env; as strict as manifest_parse(). For lines of cove-import, which is not trusted. */
int manifest_set(struct manifest *manifest, const char *line, struct err *err);

/* Both relative to the template's own directory. write checks what it writes. */
int manifest_read(int template_fd, struct manifest *ret, struct err *err);
int manifest_write(int template_fd, const struct manifest *manifest, struct err *err);
/* The same with a file of another name. */
int manifest_read_at(int dir_fd, const char *name, struct manifest *ret, struct err *err);
int manifest_write_at(int dir_fd, const char *name, const struct manifest *manifest,
                      struct err *err);

#endif
