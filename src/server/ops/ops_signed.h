/* ops_signed.h - sandboxes that a request without a key is for: by their id, or by a signature alone.
 *
 * A signed link that names no sandbox could be of any: the signature is a hash over the sandbox's token, so there is
 * nothing to look it up by. The sandboxes whose links were found last are tried first, from memory. Only then are all of
 * them tried, and for that strangers have a share of one processor, each address a part of the share: a client that invents
 * signatures is answered "too many" and costs no more than the share.
 *
 * Owns:    the list of those found last, and what is left of the shares. Any thread.
 * Callers: dialects, before they know who asks. */
#ifndef COVE_SERVER_OPS_OPS_SIGNED_H
#define COVE_SERVER_OPS_OPS_SIGNED_H

#include "server/guard/caller.h"
#include "server/guard/keys.h"

/* Whether the token (token_access) of a sandbox fits the link. Pure. */
typedef bool ops_signed_fits(void *context, const char *token);

/* 1: found. 0: no sandbox has made the link. -1: ERR_TOO_MANY, with blame.retry_s; or another failure. */
int ops_signed_find(struct caller *caller, ops_signed_fits *fits, void *context,
                    char ret_id[ID_LEN + 1], struct err *err);

/* The caller becomes the owner of the sandbox: for dialects that check a token of the sandbox
 * next. *ret is the sandbox, by the same read of its record. ERR_NO_SANDBOX. */
struct ops_sandbox;
int ops_owner_get(struct caller *caller, const char *sandbox, struct ops_sandbox *ret,
                  struct err *err);

/* ---- pure, for tests: shares of time, in microseconds ---- */

struct signed_share {
    uint64_t at_us; /* when it was looked at last; 0: never */
    int64_t left_us;
};
/* What has come back since, at `per_s` each second and up to a second's worth; false: it is used up. */
bool signed_share_open(struct signed_share *share, uint64_t now_us, uint64_t per_s);
void signed_share_use(struct signed_share *share, uint64_t used_us);

#endif
