/* control.h - the control plane: its handlers, for the table in control.c, and what they share.
 *
 * Handlers only translate; every operation is of ops.h. */
#ifndef COVE_SURFACE_E2B_CONTROL_H
#define COVE_SURFACE_E2B_CONTROL_H

#include "server/form/form.h"
#include "server/ops/ops_template.h"
#include "server/serve/query.h"
#include "server/serve/route.h"
#include "surface/e2b/e2b.h"

/* ---- reading ---- */

/* The sandbox of the route. "<id>-<client id>", as old SDKs say it, is its first part. */
const char *control_id(struct exchange *x, char buffer[ID_LEN + 1]);
/* A name, or the beginning of an id, becomes the id. What no sandbox is called is left for the handler to refuse. */
int control_settle(struct exchange *x, struct err *err);
/* The body's whole number of seconds, in milliseconds; absent: `default_ms`. One below `least_s` is refused with the
 * sentence that SDKs know, as is one beyond the configured greatest. */
int control_timeout(struct exchange *x, const json_t *value, uint64_t least_s, uint64_t default_ms,
                    uint64_t *ret_ms, struct err *err);

/* Pure: "Name", "name:default", "namespace/name" → "name". A tag of another name is ERR_NO_TEMPLATE, what cannot be a
 * template's name ERR_INVALID. */
int control_template_name(const char *text, char ret[KEEPER_NAME_MAX], struct err *err);
/* The same with a tag. */
int control_template_ref(const char *text, struct ops_template_ref *ret, struct err *err);
/* Whether every server of E2B has it, so that SDKs ask for it without being told. */
bool control_template_standard(const char *name);

/* A name after control_template_name: whether the caller has a snapshot of that name or id. */
bool control_is_snapshot(struct exchange *x, const char *name);

/* Pure: ?metadata= after the query was decoded, into pairs that live in `text`, which is changed. */
int control_metadata(char *text, struct ops_filter *filter, struct err *err);
/* Pure: the cursor of a list, as SDKs get and send it back. */
#define CONTROL_TOKEN_MAX 32
#define E2B_ISOLATION                                                                              \
    "cove.isolation" /* in the metadata of a create: the only name of ours that SDKs may give */
void control_token_put(uint64_t cursor, bool oldest_first, char out[CONTROL_TOKEN_MAX]);
int control_token_get(const char *text, bool oldest_first, uint64_t *ret, struct err *err);
/* Pure: RFC 3339, with a fraction and an offset. Milliseconds since 1970; -1: not one. */
int64_t control_time_parse(const char *text);

/* ---- create's options: control_options.c ---- */

struct control_create {
    struct ops_create ops; /* its network borrowed from the caller of control_options */
    struct e2b_notes notes;
    json_t *metadata, *env; /* borrowed from the body */
    struct ops_mount volumes[VOLUMES_MAX];
    char template[2 * KEEPER_NAME_MAX];
};
/* `v2`: the later path, which has other defaults. */
int control_options(struct exchange *x, json_t *body, bool v2, struct control_create *ret,
                    struct reach *reach, struct err *err);
/* Whether a field holds anything at all: null, [] and {} do not. */
bool control_says(const json_t *value);

/* ---- what a sandbox may reach: control_network.c ---- */

/* Whether a "network" (NULL: none) has rules for egress. */
bool control_says_reach(const json_t *network);
/* "rules" of "network" (NULL: none), before control_network. *ret NULL: none; else borrowed from the network. */
int control_rules(struct exchange *x, json_t *network, const json_t **ret, struct err *err);
json_t *control_rules_json(struct exchange *x, const char *sandbox);
/* The fields of "network" (NULL: none), after control_internet. */
int control_network(struct exchange *x, json_t *network, struct e2b_notes *notes,
                    struct reach *reach, struct err *err);
int control_internet(struct exchange *x, const json_t *value, struct e2b_notes *notes,
                     struct err *err);
/* What of it this server is asked for; NULL: nothing. */
const struct reach *control_reach(struct exchange *x, const struct reach *reach);
json_t *control_network_json(struct exchange *x, const char *sandbox,
                             const struct e2b_notes *notes);

/* ---- answers ---- */

/* What create, connect and resume say. NULL with err. */
json_t *control_made_json(struct exchange *x, const struct ops_sandbox *sandbox, struct err *err);
int control_reply_sandbox(struct exchange *x, int status, const struct ops_sandbox *sandbox,
                          struct err *err);
/* What lists say; `detail`: with what only the sandbox's own page says. */
json_t *control_sandbox_json(struct exchange *x, const struct ops_sandbox *sandbox, bool detail);

/* ---- handlers ---- */

route_handler control_create_v1, control_create_v2, control_list;
route_handler control_get, control_kill, control_set_timeout, control_refresh;
route_handler control_connect_v1, control_connect_v2, control_pause, control_resume;
route_handler control_network_put, control_list_v1;
route_handler control_metrics, control_metrics_many, control_logs_v1, control_logs_v2;
route_handler control_snapshot, control_snapshots, control_snapshot_delete, control_fork;
route_handler control_template_alias;
route_handler control_build_absent;
route_handler control_template_list, control_template_get, control_template_patch,
    control_template_make;
route_handler control_template_tags, control_template_tag, control_template_untag;
route_handler control_build_files, control_build_submit, control_build_status;
route_handler control_volume_create, control_volume_list, control_volume_get, control_volume_remove;
route_handler control_secrets_absent;
route_handler control_volume_content_absent;

#endif
