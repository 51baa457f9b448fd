/* import.h - an image becomes a template's EROFS file: documents, layers, what cove adds, the manifest.
 *
 * Callers: main.c, once, behind the process's lockdown. */
#ifndef COVE_IMPORTER_IMPORT_H
#define COVE_IMPORTER_IMPORT_H

#include "base/err.h"
#include "erofs/tree.h"
#include "oci/document.h"

#include <stdbool.h>
#include <stdint.h>

struct import_options {
    bool archive;
    bool squash_ids;
    const char *tag;      /* NULL: the only one */
    const char *manifest; /* a digest to begin with; NULL: the index */
    struct tree_limits limits;
    uint64_t bytes_max;
};

int import_run(const struct import_options *options, struct err *err);

#endif
