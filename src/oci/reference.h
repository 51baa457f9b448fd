/* reference.h - names of images: [host[:port]/]path[:tag][@digest]; pure, fuzzed.
 *
 *   python:3.12-slim               docker.io/library/python:3.12-slim
 *   localhost:5000/a/b@sha256:…    that registry, that digest
 *
 * A first part without a dot and a colon that is not "localhost" is no host. Without a tag and a digest the tag is "latest";
 * with both, the digest counts. */
#ifndef COVE_OCI_REFERENCE_H
#define COVE_OCI_REFERENCE_H

#include "base/err.h"
#include "oci/document.h"

#include <stdbool.h>

#define REFERENCE_DEFAULT "docker.io"

struct reference {
    char host[256]; /* "registry.example.com", "localhost:5000" */
    char path[256];
    char tag[129];           /* "" with a digest alone */
    char digest[OCI_DIGEST]; /* "": none */
};

int reference_parse(const char *text, struct reference *ret, struct err *err);
/* What manifests/ is followed by. */
const char *reference_wanted(const struct reference *reference);
/* In full, for people and manifests. */
void reference_text(const struct reference *reference, char *out, size_t size);
/* Where the registry of that name answers: the default one is at another host than its name. */
const char *reference_registry(const struct reference *reference);
/* A name for a template: the last part of the path, lower case, and the tag unless that is "latest". */
void reference_template_name(const struct reference *reference, char *out, size_t size);

#endif
