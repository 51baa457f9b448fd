/* credentials.h - who the user of the command line is to a registry: docker's config.json, and the helper programs that it names.
 *
 * A helper (docker-credential-NAME) runs as the user whom config.json belongs to: a file of another user does not choose what
 * root runs.
 *
 * Callers: template_image.c, template_pull.c. Never: a server. */
#ifndef COVE_CLI_CREDENTIALS_H
#define COVE_CLI_CREDENTIALS_H

#include "registry/auth.h"

#include <stdint.h>

/* In base64; "": none. file: NULL: docker's own place ($DOCKER_CONFIG, ~/.docker). most_ms: for a helper. */
int credentials_find(const char *file, const char *host, uint64_t most_ms, char ret[AUTH_MAX],
                     struct err *err);

#endif
