/* ops_own.h - what the parts of the operations layer share: ops.c, ops_exec.c, ops_files.c. */
#ifndef COVE_SERVER_OPS_OPS_OWN_H
#define COVE_SERVER_OPS_OPS_OWN_H

#include "client/image.h"
#include "server/ops/ops.h"
#include "store/store.h"

#include <jansson.h>

/* What a dialect keeps, in the record's metadata. */
#define OPS_NOTES_KEY "cove.notes"
/* Whether the text of metadata may have keys of ours in it: one that has none is stored and shown as it is, without a parse. */
bool ops_metadata_marked(const char *text);

/* The record of the caller's sandbox. */
int ops_find(struct ops *ops, const char *sandbox, struct store_sandbox *ret, struct err *err);
/* A record and what the keeper has of it; NULL: nothing. saved: as an image. */
void ops_view(const struct store_sandbox *record, const struct keeper_sandbox *kept, bool saved,
              struct ops_sandbox *ret);
int ops_look(struct ops *ops, const struct store_sandbox *record, struct ops_sandbox *ret,
             struct err *err);
int ops_check_timeout(struct ops *ops, uint64_t timeout_ms, struct err *err);
/* What a create without saved processes gets; less than the tenant's least only if it asks for that. */
int ops_wanted_isolation(struct ops *ops, const struct ops_create *create, uint32_t *ret,
                         struct err *err);
/* Sets create->chosen: what is asked for, or the snapshot's, or the template's wish, or the server's own; nothing below the tenant's
 * least. Saved processes have the one that they ran with; saved files may get another. */
int ops_choose_isolation(struct ops *ops, struct ops_create *create, struct err *err);
/* ERR_DENIED: it is below the tenant's least. */
int ops_check_isolation(struct ops *ops, uint32_t isolation, struct err *err);

/* Only a record: for what does not disturb one that sleeps. */
int ops_box_look(struct ops *ops, const char *sandbox, struct link *ret_link, struct err *err);
/* The sandbox is the caller's, awake (ops_wake) and in use until the request ends, and a link to the keeper for one use. ret_env may be NULL; else it is an array of
 * K=V texts that every command in the sandbox gets, or NULL, for the caller to json_decref. */
int ops_box_open(struct ops *ops, const char *sandbox, struct link *ret_link, json_t **ret_env,
                 struct err *err);
void ops_box_close(struct ops *ops, struct link *link, int result, const struct err *err);

/* ops_private.c, for a create: what it asks for, for its hash (NULL: nothing), and that it is in its networks now. */
json_t *ops_private_joins_json(const struct ops_create *create);
int ops_private_made(struct ops *ops, const struct ops_create *create, const char *sandbox,
                     struct err *err);
/* What a new sandbox may reach (network_default.h), on the heap; NULL: nothing. */
int ops_network_settle(struct ops *ops, const struct ops_create *create, struct reach **ret,
                       struct err *err);
/* It was made from another template than the one that was named: that one's rules count. */
int ops_network_settle_again(struct ops *ops, const struct ops_create *create, const char *sandbox,
                             const char *template, struct err *err);

/* What a create asks for, for the keeper and for the record; names are the caller's own. */
int ops_volumes_resolve(struct ops *ops, const struct ops_create *create,
                        struct volume_use uses[VOLUMES_MAX],
                        struct store_volume_use records[VOLUMES_MAX], struct err *err);
/* What a sandbox or a snapshot has, for the record of another. */
struct ops_uses {
    struct store_volume_use list[VOLUMES_MAX];
    size_t count;
};
int ops_volumes_of(struct ops *ops, const char *id, struct ops_uses *ret, struct err *err);
/* What the record has, into sandbox->volumes. */
int ops_volumes_show(struct ops *ops, struct ops_sandbox *sandbox, struct err *err);

/* What a create gets from the snapshot that it names. */
struct ops_source {
    char id[ID_LEN + 1];    /* of the sandbox to be */
    char image[ID_LEN + 1]; /* of the snapshot */
    char template[KEEPER_NAME_MAX];
    json_t *kept;     /* the snapshot's environment */
    const char **env; /* merged, borrowed from `kept` and the create */
    struct reach *network;
    char *hidden; /* secrets_kept */
    struct ops_uses uses;
    /* Of a template that was built: ops_template.c. */
    char owner[STORE_TENANT_MAX]; /* of the image */
    char name[2 * STORE_NAME_MAX];
    json_t *settings;
    bool cold; /* its start command is not in the image */
};
/* The rest of it, when the snapshot is known. env and network as store_snapshot_kept has them; each may be NULL. */
int ops_source_from(struct ops *ops, struct ops_create *create, const struct store_snapshot *record,
                    const char *env, const char *network, struct ops_source *source,
                    struct err *err);
/* A create that names a template which was built: as from a snapshot. Another is left as it is. */
int ops_template_apply(struct ops *ops, struct ops_create *create, struct ops_source *source,
                       struct err *err);
/* The sandbox is there: its start command, if that is not in the image. */
int ops_template_started(struct ops *ops, const struct ops_source *source, const char *sandbox,
                         struct err *err);
/* Completes `create`: what it does not say is as the snapshot has it. */
int ops_source_apply(struct ops *ops, struct ops_create *create, struct ops_source *ret,
                     struct err *err);
void ops_source_done(struct ops_source *source);

/* Of K=V texts: a value that is the old sandbox's id becomes the new one's. env may be NULL. */
void ops_env_rename(json_t *env, const char *old_id, const char *new_id);

/* The keeper ended the sandbox: audit, egress and record follow. begun: when that was asked for, by io_now_ms. */
int ops_sandbox_ended(struct ops *ops, const char *sandbox, uint64_t begun, struct err *err);

/* Saves a running sandbox as a snapshot with a record: MAKING first, then `state`. The sandbox's turn is taken meanwhile. seal: files alone,
 * and the sandbox is gone then; its disk is the snapshot's, not a copy. */
int ops_save_recorded(struct ops *ops, const struct store_sandbox *record,
                      struct store_snapshot *snapshot, int state, bool seal,
                      struct keeper_image *ret, struct err *err);

/* ops_verdict.c: what the sandbox has used so far, before a command is started. Returns a connection to its agent, or -1. */
int ops_verdict_begin(struct link *link, const char *sandbox, uint64_t cpu_limit_ms,
                      struct ops_verdict *ret, struct err *err);
/* A look, if it is time: a command that used more than its processor time, unseen by the agent, is killed. */
void ops_verdict_look(struct ops *ops, struct ops_run *run);
/* The connection to a process ended without a status, as err says: true with a result if the whole sandbox ran out of memory.
 * Another end of the sandbox is in run->lost. */
bool ops_verdict_lost(struct ops *ops, struct ops_run *run, const struct err *err,
                      struct exec_result *ret);
/* How it ended, by all that is known: out of memory, then processor time, then what the agent said. */
void ops_verdict_end(struct ops *ops, struct ops_run *run, struct exec_result *result);

/* One record of the audit. err: why it was refused, or NULL. */
/* Below SCOPE_OPERATOR: ERR_DENIED, and a record of that. */
int ops_operator_only(struct ops *ops, const char *action, struct err *err);
void ops_audit(struct ops *ops, const char *action, const char *sandbox, const struct err *err);

#endif
