#include "server/net/network_default.h"

#include "base/own.h"
#include "server/net/network_rules.h"
#include "store/seal.h"

#include <stdlib.h>
#include <string.h>

int network_default_get(struct app *app, enum store_network_kind kind, const char *name,
                        struct reach *ret, bool *ret_found, struct err *err)
{
    auto_free char *rules = NULL;
    char *login = NULL;
    int r;

    if (store_network_default_get(app->store, kind, name, &rules, &login, err) < 0)
        return -1;
    *ret_found = rules != NULL;
    if (!rules)
        return 0;
    r = network_from_text(app->store, rules, ret, err);
    if (r == 0 && ret->upstream.kind != UPSTREAM_NONE)
        r = upstream_split_login(&ret->upstream, login, err);
    seal_wipe(login, strlen(login));
    return r;
}

int network_default_text(struct app *app, const struct reach *rules,
                         struct network_default_text *ret, struct err *err)
{
    auto_free struct reach *shown = NULL;

    *ret = (struct network_default_text){ .text = NULL };
    if (!rules)
        return 0;
    shown = malloc(sizeof *shown);
    if (!shown)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    *shown = *rules;
    shown->upstream.user[0] = shown->upstream.password[0] = '\0';
    if (network_text(app->store, shown, &ret->text, err) < 0)
        return -1;
    upstream_join_login(&rules->upstream, ret->login);
    return 0;
}

void network_default_wipe(struct network_default_text *text)
{
    free(text->text);
    explicit_bzero(text, sizeof *text);
}

int network_default_set(struct app *app, enum store_network_kind kind, const char *name,
                        const struct reach *rules, struct err *err)
{
    struct network_default_text text;
    int r;

    if (network_default_text(app, rules, &text, err) < 0)
        return -1;
    r = store_network_default_set(app->store, kind, name, text.text, text.login, err);
    network_default_wipe(&text);
    return r;
}

/* One default over what there is so far: all of it if nothing was said, and else its proxy. */
static int add_default(struct app *app, enum store_network_kind kind, const char *name,
                       struct reach *rules, bool *said, struct err *err)
{
    auto_free struct reach *found = malloc(sizeof *found);
    struct upstream upstream = rules->upstream;
    bool is_there = false;

    if (!found)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (network_default_get(app, kind, name, found, &is_there, err) < 0)
        return -1;
    if (!is_there)
        return 0;
    if (!*said) {
        *rules = *found;
        *said = true;
    }
    rules->upstream = upstream.kind != UPSTREAM_NONE ? upstream : found->upstream;
    return 0;
}

int network_settle(struct app *app, const char *tenant, const char *template,
                   const struct reach *asked, bool implied, struct reach **ret, struct err *err)
{
    bool said = asked && !implied;
    auto_free struct reach *rules = calloc(1, sizeof *rules);

    *ret = NULL;
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (said)
        *rules = *asked;
    else if (asked)
        rules->upstream = asked->upstream;
    /* Where there is no gateway a default means nothing, and what was asked for is refused when it is opened. */
    if (app->network &&
        ((template && template[0] &&
          add_default(app, STORE_NETWORK_TEMPLATE, template, rules, &said, err) < 0) ||
         add_default(app, STORE_NETWORK_TENANT, tenant, rules, &said, err) < 0))
        return -1;
    if (!said && asked) {
        struct upstream upstream = rules->upstream;

        *rules = *asked;
        if (rules->upstream.kind == UPSTREAM_NONE)
            rules->upstream = upstream;
    }
    if (rules->mode != REACH_OFF || rules->allow_count > 0 || rules->deny_count > 0 ||
        rules->upstream.kind != UPSTREAM_NONE)
        *ret = take_ptr(&rules);
    return 0;
}
