/* sandbox.h - the life of sandboxes, as asked of the keeper.
 *
 * Owns:    nothing: sandboxes belong to the keeper, ids are the caller's to choose.
 * Callers: the command line, later the API's operations.
 * Never:   talks to an agent; that is exec.h and files.h. */
#ifndef COVE_CLIENT_SANDBOX_H
#define COVE_CLIENT_SANDBOX_H

#include "client/link.h"

struct sandbox_spec {
    const char *id;       /* NULL: a new one */
    const char *name;     /* NULL: none */
    const char *template; /* NULL: the keeper's default */
    const char *hostname; /* NULL: the name, or else the id */
    uint32_t flags;       /* KEEPER_FLAG_* */
    uint32_t isolation;   /* enum isolation */
    struct limits limits;
    struct volume_use volumes[VOLUMES_MAX]; /* all zero: none */
};

/* 'i', four characters that name this machine, sixteen random ones. */
int sandbox_new_id(char out[ID_LEN + 1], struct err *err);

int sandbox_create(struct link *link, const struct sandbox_spec *spec, struct keeper_sandbox *ret,
                   struct err *err);
int sandbox_get(struct link *link, const char *sandbox, struct keeper_sandbox *ret,
                struct err *err);
int sandbox_stats(struct link *link, const char *sandbox, struct keeper_stats *ret,
                  struct err *err);
/* Only what says how a command ended, for a third of the work: KEEPER_STATS_BRIEF. */
int sandbox_stats_brief(struct link *link, const char *sandbox, struct keeper_stats *ret,
                        struct err *err);
int sandbox_freeze(struct link *link, const char *sandbox, struct err *err);
int sandbox_thaw(struct link *link, const char *sandbox, struct err *err);
int sandbox_destroy(struct link *link, const char *sandbox, struct err *err);

/* From now on the sandbox ends with this link. */
int sandbox_tie(struct link *link, const char *sandbox, struct err *err);

/* Waits until the sandbox is gone, as long as link->patience_ms says. ERR_OOM: it ended for want of memory. */
int sandbox_wait(struct link *link, const char *sandbox, struct err *err);

/* All of them, in one array for the caller to free. */
int sandbox_list(struct link *link, struct keeper_sandbox **ret_list, size_t *ret_count,
                 struct err *err);
/* The same for those that wait in the pool, which are in no other list. To ask for it keeps them alive. */
int sandbox_list_pool(struct link *link, struct keeper_sandbox **ret_list, size_t *ret_count,
                      struct err *err);

int keeper_hello(struct link *link, struct keeper_hello *ret, struct err *err);
/* The names of the templates that creates may name; *ret is the caller's to free. */
int keeper_templates(struct link *link, char (**ret)[KEEPER_NAME_MAX], size_t *ret_count,
                     struct err *err);
/* One of them. ERR_NO_TEMPLATE. */
int keeper_template(struct link *link, const char *name, struct keeper_template *ret,
                    struct err *err);

#endif
