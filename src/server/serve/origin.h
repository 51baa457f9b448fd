/* origin.h - which page made a browser ask, and whether that page may use what needs no key.
 *
 * A page can make a browser send requests to loopback, with any path and body. It cannot choose their Host, hide or
 * forge their Origin and Sec-Fetch-*, nor send a method or a Content-Type beyond those of forms without a preflight, which
 * this server does not answer. What programs send has none of these headers, and is not judged here.
 *
 * Never:   identifies a tenant. Pure but for the settings.
 * Callers: auth.c for loopback without a key, preview.c for cookies. */
#ifndef COVE_SERVER_SERVE_ORIGIN_H
#define COVE_SERVER_SERVE_ORIGIN_H

#include "server/serve/exchange.h"

/* Whether a request that shows no key was sent by a program, by this server's own page, by a page of the very sandbox that
 * is asked, or by a person who opens an address. ERR_DENIED, with a sentence, for all others. */
int origin_check(struct exchange *x, struct err *err);

/* Whether a page asks that is not one of this server's: Origin says so. */
bool origin_is_foreign(struct exchange *x);

/* Whether Origin, or the address in Referer, is a page that the sandbox serves, seen through this server: its host names
 * a port of the sandbox, and scheme, domain and port are those that the request went to. */
bool origin_is_sandbox(struct exchange *x, struct slice origin, const char *sandbox);

/* A proxy or a tunnel on this machine says that the request is of another one: loopback is where the proxy is. */
bool origin_forwarded(struct exchange *x);

/* The request came by TLS, to us or to a proxy on this machine. */
bool origin_secure(struct exchange *x);

#endif
