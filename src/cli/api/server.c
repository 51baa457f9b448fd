#include "cli/api/server.h"

#include "base/own.h"
#include "base/parse.h"
#include "cli/api/contexts.h"
#include "cli/programs.h"
#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PAGES_MOST 100000

static struct remote chosen;
static bool found;

static const char *set(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* A key becomes a line of a request's head. */
static int use_key(struct remote *remote, const char *key, struct err *err)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] > '~')
            len = sizeof remote->key;
    if (len >= sizeof remote->key)
        return err_set(err, ERR_USAGE, "the key is invalid");
    (void) strcpy(remote->key, key);
    return 0;
}

static json_t *known_by_url(json_t *contexts, const char *url)
{
    const char *name;
    json_t *server;

    json_object_foreach(json_object_get(contexts, "servers"), name, server)
    {
        const char *own = json_string_value(json_object_get(server, "url"));

        if (own && strcmp(own, url) == 0)
            return server;
    }
    return NULL;
}

/* server: what `cove login` kept of it; NULL: nothing. */
static int use_url(struct remote *remote, const char *url, json_t *server, struct err *err)
{
    const char *key = set("COVE_KEY"), *cacert = set("COVE_CACERT");

    if (!key)
        key = json_string_value(json_object_get(server, "key"));
    if (!cacert)
        cacert = json_string_value(json_object_get(server, "cacert"));
    if (remote_parse(url, remote, err) < 0 || (key && use_key(remote, key, err) < 0))
        return -1;
    if (cacert && !realpath(cacert, remote->cacert))
        return err_set(err, ERR_USAGE, "--cacert %.200s: there is no such file", cacert);
    return program_find("cove-dial", remote->dialer, sizeof remote->dialer, err);
}

static int use_contexts(struct remote *remote, const char *url, struct err *err)
{
    json_t *contexts, *server = NULL;
    const char *current;
    int r;

    if (contexts_read(&contexts, err) < 0)
        return -1;
    current = json_string_value(json_object_get(contexts, "current"));
    if (url)
        server = known_by_url(contexts, url);
    else if (current)
        server = json_object_get(json_object_get(contexts, "servers"), current);
    if (!url)
        url = json_string_value(json_object_get(server, "url"));
    r = url ? use_url(remote, url, server, err) : 0;
    json_decref(contexts);
    return r;
}

void server_use_here(void)
{
    chosen = (struct remote){ .kind = REMOTE_LOCAL };
    (void) snprintf(chosen.state, sizeof chosen.state, "%s", report_state());
    found = true;
}

int server_find(const struct remote **ret, struct err *err)
{
    const char *url = set("COVE_SERVER");

    *ret = &chosen;
    if (found)
        return 0;
    server_use_here();
    found = false;
    if (url ? use_contexts(&chosen, url, err) < 0
            : !set("COVE_STATE") && use_contexts(&chosen, NULL, err) < 0)
        return -1;
    found = true;
    return 0;
}

int server_act_for(const char *tenant, struct err *err)
{
    const struct remote *remote;

    if (!tenant)
        return 0;
    if (!name_ok(tenant) || strlen(tenant) >= sizeof chosen.tenant)
        return err_set(err, ERR_NO_PATH, "there is no tenant '%.63s'", tenant);
    if (server_find(&remote, err) < 0)
        return -1;
    (void) strcpy(chosen.tenant, tenant);
    return 0;
}

bool server_is_elsewhere(void)
{
    const struct remote *remote;
    struct err ignored;

    return set("COVE_SERVER") ||
           (server_find(&remote, &ignored) == 0 && remote->kind != REMOTE_LOCAL);
}

int server_ask(const char *method, json_t *take_body, json_t **ret, struct err *err,
               const char *fmt, ...)
{
    const struct remote *remote;
    auto_free char *path = NULL;
    va_list args;

    va_start(args, fmt);
    path = ask_vpath(fmt, args);
    va_end(args);
    if (server_find(&remote, err) < 0) {
        json_decref(take_body);
        return -1;
    }
    return ask(remote, method, path, take_body, ret, err);
}

static int add_page(json_t *answer, const char *name, json_t *list, struct err *err)
{
    json_t *items = json_object_get(answer, name);

    return json_is_array(items) && json_array_extend(list, items) == 0
               ? 0
               : err_set(err, ERR_PROTOCOL, "the server's answer has no list of %s", name);
}

int server_list(const char *path, const char *name, json_t **ret, struct err *err)
{
    const struct remote *remote;
    auto_free char *cursor = NULL;
    json_t *list = json_array();
    int r = server_find(&remote, err);

    for (int page = 0; r == 0 && page < PAGES_MOST && (page == 0 || cursor); page++) {
        auto_free char *query = ask_path(cursor ? "cursor=%s&limit=200" : "limit=200", cursor),
                       *whole = NULL;
        json_t *answer = NULL;
        const char *next;

        if (!query || asprintf(&whole, "%s%c%s", path, strchr(path, '?') ? '&' : '?', query) < 0)
            whole = NULL;
        r = ask(remote, "GET", whole, NULL, &answer, err);
        if (r == 0)
            r = add_page(answer, name, list, err);
        next = json_string_value(json_object_get(answer, "next"));
        free(cursor);
        cursor = next ? strdup(next) : NULL;
        json_decref(answer);
    }
    if (r < 0)
        json_decref(list);
    else
        *ret = list;
    return r;
}
