/* auth.h - who we are to a registry: what it asks for (WWW-Authenticate), and what docker's config.json says; pure, fuzzed. */
#ifndef COVE_REGISTRY_AUTH_H
#define COVE_REGISTRY_AUTH_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct challenge {
    bool basic; /* else Bearer */
    char realm[512], service[256], scope[512];
};

/* The first of the two kinds that we know. ERR_UNSUPPORTED: neither is asked for. */
int challenge_parse(const char *text, struct challenge *ret, struct err *err);

#define AUTH_MAX 1024
/* The credentials for a registry, in base64 ("" if there are none). ERR_UNSUPPORTED: only a helper program or an
 * identity token is named. */
int auth_find(const char *config, size_t len, const char *host, char ret[AUTH_MAX],
              struct err *err);

#endif
