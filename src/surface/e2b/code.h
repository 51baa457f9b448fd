/* code.h - E2B's code interpreter, the server at port 49999 of a sandbox: handlers, languages, contexts.
 *
 * Nothing of it listens inside. A context is a kernel process in the sandbox (kernels/kernel.py), started and found again
 * by its tag, so contexts outlive this server; a cell is a line to its stdin, and events are lines of its stdout.
 *
 * Every exchange here has the param "sandbox", and a caller who owns it (e2b_target_caller). */
#ifndef COVE_SURFACE_E2B_CODE_H
#define COVE_SURFACE_E2B_CODE_H

#include "server/serve/route.h"
#include "surface/e2b/e2b.h"

route_handler code_execute, code_context_create, code_context_list, code_context_restart,
    code_context_remove, code_context_fork, code_health;

/* ---- languages ---- */

struct code_language {
    const char *name, *alias;
    const char *program, *option; /* what would run such code, for the policy; NULL: a shell */
    bool listed;                  /* has a context from the start on */
    const char *unforkable;       /* why; NULL: its kernels can be forked */
};

/* NULL: there is none of that name. */
const struct code_language *code_language_find(const char *name);

/* ---- code_id.c: ids of contexts ---- */

#define CODE_ID_MAX 37 /* of a UUID, with the NUL */

/* Always the same for a sandbox and a language, so that it need not be remembered. */
void code_id_default(const char *sandbox, const struct code_language *language,
                     char ret[CODE_ID_MAX]);
int code_id_new(char ret[CODE_ID_MAX], struct err *err);
/* Looks like one. */
bool code_id_is(const char *text);

/* ---- code_request.c ---- */

struct code_request {
    json_t *body; /* what the rest is borrowed from */
    const char *code, *context_id;
    const struct code_language *language; /* NULL with a context */
    json_t *env;                          /* NULL: none */
};

int code_request_read(struct code_request *request, struct err *err);

/* ---- code_context.c: contexts and their kernels ---- */

#define CODE_CWD_MAX 512 /* with the NUL */
#define CODE_CONTEXTS                                                                              \
    1024 /* of one sandbox, removed ones included while the agent remembers them */

/* Counted, and shared by all requests for it. */
struct code_context {
    char sandbox[ID_LEN + 1], id[CODE_ID_MAX], cwd[CODE_CWD_MAX];
    const struct code_language *language;

    /* The kernel: written by whose turn it is. proc 0: not started. */
    _Atomic uint32_t proc;
    _Atomic bool warm;     /* it came with the template, and knows nothing of its sandbox yet */
    _Atomic bool as_root;  /* its user is root */
    _Atomic uint32_t root; /* of a fork: the process whose descendant its kernel is; else 0 */
    uint64_t from_stdout, from_stderr;

    /* The rest is code_registry.c's. */
    pthread_cond_t moved;
    struct code_turn *first;
    size_t refs;
    uint64_t used;
    bool removed;
    struct code_context *next;
};

/* By its id; or, with id NULL, the default context of a language, which need not have been started. */
int code_context_find(struct ops *ops, const char *sandbox, const char *id,
                      const struct code_language *language, struct code_context **ret,
                      struct err *err);
/* By whose turn it is: a kernel runs, or is started now (*ret_fresh). */
int code_context_start(struct ops *ops, struct code_context *context, bool *ret_fresh,
                       struct err *err);

/* SIGKILL for its kernel and all that it started, but for contexts that were forked from it. */
void code_context_kill(struct ops *ops, struct code_context *context);
/* A context like another one, of no kernel yet, with an id of its own. ERR_TOO_MANY. */
int code_context_like(struct ops *ops, const struct code_context *old, struct code_context *ret,
                      struct err *err);
/* The process of a forked context, which is to be a pump for what `old` forks. */
int code_context_start_fork(struct ops *ops, const struct code_context *old,
                            struct code_context *context, uint32_t *ret_pid, struct err *err);
json_t *code_context_json(const struct code_context *context);

/* ---- code_registry.c: which contexts this server has met, and whose turn it is in each ---- */

/* A counted reference; NULL: not met, or forgotten since. */
struct code_context *code_registry_get(const char *sandbox, const char *id);
/* The one that is there, or a new one like `seen`. NULL: no memory. */
struct code_context *code_registry_add(const struct code_context *seen);
void code_registry_put(struct code_context *context);
/* It is not found any more; who waits for a turn gets it, and finds out. */
void code_registry_remove(struct code_context *context);

/* One execution at a time, first come, first served. */
struct code_turn {
    struct code_turn *next;
};
void code_turn_join(struct code_context *context, struct code_turn *turn);
/* True: it is ours. False: not within the time. */
bool code_turn_wait(struct code_context *context, const struct code_turn *turn, unsigned ms);
/* At any time behind join. */
void code_turn_leave(struct code_context *context, struct code_turn *turn);

/* Lines over a megabyte are held by a few at a time, so that kernels cannot make this server big. False: not within
 * the time. */
bool code_room_take(unsigned ms);
void code_room_give(void);

#endif
