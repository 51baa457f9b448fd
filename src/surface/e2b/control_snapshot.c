/* Snapshots and forks. To SDKs a snapshot is a template: {team}/{name}:default if it has a name, else {id}:default. The
 * team is the tenant. A second one of the same name takes the place of the first, as a new build of a template does. */
#include "surface/e2b/control.h"

#include "base/own.h"

#include <string.h>

#define FORK_DEFAULT_MS 15000
#define PAGE_MOST       100

static json_t *snapshot_json(struct exchange *x, const struct ops_snapshot *s)
{
    const char *team = exchange_caller(x)->tenant;

    if (!s->name[0])
        return json_pack("{s:o, s:[]}", "snapshotID", json_sprintf("%s:default", s->id), "names");
    return json_pack("{s:o, s:[o]}", "snapshotID", json_sprintf("%s/%s:default", team, s->name),
                     "names", json_sprintf("%s/%s", team, s->name));
}

bool control_is_snapshot(struct exchange *x, const char *name)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_snapshot snapshot;
    struct err ignored;

    return !control_template_standard(name) &&
           ops_snapshot_get(&ops, name, &snapshot, &ignored) == 0;
}

/* A tag is what a server with builds has; here only the default one can be said. */
static int read_name(struct exchange *x, const char *text, char ret[KEEPER_NAME_MAX],
                     struct err *err)
{
    if (control_template_name(text, ret, err) == 0)
        return 0;
    return err->kind == ERR_NO_TEMPLATE
               ? form_bad(exchange_caller(x), err, "name",
                          "a short name, with no tag but 'default', is needed")
               : -1;
}

static int create(struct exchange *x, json_t *json, struct err *err)
{
    static const struct form_field rows[] = { { "name", FORM_TEXT } };
    static const struct form form = FORM_OF(rows, .open = true);
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_save save = { .replace = true };
    struct ops_snapshot made;
    const char *text = NULL;
    char name[KEEPER_NAME_MAX], buffer[ID_LEN + 1];

    if (form_read(exchange_caller(x), json, &form, &text, err) < 0 ||
        (text && read_name(x, text, name, err) < 0))
        return -1;
    save.name = text ? name : NULL;
    if (ops_snapshot_create(&ops, control_id(x, buffer), &save, &made, err) < 0)
        return -1;
    return exchange_reply_json(x, 201, snapshot_json(x, &made), err);
}

int control_snapshot(struct exchange *x, struct err *err)
{
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = create(x, json, err);
    json_decref(json);
    return r;
}

static int reply_page(struct exchange *x, const struct ops_snapshots *page, struct err *err)
{
    json_t *array = json_array();
    char token[CONTROL_TOKEN_MAX];

    for (size_t i = 0; i < page->count; i++)
        (void) json_array_append_new(array, snapshot_json(x, &page->list[i]));
    if (page->next) {
        control_token_put(page->next, false, token);
        if (exchange_add_header(x, "X-Next-Token", token, err) < 0) {
            json_decref(array);
            return -1;
        }
    }
    return exchange_reply_json(x, 200, array, err);
}

int control_snapshots(struct exchange *x, struct err *err)
{
    const char *token = exchange_query(x, "nextToken"), *text = exchange_query(x, "name");
    struct ops ops = ops_of(exchange_caller(x));
    uint64_t limit = PAGE_MOST, after = 0;
    char name[KEEPER_NAME_MAX] = "";
    struct ops_snapshots page;
    struct err ignored;
    int r;

    if (query_count(x, "limit", 1, PAGE_MOST, &limit, err) < 0 ||
        (token && token[0] && control_token_get(token, false, &after, err) < 0))
        return -1;
    if (text && control_template_name(text, name, &ignored) < 0)
        return exchange_reply_json(x, 200, json_array(), err); /* nothing can have that name */
    if (ops_snapshot_list(&ops, exchange_query(x, "sandboxID"), text ? name : NULL, after,
                          (size_t) limit, &page, err) < 0)
        return -1;
    r = reply_page(x, &page, err);
    free(page.list);
    return r;
}

/* A template that was built, or a snapshot. */
int control_snapshot_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    char name[KEEPER_NAME_MAX];
    struct ops_template template;

    if (control_template_name(exchange_param(x, "template"), name, err) < 0)
        return -1;
    if (ops_template_get(&ops, name, &template, err) == 0 && template.own)
        return ops_template_delete(&ops, name, err) < 0 ? -1
                                                        : exchange_reply_json(x, 204, NULL, err);
    if (ops_snapshot_delete(&ops, name, err) < 0)
        return err->kind == ERR_NO_IMAGE
                   ? err_set(err, ERR_NO_TEMPLATE, "template '%.60s' not found",
                             exchange_param(x, "template"))
                   : -1;
    return exchange_reply_json(x, 204, NULL, err);
}

/* ---- forks ---- */

struct fork_body {
    json_t *timeout, *count;
};

static int read_fork(struct exchange *x, size_t *ret_count, uint64_t *ret_ms, struct err *err)
{
    static const struct form_field rows[] = {
        { "timeout", FORM_ANY, offsetof(struct fork_body, timeout) },
        { "count", FORM_ANY, offsetof(struct fork_body, count) },
    };
    static const struct form form = FORM_OF(rows, .open = true);
    struct fork_body body = { .timeout = NULL };
    json_int_t count = 1;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &form, &body, err);
    if (r == 0)
        r = control_timeout(x, body.timeout, 1, FORK_DEFAULT_MS, ret_ms, err);
    if (r == 0 && body.count) {
        count = json_integer_value(body.count);
        if (!json_is_integer(body.count) || count < 1 || count > OPS_FORK_MOST)
            r = form_bad(exchange_caller(x), err, "count", "a whole number from 1 to %d is needed",
                         OPS_FORK_MOST);
    }
    json_decref(json);
    *ret_count = (size_t) count;
    return r;
}

static json_t *fork_json(struct exchange *x, const struct ops_fork *fork)
{
    json_t *made = NULL;
    struct err err = fork->err;

    if (err.kind == ERR_NONE)
        made = control_made_json(x, &fork->sandbox, &err);
    return made ? json_pack("{s:o}", "sandbox", made)
                : json_pack("{s:{s:i, s:s}}", "error", "code",
                            (int) err_kind_info(err.kind)->http_status, "message", err.msg);
}

int control_fork(struct exchange *x, struct err *err)
{
    auto_free struct ops_fork *forks = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    char buffer[ID_LEN + 1];
    uint64_t timeout_ms;
    size_t count;
    json_t *array;

    if (read_fork(x, &count, &timeout_ms, err) < 0)
        return -1;
    forks = calloc(count, sizeof *forks);
    if (!forks)
        return err_set(err, ERR_NO_MEMORY, "no memory for forks");
    if (ops_sandbox_fork(&ops, control_id(x, buffer), count, timeout_ms, forks, err) < 0)
        return -1;
    array = json_array();
    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(array, fork_json(x, &forks[i]));
    return exchange_reply_json(x, 201, array, err);
}
