/* image.h - 'cove template pull' and 'cove template import' by a server: a build of one image, without steps.
 *
 * Callers: the verb template; build.c, for FROM. */
#ifndef COVE_CLI_API_IMAGE_H
#define COVE_CLI_API_IMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct image_wish {
    const char *name;   /* of the template; NULL: the image's or the file's */
    const char *tenant; /* for which; NULL: the caller's own */
    const char *image;  /* of a registry; NULL: a file */
    const char *username, *password;
    const char *file, *tag;
    bool as_json;
};

/* Shows the log. Returns the exit code. */
int image_by_server(const struct image_wish *wish);

/* "/images/Alpine-3.20.tar" is "alpine-3.20". */
void image_name_of_file(const char *path, char *out, size_t size);

#endif
