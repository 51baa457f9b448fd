/* Templates that are installed on the host, and the copy of the store. */
#include "server/ops/ops_host.h"

#include "base/own.h"
#include "client/warm.h"
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/net/network_default.h"
#include "server/net/network_rules.h"
#include "server/ops/ops_own.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(OPS_COMMAND_MAX == STORE_COMMAND_MAX, "the store has room for a command");

static int note(struct ops *ops, const char *action, const char *detail, int r, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.detail = detail;
    facts.refusal = r < 0 ? err : NULL;
    if (r == 0)
        return audit_durable(ops->caller, action, NULL, &facts, err);
    audit_note(ops->caller, action, NULL, &facts);
    return -1;
}

/* ---- looking ---- */

static json_t *warm_json(const struct store_warm *w)
{
    return json_pack("{s:s, s:I, s:o, s:s, s:s, s:s}", "image", w->image, "bytes",
                     (json_int_t) w->bytes, "made_at", form_time(w->made_ms), "start", w->start,
                     "ready", w->ready, "import", w->modules);
}

/* *ret_known: some record mentions it. */
static int look(struct ops *ops, const char *name, bool installed, json_t **ret, bool *ret_known,
                struct err *err)
{
    auto_free struct reach *network = malloc(sizeof *network);
    auto_free struct store_warm *warm = malloc(sizeof *warm);
    bool found = false;
    int r;

    if (!network || !warm)
        return err_set(err, ERR_NO_MEMORY, "no memory for a template");
    r = store_warm_get(ops->app->store, name, warm, err);
    if (r < 0 ||
        network_default_get(ops->app, STORE_NETWORK_TEMPLATE, name, network, &found, err) < 0)
        return -1;
    *ret_known = r == 1 || found;
    *ret = json_pack("{s:s, s:b, s:o, s:o}", "name", name, "installed", installed, "network",
                     found ? network_json(network) : json_null(), "warm",
                     r == 1 ? warm_json(warm) : json_null());
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a template");
}

struct names {
    char (*list)[KEEPER_NAME_MAX];
    size_t count;
};

static bool has(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static int installed(struct ops *ops, struct names *ret, struct err *err)
{
    struct link link;
    int r;

    ret->list = NULL;
    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = keeper_templates(&link, &ret->list, &ret->count, err);
    ops_box_close(ops, &link, r, err);
    return r;
}

struct listing {
    struct ops *ops;
    struct names names;
    json_t *list;
};

static int add(struct listing *l, const char *name, bool is_installed, struct err *err)
{
    json_t *json = NULL;
    bool known;

    if (look(l->ops, name, is_installed, &json, &known, err) < 0)
        return -1;
    return json_array_append_new(l->list, json);
}

static int add_other(void *arg, const struct store_warm *warm, struct err *err)
{
    struct listing *l = arg;

    return has(&l->names, warm->template) ? 0 : add(l, warm->template, false, err);
}

int ops_host_templates(struct ops *ops, json_t **ret, struct err *err)
{
    struct listing l = { .ops = ops };
    int r;

    if (ops_operator_only(ops, "template.list", err) < 0 || installed(ops, &l.names, err) < 0)
        return -1;
    l.list = json_array();
    r = l.list ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a list");
    for (size_t i = 0; r == 0 && i < l.names.count; i++)
        r = add(&l, l.names.list[i], true, err);
    if (r == 0)
        r = store_warm_list(ops->app->store, add_other, &l, err);
    free(l.names.list);
    if (r < 0)
        json_decref(l.list);
    else
        *ret = l.list;
    return r;
}

static int show(struct ops *ops, const char *name, json_t **ret, struct err *err)
{
    struct names names;
    bool is_installed, known = false;

    if (installed(ops, &names, err) < 0)
        return -1;
    is_installed = has(&names, name);
    free(names.list);
    if (look(ops, name, is_installed, ret, &known, err) < 0)
        return -1;
    if (is_installed || known)
        return 0;
    json_decref(*ret);
    return err_set(err, ERR_NO_TEMPLATE, "there is no template '%.63s'", name);
}

int ops_host_template(struct ops *ops, const char *name, json_t **ret, struct err *err)
{
    return ops_operator_only(ops, "template.list", err) < 0 ? -1 : show(ops, name, ret, err);
}

static int check_installed(struct ops *ops, const char *name, struct err *err)
{
    struct names names;
    bool is_installed;

    if (installed(ops, &names, err) < 0)
        return -1;
    is_installed = has(&names, name);
    free(names.list);
    return is_installed
               ? 0
               : err_set(err, ERR_NO_TEMPLATE, "there is no template '%.63s' on this host", name);
}

/* ---- memory images ---- */

/* Images of the template that no record mentions: the one before, or one whose maker was killed. */
static void sweep(struct ops *ops, struct link *link, const char *name)
{
    auto_free struct keeper_image *images = NULL;
    struct err ignored;
    size_t count = 0;

    if (image_list(link, &images, &count, &ignored) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(images[i].owner, WARM_OWNER) == 0 &&
            strcmp(images[i].sandbox.template, name) == 0 &&
            store_warm_has(ops->app->store, images[i].id, &ignored) == 0)
            (void) image_drop(link, images[i].id, &ignored);
}

/* The record first: an image without one is found by the next who looks. */
static int cool(struct ops *ops, const char *name, bool *ret_was, struct err *err)
{
    auto_free struct store_warm *warm = malloc(sizeof *warm);
    struct err ignored;
    struct link link;
    int r = warm ? store_warm_get(ops->app->store, name, warm, err)
                 : err_set(err, ERR_NO_MEMORY, "no memory for a template");

    *ret_was = r == 1;
    if (r != 1)
        return r;
    if (store_warm_remove(ops->app->store, name, err) < 0)
        return -1;
    if (app_link_take(ops->app, &link, &ignored) == 0) {
        sweep(ops, &link, name);
        app_link_give(ops->app, &link, true);
    }
    return 0;
}

/* Size and time are the keeper's words. */
static int check_image(struct link *link, const char *name, const char *id, struct store_warm *ret,
                       struct err *err)
{
    struct keeper_image image;

    if (!id_ok(id))
        return err_set(err, ERR_NO_IMAGE, "there is no memory image '%.63s'", id);
    if (image_get(link, id, &image, err) < 0)
        return -1;
    if (strcmp(image.owner, WARM_OWNER) != 0 || !(image.flags & KEEPER_IMAGE_MEMORY) ||
        strcmp(image.sandbox.template, name) != 0)
        return err_set(err, ERR_NO_IMAGE, "'%s' is no memory image of template '%.63s'", id, name);
    ret->bytes = image.bytes;
    ret->made_ms = image.saved_ms;
    return 0;
}

static int warm_up(struct ops *ops, const char *name, const struct ops_host_warm *warm,
                   struct err *err)
{
    auto_free struct store_warm *record = calloc(1, sizeof *record);
    struct link link;
    int r;

    if (!record)
        return err_set(err, ERR_NO_MEMORY, "no memory for a template");
    (void) snprintf(record->template, sizeof record->template, "%s", name);
    (void) snprintf(record->image, sizeof record->image, "%.*s", ID_LEN, warm->image);
    (void) snprintf(record->start, sizeof record->start, "%s", warm->start ? warm->start : "");
    (void) snprintf(record->ready, sizeof record->ready, "%s", warm->ready ? warm->ready : "");
    (void) snprintf(record->modules, sizeof record->modules, "%s",
                    warm->modules ? warm->modules : "");
    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = check_image(&link, name, warm->image, record, err);
    if (r == 0)
        r = store_warm_set(ops->app->store, record, err);
    if (r == 0)
        sweep(ops, &link, name);
    ops_box_close(ops, &link, r, err);
    return r;
}

/* ---- changes ---- */

int ops_host_made(struct ops *ops, const char *name, const char *how, const char *from,
                  bool *ret_cooled, struct err *err)
{
    char action[64], detail[400];

    *ret_cooled = false;
    (void) snprintf(action, sizeof action, "template.%.40s", how);
    (void) snprintf(detail, sizeof detail, "%.63s%s%.300s", name, from ? " from " : "",
                    from ? from : "");
    if (ops_operator_only(ops, action, err) < 0)
        return -1;
    return note(ops, action, detail,
                check_installed(ops, name, err) < 0 ? -1 : cool(ops, name, ret_cooled, err), err);
}

int ops_host_gone(struct ops *ops, const char *name, bool *ret_cooled, struct err *err)
{
    *ret_cooled = false;
    if (ops_operator_only(ops, "template.rm", err) < 0)
        return -1;
    return note(ops, "template.rm", name,
                cool(ops, name, ret_cooled, err) < 0
                    ? -1
                    : network_default_set(ops->app, STORE_NETWORK_TEMPLATE, name, NULL, err),
                err);
}

static int change_network(struct ops *ops, const char *name, const struct reach *rules,
                          struct err *err)
{
    char detail[120];

    (void) snprintf(detail, sizeof detail, "%.63s: %.40s", name,
                    rules ? reach_mode_name(rules->mode) : "none");
    return note(ops, "template.network", detail,
                network_default_set(ops->app, STORE_NETWORK_TEMPLATE, name, rules, err), err);
}

static int change_warm(struct ops *ops, const char *name, const struct ops_host_warm *warm,
                       struct err *err)
{
    bool was = false;
    int r = warm ? warm_up(ops, name, warm, err) : cool(ops, name, &was, err);

    if (r == 0 && !warm && !was)
        r = err_set(err, ERR_NO_IMAGE, "template '%.60s' has no memory image", name);
    return note(ops, warm ? "template.warm" : "template.cool", name, r, err);
}

int ops_host_change(struct ops *ops, const char *name, const struct ops_host_change *change,
                    json_t **ret, struct err *err)
{
    if (ops_operator_only(ops, change->warm_given ? "template.warm" : "template.network", err) <
            0 ||
        check_installed(ops, name, err) < 0 ||
        (change->network_given && change_network(ops, name, change->network, err) < 0) ||
        (change->warm_given && change_warm(ops, name, change->warm, err) < 0))
        return -1;
    return show(ops, name, ret, err);
}

/* ---- the copy ---- */

int ops_host_copy(struct ops *ops, const char **ret_file, struct err *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int r;

    if (ops_operator_only(ops, "store.copy", err) < 0)
        return -1;
    (void) pthread_mutex_lock(&lock);
    r = store_copy(ops->app->store, err);
    (void) pthread_mutex_unlock(&lock);
    *ret_file = STORE_COPY;
    return note(ops, "store.copy", NULL, r, err);
}
