#include "cli/api/make.h"

#include "base/own.h"
#include "base/parse.h"
#include "cli/api/network_rules.h"
#include "cli/api/server.h"

#include <stdlib.h>
#include <string.h>

static void put(json_t *object, const char *name, json_t *value)
{
    (void) json_object_set_new(object, name, value);
}

static void put_text(json_t *object, const char *name, const char *text)
{
    if (text)
        put(object, name, json_string(text));
}

int make_assignments(const char *option, const struct option_list *list, bool inherit,
                     json_t *object, struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i], *equals = strchr(text, '='),
                   *value = equals ? equals + 1 : NULL;
        size_t len = equals ? (size_t) (equals - text) : strlen(text);

        if (len == 0 || (!equals && !inherit))
            return err_set(err, ERR_INVALID, "--%s: '%.40s' is not KEY=VALUE", option, text);
        if (!equals && !(value = getenv(text)))
            continue;
        if (json_object_setn_new(object, text, len, json_string(value)) < 0)
            return err_set(err, ERR_INVALID, "--%s: '%.40s' is not UTF-8", option, text);
    }
    return 0;
}

static int put_texts(json_t *object, const char *option, const char *name,
                     const struct option_list *list, struct err *err)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(array, json_string(list->items[i])) < 0) {
            json_decref(array);
            return err_set(err, ERR_INVALID, "--%s: not UTF-8", option);
        }
    if (list->count > 0)
        put(object, name, array);
    else
        json_decref(array);
    return 0;
}

/* NETWORK[:NAME[:PORT,PORT…]]; an empty NAME is none. */
static int put_join(json_t *array, const char *text, struct err *err)
{
    const char *name = strchr(text, ':'), *ports = name ? strchr(name + 1, ':') : NULL;
    size_t len = name ? (size_t) (name - text) : strlen(text), name_len = 0;
    json_t *join = json_pack("{s:s%}", "network", text, len), *list = json_array();

    if (name)
        name_len = ports ? (size_t) (ports - name) - 1 : strlen(name + 1);
    if (join && name_len > 0)
        put(join, "alias", json_stringn(name + 1, name_len));
    if (join && ports)
        put(join, "ports", json_incref(list));
    if (!join || (name_len > 0 && !json_object_get(join, "alias")))
        err_set(err, ERR_INVALID, "--join: not UTF-8");
    else if (!ports || network_ports_put("join", ports + 1, list, err) == 0) {
        json_decref(list);
        return json_array_append_new(array, join);
    }
    json_decref(list);
    json_decref(join);
    return -1;
}

static int put_joins(json_t *network, const struct option_list *list, struct err *err)
{
    json_t *array = json_array();

    if (list->count > 0)
        put(network, "join", array);
    else
        json_decref(array);
    for (size_t i = 0; i < list->count; i++)
        if (put_join(array, list->items[i], err) < 0)
            return -1;
    return 0;
}

static int put_network(json_t *body, const struct make_options *o, struct err *err)
{
    json_t *network = json_object();

    put_text(network, "mode", o->network);
    if (put_texts(network, "allow", "allow", &o->allow, err) < 0 ||
        put_texts(network, "deny", "deny", &o->deny, err) < 0 ||
        put_texts(network, "secret", "secrets", &o->secrets, err) < 0 ||
        network_proxy_put(o->proxy, o->proxy_login, network, err) < 0 ||
        put_joins(network, &o->joins, err) < 0) {
        json_decref(network);
        return -1;
    }
    if (json_object_size(network) > 0)
        put(body, "network", network);
    else
        json_decref(network);
    return 0;
}

static int bad_volume(const char *text, json_t *array, struct err *err)
{
    json_decref(array);
    return err_set(err, ERR_INVALID, "--volume: '%.80s' is not NAME:DIR or NAME:DIR:ro", text);
}

static int put_volumes(json_t *body, const struct option_list *list, struct err *err)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i], *dir = strchr(text, ':'), *mode;
        size_t name_len = dir ? (size_t) (dir - text) : 0, dir_len;

        if (name_len > 0 && strchr("/.~", text[0])) {
            json_decref(array);
            return err_set(err, ERR_USAGE,
                           "--volume: '%.*s' is a directory of this host, which no sandbox can "
                           "mount; copy it with 'cove cp', or "
                           "use a volume: 'cove volume create NAME', then -v NAME:DIR",
                           (int) (name_len < 80 ? name_len : 80), text);
        }
        if (name_len == 0 || dir[1] != '/')
            return bad_volume(text, array, err);
        mode = strchr(++dir, ':');
        dir_len = mode ? (size_t) (mode - dir) : strlen(dir);
        if (mode && strcmp(mode, ":ro") != 0 && strcmp(mode, ":rw") != 0)
            return bad_volume(text, array, err);
        (void) json_array_append_new(array, json_pack("{s:s%, s:s%, s:b}", "name", text, name_len,
                                                      "path", dir, dir_len, "read_only",
                                                      mode && strcmp(mode, ":ro") == 0));
    }
    if (list->count > 0)
        put(body, "volumes", array);
    else
        json_decref(array);
    return 0;
}

static void put_limits(json_t *body, const struct limits *limits)
{
    json_t *object = json_object();

    for (size_t i = 0; i < limit_count; i++) {
        uint64_t value = limit_value(limits, &limit_table[i]);

        if (value > 0)
            put(object, limit_table[i].name,
                limit_table[i].unit == LIMIT_CPUS ? json_real((double) value / 1000)
                                                  : json_integer((json_int_t) value));
    }
    if (json_object_size(object) > 0)
        put(body, "limits", object);
    else
        json_decref(object);
}

static int put_seconds(json_t *body, const char *option, const char *name, const char *text,
                       struct err *err)
{
    uint64_t ms;

    if (!text)
        return 0;
    if (strcmp(text, "0") == 0)
        ms = 0;
    else if (parse_duration_ms(text, &ms, err) < 0)
        return err_wrap(err, "--%s", option);
    put(body, name, json_real((double) ms / 1000));
    return 0;
}

static int put_lifetime(json_t *body, const struct make_options *o, bool stays, struct err *err)
{
    const struct remote *remote;

    if (!stays)
        return o->lifetime ? err_set(err, ERR_USAGE,
                                     "--lifetime: only of a sandbox that stays (create, --keep)")
                           : 0;
    if (o->lifetime)
        return put_seconds(body, "lifetime", "timeout", o->lifetime, err);
    if (server_find(&remote, err) < 0)
        return -1;
    if (remote->kind == REMOTE_LOCAL)
        put(body, "timeout", json_integer(0));
    return 0;
}

static void put_preview(json_t *body, const struct make_options *o)
{
    json_t *preview = json_object();

    if (o->preview_public)
        put(preview, "public", json_true());
    if (o->preview_resume)
        put(preview, "auto_resume", json_true());
    put_text(preview, "mask_host", o->mask_host);
    if (json_object_size(preview) > 0)
        put(body, "preview", preview);
    else
        json_decref(preview);
}

static int fill(json_t *body, const struct make_options *o, bool stays,
                const struct option_list *env, struct err *err)
{
    json_t *metadata = json_object(), *own = json_object();

    put(body, "metadata", metadata);
    put(body, "env", own);
    put_text(body, "template", o->template);
    put_text(body, "snapshot", o->snapshot);
    put_text(body, "name", o->name);
    put_text(body, "isolation", o->isolation);
    put_text(body, "on_timeout", o->on_timeout);
    put_text(body, "idempotency_key", o->idempotency_key);
    if (o->root)
        put(body, "root", json_true());
    if (o->no_memory)
        put(body, "memory", json_false());
    if (o->auto_resume)
        put(body, "auto_resume", json_true());
    put_limits(body, &o->limits);
    put_preview(body, o);
    if (put_network(body, o, err) < 0 || put_volumes(body, &o->volumes, err) < 0 ||
        put_seconds(body, "idle-pause", "idle_pause_seconds", o->idle_pause, err) < 0 ||
        put_seconds(body, "idle-disk", "idle_disk_seconds", o->idle_disk, err) < 0 ||
        put_lifetime(body, o, stays, err) < 0 ||
        make_assignments("metadata", &o->metadata, false, metadata, err) < 0 ||
        (env && make_assignments("env", env, true, own, err) < 0))
        return -1;
    if (json_object_size(metadata) == 0)
        (void) json_object_del(body, "metadata");
    if (json_object_size(own) == 0)
        (void) json_object_del(body, "env");
    return 0;
}

int make_body(const struct make_options *o, bool stays, const struct option_list *env, json_t **ret,
              struct err *err)
{
    json_t *body;

    if (o->snapshot && (o->template || o->root || o->volumes.count > 0))
        return err_set(err, ERR_USAGE, "a snapshot has its own template, root and volumes");
    if (!o->snapshot && o->no_memory)
        return err_set(err, ERR_USAGE, "--no-memory: only with --snapshot");
    body = json_object();
    if (fill(body, o, stays, env, err) < 0) {
        json_decref(body);
        return -1;
    }
    *ret = body;
    return 0;
}
