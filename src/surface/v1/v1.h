/* v1.h - the native API: handlers of /v1, and what they share. docs/api.md and spec/openapi.yaml say what they do.
 *
 * Callers: routes.c. Handlers only translate: every operation is of ops.h. */
#ifndef COVE_SURFACE_V1_V1_H
#define COVE_SURFACE_V1_V1_H

#include "server/form/form.h"
#include "server/ops/ops.h"
#include "server/serve/exchange.h"
#include "server/serve/query.h"

#include <jansson.h>

/* ---- reading ---- */

/* The sandbox of the route; user and path of the query. A path that is missing or too long is refused. */
int v1_query_file(struct exchange *x, struct ops_file *ret, struct err *err);

/* Of names of sandboxes and volumes, as a part of a JSON Schema. */
#define V1_NAME_PATTERN "{\"pattern\": \"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$\"}"

/* Calls `work` with the JSON body, which goes behind it. */
typedef int v1_body_fn(struct exchange *x, json_t *json, struct err *err);
int v1_body(struct exchange *x, v1_body_fn *work, struct err *err);
/* Reads a body of numbers and booleans: texts of a form would point into the body, which is gone. */
int v1_numbers(struct exchange *x, const struct form *form, void *ret, struct err *err);

/* The bodies of routes. */
extern const struct form v1_run_form, v1_create_form, v1_extend_form, v1_pause_form, v1_resume_form,
    v1_save_form, v1_fork_form, v1_allow_form, v1_template_form, v1_tag_form, v1_build_form,
    v1_volume_form, v1_networks_form, v1_link_form, v1_exec_form, v1_process_form, v1_signal_form,
    v1_sign_form, v1_mkdir_form, v1_move_form, v1_chmod_form, v1_pool_form, v1_tenant_form,
    v1_tenant_change_form, v1_key_form, v1_verify_form, v1_prune_form, v1_secret_form,
    v1_host_made_form, v1_host_template_form, v1_gc_form;

/* ---- writing ---- */

/* Puts bytes under `name`, and "<name>_encoding": "utf-8" or "base64". */
int v1_put_bytes(json_t *to, const char *name, const char *data, size_t len);
/* Numbers, or texts such as "512m", by the rows of limit_table; the field "limits". */
int v1_limits_read(struct exchange *x, json_t *object, struct limits *limits, struct err *err);
json_t *v1_limits_schema(void);
#define V1_LIMITS_HELP "numbers, or texts such as \"512m\"; what is left out has its default"
json_t *v1_limits_json(const struct limits *limits);
json_t *v1_sandbox_json(const struct ops_sandbox *sandbox);
json_t *v1_result_json(const struct exec_result *result);
json_t *v1_entry_json(const struct agent_reply *entry);
json_t *v1_info_json(const struct file_info *info);
/* The answer of lists: {"<name>": [...], "truncated": …} */
struct v1_items {
    json_t *array;
    json_t *(*convert)(const struct agent_reply *item);
};
int v1_add_item(void *items, const struct agent_reply *item, struct err *err);

/* ---- streams of events: NDJSON or SSE ---- */

struct v1_stream {
    struct exchange *x;
    bool sse;
    char carry[2][4]; /* the beginning of a character whose rest comes with the next piece */
    size_t carried[2];
};

/* By the Accept header. */
enum v1_wish { V1_PLAIN, V1_NDJSON, V1_SSE };
enum v1_wish v1_accepts(struct exchange *x);
extern const char *const v1_stream_names[]; /* what the field "stream" may say */
/* The same, and before it what the field "stream" says; NULL: nothing. */
enum v1_wish v1_read_wish(struct exchange *x, const char *stream);

int v1_stream_begin(struct v1_stream *stream, struct exchange *x, bool sse, struct err *err);
/* The event's "type" is also the SSE event's name. The reference is taken. */
int v1_stream_event(struct v1_stream *stream, json_t *event, struct err *err);
int v1_stream_ping(struct v1_stream *stream, struct err *err);
/* Output of a process, whole characters only. */
int v1_stream_piece(struct v1_stream *stream, const struct exec_event *event, struct err *err);
/* A failure after the beginning: an event "error", and the end. */
int v1_stream_fail(struct v1_stream *stream, const struct err *why, struct err *err);
/* ERR_NO_PROCESS when the route's sandbox never had it. */
int v1_process_exists(struct exchange *x, uint32_t proc, struct err *err);

/* Output of a process until it ends: 1 with how; 0: it failed, and the stream has been told and has ended; -1. */
int v1_stream_output(struct v1_stream *stream, struct ops *ops, struct ops_run *run,
                     struct exec_result *ret, struct err *err);
/* The event "end", and the end. The reference is taken. */
int v1_stream_end(struct v1_stream *stream, json_t *json, struct err *err);
/* Both. */
int v1_stream_run(struct v1_stream *stream, struct ops *ops, struct ops_run *run, struct err *err);

/* The whole answer: begin, an event "start" if `started`, then v1_stream_run. */
int v1_stream_process(struct exchange *x, struct ops_run *run, bool sse, bool started,
                      struct err *err);

/* ---- handlers ---- */

/* The sandbox of the path by its id, also where the client gave its name or the beginning of its id. */
int v1_settle(struct exchange *x, struct err *err);
/* A create of JSON, as POST /v1/sandboxes has it. tied: its lifetime is its maker's to extend (ops_tie.h). */
int v1_create(struct exchange *x, json_t *json, bool tied, struct ops_sandbox *ret,
              struct err *err);
/* A command of JSON, as POST …/processes has it: command or args, env, cwd, user, tag, timeout, stdin, pty, rows, columns. */
struct v1_order {
    json_t *json; /* owned: what the texts point into */
    const char **args, **env;
    struct ops_command command;
};
int v1_order_read(struct exchange *x, json_t *take_json, struct v1_order *ret, struct err *err);
void v1_order_done(struct v1_order *order);

int v1_session(struct exchange *x, struct err *err);
int v1_sandbox_create(struct exchange *x, struct err *err);
int v1_sandbox_list(struct exchange *x, struct err *err);
int v1_sandbox_get(struct exchange *x, struct err *err);
int v1_sandbox_kill(struct exchange *x, struct err *err);
int v1_sandbox_extend(struct exchange *x, struct err *err);
int v1_sandbox_stats(struct exchange *x, struct err *err);
int v1_sandbox_pause(struct exchange *x, struct err *err);
int v1_sandbox_resume(struct exchange *x, struct err *err);

int v1_sandbox_fork(struct exchange *x, struct err *err);
int v1_snapshot_create(struct exchange *x, struct err *err);
int v1_snapshot_list(struct exchange *x, struct err *err);
int v1_snapshot_get(struct exchange *x, struct err *err);
int v1_snapshot_delete(struct exchange *x, struct err *err);

int v1_run(struct exchange *x, struct err *err);
int v1_exec(struct exchange *x, struct err *err);
int v1_process_start(struct exchange *x, struct err *err);
int v1_process_list(struct exchange *x, struct err *err);
int v1_process_get(struct exchange *x, struct err *err);
int v1_process_output(struct exchange *x, struct err *err);
int v1_process_stdin(struct exchange *x, struct err *err);
int v1_process_signal(struct exchange *x, struct err *err);
int v1_refusal_list(struct exchange *x, struct err *err);
int v1_port_list(struct exchange *x, struct err *err);
int v1_port_relay(struct exchange *x, struct err *err);
int v1_port_tunnel(struct exchange *x, struct err *err);
int v1_terminal(struct exchange *x, struct err *err);

int v1_file_get(struct exchange *x, struct err *err);
int v1_file_put(struct exchange *x, struct err *err);
int v1_file_delete(struct exchange *x, struct err *err);
int v1_file_stat(struct exchange *x, struct err *err);
int v1_file_list(struct exchange *x, struct err *err);
int v1_file_mkdir(struct exchange *x, struct err *err);
int v1_file_move(struct exchange *x, struct err *err);
int v1_file_chmod(struct exchange *x, struct err *err);
int v1_file_glob(struct exchange *x, struct err *err);
int v1_file_search(struct exchange *x, struct err *err);
int v1_file_watch(struct exchange *x, struct err *err);

int v1_file_sign(struct exchange *x, struct err *err);
int v1_tar_get(struct exchange *x, struct err *err);
int v1_tar_put(struct exchange *x, struct err *err);

int v1_network_get(struct exchange *x, struct err *err);
int v1_network_put(struct exchange *x, struct err *err);
int v1_network_allow(struct exchange *x, struct err *err);
int v1_network_default_get(struct exchange *x, struct err *err);
int v1_network_default_put(struct exchange *x, struct err *err);
int v1_network_default_delete(struct exchange *x, struct err *err);
int v1_network_events(struct exchange *x, struct err *err);
int v1_secret_put(struct exchange *x, struct err *err);
int v1_secret_list(struct exchange *x, struct err *err);
int v1_secret_delete(struct exchange *x, struct err *err);

int v1_preview_get(struct exchange *x, struct err *err);
int v1_preview_put(struct exchange *x, struct err *err);
int v1_preview_roll(struct exchange *x, struct err *err);
int v1_port_link(struct exchange *x, struct err *err);
int v1_networks_list(struct exchange *x, struct err *err);
int v1_networks_make(struct exchange *x, struct err *err);
int v1_networks_get(struct exchange *x, struct err *err);
int v1_networks_remove(struct exchange *x, struct err *err);
int v1_networks_join(struct exchange *x, struct err *err);
int v1_networks_leave(struct exchange *x, struct err *err);
/* Of a create, `network.join`: out has room for PRIVATE_JOINS. */
int v1_joins_read(struct exchange *x, json_t *list, struct private_member *out, size_t *ret_count,
                  struct err *err);
int v1_pools_get(struct exchange *x, struct err *err);
int v1_pool_set(struct exchange *x, struct err *err);
int v1_pool_unset(struct exchange *x, struct err *err);
int v1_host_template_list(struct exchange *x, struct err *err);
int v1_host_template_get(struct exchange *x, struct err *err);
int v1_host_template_put(struct exchange *x, struct err *err);
int v1_host_template_patch(struct exchange *x, struct err *err);
int v1_host_template_delete(struct exchange *x, struct err *err);
int v1_host_gc(struct exchange *x, struct err *err);
int v1_host_copy(struct exchange *x, struct err *err);
int v1_pools_drain(struct exchange *x, struct err *err);

int v1_tenant_list(struct exchange *x, struct err *err);
int v1_tenant_add(struct exchange *x, struct err *err);
int v1_tenant_get(struct exchange *x, struct err *err);
int v1_tenant_change(struct exchange *x, struct err *err);
int v1_tenant_remove(struct exchange *x, struct err *err);
int v1_key_list(struct exchange *x, struct err *err);
int v1_key_create(struct exchange *x, struct err *err);
int v1_key_revoke(struct exchange *x, struct err *err);
int v1_audit_list(struct exchange *x, struct err *err);
int v1_audit_verify(struct exchange *x, struct err *err);
int v1_audit_prune(struct exchange *x, struct err *err);

int v1_volume_create(struct exchange *x, struct err *err);
int v1_volume_list(struct exchange *x, struct err *err);
int v1_volume_get(struct exchange *x, struct err *err);
int v1_volume_remove(struct exchange *x, struct err *err);

int v1_template_list(struct exchange *x, struct err *err);
int v1_template_get(struct exchange *x, struct err *err);
int v1_template_delete(struct exchange *x, struct err *err);
int v1_template_patch(struct exchange *x, struct err *err);
int v1_template_tag(struct exchange *x, struct err *err);
int v1_template_untag(struct exchange *x, struct err *err);
int v1_build_create(struct exchange *x, struct err *err);
int v1_build_list(struct exchange *x, struct err *err);
int v1_build_get(struct exchange *x, struct err *err);
int v1_build_cancel(struct exchange *x, struct err *err);
int v1_build_logs(struct exchange *x, struct err *err);
int v1_build_files_get(struct exchange *x, struct err *err);
int v1_build_files_put(struct exchange *x, struct err *err);

int v1_openapi(struct exchange *x, struct err *err);

#endif
