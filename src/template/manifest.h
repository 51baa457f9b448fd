/* manifest.h - what a template says of itself: templates/<name>/manifest, key=value lines.
 *
 * Owns:    the format. The keeper has a reader of its own for the few keys it needs.
 * Callers: the template verb and whatever builds templates.
 * Never:   a half-written file: manifest_write renames a whole one into place, and that rename is
 *          what makes a template, or a new version of it, exist. */
#ifndef COVE_TEMPLATE_MANIFEST_H
#define COVE_TEMPLATE_MANIFEST_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define MANIFEST_ENV_MAX  32
#define MANIFEST_TEXT_MAX 256
#define MANIFEST_FILE_MAX 16384

enum manifest_kind { MANIFEST_NONE, MANIFEST_HOST, MANIFEST_TREE };

struct manifest {
    uint32_t kind;                   /* enum manifest_kind */
    char root[64];                   /* directory beside the manifest, [a-z0-9.-]+ */
    char user[33];                   /* whom commands run as */
    char workdir[MANIFEST_TEXT_MAX]; /* absolute */
    char recipe[65];                 /* lower-case hex: what it was made from; "" is unknown */
    char description[MANIFEST_TEXT_MAX];
    uint64_t created;                              /* seconds since 1970 */
    uint64_t bytes, files;                         /* of the tree */
    char env[MANIFEST_ENV_MAX][MANIFEST_TEXT_MAX]; /* K=V */
    size_t env_count;
};

const char *manifest_kind_name(uint32_t kind);

/* Whole text or an error that names the line: unknown, repeated and missing keys, control
 * characters and values that cannot be are refused. */
int manifest_parse(struct manifest *ret, const char *text, struct err *err);

/* Adds K=V; -1 when it is no such thing or there is no room. */
int manifest_env(struct manifest *manifest, const char *pair, struct err *err);

/* Both relative to the template's own directory. write checks what it writes. */
int manifest_read(int template_fd, struct manifest *ret, struct err *err);
int manifest_write(int template_fd, const struct manifest *manifest, struct err *err);

#endif
