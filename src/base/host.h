/* host.h - names of hosts, and which of them something is bound to.
 *
 * Pure. */
#ifndef COVE_BASE_HOST_H
#define COVE_BASE_HOST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_MAX 254 /* of a name, with the NUL */

/* A host name as DNS has it: letters, digits, '-', '_', dots; lower case into out, without a dot at the end. */
bool name_normal(const char *in, size_t len, char out[HOST_MAX]);

/* "api.example.com", "*.example.com" (names below it, not it), each perhaps with a port: over TLS, which may also be said
 * by "https://" before it. With "http://": in the clear. */
struct host_rule {
    bool below, plain, tls;
    uint16_t port; /* 0: any */
    char name[HOST_MAX];
};

int host_rule_parse(const char *text, struct host_rule *ret, struct err *err);
/* `name` is normal. */
bool host_rule_fits(const struct host_rule *rule, const char *name, uint16_t port, bool tls);

#endif
