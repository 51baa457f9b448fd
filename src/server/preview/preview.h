/* preview.h - ports of sandboxes, looked at from outside: who may, by which token, and what a server inside is told of it.
 *
 * A token comes as ?cove_token=…, once; then as a cookie of that port's host alone. It is a link (store.h), which opens
 * one port for a while, or the sandbox's traffic token, which opens all. Neither is passed on into the sandbox.
 *
 * A browser sends a cookie whatever page made it ask, so the cookie counts for pages of this sandbox and for people who go there:
 * not for the page of another sandbox, which is the same site.
 *
 * Callers: surface/e2b/ports.c and v1_ports.c for requests to ports. */
#ifndef COVE_SERVER_PREVIEW_PREVIEW_H
#define COVE_SERVER_PREVIEW_PREVIEW_H

#include "server/net/preview_rules.h"
#include "server/ops/ops.h"
#include "server/serve/exchange.h"

#define PREVIEW_QUERY  "cove_token"
#define PREVIEW_COOKIE "cove-preview"
#define PREVIEW_COOKIE_TLS                                                                         \
    "__Host-" PREVIEW_COOKIE /* browsers take it over TLS, of the host itself alone */
extern const char *const preview_cookies[2];

/* What a request shows, if it names the sandbox by its host: 1 a token that is good, 0 none (or a cookie that is not good,
 * with why), -1 one in the query that is not good, with why; or another failure. With 1, the param "grant" is the cookie
 * that preview_redirect sets, if the token came by the query. */
int preview_token(struct exchange *x, const char *sandbox, uint16_t port, struct err *why);
/* Whether to answer by preview_redirect: a browser can go there again without the token. */
bool preview_redirects(struct exchange *x);
/* To the same address without the token; with the cookie, if one was granted. */
int preview_redirect(struct exchange *x, struct err *err);

static inline bool preview_sleeps(const struct ops_sandbox *sandbox)
{
    return sandbox->life == LIFE_PAUSED || sandbox->life == LIFE_PAUSING;
}
/* Resumes one that sleeps, for at least so many seconds; one that is falling asleep when it does. */
int preview_wake(struct ops *ops, struct ops_sandbox *sandbox, uint64_t seconds, struct err *err);

/* The address of a port as this server is known, with a token; the caller's to free. */
int preview_url(struct exchange *x, const char *sandbox, uint16_t port, const char *token,
                char **ret, struct err *err);

#endif
