/* keys.h - what proves who asks: keys, and the tokens and links that are made with secrets of the store.
 *
 * Owns:    nothing; the store has keys and secrets.
 * Callers: auth.c, sign.c, preview.h, and dialects with tokens of their own. */
#ifndef COVE_SERVER_GUARD_KEYS_H
#define COVE_SERVER_GUARD_KEYS_H

#include "server/guard/caller.h"
#include "store/store.h"

/* ---- keys ---- */

const char *scope_name(enum scope scope);
/* Whether it looks like a key of a server such as this, known or not. */
bool key_shaped(const char *text);
/* The caller becomes who has that key; ERR_DENIED as store_key_find. The first use in a minute is noted in the audit. */
int key_identify(struct caller *caller, const char *text, struct err *err);
/* The caller acts for that tenant from now on. ERR_DENIED: it is another's, and the caller is not the operator. */
int key_act_for(struct caller *caller, const char *tenant, struct err *err);
/* Who has the key of this public id, without a proof: for what was signed in the key's name. ERR_DENIED. */
int key_of(struct app *app, const char *key_id, struct store_key *ret, struct err *err);
/* Whether the text is a key of that tenant. */
bool key_of_tenant(struct app *app, const char *text, const char *tenant);
/* 32 bytes that stay the same for this server, for signatures of that name. */
int key_secret(struct app *app, const char *name, unsigned char ret[32], struct err *err);

/* ---- tokens of a sandbox ---- */

#define TOKEN_MAX STORE_TRAFFIC_MAX /* hex digits, with the NUL */

/* Opens every port of the sandbox. */
int token_traffic(struct app *app, const char *sandbox, char ret[TOKEN_MAX], struct err *err);
/* Opens its files and processes to a dialect that knows callers by a token. */
int token_access(struct app *app, const char *sandbox, char ret[TOKEN_MAX], struct err *err);
/* The same with a secret that was asked for once, for many sandboxes. */
#define TOKEN_ACCESS_SECRET "e2b.access"
void token_access_of(const unsigned char secret[32], const char *sandbox, char ret[TOKEN_MAX]);

/* ---- links: one port for a while; as store_link_* ---- */

int token_link_init(struct app *app, const char *sandbox, uint16_t port, struct store_link *ret,
                    struct err *err);
int token_link_make(struct app *app, const struct store_link *link, char ret[STORE_LINK_MAX],
                    struct err *err);
int token_link_check(struct app *app, const char *text, struct store_link *link, struct err *err);

#endif
