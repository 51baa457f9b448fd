/* What a sandbox was made with by this surface (session timeout, command timeout, working directory) is kept in its
 * metadata, so that any process of the server can serve it. Sandboxes made elsewhere have none of it, and get
 * the preset's. */
#include "surface/tools/tools_session.h"

#include "base/io.h"
#include "base/own.h"
#include "server/form/form.h"
#include "server/guard/policy_gate.h"

#include <stdio.h>
#include <string.h>

#define METADATA_KEY "cove.tools"
#define TOUCH_PARTS  20 /* a deadline is moved on when a twentieth of the session has passed */

struct tenant_entry {
    char tenant[64];
    pthread_mutex_t lock;   /* held while its default sandbox is looked for or made */
    struct session session; /* sandbox "": none is known */
    uint64_t touched_ms;
    struct tenant_entry *next;
};

struct tools {
    pthread_mutex_t lock; /* the list */
    struct tenant_entry *entries;
};

struct tools *tools_new(struct err *err)
{
    struct tools *tools = calloc(1, sizeof *tools);

    if (!tools) {
        err_set(err, ERR_NO_MEMORY, "no memory for the tools");
        return NULL;
    }
    (void) pthread_mutex_init(&tools->lock, NULL);
    return tools;
}

static struct tenant_entry *entry_of(struct ops *ops, struct err *err)
{
    struct tools *tools = ops->app->tools;
    struct tenant_entry *entry;

    (void) pthread_mutex_lock(&tools->lock);
    entry = tools->entries;
    while (entry && strcmp(entry->tenant, ops->caller->tenant) != 0)
        entry = entry->next;
    if (!entry && (entry = calloc(1, sizeof *entry))) {
        (void) snprintf(entry->tenant, sizeof entry->tenant, "%s", ops->caller->tenant);
        (void) pthread_mutex_init(&entry->lock, NULL);
        entry->next = tools->entries;
        tools->entries = entry;
    }
    (void) pthread_mutex_unlock(&tools->lock);
    if (!entry)
        err_set(err, ERR_NO_MEMORY, "no memory for the session");
    return entry;
}

/* ---- metadata ---- */

static char *session_metadata(const struct tools_config *config)
{
    json_t *own =
        json_pack("{s:I, s:I, s:s}", "session_ms", (json_int_t) config->session_ms, "timeout_ms",
                  (json_int_t) config->timeout_ms, "workdir", config->workdir);
    auto_free char *text = own ? json_dumps(own, JSON_COMPACT) : NULL;
    json_t *metadata = json_pack("{s:s, s:s*}", METADATA_KEY, text ? text : "{}", GATE_METADATA,
                                 config->security[0] ? config->security : NULL);
    char *out = metadata ? json_dumps(metadata, JSON_COMPACT) : NULL;

    json_decref(metadata);
    json_decref(own);
    return out;
}

/* The greatest lifetime may have become less since the sandbox was made: a session is never longer. */
static void session_read(struct ops *ops, const struct ops_sandbox *box, struct session *ret)
{
    uint64_t most = app_config(ops->app)->sandbox_timeout_most_ms;
    json_t *metadata = json_loads(box->metadata, 0, NULL);
    const char *text = json_string_value(json_object_get(metadata, METADATA_KEY));
    json_t *own = text ? json_loads(text, 0, NULL) : NULL;
    json_int_t session = json_integer_value(json_object_get(own, "session_ms"));
    json_int_t timeout = json_integer_value(json_object_get(own, "timeout_ms"));
    const char *workdir = json_string_value(json_object_get(own, "workdir"));

    memset(ret, 0, sizeof *ret);
    memcpy(ret->sandbox, box->id, sizeof ret->sandbox);
    ret->is_default = strcmp(box->name, SESSION_NAME) == 0;
    ret->session_ms = session <= 0 ? 0 : (uint64_t) session < most ? (uint64_t) session : most;
    ret->timeout_ms = timeout > 0 ? (uint64_t) timeout : 120000;
    (void) snprintf(ret->workdir, sizeof ret->workdir, "%s", workdir ? workdir : "");
    json_decref(own);
    json_decref(metadata);
}

int session_path(const struct session *session, const char *path, char *out, size_t size)
{
    bool as_is = path[0] == '/' || !session->workdir[0];
    int n = as_is ? snprintf(out, size, "%s", path)
                  : snprintf(out, size, "%s/%s", session->workdir, path);

    return n < 0 || (size_t) n >= size ? -1 : 0;
}

/* ---- making ---- */

/* The working directory is there before the first command. */
static int make_workdir(struct ops *ops, const struct tools_config *config, const char *sandbox,
                        struct err *err)
{
    struct ops_file file = { .sandbox = sandbox, .path = config->workdir };
    struct file_info info;
    bool existed;

    if (!config->workdir[0] || ops_file_stat(ops, &file, 0, &info, err) == 0 ||
        ops_file_mkdir(ops, &file, UINT32_MAX, AGENT_PARENTS, &existed, err) == 0)
        return 0;
    (void) caller_blame(ops->caller, "working_directory", NULL, NULL);
    return err_wrap(err, "working_directory");
}

/* NULL: nothing was said. Rules that were read before can be read again. */
static int session_reach(const struct tools_config *config, struct reach **ret, struct err *err)
{
    json_t *domains = config->domains[0] ? json_loads(config->domains, 0, NULL) : NULL, *item;
    struct reach *reach;
    int r = 0;
    size_t i;

    if (!config->network && !config->network_said)
        return 0;
    reach = calloc(1, sizeof *reach);
    if (!reach) {
        json_decref(domains);
        return err_set(err, ERR_NO_MEMORY, "no memory for the session");
    }
    reach->mode = !config->network               ? REACH_OFF
                  : json_array_size(domains) > 0 ? REACH_LIST
                                                 : REACH_PUBLIC;
    json_array_foreach(domains, i, item)
    {
        if (r == 0)
            r = reach_add(reach, false, json_string_value(item), err);
    }
    json_decref(domains);
    *ret = reach;
    return r;
}

static int make_box(struct ops *ops, const struct tools_config *config, bool as_default,
                    struct ops_sandbox *ret, struct err *err)
{
    auto_free char *metadata = session_metadata(config);
    auto_free struct reach *reach = NULL;
    struct ops_create create = {
        .template = config->template[0] ? config->template : NULL,
        .or_default = config->or_default,
        .name = as_default ? SESSION_NAME : NULL,
        .metadata = metadata,
        .timeout_ms = config->session_ms,
        .timeout_field = "session_timeout_minutes",
        .on_timeout = config->auto_cleanup ? ON_TIMEOUT_KILL : ON_TIMEOUT_PAUSE,
        .root = config->root,
        .isolation = config->isolation[0] ? config->isolation : NULL,
        .limits = config->limits,
    };
    struct err ignored;

    if (!metadata)
        return err_set(err, ERR_NO_MEMORY, "no memory for the session");
    if (session_reach(config, &reach, err) < 0)
        return -1;
    create.network = reach;
    if (ops_sandbox_create(ops, &create, ret, err) < 0)
        return -1;
    if (make_workdir(ops, config, ret->id, err) == 0)
        return 0;
    (void) ops_sandbox_kill(ops, ret->id, &ignored);
    return -1;
}

/* The default sandbox as the store knows it, if it lives. */
static int find_default(struct ops *ops, struct ops_sandbox *ret, struct err *err)
{
    struct ops_filter filter = { .name = SESSION_NAME, .limit = 1 };
    struct ops_page page;
    bool alive;

    if (ops_sandbox_list(ops, &filter, &page, err) < 0)
        return -1;
    alive = page.count > 0 && page.list[0].life != LIFE_GONE && page.list[0].life != LIFE_STOPPING;
    if (page.count > 0)
        *ret = page.list[0];
    free(page.list);
    if (page.count > 0 && !alive) /* lost: its name is needed again */
        (void) ops_sandbox_kill(ops, ret->id, err);
    return alive ? 0 : err_set(err, ERR_NO_SANDBOX, "there is no default sandbox");
}

static int ensure_default(struct ops *ops, struct tenant_entry *entry, struct err *err)
{
    struct tools_config config;
    struct ops_sandbox box;

    if (entry->session.sandbox[0])
        return 0;
    entry->touched_ms = 0;
    if (find_default(ops, &box, err) < 0) {
        if (err->kind != ERR_NO_SANDBOX ||
            tools_config_preset(ops->app, &config, "standard", err) < 0 ||
            make_box(ops, &config, true, &box, err) < 0)
            return -1;
        entry->touched_ms = io_now_ms();
    }
    session_read(ops, &box, &entry->session);
    if (box.life == LIFE_PAUSED)
        return ops_sandbox_resume(ops, box.id, entry->session.session_ms, err);
    return 0;
}

/* Kept alive by use; not by each one, since a deadline is written to disk. */
static int touch(struct ops *ops, const char *sandbox, uint64_t session_ms, struct err *err)
{
    struct ops_sandbox box;

    return session_ms > 0 ? ops_sandbox_extend(ops, sandbox, session_ms, &box, err) : 0;
}

static int find_and_touch(struct ops *ops, struct tenant_entry *entry, struct session *ret,
                          struct err *err)
{
    uint64_t now;

    if (ensure_default(ops, entry, err) < 0)
        return -1;
    now = io_now_ms();
    if (now - entry->touched_ms > entry->session.session_ms / TOUCH_PARTS) {
        if (touch(ops, entry->session.sandbox, entry->session.session_ms, err) < 0) {
            entry->session.sandbox[0] = '\0';
            return -1;
        }
        entry->touched_ms = now;
    }
    *ret = entry->session;
    return 0;
}

int session_find(struct ops *ops, const char *sandbox, struct session *ret, struct err *err)
{
    struct tenant_entry *entry;
    struct ops_sandbox box;
    char id[ID_LEN + 1];
    int r;

    if (sandbox) {
        if (ops_sandbox_resolve(ops, sandbox, id, err) < 0 ||
            ops_sandbox_recorded(ops, id, &box, err) < 0)
            return caller_blame(ops->caller, "sandbox_id", NULL, NULL);
        session_read(ops, &box, ret);
        if (box.deadline_ms > 0 && ret->session_ms > 0 &&
            box.deadline_ms < io_real_ms() + ret->session_ms - ret->session_ms / TOUCH_PARTS)
            return touch(ops, id, ret->session_ms, err);
        return 0;
    }
    if (!(entry = entry_of(ops, err)))
        return -1;
    (void) pthread_mutex_lock(&entry->lock);
    r = find_and_touch(ops, entry, ret, err);
    if (r < 0 && err->kind == ERR_NO_SANDBOX) /* it ended since it was last used */
        r = find_and_touch(ops, entry, ret, err);
    (void) pthread_mutex_unlock(&entry->lock);
    return r;
}

void session_forget(struct ops *ops, const struct session *session)
{
    struct err ignored;
    struct tenant_entry *entry = entry_of(ops, &ignored);

    if (!entry)
        return;
    (void) pthread_mutex_lock(&entry->lock);
    if (strcmp(entry->session.sandbox, session->sandbox) == 0)
        entry->session.sandbox[0] = '\0';
    (void) pthread_mutex_unlock(&entry->lock);
}

int session_make(struct ops *ops, const struct tools_config *config, bool as_default,
                 struct ops_sandbox *ret, struct err *err)
{
    struct tenant_entry *entry;
    struct ops_sandbox old;
    int r = 0;

    if (!as_default)
        return make_box(ops, config, false, ret, err);
    if (!(entry = entry_of(ops, err)))
        return -1;
    (void) pthread_mutex_lock(&entry->lock);
    entry->session.sandbox[0] = '\0';
    if (find_default(ops, &old, err) == 0)
        r = ops_sandbox_kill(ops, old.id, err);
    if (r == 0)
        r = make_box(ops, config, true, ret, err);
    (void) pthread_mutex_unlock(&entry->lock);
    return r;
}

int session_default(struct ops *ops, struct ops_sandbox *ret, struct err *err)
{
    return find_default(ops, ret, err);
}
