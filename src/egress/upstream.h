/* upstream.h - a proxy that connections of a sandbox go through: where it is, and how it is spoken to.
 *
 * Who named it matters: what the operator named may be anywhere (trusted), what a tenant named must be at a public
 * address, or it would be a way into the operator's own network. The login is for the proxy alone: it is kept, and
 * never shown.
 *
 * Pure. */
#ifndef COVE_EGRESS_UPSTREAM_H
#define COVE_EGRESS_UPSTREAM_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UPSTREAM_HOST_MAX    254
#define UPSTREAM_LOGIN_MAX   256 /* RFC 1929: 255 bytes, and a NUL */
#define UPSTREAM_ADDRESS_MAX (UPSTREAM_HOST_MAX + 8)

enum upstream_kind { UPSTREAM_NONE, UPSTREAM_HTTP, UPSTREAM_SOCKS5, UPSTREAM_KINDS };

struct upstream {
    enum upstream_kind kind;
    bool trusted;
    uint16_t port;
    char host[UPSTREAM_HOST_MAX]; /* a normal name, or an address as ip_print has it */
    char user[UPSTREAM_LOGIN_MAX], password[UPSTREAM_LOGIN_MAX]; /* "": no login */
};

const char *upstream_kind_name(enum upstream_kind kind); /* "http", "socks5" */
int upstream_kind_parse(const char *text, enum upstream_kind *ret, struct err *err);

/* "proxy.example.com:1080", "[2001:db8::1]:1080": into host and port. */
int upstream_set_address(struct upstream *upstream, const char *text, struct err *err);
void upstream_address(const struct upstream *upstream, char out[UPSTREAM_ADDRESS_MAX]);
/* "socks5://proxy.example.com:1080". No login in it: texts like this are shown. */
int upstream_parse(const char *text, struct upstream *ret, struct err *err);
/* NULL and "": no login; a password needs a user. */
int upstream_set_login(struct upstream *upstream, const char *user, const char *password,
                       struct err *err);
/* Both as one text, to be kept: "user\npassword"; "" if there is none. */
#define UPSTREAM_JOINED_MAX (2 * UPSTREAM_LOGIN_MAX)
void upstream_join_login(const struct upstream *upstream, char out[UPSTREAM_JOINED_MAX]);
/* What upstream_join_login made; `text` is changed. */
int upstream_split_login(struct upstream *upstream, char *text, struct err *err);
bool upstream_same(const struct upstream *a, const struct upstream *b);

#endif
