#include "server/life/warm.h"

#include "base/log.h"
#include "base/own.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static int any(void *arg, const struct store_warm *warm, struct err *err)
{
    (void) warm;
    (void) err;
    *(bool *) arg = true;
    return 0;
}

/* Which template a create gets that names none is the keeper's to say; asked only where it matters. 0: not known. */
static int default_name(struct app *app, struct link *link, struct keeper_hello *ret,
                        struct err *err)
{
    bool some = false;

    if (store_warm_list(app->store, any, &some, err) < 0)
        return -1;
    if (!some)
        return 0;
    return keeper_hello(link, ret, err) < 0 ? -1 : 1;
}

static int find(struct app *app, struct link *link, const char *template, struct store_warm *ret,
                struct err *err)
{
    struct keeper_hello hello;
    int r = 1;

    if (!template) {
        r = default_name(app, link, &hello, err);
        template = hello.default_template;
    }
    return r == 1 ? store_warm_get(app->store, template, ret, err) : r;
}

/* What comes out of an image is made without a look at the template. */
static int check_default(struct link *link, const struct sandbox_spec *spec, struct err *err)
{
    struct keeper_hello hello;

    if (!(spec->flags & KEEPER_FLAG_DEFAULT))
        return 0;
    if (keeper_hello(link, &hello, err) < 0)
        return -1;
    return strcmp(hello.default_template, spec->template) == 0
               ? 0
               : err_set(err, ERR_NO_TEMPLATE, "template '%s' is not the default", spec->template);
}

int warm_make(struct app *app, struct link *link, const struct sandbox_spec *spec,
              struct keeper_sandbox *ret, bool *ret_loaded, struct err *err)
{
    auto_free struct store_warm *record = malloc(sizeof *record);
    struct warm_source source;
    struct err why = { .kind = ERR_NONE };
    int r;

    *ret_loaded = false;
    if (!record)
        return err_set(err, ERR_NO_MEMORY, "no memory for a create");
    r = find(app, link, spec->template, record, &why);
    if (r != 1) {
        if (r < 0)
            log_line(LOG_WARNING, "sandbox=%s images of templates not known: %s", spec->id,
                     why.msg);
        return sandbox_create(link, spec, ret, err);
    }
    if (check_default(link, spec, err) < 0)
        return -1;
    source = (struct warm_source){ .image = record->image, .start = record->start };
    r = warm_create(link, spec, &source, ret, ret_loaded, &why, err);
    if (why.kind != ERR_NONE)
        log_line(LOG_WARNING, "sandbox=%s template=%s image=%s not loaded: %s", spec->id,
                 record->template, record->image, why.msg);
    return r;
}
