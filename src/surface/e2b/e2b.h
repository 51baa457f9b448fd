/* e2b.h - what the planes of E2B's dialect share: which sandbox a request is for, tokens, and errors.
 *
 * Everything an SDK asks for is one of the operations in server/ops/ops.h; nothing here reaches a sandbox past them. */
#ifndef COVE_SURFACE_E2B_E2B_H
#define COVE_SURFACE_E2B_E2B_H

#include "server/guard/keys.h"
#include "server/ops/ops.h"
#include "server/serve/exchange.h"

#define E2B_ENVD_PORT    49983
#define E2B_CODE_PORT    49999    /* the code interpreter */
#define E2B_ENVD_VERSION "0.6.13" /* what SDKs look at to know what they may use */

/* ---- target.c: which sandbox, which port ---- */

/* By a Host of the form {port}-{id}.…, else by the headers E2b-Sandbox-Id and E2b-Sandbox-Port, or, for GET and POST of
 * /files, by the signature in the query. True: the exchange has the params "sandbox" and "port". A sandbox that is
 * named is not necessarily there. */
bool e2b_target(struct exchange *x, uint16_t *ret_port);

/* The caller becomes who owns the sandbox. Unknown: 502 with the body that SDKs look for. */
int e2b_target_owner(struct exchange *x, struct ops_sandbox *ret, struct err *err);
/* It runs; or it sleeps, and is woken if it may be. Else 502, and for one that sleeps the param "paused". */
int e2b_target_awake(struct exchange *x, struct ops_sandbox *sandbox, bool may_wake,
                     struct err *err);
/* Both, for requests to envd. */
int e2b_target_caller(struct exchange *x, struct ops_sandbox *ret, struct err *err);

/* ---- token.c ---- */

/* "v1_" and base64 of SHA-256 over path:operation:user:token[:expiration]. */
#define E2B_SIGNATURE_MAX 48
void e2b_signature(const char *path, const char *operation, const char *user, const char *token,
                   const char *expiration, char ret[E2B_SIGNATURE_MAX]);

/* Token or signature of a request to envd, against the sandbox's: 0, or -1 with 401. `operation`: "read" or "write"
 * where a signature is allowed in the token's place; NULL: the token only. */
int e2b_check_access(struct exchange *x, const char *sandbox, const char *operation,
                     struct err *err);

struct preview_rules; /* server/preview/preview.h */
/* Who may reach its other ports, and how: what was said, or what the notes say. */
int e2b_preview_rules(struct exchange *x, const struct ops_sandbox *sandbox,
                      struct preview_rules *ret, struct err *err);
/* After e2b_target_owner: whether a request to any other port of the sandbox may pass (ports.c), 0, or -1 with 403. Where it
 * is not open, by the traffic token, a link, or a key of the sandbox's tenant. */
int e2b_check_traffic(struct exchange *x, const struct ops_sandbox *sandbox, bool open,
                      struct err *err);

/* ---- notes.c: what a create said that only this dialect knows ---- */

struct e2b_notes {
    bool secure;         /* envd wants its token */
    bool public_traffic; /* ports other than envd's need no token */
    bool auto_resume;
    char mask_host[256]; /* the Host that servers inside see; "": the client's */
    int internet;        /* allow_internet_access: -1 not said, 0, 1 */
    uint64_t timeout_s;  /* that the create asked for: what an automatic resume gives */
};
#define E2B_NOTES ((struct e2b_notes){ .secure = true, .public_traffic = true, .internet = -1 })

int e2b_notes_print(const struct e2b_notes *notes, char *out, size_t size, struct err *err);
/* Of a sandbox that another surface made: what E2B_NOTES says. */
void e2b_notes_read(const char *text, struct e2b_notes *ret);

/* ---- refuse.c ---- */

/* {"code":<status>,"message":"…"}: control plane, envd over HTTP. */
int e2b_refuse(struct exchange *x, const struct err *why);
/* What is wrong with a port of a sandbox: a page for people, for programs JSON as SDKs know it (ports_refuse.c). */
int e2b_ports_refuse(struct exchange *x, const struct err *why);
/* The sandbox or its port is not there: {"sandboxId","message","port"?,"code":502}. */
int e2b_refuse_gone(struct exchange *x, const char *sandbox, uint16_t closed_port);

#endif
