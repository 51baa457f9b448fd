/* Names of templates, as SDKs say them. */
#include "surface/e2b/control.h"

#include "base/own.h"
#include "http/slice.h"

#include <string.h>

static bool chars_ok(struct slice text, const char *more)
{
    for (size_t i = 0; i < text.len; i++)
        if (!((text.at[i] >= 'a' && text.at[i] <= 'z') ||
              (text.at[i] >= '0' && text.at[i] <= '9') || strchr(more, text.at[i])))
            return false;
    return text.len > 0;
}

/* The alias of a template that a person made elsewhere may have the team's name before it; here names have no such
 * part, and every team sees all templates, so that what is behind the slash says it all. */
static bool cut_team(struct slice *name)
{
    struct slice team;

    return !slice_cut(name, '/', &team) || chars_ok(team, "-_");
}

int control_template_ref(const char *text, struct ops_template_ref *ret, struct err *err)
{
    struct slice trimmed = slice_trim(slice_of(text)), rest, name;
    char lower[4 * KEEPER_NAME_MAX];
    bool tagged;

    if (!slice_copy(trimmed, lower, sizeof lower))
        return err_set(err, ERR_NO_TEMPLATE, "template '%.60s' not found", text);
    for (char *c = lower; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char) (*c - 'A' + 'a');
    rest = slice_of(lower);
    tagged = slice_cut(&rest, ':', &name);
    if (!tagged)
        name = rest;
    if (!cut_team(&name) || !chars_ok(name, "-_.") || (tagged && !chars_ok(rest, "-_.")))
        return err_set(err, ERR_INVALID, "Invalid template reference: '%.60s'", text);
    if (!tagged)
        rest = slice_of("default");
    if (!slice_copy(name, ret->name, sizeof ret->name) ||
        !slice_copy(rest, ret->tag, sizeof ret->tag))
        return err_set(err, ERR_NO_TEMPLATE, "template '%.60s' not found", text);
    return 0;
}

int control_template_name(const char *text, char ret[KEEPER_NAME_MAX], struct err *err)
{
    struct ops_template_ref ref;

    if (control_template_ref(text, &ref, err) < 0)
        return -1;
    if (strcmp(ref.tag, "default") != 0)
        return err_set(err, ERR_NO_TEMPLATE, "template '%.60s' not found", text);
    (void) strcpy(ret, ref.name);
    return 0;
}

bool control_template_standard(const char *name)
{
    static const char *const names[] = { "base", "code-interpreter-v1", "mcp-gateway" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* What a create can always ask for is there, and what was built. Other templates are the keeper's, and only a create tells. */
int control_template_alias(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_template template = { .is_public = true };
    struct ops_template_ref ref;

    if (control_template_ref(exchange_param(x, "alias"), &ref, err) < 0)
        return -1;
    if (ops_template_get(&ops, ref.name, &template, err) < 0) {
        if (err->kind != ERR_NO_TEMPLATE || !control_template_standard(ref.name))
            return err->kind == ERR_NO_TEMPLATE
                       ? err_set(err, ERR_NO_TEMPLATE, "template '%s' not found", ref.name)
                       : -1;
        (void) snprintf(template.id, sizeof template.id, "%s", ref.name);
    }
    return exchange_reply_json(
        x, 200, json_pack("{s:s, s:b}", "templateID", template.id, "public", template.is_public),
        err);
}
