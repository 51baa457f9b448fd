/* ops_own.h - what the parts of the operations layer share: ops.c, ops_exec.c, ops_files.c. */
#ifndef COVE_API_OPS_OWN_H
#define COVE_API_OPS_OWN_H

#include "api/ops.h"
#include "store/store.h"

#include <jansson.h>

/* What a dialect keeps, in the record's metadata. */
#define OPS_NOTES_KEY "cove.notes"

/* The record of the caller's sandbox. */
int ops_find(struct ops *ops, const char *sandbox, struct store_sandbox *ret, struct err *err);
/* A record and what the keeper has of it; NULL: nothing. */
void ops_view(const struct store_sandbox *record, const struct keeper_sandbox *kept,
              struct ops_sandbox *ret);

/* The sandbox is the caller's, and a link to the keeper for one use. ret_env may be NULL; else it is an array of
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
/* What the record has, into sandbox->volumes. */
int ops_volumes_show(struct ops *ops, struct ops_sandbox *sandbox, struct err *err);

/* One record of the audit. err: why it was refused, or NULL. */
void ops_audit(struct ops *ops, const char *action, const char *sandbox, const struct err *err);

#endif
