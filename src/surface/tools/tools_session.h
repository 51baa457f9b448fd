/* tools_session.h - which sandbox a tool call goes to: the one it names, or the caller's default.
 *
 * A tenant has at most one default sandbox. It is made by the first call that needs it, under its tenant's lock;
 * each use moves its deadline on; it ends by its session timeout, and the next call makes another. Its name in
 * the tenant is SESSION_NAME, by which a restarted server finds it again.
 *
 * Owns:    struct tools: one entry per tenant that ever called, as long as the server lives. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_SESSION_H
#define COVE_SURFACE_TOOLS_TOOLS_SESSION_H

#include "server/ops/ops.h"
#include "surface/tools/tools_config.h"

#define SESSION_NAME "default"

struct session {
    char sandbox[ID_LEN + 1];
    bool is_default;
    uint64_t session_ms, timeout_ms;
    char workdir[1024]; /* absolute; "" is the home of the template's user */
};

struct tools *tools_new(struct err *err);

/* `sandbox`: an id, or what ops_sandbox_resolve takes for one; NULL: the default, made if need be. */
int session_find(struct ops *ops, const char *sandbox, struct session *ret, struct err *err);
/* The default sandbox turned out to be gone: the next session_find makes another. */
void session_forget(struct ops *ops, const struct session *session);
/* A new sandbox; with as_default, instead of the default one, which ends. */
int session_make(struct ops *ops, const struct tools_config *config, bool as_default,
                 struct ops_sandbox *ret, struct err *err);
/* The default one if there is one: ERR_NO_SANDBOX otherwise. */
int session_default(struct ops *ops, struct ops_sandbox *ret, struct err *err);

/* Pure: "a.txt" in the working directory; absolute paths as they are. -1: too long. */
int session_path(const struct session *session, const char *path, char *out, size_t size);

#endif
