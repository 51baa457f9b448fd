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

#define AUTH_MAX        8192 /* tokens of clouds have some thousand bytes */
#define AUTH_HELPER_MAX 64

/* What config.json has for a registry; "" where there is nothing. */
struct auth_found {
    char basic[AUTH_MAX];         /* credentials, in base64 */
    char helper[AUTH_HELPER_MAX]; /* docker-credential-HELPER knows them; [A-Za-z0-9._-]+ */
    char server[300];             /* what the helper is asked for */
};

/* ERR_UNSUPPORTED: only an identity token is there. */
int auth_find(const char *config, size_t len, const char *host, struct auth_found *ret,
              struct err *err);

/* What a helper said, {"Username", "Secret"}, as credentials in base64. */
int auth_helper_read(const char *text, size_t len, char ret[AUTH_MAX], struct err *err);

#endif
