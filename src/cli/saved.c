#include "cli/saved.h"

#include "base/own.h"
#include "cli/api/server.h"
#include "cli/common.h"
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int saved_images(struct link *link, struct keeper_image **ret, size_t *ret_count, struct err *err)
{
    *ret = NULL;
    *ret_count = 0;
    return image_list(link, ret, ret_count, err) < 0 && err->kind != ERR_UNSUPPORTED ? -1 : 0;
}

int saved_list(struct link *link, struct keeper_sandbox **ret, size_t *ret_count, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    auto_free struct keeper_image *images = NULL;
    struct keeper_sandbox *longer;
    size_t count, image_count;

    if (sandbox_list(link, &list, &count, err) < 0 ||
        saved_images(link, &images, &image_count, err) < 0)
        return -1;
    longer = realloc(list, (count + image_count + 1) * sizeof *list);
    if (!longer)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    list = longer;
    for (size_t i = 0; i < image_count; i++) {
        if (!(images[i].flags & KEEPER_IMAGE_PAUSED))
            continue;
        list[count] = images[i].sandbox;
        list[count].life = LIFE_PAUSED;
        list[count++].pid = 0;
    }
    *ret = take_ptr(&list);
    *ret_count = count;
    return 0;
}

int saved_find(struct link *link, const char *sandbox, struct keeper_image *ret, struct err *err)
{
    auto_free struct keeper_image *images = NULL;
    size_t count;

    if (saved_images(link, &images, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if ((images[i].flags & KEEPER_IMAGE_PAUSED) &&
            (strcmp(images[i].id, sandbox) == 0 || strcmp(images[i].sandbox.name, sandbox) == 0)) {
            *ret = images[i];
            return 0;
        }
    return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.63s'", sandbox);
}

/* ---- each of several ---- */

/* Says why one failed; the first failure is the exit code. false: the others would fail likewise. */
static bool may_continue(const struct err *err, int *code)
{
    int own = report_error(err);

    *code = *code ? *code : own;
    return err->kind != ERR_UNAVAILABLE;
}

/* Ids begin with 'i' and are of one length; a name may look like that, too. */
static bool may_be_prefix(const char *name)
{
    size_t len = strlen(name);

    return name[0] == 'i' && len >= SAVED_PREFIX_LEAST && len < ID_LEN &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

void saved_id_of(char *name, size_t size)
{
    json_t *sandbox = NULL;
    struct err ignored;

    if (!id_ok(name) &&
        server_ask("GET", NULL, &sandbox, &ignored, "/v1/sandboxes/%s", name) == 0 &&
        json_is_string(json_object_get(sandbox, "id")))
        (void) snprintf(name, size, "%s", json_string_value(json_object_get(sandbox, "id")));
    json_decref(sandbox);
}

int saved_resolve(struct link *link, char **name, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    const char *found = NULL;
    size_t count, fit = 0;
    char known[KEEPER_NAME_MAX];

    (void) snprintf(known, sizeof known, "%s", *name);
    saved_id_of(known, sizeof known);
    if (strcmp(known, *name) != 0)
        return (*name = strdup(known)) ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for an id");
    if (!may_be_prefix(*name))
        return 0;
    if (saved_list(link, &list, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, *name) == 0)
            return 0;
        if (strncmp(list[i].id, *name, strlen(*name)) == 0) {
            found = list[i].id;
            fit++;
        }
    }
    if (fit > 1)
        return err_set(err, ERR_USAGE, "the ids of %zu sandboxes begin with '%s': type more of it",
                       fit, *name);
    if (fit == 1 && !(*name = strdup(found)))
        return err_set(err, ERR_NO_MEMORY, "no memory for an id");
    return 0;
}

static int each_named(struct link *link, saved_step *step, void *context, char **names, int count)
{
    int code = 0;

    for (int i = 0; i < count; i++) {
        struct err err;

        if (saved_resolve(link, &names[i], &err) == 0 && step(link, names[i], context, &err) == 0)
            continue;
        if (!may_continue(&err, &code))
            break;
    }
    return code;
}

static int each_there(struct link *link, saved_step *step, void *context)
{
    auto_free struct keeper_sandbox *list = NULL;
    size_t count = 0;
    struct err err;
    int code = 0;

    if (saved_list(link, &list, &count, &err) < 0)
        return report_error(&err);
    for (size_t i = 0; i < count; i++) {
        /* One that ended meanwhile is what was asked for. */
        if (step(link, list[i].id, context, &err) == 0 || err.kind == ERR_NO_SANDBOX)
            continue;
        if (!may_continue(&err, &code))
            break;
    }
    return code;
}

int saved_each(const struct verb *verb, bool all, char **names, int count, saved_step *step,
               void *context)
{
    struct link link;
    struct err err;
    int code;

    if (all && count > 0)
        return common_excess(verb, names[0]);
    if (!all && count == 0)
        return common_missing(verb, "a sandbox (or --all)");
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    code = all ? each_there(&link, step, context) : each_named(&link, step, context, names, count);
    link_close(&link);
    return code;
}
