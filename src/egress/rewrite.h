/* rewrite.h - what the gateway puts into requests: secrets in the place of their placeholders, and headers of an owner.
 *
 * A sandbox has placeholders, never values. In the headers of a request for a host that a secret is bound to, its
 * placeholder becomes its value, also inside the base64 of Basic credentials. Anywhere else a placeholder in the head of a
 * request is refused, and so is one in the request line or in a header that says how the request is to be read: what is
 * put in must not change where a request ends or who it is for.
 *
 * Bodies are not looked at. A placeholder is worth nothing outside this gateway, so that it is no loss when one passes
 * where no server looks: what counts is that values go to their hosts only.
 *
 * Pure; what is read is hostile. Fuzzed. */
#ifndef COVE_EGRESS_REWRITE_H
#define COVE_EGRESS_REWRITE_H

#include "egress/reach.h"
#include "http/head.h"

#define REWRITE_NAME_MAX        64 /* of a secret, with the NUL */
#define REWRITE_PLACEHOLDER_MAX 48
#define REWRITE_HOSTS_MAX       16   /* of one secret */
#define REWRITE_SECRETS_MAX     64   /* of one sandbox */
#define REWRITE_HEADERS_MAX     200  /* that are set, of one sandbox */
#define REWRITE_HEADER_MAX      65   /* of the name of one, with the NUL */
#define REWRITE_VALUE_MAX       8192 /* bytes of a secret */
#define REWRITE_OUT_MAX         (HEAD_MAX + 65536)

struct rewrite_secret {
    char name[REWRITE_NAME_MAX];
    char placeholder[REWRITE_PLACEHOLDER_MAX];
    char *value; /* NULL: there is none any more, and its placeholder is refused everywhere */
    size_t host_count;
    struct host_rule hosts[REWRITE_HOSTS_MAX];
};

/* Put in the place of all headers of that name. Placeholders in the value count as those of a sandbox do. */
struct rewrite_header {
    struct host_rule host;
    char name[REWRITE_HEADER_MAX];
    char *value;
};

struct rewrite {
    size_t secret_count, header_count;
    struct rewrite_secret *secrets;
    struct rewrite_header *headers;
};

/* Room for so many of each; the caller fills them in. */
struct rewrite *rewrite_new(size_t secrets, size_t headers);
/* Wipes the values. Accepts NULL. */
void rewrite_free(struct rewrite *rewrite);
/* Whether a header of that name may be set: a token, and none that frames or routes. */
bool rewrite_header_ok(const char *name);

/* Where a request goes. */
struct rewrite_to {
    const char *name; /* normal; "": an address */
    uint16_t port;
    bool tls;
};

/* Whether anything may be put into requests that go there. */
bool rewrite_concerns(const struct rewrite *rewrite, const struct rewrite_to *to);

/* The head as it is to be sent, into out. ERR_DENIED: a placeholder where it must not be; ERR_INVALID: a head of another
 * form than those that can be changed; ERR_TOO_BIG. */
ssize_t rewrite_head(const struct rewrite *rewrite, const struct rewrite_to *to,
                     const struct head *head, char out[REWRITE_OUT_MAX], struct err *err);

#endif
