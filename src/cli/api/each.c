#include "cli/api/each.h"

#include "cli/api/server.h"
#include "cli/report.h"

/* Says why one failed. false: the others would fail likewise. */
static bool complain(const struct err *err, int *code)
{
    int own = report_error(err);

    *code = *code ? *code : own;
    return err->kind != ERR_UNAVAILABLE;
}

static int each_named(char **names, int count, each_step *step, void *context)
{
    struct err err;
    int code = 0;

    for (int i = 0; i < count; i++)
        if (step(names[i], NULL, context, &err) < 0 && !complain(&err, &code))
            break;
    return code;
}

static int each_listed(each_step *step, void *context)
{
    json_t *list, *item;
    struct err err;
    int code = 0;
    size_t i;

    if (server_list("/v1/sandboxes", "sandboxes", &list, &err) < 0)
        return report_error(&err);
    json_array_foreach(list, i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));

        /* One that ended meanwhile is what was asked for. */
        if (!id || step(id, item, context, &err) == 0 || err.kind == ERR_NO_SANDBOX)
            continue;
        if (!complain(&err, &code))
            break;
    }
    json_decref(list);
    return code;
}

int each_sandbox(const struct verb *verb, bool all, char **names, int count, each_step *step,
                 void *context)
{
    if (all && count > 0)
        return common_excess(verb, names[0]);
    if (!all && count == 0)
        return common_missing(verb, "a sandbox (or --all)");
    return all ? each_listed(step, context) : each_named(names, count, step, context);
}
