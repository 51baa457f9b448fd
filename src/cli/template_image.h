/* template_image.h - 'cove template import' and 'cove template pull'.
 *
 * Callers: the template verb. */
#ifndef COVE_CLI_TEMPLATE_IMAGE_H
#define COVE_CLI_TEMPLATE_IMAGE_H

#include "cli/options.h"

#include <stdbool.h>

struct image_values {
    const char *name, *tag;
    bool squash_ids;
};

/* clang-format off */
#define IMAGE_OPTIONS(at)                                                                          \
    { 0, "name", OPTION_TEXT, (at) + offsetof(struct image_values, name), "NAME", COMPLETE_NONE,   \
      "the template's name; else the image's" },                                                   \
    { 0, "squash-ids", OPTION_FLAG, (at) + offsetof(struct image_values, squash_ids), NULL,        \
      COMPLETE_NONE, "files of owners above 65535 belong to 65534" }
#define IMAGE_TAG_OPTION(at)                                                                       \
    { 0, "tag", OPTION_TEXT, (at) + offsetof(struct image_values, tag), "TAG", COMPLETE_NONE,      \
      "which image, if there are several" }
/* clang-format on */

int template_image_import(const char *path, const struct image_values *values, bool as_json);

#endif
