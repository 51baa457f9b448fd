/* The order: a sandbox of the template, tied to our link to the keeper, so that it ends with us however we end; the
 * start command; the kernel; both ready; the image; and only then the record, from which on creates use the image. */
#include "cli/template/template_warm.h"

#include "base/io.h"
#include "base/own.h"
#include "cli/api/server.h"
#include "cli/common.h"
#include "cli/progress.h"
#include "cli/records.h"
#include "cli/report.h"
#include "cli/template/template_maker.h"
#include "cli/template/warm_ready.h"
#include "client/image.h"
#include "client/warm.h"
#include "template/recipe.h"
#include "template/template_store.h"
#include "wire/isolation.h"

#include <signal.h>
#include <string.h>

#define READY_DEFAULT_MS 60000
#define COMMAND_MAX      2048 /* with the NUL; the server refuses longer ones, too */

/* By the server, which must run. take_warm: what PATCH /v1/host/templates/NAME takes as "warm". */
static int record(const char *name, json_t *take_warm, struct err *err)
{
    json_t *body = json_pack("{s:o}", "warm", take_warm);

    if (records_server(err) == 0)
        return server_ask("PATCH", body, NULL, err, "/v1/host/templates/%s", name);
    json_decref(body);
    return -1;
}

int template_cool(const char *name)
{
    auto_close int store_fd = -1, lock_fd = -1;
    struct manifest manifest;
    struct maker maker;
    struct err err;

    maker_init(&maker, name);
    if (template_store_look(report_state(), &store_fd, &err) < 0 ||
        template_find(store_fd, name, &manifest, NULL, &err) < 0 ||
        template_lock(&maker.way, store_fd, name, &lock_fd, &err) < 0 ||
        record(name, json_null(), &err) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ---- making one ---- */

struct making {
    const char *name;
    const struct warm_values *values;
    const char *start, *ready, *modules; /* NULL: none */
    struct limits limits;
    bool root;
    uint32_t isolation;
    struct progress progress;
    struct link link;
    uint64_t bytes; /* of the image */
};

static void set_size(struct making *m, bool e2b)
{
    struct limits usual;

    limits_default(&usual);
    m->limits = m->values->limits;
    m->root = m->values->root || e2b;
    if (e2b && m->limits.cpu_milli == usual.cpu_milli) /* and not said otherwise */
        m->limits.cpu_milli = LIMITS_E2B_CPU_MILLI;
}

static bool command_ok(const char *command)
{
    return !command || (command[0] && strlen(command) < COMMAND_MAX);
}

/* What nothing was said of is as the recipe says. */
static int check(struct making *m, struct err *err)
{
    const struct warm_values *v = m->values;
    const struct recipe *recipe = recipe_find(m->name);
    bool e2b = v->e2b;

    m->start = v->start;
    m->ready = v->ready;
    m->modules = v->modules;
    if (!v->start && !v->ready && !v->modules && recipe) {
        m->start = recipe->start;
        m->ready = recipe->ready;
        m->modules = recipe->modules;
        e2b = e2b || m->modules; /* such a template is made for E2B's SDKs */
    }
    if (!m->start && !m->ready && !m->modules)
        return err_set(err, ERR_USAGE, "template warm: say --start and --ready, or --import");
    if (!m->start != !m->ready)
        return err_set(err, ERR_USAGE, "template warm: --start and --ready belong together");
    if (!command_ok(m->start) || !command_ok(m->ready))
        return err_set(err, ERR_USAGE, "template warm: a command has 1 to %d bytes",
                       COMMAND_MAX - 1);
    if (m->modules && !warm_modules_ok(m->modules))
        return err_set(err, ERR_USAGE, "template warm: '%.60s' is not a list of python modules",
                       m->modules);
    set_size(m, e2b);
    m->isolation = ISOLATION_JAIL;
    return v->isolation ? isolation_parse(v->isolation, &m->isolation, err) : 0;
}

/* Tied as soon as it is there: a signal waits that long. Not created as tied: such a one has its disk in memory. */
static int make_sandbox(struct making *m, struct keeper_sandbox *ret, struct err *err)
{
    const struct sandbox_spec spec = { .template = m->name,
                                       .flags = m->root ? KEEPER_FLAG_ROOT : 0,
                                       .isolation = m->isolation,
                                       .limits = m->limits };
    sigset_t all, before;
    int r;

    (void) sigfillset(&all);
    (void) sigprocmask(SIG_BLOCK, &all, &before);
    r = sandbox_create(&m->link, &spec, ret, err);
    if (r == 0)
        r = sandbox_tie(&m->link, ret->id, err);
    (void) sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

static int prepare(struct making *m, const char *sandbox, struct err *err)
{
    uint64_t within = m->values->ready_ms ? m->values->ready_ms : READY_DEFAULT_MS;
    uint64_t until = io_now_ms() + within;
    uint32_t proc;

    if (m->start) {
        progress_show(&m->progress, 20, "starting", NULL);
        if (warm_start(&m->link, sandbox, m->start, &proc, err) < 0 ||
            warm_ready_wait(&m->link, sandbox, proc, m->ready, until, err) < 0)
            return -1;
    }
    if (m->modules) {
        progress_show(&m->progress, 50, "importing", m->modules);
        if (warm_kernel_start(&m->link, sandbox, m->root, m->modules, until, err) < 0)
            return -1;
    }
    return 0;
}

/* The record is the server's to make: an image without one is dropped at the next look. */
static int save(struct making *m, const char *sandbox, struct err *err)
{
    struct keeper_image image;
    char id[ID_LEN + 1];
    struct err ignored;

    progress_show(&m->progress, 80, "saving", NULL);
    if (sandbox_new_id(id, err) < 0 ||
        image_save(&m->link, sandbox, id, WARM_OWNER, KEEPER_SAVE_MEMORY, &image, err) < 0)
        return -1;
    m->bytes = image.bytes;
    if (record(m->name,
               json_pack("{s:s, s:s*, s:s*, s:s*}", "image", id, "start", m->start, "ready",
                         m->ready, "import", m->modules),
               err) == 0)
        return 0;
    (void) image_drop(&m->link, id, &ignored);
    return -1;
}

static int make(struct making *m, struct err *err)
{
    struct keeper_sandbox sandbox = { .id = "" };
    struct err ignored;
    int r;

    progress_show(&m->progress, 0, "making a sandbox", NULL);
    r = make_sandbox(m, &sandbox, err);
    if (r == 0)
        r = prepare(m, sandbox.id, err);
    if (r == 0)
        r = save(m, sandbox.id, err);
    if (sandbox.id[0])
        (void) sandbox_destroy(&m->link, sandbox.id, &ignored);
    return r;
}

static int warm(struct making *m, struct err *err)
{
    auto_close int store_fd = -1, lock_fd = -1;
    struct manifest manifest;
    struct maker maker;
    int r;

    maker_init(&maker, m->name);
    /* The lock, so that no other process rebuilds the template meanwhile. */
    if (check(m, err) < 0 || template_store_look(report_state(), &store_fd, err) < 0 ||
        template_find(store_fd, m->name, &manifest, NULL, err) < 0 ||
        template_lock(&maker.way, store_fd, m->name, &lock_fd, err) < 0 ||
        records_server(err) < 0 || common_open(&m->link, err) < 0)
        return -1;
    progress_init(&m->progress, m->name);
    r = make(m, err);
    progress_done(&m->progress, NULL);
    link_close(&m->link);
    return r;
}

int template_warm(const char *name, const struct warm_values *values)
{
    struct making m = { .name = name, .values = values };
    uint64_t begun = io_now_ms();
    char size[32], span[32];
    struct err err;

    if (warm(&m, &err) < 0)
        return report_error(&err);
    (void) printf("%s is warm: an image of %s, in %s\n", name,
                  report_size(size, sizeof size, m.bytes),
                  report_span(span, sizeof span, io_now_ms() - begun));
    return report_end(0);
}
