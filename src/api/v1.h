/* v1.h - the native API: handlers of /v1, and what they share. docs/api.md and spec/openapi.yaml say what they do.
 *
 * Callers: routes.c. Handlers only translate: every operation is of ops.h. */
#ifndef COVE_API_V1_H
#define COVE_API_V1_H

#include "api/ops.h"

#include <jansson.h>

/* ---- reading ---- */

enum v1_type {
    V1_TEXT,    /* const char *, borrowed from the body; not empty */
    V1_BOOL,    /* bool */
    V1_COUNT,   /* uint64_t */
    V1_SECONDS, /* uint64_t milliseconds, from seconds with a fraction; bounds in milliseconds */
    V1_ARRAY,   /* json_t *, borrowed */
    V1_OBJECT,  /* json_t *, borrowed */
    V1_ANY      /* json_t *, borrowed */
};

struct v1_field {
    const char *name;
    enum v1_type type;
    size_t offset;
    uint64_t least, most; /* of V1_COUNT and V1_SECONDS */
};

/* Every key of the object has a row, and the row's type; others are refused by their name. Fields that are absent or
 * null stay as they are in out. */
int v1_read(struct exchange *x, json_t *object, const struct v1_field *rows, size_t count,
            void *out, struct err *err);

/* The same, but fields without a row are passed over: for dialects whose clients may know more than we do. */
int v1_read_known(struct exchange *x, json_t *object, const struct v1_field *rows, size_t count,
                  void *out, struct err *err);

/* -1: "<field>: <text>", blamed on that field. */
int v1_bad(struct exchange *x, struct err *err, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* An array of texts; the array is the caller's to free, the texts are borrowed. */
int v1_texts(struct exchange *x, const char *field, json_t *array, const char ***ret,
             size_t *ret_count, struct err *err);
/* An object of texts as K=V: one block, the caller's to free. */
int v1_assignments(struct exchange *x, const char *field, json_t *object, const char ***ret,
                   size_t *ret_count, struct err *err);

/* Of the query. Absent: untouched. */
int v1_query_count(struct exchange *x, const char *name, uint64_t least, uint64_t most,
                   uint64_t *ret, struct err *err);
int v1_query_bool(struct exchange *x, const char *name, bool *ret, struct err *err);
int v1_query_mode(struct exchange *x, const char *name, uint32_t *ret, struct err *err);
/* The sandbox of the route; user and path of the query. A path that is missing or too long is refused. */
int v1_query_file(struct exchange *x, struct ops_file *ret, struct err *err);

/* ---- writing ---- */

/* Any bytes as a JSON text: what is no UTF-8 becomes U+FFFD. */
json_t *v1_text(const char *text, size_t len);
/* "2026-01-02T03:04:05.678Z"; 0: null */
json_t *v1_time(uint64_t ms);
/* Puts bytes under `name`, and "<name>_encoding": "utf-8" or "base64". */
int v1_put_bytes(json_t *to, const char *name, const char *data, size_t len);
json_t *v1_limits_json(const struct limits *limits);
/* A list of {name, path, read_only}. */
int v1_volumes_read(struct exchange *x, const char *field, json_t *list, struct ops_mount mounts[VOLUMES_MAX],
                    size_t *ret_count, struct err *err);
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

int v1_stream_begin(struct v1_stream *stream, struct exchange *x, bool sse, struct err *err);
/* The event's "type" is also the SSE event's name. The reference is taken. */
int v1_stream_event(struct v1_stream *stream, json_t *event, struct err *err);
int v1_stream_ping(struct v1_stream *stream, struct err *err);
/* A failure after the beginning: an event "error", and the end. */
int v1_stream_fail(struct v1_stream *stream, const struct err *why, struct err *err);
/* ERR_NO_PROCESS when the route's sandbox never had it. */
int v1_process_exists(struct exchange *x, uint32_t proc, struct err *err);

/* Output and end of a process, until it ends. */
int v1_stream_run(struct v1_stream *stream, struct ops *ops, struct ops_run *run, struct err *err);

/* The whole answer: begin, an event "start" if `started`, then v1_stream_run. */
int v1_stream_process(struct exchange *x, struct ops_run *run, bool sse, bool started,
                      struct err *err);

/* ---- handlers ---- */

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

int v1_exec(struct exchange *x, struct err *err);
int v1_process_start(struct exchange *x, struct err *err);
int v1_process_list(struct exchange *x, struct err *err);
int v1_process_get(struct exchange *x, struct err *err);
int v1_process_output(struct exchange *x, struct err *err);
int v1_process_stdin(struct exchange *x, struct err *err);
int v1_process_signal(struct exchange *x, struct err *err);
int v1_port_list(struct exchange *x, struct err *err);
int v1_port_relay(struct exchange *x, struct err *err);
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

int v1_volume_create(struct exchange *x, struct err *err);
int v1_volume_list(struct exchange *x, struct err *err);
int v1_volume_get(struct exchange *x, struct err *err);
int v1_volume_remove(struct exchange *x, struct err *err);

int v1_openapi(struct exchange *x, struct err *err);

#endif
