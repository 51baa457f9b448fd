/* Making sandboxes. */
#include "surface/e2b/control.h"

#include "base/own.h"
#include "server/preview/preview.h"

#include <stdlib.h>
#include <string.h>

/* What E2B tells every command about where it runs; the user's own words win. */
static json_t *environment(const char *id, const char *template, json_t *own)
{
    json_t *env = json_pack("{s:s, s:s, s:s}", "E2B_SANDBOX", "true", "E2B_SANDBOX_ID", id,
                            "E2B_TEMPLATE_ID", template);

    if (own && json_object_update(env, own) < 0) {
        json_decref(env);
        return NULL;
    }
    return env;
}

static int create_with(struct exchange *x, struct control_create *create, json_t *env,
                       struct ops_sandbox *ret, struct err *err)
{
    auto_free const char **assignments = NULL;
    auto_free char *metadata = NULL;
    struct preview_rules preview = { .is_public = create->notes.public_traffic,
                                     .auto_resume = create->notes.auto_resume };
    char notes[OPS_NOTES_MAX];
    struct ops ops = ops_of(exchange_caller(x));

    if (form_assignments(exchange_caller(x), "envVars", env, &assignments, &create->ops.env_count,
                         err) < 0 ||
        e2b_notes_print(&create->notes, notes, sizeof notes, err) < 0)
        return -1;
    memcpy(preview.mask_host, create->notes.mask_host, sizeof preview.mask_host);
    create->ops.preview = &preview;
    create->ops.env = assignments;
    create->ops.volumes = create->volumes;
    create->ops.notes = notes;
    if (create->metadata) {
        metadata = json_dumps(create->metadata, JSON_COMPACT);
        create->ops.metadata = metadata;
    }
    if (ops_sandbox_create(&ops, &create->ops, ret, err) == 0)
        return 0;
    /* A body that is too big is a status of its own; values that are, are not what SDKs know it for. */
    return err->kind == ERR_TOO_BIG ? exchange_blame_status(x, 400) : -1;
}

static int create(struct exchange *x, json_t *body, bool v2, struct err *err)
{
    auto_free struct reach *reach = malloc(sizeof *reach);
    struct control_create create;
    struct ops_sandbox made;
    char id[ID_LEN + 1];
    json_t *env;
    int r;

    if (!reach)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (control_options(x, body, v2, &create, reach, err) < 0 || sandbox_new_id(id, err) < 0)
        return -1;
    create.ops.id = id;
    env = environment(id, create.template, create.env);
    if (!env)
        return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    r = create_with(x, &create, env, &made, err);
    json_decref(env);
    return r < 0 ? -1 : control_reply_sandbox(x, 201, &made, err);
}

static int read_and_create(struct exchange *x, bool v2, struct err *err)
{
    json_t *body;
    int r;

    if (exchange_json(x, &body, err) < 0)
        return -1;
    r = create(x, body, v2, err);
    json_decref(body);
    return r;
}

int control_create_v1(struct exchange *x, struct err *err)
{
    return read_and_create(x, false, err);
}

int control_create_v2(struct exchange *x, struct err *err)
{
    return read_and_create(x, true, err);
}
