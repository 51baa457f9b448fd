#include "server/serve/kept.h"

#include "server/serve/dump.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct kept_text {
    const struct config *of;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one at a time makes a text */

/* Settings are never freed, so the address says which they are. */
static const struct kept_text *text_of(struct kept *kept, const struct config *config)
{
    const struct kept_text *text = atomic_load(&kept->now);

    return text && text->of == config ? text : NULL;
}

static const struct kept_text *make_text(const struct config *config, json_t *json)
{
    struct kept_text *text = NULL;
    struct dump dump;

    if (dump_json(&dump, json) == 0 && (text = malloc(sizeof *text + dump.len + 1))) {
        text->of = config;
        memcpy(text->text, dump_text(&dump), dump.len);
        text->text[dump.len] = '\0';
    }
    dump_done(&dump);
    json_decref(json);
    return text;
}

/* The settings are looked up before the text is made: what is made of newer ones is made again. */
static const struct kept_text *renew(struct kept *kept, struct app *app,
                                     json_t *(*make)(struct app *app))
{
    const struct config *config = app_config(app);
    const struct kept_text *text;

    (void) pthread_mutex_lock(&lock);
    text = text_of(kept, config);
    if (!text) {
        text = make_text(config, make(app));
        if (text)
            atomic_store(&kept->now, text);
    }
    (void) pthread_mutex_unlock(&lock);
    return text;
}

int exchange_reply_kept(struct exchange *x, struct kept *kept, json_t *(*make)(struct app *app),
                        struct err *err)
{
    struct app *app = exchange_app(x);
    const struct kept_text *text = text_of(kept, app_config(app));

    if (!text)
        text = renew(kept, app, make);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    return exchange_reply_text(x, 200, "application/json", text->text, err);
}
