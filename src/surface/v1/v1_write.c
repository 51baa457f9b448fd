#include "surface/v1/v1.h"

#include "server/life/sleep.h"

#include "base/base64.h"
#include "base/own.h"

#include <inttypes.h>
#include <string.h>

static json_t *text(const char *t)
{
    return form_text(t, t ? strlen(t) : 0);
}

int v1_put_bytes(json_t *to, const char *name, const char *data, size_t len)
{
    json_t *value = json_stringn(data ? data : "", len);
    char encoding[64];
    const char *how = "utf-8";

    if (!value) {
        auto_free char *out = malloc(BASE64_SIZE(len));

        if (!out)
            return -1;
        base64_put(out, (const uint8_t *) data, len);
        value = json_string(out);
        how = "base64";
    }
    (void) snprintf(encoding, sizeof encoding, "%s_encoding", name);
    return json_object_set_new(to, name, value) < 0 ||
                   json_object_set_new(to, encoding, json_string(how)) < 0
               ? -1
               : 0;
}

/* By the rows of limit_table, which limits_parse reads by, too. */
json_t *v1_limits_schema(void)
{
    json_t *properties = json_object();

    for (size_t i = 0; i < limit_count; i++) {
        const struct limit_info *limit = &limit_table[i];
        bool cpus = limit->unit == LIMIT_CPUS;
        uint64_t unit = cpus ? 1000 : 1;
        json_t *schema = json_pack(
            "{s:[s, s], s:o}", "type", cpus ? "number" : "integer", "string", "description",
            json_sprintf("%s%s", limit->help, limit->fallback ? "" : "; default: no limit"));

        (void) json_object_set_new(schema, "minimum",
                                   limit->least % unit
                                       ? json_real((double) limit->least / (double) unit)
                                       : json_integer((json_int_t) (limit->least / unit)));
        (void) json_object_set_new(schema, "maximum",
                                   json_integer((json_int_t) (limit->most / unit)));
        if (limit->fallback)
            (void) json_object_set_new(schema, "default",
                                       json_integer((json_int_t) (limit->fallback / unit)));
        (void) json_object_set_new(properties, limit->name, schema);
    }
    return json_pack("{s:s, s:b, s:o}", "type", "object", "additionalProperties", 0, "properties",
                     properties);
}

json_t *v1_limits_json(const struct limits *limits)
{
    json_t *json = json_object();

    for (size_t i = 0; i < limit_count; i++) {
        uint64_t value = limit_value(limits, &limit_table[i]);

        if (value > 0)
            (void) json_object_set_new(json, limit_table[i].name,
                                       limit_table[i].unit == LIMIT_CPUS
                                           ? json_real((double) value / 1000)
                                           : json_integer((json_int_t) value));
    }
    return json;
}

/* Keys of ours are not the user's to see. */
static json_t *metadata_json(const char *stored)
{
    json_t *metadata = json_loads(stored, 0, NULL), *value;
    const char *key;
    void *next;

    json_object_foreach_safe(metadata, next, key, value)
    {
        if (strncmp(key, "cove.", 5) == 0)
            (void) json_object_del(metadata, key);
    }
    return metadata ? metadata : json_object();
}

json_t *v1_sandbox_json(const struct ops_sandbox *s)
{
    const char *tier = sleep_tier_name(s->tier);

    return json_pack(
        "{s:s, s:o, s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:s, s:o, s:o, s:s?, s:o, s:o, s:b, s:f, "
        "s:f}",
        "id", s->id, "name", s->name[0] ? json_string(s->name) : json_null(), "state",
        s->life == LIFE_GONE ? "lost" : keeper_life_name(s->life), "template", s->template,
        "profile", s->root ? "root" : "strict", "isolation", s->isolation, "metadata",
        metadata_json(s->metadata), "created_at", form_time(s->created_ms), "deadline",
        form_time(s->deadline_ms), "on_timeout",
        s->on_timeout == ON_TIMEOUT_PAUSE ? "pause" : "kill", "limits", v1_limits_json(&s->limits),
        "volumes", ops_volumes_json(s->volumes, s->volume_count), "tier", tier, "paused_since",
        form_time(s->paused_ms), "image_bytes",
        s->tier == STORE_DISK ? json_integer((json_int_t) s->image_bytes) : json_null(),
        "auto_resume", s->auto_resume, "idle_pause_seconds", (double) s->idle_pause_ms / 1000,
        "idle_disk_seconds", (double) s->idle_disk_ms / 1000);
}

json_t *v1_result_json(const struct exec_result *r)
{
    json_t *json =
        json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I}", "exit_code", (json_int_t) ops_exit_code(r),
                  "exit_reason", ops_exit_reason(r), "wall_ms", (json_int_t) r->wall_ms, "cpu_ms",
                  (json_int_t) r->cpu_ms, "peak_bytes", (json_int_t) r->peak_bytes, "stdout_bytes",
                  (json_int_t) r->stdout_bytes, "stderr_bytes", (json_int_t) r->stderr_bytes);

    if (r->ended == EXIT_SIGNAL)
        (void) json_object_set_new(json, "signal", json_integer((json_int_t) r->signal));
    return json;
}

static json_t *entry_json(const char *path, const char *target, const char *owner,
                          const char *group, const struct agent_reply *e)
{
    char mode[8];
    json_t *json;

    (void) snprintf(mode, sizeof mode, "%04o", e->mode & 07777);
    json = json_pack("{s:o, s:s, s:I, s:s, s:I, s:I, s:o}", "path", text(path), "type",
                     agent_entry_type_name(e->type), "size", (json_int_t) e->size, "mode", mode,
                     "uid", (json_int_t) e->uid, "gid", (json_int_t) e->gid, "modified_at",
                     form_time(e->mtime_ns > 0 ? (uint64_t) e->mtime_ns / 1000000 : 0));
    if (owner && owner[0])
        (void) json_object_set_new(json, "owner", text(owner));
    if (group && group[0])
        (void) json_object_set_new(json, "group", text(group));
    if (target && target[0])
        (void) json_object_set_new(json, "target", text(target));
    return json;
}

json_t *v1_entry_json(const struct agent_reply *e)
{
    return entry_json(e->path, e->target, e->owner, e->group, e);
}

json_t *v1_info_json(const struct file_info *i)
{
    struct agent_reply e = { .type = i->type,
                             .mode = i->mode,
                             .uid = i->uid,
                             .gid = i->gid,
                             .size = i->size,
                             .mtime_ns = i->mtime_ns };

    return entry_json(i->path, i->target, i->owner, i->group, &e);
}

int v1_add_item(void *arg, const struct agent_reply *item, struct err *err)
{
    struct v1_items *items = arg;

    if (json_array_append_new(items->array, items->convert(item)) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    return 0;
}
