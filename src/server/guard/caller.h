/* caller.h - who asks for something, and what a refusal is about: all that operations know of a request.
 *
 * There is no HTTP here. A surface has one in its exchange (exchange_caller); anything else that asks can make one.
 *
 * Owns:    nothing; texts are borrowed from its maker. One thread at a time. */
#ifndef COVE_SERVER_GUARD_CALLER_H
#define COVE_SERVER_GUARD_CALLER_H

#include "base/err.h"
#include "base/parse.h"

#include <stdbool.h>

struct app;

/* SCOPE_OPERATOR: the operator of the server, over the unix socket or with a key of that scope. May do everything, for every
 * tenant (key_act_for). Loopback without a key is SCOPE_ADMIN of the tenant `local`. */
enum scope { SCOPE_NONE, SCOPE_READ, SCOPE_RUN, SCOPE_ADMIN, SCOPE_OPERATOR };

/* What the error that follows is about: a field of the request, or a rule and its layer ("policy", "quota"). */
struct blame {
    char field[64], rule[64], layer[16]; /* "" each: nothing */
    unsigned retry_s;                    /* when to ask again, in seconds; 0: not said */
};

struct caller {
    struct app *app;
    char tenant[64]; /* "": unknown */
    char home[64];   /* the operator's own tenant, while it acts for another; "" otherwise */
    char key_id[32]; /* "" for the local tenant */
    uint64_t key_expires_ms; /* 0: never */
    const char *user; /* for whom the tenant asks, by its own word (X-Cove-User); NULL: not said */
    enum scope scope;
    /* an unknown person: the tenant is the owner of the public port that was asked for */
    bool visitor;
    const char *request, *peer; /* for the audit: id of the request, address without port */
    int fd;                     /* POLLRDHUP or readable: the caller is gone (or sends more) */
    struct blame blame;
    char used[ID_LEN + 1]; /* the sandbox in use for this caller (use.h); "" without */
};

/* Each may be NULL. Returns -1. */
int caller_blame(struct caller *caller, const char *field, const char *rule, const char *layer);
/* The rule that was blamed, if it was one of this layer; else NULL. */
const char *caller_blamed_rule(const struct caller *caller, const char *layer);

#endif
