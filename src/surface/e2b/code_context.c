/* A context is the processes with its tag, cove.kernel.<language>.<id>, and for a forked one .<root> behind it: the newest is its kernel, the first says when the
 * context was made. A kernel that died leaves its context, whose next cell gets a new one. A context that was removed has a
 * process of the tag cove.removed.<language>.<id> behind its kernels, which did nothing but come into the list. So all of it is
 * in the agent's list of processes, which outlives us; what the list says is checked, since it comes from the sandbox.
 *
 * The kernel of a fork descends from the process of the context that its family began with, its root, though that is not
 * the process that its own context has. So a root is killed with all its descendants only when it has no forks.
 *
 * The kernel in a template's memory image was started before its sandbox had an id. Its tag, cove.kernel.<language>.warm, stands for
 * the default context of its language. */
#include "surface/e2b/code.h"

#include "base/io.h"
#include "base/own.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TAG     "cove.kernel."
#define REMOVED "cove.removed."
#define WARM    "cove.kernel.python.warm" /* as in cli/template/warm_ready.c */
#define TAG_MAX 96
#define PROGRAM "/opt/cove/kernels/kernel.py"
#define CWD     "/home/user"
#define ROOT    "root"
#define RING    (1u << 20)
#define KILL_MS 5000

/* clang-format off */
static const struct code_language languages[] = {
    /* name          alias  program    option  listed  why it cannot be forked */
    { "python",      "py",  "python3", "-c",   true,   NULL },
    { "javascript",  "js",  "node",    "-e",   true,   "node lives on threads, which a fork does not have" },
    { "typescript",  "ts",  "node",    "-e",   false,  "node lives on threads, which a fork does not have" },
    { "bash",        "sh",  NULL,      NULL,   false,  NULL },
    { "r",           NULL,  "Rscript", "-e",   false,  "R is a program of its own, which cannot be made to fork between two cells" },
    { "java",        NULL,  "jshell",  "-e",   false,  "a Java machine lives on threads, which a fork does not have" },
};
/* clang-format on */

const struct code_language *code_language_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(languages); i++)
        if (strcmp(languages[i].name, name) == 0 ||
            (languages[i].alias && strcmp(languages[i].alias, name) == 0))
            return &languages[i];
    return NULL;
}

/* ---- what the sandbox has ---- */

struct seen {
    struct code_context context; /* id, cwd, language, proc, from_* */
    uint32_t newest;
    bool removed;
};

struct scan {
    const char *sandbox;
    size_t count;
    struct seen items[CODE_CONTEXTS];
};

/* What a tag says behind its prefix: language.id, or language.id.root */
struct tag {
    const struct code_language *language;
    char id[CODE_ID_MAX];
    uint32_t root;
};

static bool read_tag(const char *text, const char *prefix, struct tag *ret)
{
    char name[16], more;
    int n;

    if (!text || strncmp(text, prefix, strlen(prefix)) != 0)
        return false;
    text += strlen(prefix);
    ret->root = 0;
    n = sscanf(text, "%15[a-z].%36[0-9a-f-].%10" SCNu32 "%c", name, ret->id, &ret->root, &more);
    if (n < 2 || n > 3 || !code_id_is(ret->id) ||
        (n == 2) != (strlen(strchr(text, '.') + 1) == CODE_ID_MAX - 1))
        return false;
    ret->language = code_language_find(name);
    return ret->language != NULL;
}

static bool read_warm(const char *text, const char *sandbox, struct tag *ret)
{
    if (!text || strcmp(text, WARM) != 0)
        return false;
    *ret = (struct tag){ .language = code_language_find("python") };
    code_id_default(sandbox, ret->language, ret->id);
    return true;
}

static struct seen *seen_of(struct scan *scan, const char *id)
{
    for (size_t i = 0; i < scan->count; i++)
        if (strcmp(scan->items[i].context.id, id) == 0)
            return &scan->items[i];
    if (scan->count == CODE_CONTEXTS)
        return NULL;
    scan->items[scan->count] = (struct seen){ .newest = 0 };
    (void) snprintf(scan->items[scan->count].context.id, CODE_ID_MAX, "%s", id);
    return &scan->items[scan->count++];
}

/* Handles grow, and the list comes in their order; what comes out of it is old or new by the handle alone. */
static int look(void *arg, const struct agent_reply *item, struct err *err)
{
    struct scan *scan = arg;
    bool running = item->flags & AGENT_RUNNING, removed, warm;
    struct code_context *context;
    struct seen *seen;
    struct tag tag;

    (void) err;
    removed = read_tag(item->tag, REMOVED, &tag);
    warm = !removed && read_warm(item->tag, scan->sandbox, &tag);
    if ((!removed && !warm && !read_tag(item->tag, TAG, &tag)) || !(seen = seen_of(scan, tag.id)) ||
        item->proc <= seen->newest)
        return 0;
    context = &seen->context;
    context->language = tag.language;
    seen->newest = item->proc;
    seen->removed = removed;
    context->proc = running ? item->proc : 0;
    context->root = tag.root;
    context->warm = warm && running;
    context->as_root = item->user && strcmp(item->user, ROOT) == 0;
    context->from_stdout = item->stdout_bytes;
    context->from_stderr = item->stderr_bytes;
    (void) snprintf(context->sandbox, sizeof context->sandbox, "%s", scan->sandbox);
    (void) snprintf(context->cwd, CODE_CWD_MAX, "%s", item->cwd ? item->cwd : CWD);
    return 0;
}

static struct scan *scan_new(struct ops *ops, const char *sandbox, struct err *err)
{
    struct scan *scan = calloc(1, sizeof *scan);

    if (!scan) {
        err_set(err, ERR_NO_MEMORY, "no memory for the contexts");
        return NULL;
    }
    scan->sandbox = sandbox;
    if (ops_process_list(ops, sandbox, look, scan, err) == 0)
        return scan;
    free(scan);
    return NULL;
}

/* A context that has not been started: of no process. */
static const struct code_context *set_default(struct code_context *context, const char *sandbox,
                                              const struct code_language *language)
{
    *context = (struct code_context){ .language = language, .cwd = CWD };
    (void) snprintf(context->sandbox, sizeof context->sandbox, "%s", sandbox);
    code_id_default(sandbox, language, context->id);
    return context;
}

/* ---- finding ---- */

static int not_found(const char *id, struct err *err)
{
    return err_set(err, ERR_NO_PROCESS, "Context %.64s not found", id);
}

static int find_unmet(struct ops *ops, const char *sandbox, const char *id, bool is_default,
                      const struct code_language *language, struct code_context **ret,
                      struct err *err)
{
    auto_free struct scan *scan = scan_new(ops, sandbox, err);
    struct code_context start;
    struct seen *seen;

    if (!scan)
        return -1;
    seen = seen_of(scan, id);
    if (seen && seen->newest && !seen->removed)
        *ret = code_registry_add(&seen->context);
    else if (is_default || (language && language->listed && !(seen && seen->removed)))
        *ret = code_registry_add(set_default(&start, sandbox, language));
    else
        return not_found(id, err);
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a context");
}

int code_context_find(struct ops *ops, const char *sandbox, const char *id,
                      const struct code_language *language, struct code_context **ret,
                      struct err *err)
{
    char made[CODE_ID_MAX];
    bool is_default = !id;

    if (ops_sandbox_check(ops, sandbox, err) < 0)
        return -1;
    if (id && !code_id_is(id))
        return not_found(id, err);
    for (size_t i = 0; id && !language && i < ARRAY_LEN(languages); i++) {
        code_id_default(sandbox, &languages[i], made);
        if (strcmp(made, id) == 0)
            language = &languages[i];
    }
    if (!id) {
        code_id_default(sandbox, language, made);
        id = made;
    }
    if ((*ret = code_registry_get(sandbox, id)))
        return 0;
    return find_unmet(ops, sandbox, id, is_default, language, ret, err);
}

/* ---- kernels ---- */

/* E2B's interpreter runs as root. Where the sandbox has no root, cells are the template's user's. */
static int choose_user(struct ops *ops, struct code_context *context, struct err *err)
{
    auto_free struct ops_sandbox *sandbox = malloc(sizeof *sandbox);

    if (!sandbox)
        return err_set(err, ERR_NO_MEMORY, "no memory for a kernel");
    if (ops_sandbox_get(ops, context->sandbox, sandbox, err) < 0)
        return -1;
    context->as_root = sandbox->root;
    return 0;
}

int code_context_start(struct ops *ops, struct code_context *context, bool *ret_fresh,
                       struct err *err)
{
    const char *const args[] = { "python3", PROGRAM, context->language->name };
    char tag[TAG_MAX];
    struct ops_command command = { .args = args,
                                   .arg_count = ARRAY_LEN(args),
                                   .cwd = context->cwd,
                                   .tag = tag,
                                   .ring_bytes = RING,
                                   .flags = AGENT_STDIN | AGENT_DETACH };
    struct ops_run run;

    *ret_fresh = context->proc == 0;
    if (context->removed)
        return not_found(context->id, err);
    if (!*ret_fresh)
        return 0;
    (void) snprintf(tag, sizeof tag, TAG "%s.%s", context->language->name, context->id);
    if (choose_user(ops, context, err) < 0)
        return -1;
    command.user = context->as_root ? ROOT : NULL;
    if (ops_run_start(ops, context->sandbox, &command, &run, err) < 0)
        return -1;
    context->proc = run.exec.proc;
    context->root = 0;
    context->warm = false;
    context->from_stdout = context->from_stderr = 0;
    ops_run_close(&run);
    return 0;
}

/* Isolated and without site-packages: it starts sooner, and needs nothing of them. */
int code_context_start_fork(struct ops *ops, const struct code_context *old,
                            struct code_context *context, uint32_t *ret_pid, struct err *err)
{
    const char *const args[] = { "python3", "-I", "-S", PROGRAM, "fork", context->id };
    uint32_t root = old->root ? old->root : old->proc;
    char tag[TAG_MAX];
    struct ops_command command = { .args = args,
                                   .arg_count = ARRAY_LEN(args),
                                   .cwd = context->cwd,
                                   .user = old->as_root ? ROOT : NULL, /* else the kernel refuses */
                                   .tag = tag,
                                   .ring_bytes = RING,
                                   .flags = AGENT_STDIN | AGENT_DETACH };
    struct ops_run run;

    (void) snprintf(tag, sizeof tag, TAG "%s.%s.%" PRIu32, context->language->name, context->id,
                    root);
    if (ops_run_start(ops, context->sandbox, &command, &run, err) < 0)
        return -1;
    context->proc = run.exec.proc;
    context->root = root;
    context->as_root = old->as_root;
    *ret_pid = run.exec.pid;
    ops_run_close(&run);
    return 0;
}

static bool has_forks(struct ops *ops, const struct code_context *context)
{
    struct err ignored;
    auto_free struct scan *scan = scan_new(ops, context->sandbox, &ignored);

    for (size_t i = 0; scan && i < scan->count; i++)
        if (scan->items[i].context.proc && scan->items[i].context.root == context->proc)
            return true;
    return false;
}

/* A fork is in a process group of its own, so that a signal to its root's group does not reach it. What it started itself
 * dies with its pump (kernels/fork.py). */
void code_context_kill(struct ops *ops, struct code_context *context)
{
    bool all = context->root != 0 || !has_forks(ops, context);
    struct err ignored;
    uint64_t count;

    (void) ops_process_signal(ops, context->sandbox, context->proc, SIGKILL, all, &count, &ignored);
}

/* True: it has ended. */
static bool wait_end(struct ops *ops, const char *sandbox, uint32_t proc, unsigned ms)
{
    uint64_t until = io_now_ms() + ms;
    bool gone = true; /* of the caller: this is finished for others, too */
    struct exec_event event;
    struct ops_run run;
    struct err ignored;
    int r = 1;

    if (ops_run_attach(ops, sandbox, proc, 0, 0, AGENT_NO_OUTPUT, &run, &ignored) < 0)
        return true;
    event.type = EXEC_STDOUT;
    while (r == 1 && event.type != EXEC_END && io_now_ms() < until)
        r = ops_cell_next(ops, &run, (int) ms, &gone, &event, &ignored);
    ops_run_close(&run);
    return r < 0 || (r == 1 && event.type == EXEC_END);
}

/* With all that it started. */
static int end_kernel(struct ops *ops, struct code_context *context, struct err *err)
{
    uint32_t proc = context->proc;

    if (proc == 0)
        return 0;
    code_context_kill(ops, context);
    if (!wait_end(ops, context->sandbox, proc, KILL_MS))
        return err_set(err, ERR_TIMEOUT, "the kernel does not end");
    return 0;
}

static int note_removal(struct ops *ops, const struct code_context *context, struct err *err)
{
    const char *const args[] = { "true" };
    char tag[TAG_MAX];
    struct ops_command command = {
        .args = args, .arg_count = ARRAY_LEN(args), .tag = tag, .flags = AGENT_DETACH
    };
    struct ops_run run;

    (void) snprintf(tag, sizeof tag, REMOVED "%s.%s", context->language->name, context->id);
    if (ops_run_start(ops, context->sandbox, &command, &run, err) < 0)
        return -1;
    ops_run_close(&run);
    return 0;
}

/* ---- handlers ---- */

json_t *code_context_json(const struct code_context *context)
{
    return json_pack("{s:s, s:s, s:o}", "id", context->id, "language", context->language->name,
                     "cwd", json_string(context->cwd) ?: json_string(""));
}

/* In the order of their making; those that are there from the start on come first. */
int code_context_list(struct exchange *x, struct err *err)
{
    const char *sandbox = exchange_param(x, "sandbox");
    struct ops ops = ops_of(exchange_caller(x));
    auto_free struct scan *scan = scan_new(&ops, sandbox, err);
    json_t *list = json_array();

    if (!scan) {
        json_decref(list);
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(languages); i++) {
        struct code_context start;
        struct seen *seen;

        (void) set_default(&start, sandbox, &languages[i]);
        seen = seen_of(scan, start.id);
        if (languages[i].listed && !(seen && seen->removed))
            (void) json_array_append_new(list, code_context_json(&start));
        if (seen && languages[i].listed)
            seen->removed = true; /* is in the list now, or must not be */
    }
    for (size_t i = 0; i < scan->count; i++)
        if (scan->items[i].newest && !scan->items[i].removed)
            (void) json_array_append_new(list, code_context_json(&scan->items[i].context));
    return exchange_reply_json(x, 200, list, err);
}

static const char *text_member(const json_t *body, const char *name, const char *otherwise,
                               struct err *err)
{
    const json_t *value = json_object_get(body, name);

    if (!value || json_is_null(value))
        return otherwise;
    if (!json_is_string(value))
        err_set(err, ERR_INVALID, "%s: a text is needed", name);
    return json_string_value(value);
}

static int read_context(struct exchange *x, const json_t *body, struct code_context *ret,
                        struct err *err)
{
    const char *language = text_member(body, "language", "python", err);
    const char *cwd = text_member(body, "cwd", CWD, err);

    if (!language || !cwd)
        return -1;
    *ret = (struct code_context){ .language = code_language_find(language) };
    if (!ret->language)
        return err_set(err, ERR_INVALID, "language: '%.40s' is not supported", language);
    if (strlen(cwd) >= CODE_CWD_MAX)
        return err_set(err, ERR_INVALID, "cwd: longer than %d bytes", CODE_CWD_MAX - 1);
    (void) snprintf(ret->cwd, CODE_CWD_MAX, "%s", cwd);
    (void) snprintf(ret->sandbox, sizeof ret->sandbox, "%s", exchange_param(x, "sandbox"));
    return code_id_new(ret->id, err);
}

static int check_count(struct ops *ops, const char *sandbox, struct err *err)
{
    auto_free struct scan *scan = scan_new(ops, sandbox, err);

    if (!scan)
        return -1;
    if (scan->count == CODE_CONTEXTS)
        return err_set(err, ERR_TOO_MANY, "the sandbox has %d contexts", CODE_CONTEXTS);
    return 0;
}

int code_context_like(struct ops *ops, const struct code_context *old, struct code_context *ret,
                      struct err *err)
{
    *ret = (struct code_context){ .language = old->language };
    memcpy(ret->cwd, old->cwd, sizeof ret->cwd);
    memcpy(ret->sandbox, old->sandbox, sizeof ret->sandbox);
    if (check_count(ops, old->sandbox, err) < 0)
        return -1;
    return code_id_new(ret->id, err);
}

static int create(struct ops *ops, const struct code_context *wanted, struct err *err)
{
    struct code_context *context;
    bool fresh;
    int r;

    if (check_count(ops, wanted->sandbox, err) < 0)
        return -1;
    context = code_registry_add(wanted);
    if (!context)
        return err_set(err, ERR_NO_MEMORY, "no memory for a context");
    r = code_context_start(ops, context, &fresh, err);
    if (r < 0)
        code_registry_remove(context);
    code_registry_put(context);
    return r;
}

int code_context_create(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct code_context wanted;
    json_t *body;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    r = read_context(x, body, &wanted, err);
    json_decref(body);
    if (r < 0 || create(&ops, &wanted, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, code_context_json(&wanted), err);
}

static int end_context(struct exchange *x, bool remove, struct err *err)
{
    struct code_context *context;
    struct ops ops = ops_of(exchange_caller(x));
    int r;

    if (code_context_find(&ops, exchange_param(x, "sandbox"), exchange_param(x, "id"), NULL,
                          &context, err) < 0)
        return -1;
    if (remove)
        code_registry_remove(context);
    r = end_kernel(&ops, context, err);
    if (r == 0 && remove)
        r = note_removal(&ops, context, err);
    code_registry_put(context);
    return r < 0 ? -1 : exchange_reply_text(x, 200, "text/plain", "", err);
}

/* The next cell gets a new kernel, in the same place and with nothing of the old one. */
int code_context_restart(struct exchange *x, struct err *err)
{
    return end_context(x, false, err);
}

int code_context_remove(struct exchange *x, struct err *err)
{
    return end_context(x, true, err);
}
