/* Sandboxes, in the words of the control plane. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <inttypes.h>
#include <string.h>

#define CLIENT_ID "cove" /* one machine: SDKs want the field, and do nothing with it */

static const char *template_of(const struct ops_sandbox *sandbox)
{
    return sandbox->asked[0] ? sandbox->asked : sandbox->template;
}

static int add_token(struct exchange *x, json_t *json, const char *name,
                     int (*make)(struct app *, const char *, char[TOKEN_MAX], struct err *),
                     const char *sandbox, struct err *err)
{
    char token[TOKEN_MAX];

    if (make(exchange_app(x), sandbox, token, err) < 0)
        return -1;
    return json_object_set_new(json, name, json_string(token));
}

/* Only where there is one that works: SDKs put "https://{port}-{id}." before it. */
static void add_domain(struct exchange *x, json_t *json)
{
    const char *domain = app_config(exchange_app(x))->public_domain;

    if (domain[0])
        (void) json_object_set_new(json, "domain", json_string(domain));
}

json_t *control_made_json(struct exchange *x, const struct ops_sandbox *sandbox, struct err *err)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s}", "sandboxID", sandbox->id, "templateID",
                             template_of(sandbox), "alias", template_of(sandbox), "clientID",
                             CLIENT_ID, "envdVersion", E2B_ENVD_VERSION);
    struct e2b_notes notes;

    e2b_notes_read(sandbox->notes, &notes);
    add_domain(x, json);
    if ((notes.secure &&
         add_token(x, json, "envdAccessToken", token_access, sandbox->id, err) < 0) ||
        (!notes.public_traffic &&
         add_token(x, json, "trafficAccessToken", token_traffic, sandbox->id, err) < 0)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

int control_reply_sandbox(struct exchange *x, int status, const struct ops_sandbox *sandbox,
                          struct err *err)
{
    json_t *json = control_made_json(x, sandbox, err);

    return json ? exchange_reply_json(x, status, json, err) : -1;
}

/* Without a deadline: a year from its start, since SDKs want a date. */
#define NO_END_MS 31536000000ull

static uint64_t end_of(const struct ops_sandbox *sandbox)
{
    if (sandbox->held_ms)
        return sandbox->held_ms;
    return sandbox->deadline_ms ? sandbox->deadline_ms : sandbox->created_ms + NO_END_MS;
}

static void add_detail(struct exchange *x, json_t *json, const struct ops_sandbox *sandbox)
{
    struct e2b_notes notes;
    struct err ignored;

    e2b_notes_read(sandbox->notes, &notes);
    add_domain(x, json);
    /* Who holds the token may run commands: not for keys that may only look. */
    if (notes.secure && exchange_caller(x)->scope >= SCOPE_RUN)
        (void) add_token(x, json, "envdAccessToken", token_access, sandbox->id, &ignored);
    (void) json_object_set_new(json, "allowInternetAccess",
                               notes.internet < 0 ? json_null() : json_boolean(notes.internet));
    (void) json_object_set_new(json, "network", control_network_json(x, sandbox->id, &notes));
    (void) json_object_set_new(
        json, "lifecycle",
        json_pack("{s:b, s:s}", "autoResume", notes.auto_resume, "onTimeout",
                  sandbox->on_timeout == ON_TIMEOUT_PAUSE ? "pause" : "kill"));
}

static json_t *mounts_json(const struct ops_sandbox *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->volume_count; i++)
        (void) json_array_append_new(
            list, json_pack("{s:s, s:s}", "name", s->volumes[i].name, "path", s->volumes[i].path));
    return list;
}

json_t *control_sandbox_json(struct exchange *x, const struct ops_sandbox *s, bool detail)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:s, s:s, s:o}", "sandboxID",
                  s->id, "templateID", template_of(s), "alias", template_of(s), "clientID",
                  CLIENT_ID, "startedAt", form_time(s->created_ms), "endAt", form_time(end_of(s)),
                  "cpuCount", (json_int_t) ((s->limits.cpu_milli + 999) / 1000), "memoryMB",
                  (json_int_t) (s->limits.memory_bytes >> 20), "diskSizeMB",
                  (json_int_t) (s->limits.disk_bytes >> 20), "state",
                  s->life == LIFE_PAUSED && !s->idle_paused ? "paused" : "running", "envdVersion",
                  E2B_ENVD_VERSION, "metadata", json_loads(s->metadata, 0, NULL));

    if (json && s->isolation)
        (void) json_object_set_new(json, "isolation", json_string(s->isolation));
    if (json && s->volume_count > 0)
        (void) json_object_set_new(json, "volumeMounts", mounts_json(s));
    if (json && detail)
        add_detail(x, json, s);
    return json;
}
