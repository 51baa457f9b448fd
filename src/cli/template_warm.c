/* The order: a sandbox of the template, tied to our link to the keeper, so that it ends with us however we end; the
 * start command; the kernel; both ready; the image; and only then the record, from which on creates use the image. */
#include "cli/template_warm.h"

#include "base/io.h"
#include "base/own.h"
#include "cli/common.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/substore.h"
#include "cli/subverbs.h"
#include "cli/template_maker.h"
#include "cli/warm_ready.h"
#include "client/image.h"
#include "client/warm.h"
#include "template/recipe.h"
#include "template/template_store.h"

#include <signal.h>
#include <string.h>

#define READY_DEFAULT_MS 60000

/* ---- records ---- */

int template_warm_get(const char *name, struct store_warm *ret)
{
    struct store *store = NULL;
    struct err ignored;
    int r = saved_store(&store, &ignored);

    r = r == 0 && store ? store_warm_get(store, name, ret, &ignored) : 0;
    store_close(store);
    return r == 1;
}

/* Images of the template that it does not have any more, or that somebody who was killed never gave it. With the
 * template's lock: nobody is about to. */
static void sweep(struct link *link, struct store *store, const char *name)
{
    auto_free struct keeper_image *images = NULL;
    struct err ignored;
    size_t count = 0;

    if (saved_images(link, &images, &count, &ignored) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(images[i].owner, WARM_OWNER) == 0 &&
            strcmp(images[i].sandbox.template, name) == 0 &&
            store_warm_has(store, images[i].id, &ignored) == 0)
            (void) image_drop(link, images[i].id, &ignored);
}

static int forget(const char *name, bool *ret_was, struct err *err)
{
    struct store_warm warm;
    struct store *store;
    struct link link;
    struct err ignored;
    int r;

    *ret_was = false;
    if (saved_store(&store, err) < 0)
        return -1;
    r = store ? store_warm_get(store, name, &warm, err) : 0;
    if (r == 1) {
        *ret_was = true;
        r = store_warm_remove(store, name, err);
        if (r == 0)
            r = subverb_audit(store, "", "template.cool", name, err);
        if (r == 0 && link_open(&link, report_state(), &ignored) == 0) {
            sweep(&link, store, name);
            link_close(&link);
        }
    }
    store_close(store);
    return r < 0 ? -1 : 0;
}

void template_warm_forget(const char *name)
{
    struct err err;
    bool was;

    if (forget(name, &was, &err) < 0)
        report_note("the memory image of template '%s' stays: %s", name, err.msg);
    else if (was)
        report_note("template '%s' has no memory image any more: 'cove template warm' makes one",
                    name);
}

int template_cool(const char *name)
{
    auto_close int store_fd = -1, lock_fd = -1;
    struct manifest manifest;
    struct maker maker;
    struct err err;
    bool was;

    maker_init(&maker, name);
    if (template_store_look(report_state(), &store_fd, &err) < 0 ||
        template_find(store_fd, name, &manifest, NULL, &err) < 0 ||
        template_lock(&maker.way, store_fd, name, &lock_fd, &err) < 0 ||
        forget(name, &was, &err) < 0)
        return report_error(&err);
    if (!was) {
        err_set(&err, ERR_NO_IMAGE, "template '%.60s' has no memory image", name);
        return report_error(&err);
    }
    return report_end(0);
}

/* ---- creating from it ---- */

int template_warm_create(struct link *link, const struct sandbox_spec *spec,
                         struct keeper_sandbox *ret, struct err *err)
{
    const struct warm_source *source;
    struct keeper_hello hello;
    struct store_warm warm;
    struct err why;
    bool loaded;

    if (!spec->template && keeper_hello(link, &hello, err) < 0)
        return -1;
    if (!template_warm_get(spec->template ? spec->template : hello.default_template, &warm))
        return sandbox_create(link, spec, ret, err);
    source = &(struct warm_source){ .image = warm.image, .start = warm.start };
    if (warm_create(link, spec, source, ret, &loaded, &why, err) < 0)
        return -1;
    if (why.kind != ERR_NONE)
        report_note("the template's memory image was not loaded: %s", why.msg);
    return 0;
}

/* ---- making one ---- */

struct making {
    const char *name;
    const struct warm_values *values;
    struct store_warm record;
    struct limits limits;
    bool root;
    struct progress progress;
    struct link link;
    struct store *store;
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

static int check(struct making *m, struct err *err)
{
    const struct warm_values *v = m->values;
    const struct recipe *recipe = recipe_find(m->name);
    const char *modules = v->modules;

    bool e2b = v->e2b;

    if (!modules && !v->start && recipe && recipe->modules) {
        modules = recipe->modules; /* such a template is made for E2B's SDKs */
        e2b = true;
    }
    if (!v->start && !modules)
        return err_set(err, ERR_USAGE, "template warm: say --start and --ready, or --import");
    if (!v->start != !v->ready)
        return err_set(err, ERR_USAGE, "template warm: --start and --ready belong together");
    if ((v->start && (!v->start[0] || strlen(v->start) >= STORE_COMMAND_MAX)) ||
        (v->ready && (!v->ready[0] || strlen(v->ready) >= STORE_COMMAND_MAX)))
        return err_set(err, ERR_USAGE, "template warm: a command has 1 to %d bytes",
                       STORE_COMMAND_MAX - 1);
    if (modules && !warm_modules_ok(modules))
        return err_set(err, ERR_USAGE, "template warm: '%.60s' is not a list of python modules",
                       modules);
    set_size(m, e2b);
    (void) snprintf(m->record.template, sizeof m->record.template, "%s", m->name);
    (void) snprintf(m->record.start, sizeof m->record.start, "%s", v->start ? v->start : "");
    (void) snprintf(m->record.ready, sizeof m->record.ready, "%s", v->ready ? v->ready : "");
    (void) snprintf(m->record.modules, sizeof m->record.modules, "%s", modules ? modules : "");
    return 0;
}

/* Tied as soon as it is there: a signal waits that long. Not created as tied: such a one has its disk in memory. */
static int make_sandbox(struct making *m, struct keeper_sandbox *ret, struct err *err)
{
    const struct sandbox_spec spec = { .template = m->name,
                                       .flags = m->root ? KEEPER_FLAG_ROOT : 0,
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

    if (m->record.start[0]) {
        progress_show(&m->progress, 20, "starting", NULL);
        if (warm_start(&m->link, sandbox, m->record.start, &proc, err) < 0 ||
            warm_ready_wait(&m->link, sandbox, proc, m->record.ready, until, err) < 0)
            return -1;
    }
    if (m->record.modules[0]) {
        progress_show(&m->progress, 50, "importing", m->record.modules);
        if (warm_kernel_start(&m->link, sandbox, m->root, m->record.modules, until, err) < 0)
            return -1;
    }
    return 0;
}

static int save(struct making *m, const char *sandbox, struct err *err)
{
    struct keeper_image image;

    progress_show(&m->progress, 80, "saving", NULL);
    if (sandbox_new_id(m->record.image, err) < 0 ||
        image_save(&m->link, sandbox, m->record.image, WARM_OWNER, KEEPER_SAVE_MEMORY, &image,
                   err) < 0)
        return -1;
    m->record.bytes = image.bytes;
    m->record.made_ms = image.saved_ms;
    return store_warm_set(m->store, &m->record, err);
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
    sweep(&m->link, m->store, m->name); /* the one before, or this one without its record */
    return r < 0 ? -1 : subverb_audit(m->store, "", "template.warm", m->name, err);
}

static int warm(struct making *m, struct err *err)
{
    auto_close int store_fd = -1, lock_fd = -1;
    struct manifest manifest;
    struct maker maker;
    int r;

    maker_init(&maker, m->name);
    /* The lock, so that nobody makes the template anew meanwhile. */
    if (check(m, err) < 0 || template_store_look(report_state(), &store_fd, err) < 0 ||
        template_find(store_fd, m->name, &manifest, NULL, err) < 0 ||
        template_lock(&maker.way, store_fd, m->name, &lock_fd, err) < 0 ||
        common_open(&m->link, err) < 0)
        return -1;
    progress_init(&m->progress, m->name);
    r = subverb_store(&m->store, err) < 0 ? -1 : make(m, err);
    progress_done(&m->progress, NULL);
    store_close(m->store);
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
                  report_size(size, sizeof size, m.record.bytes),
                  report_span(span, sizeof span, io_now_ms() - begun));
    return report_end(0);
}
