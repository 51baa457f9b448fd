/* source.h - the files of an image: of a layout, which the parent opens one by one, or of an archive, which we look through ourselves.
 *
 * Owns:    the archive's descriptor and its list of contents, from open to close. */
#ifndef COVE_IMPORTER_SOURCE_H
#define COVE_IMPORTER_SOURCE_H

#include "base/err.h"
#include "oci/document.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_FILES_MAX 20000u /* of an archive */

struct source_file {
    char name[OCI_NAME_MAX];
    char target[OCI_NAME_MAX]; /* a link's; "": a file */
    uint64_t at, size;
};

/* Says a line to the parent that is answered with a descriptor, or a sentence: message.h. */
int source_ask(const char *line, int *ret_fd, struct err *err);

struct source {
    int archive_fd; /* -1: a layout */
    struct source_file *files;
    size_t count, room;
};

int source_open(struct source *source, bool archive, struct err *err);
/* An archive that is open already; the source takes the descriptor. */
int source_list(struct source *source, int archive_fd, struct err *err);
void source_close(struct source *source);

/* One file, to be read from `at` on. */
struct blob {
    int fd;
    bool own; /* the descriptor is ours to close */
    uint64_t at, size;
};

/* ERR_NO_PATH: there is none of that name. */
int source_find(struct source *source, const char *name, struct blob *ret, struct err *err);
void blob_close(struct blob *blob);

/* All of a small file, with a NUL behind, for the caller to free; ERR_TOO_BIG past most. hex: its digest. */
char *blob_text(const struct blob *blob, size_t most, size_t *ret_len, char ret_hex[SHA256_HEX],
                struct err *err);

#endif
