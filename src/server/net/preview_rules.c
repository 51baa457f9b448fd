#include "server/net/preview_rules.h"

#include "base/own.h"
#include "http/put.h"
#include "http/target.h"
#include "server/form/form.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define MASK_PORT "${PORT}"

void preview_mask_print(const char *mask, uint16_t port, char out[PREVIEW_MASK_MAX])
{
    struct put put = put_into(out, PREVIEW_MASK_MAX - 1);

    for (const char *at = mask, *next; *at; at = next) {
        next = strstr(at, MASK_PORT);
        put_bytes(&put, at, next ? (size_t) (next - at) : strlen(at));
        if (!next)
            break;
        put_number(&put, port);
        next += sizeof MASK_PORT - 1;
    }
    out[put_fits(&put) ? put.len : 0] = '\0';
}

bool preview_mask_ok(const char *mask)
{
    char longest[PREVIEW_MASK_MAX];
    struct host ignored_host;
    struct err ignored;

    if (!mask[0])
        return true;
    if (strlen(mask) >= PREVIEW_MASK_MAX)
        return false;
    preview_mask_print(mask, UINT16_MAX, longest);
    return host_parse(slice_of(longest), &ignored_host, &ignored) == 0;
}

struct body {
    bool is_public, auto_resume;
    const char *mask_host;
};

#define AT(field) offsetof(struct body, field)
/* clang-format off */
static const struct form_field fields[] = {
    { "public", FORM_BOOL, .at = AT(is_public), .help = "no token is needed", .fallback = "false" },
    { "auto_resume", FORM_BOOL, .at = AT(auto_resume), .help = "a request to a port wakes it when it is paused", .fallback = "false" },
    { "mask_host", FORM_TEXT, .at = AT(mask_host), .help = "the Host that servers inside see; ${PORT} stands for the port",
      .schema = "{\"maxLength\": 255}", .nullable = true },
};
/* clang-format on */
#undef AT
const struct form preview_form = FORM_OF(fields);

int preview_rules_read(struct caller *caller, const char *within, json_t *json,
                       struct preview_rules *rules, struct err *err)
{
    struct body body = { .mask_host = rules->mask_host };
    char field[32];

    if (form_read_within(caller, within, json, &preview_form, &body, err) < 0)
        return -1;
    (void) snprintf(field, sizeof field, "%smask_host", within);
    if (!preview_mask_ok(body.mask_host))
        return form_bad(caller, err, field,
                        "must be a host, perhaps with a port: localhost:" MASK_PORT);
    rules->is_public = body.is_public;
    rules->auto_resume = body.auto_resume;
    if (body.mask_host != rules->mask_host)
        (void) snprintf(rules->mask_host, sizeof rules->mask_host, "%s", body.mask_host);
    return 0;
}

json_t *preview_rules_json(const struct preview_rules *rules)
{
    return json_pack("{s:b, s:b, s:s?}", "public", rules->is_public, "auto_resume",
                     rules->auto_resume, "mask_host",
                     rules->mask_host[0] ? rules->mask_host : NULL);
}

char *preview_rules_text(const struct preview_rules *rules)
{
    json_t *json = preview_rules_json(rules);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

int preview_rules_load(struct app *app, const char *sandbox, struct preview_rules *rules,
                       struct err *err)
{
    struct store_preview preview;
    const char *mask;
    json_t *json;

    if (store_preview_get(app->store, sandbox, &preview, err) < 0)
        return -1;
    if (!preview.rules[0])
        return 0;
    json = json_loads(preview.rules, 0, NULL);
    mask = json_string_value(json_object_get(json, "mask_host"));
    *rules = (struct preview_rules){
        .is_public = json_is_true(json_object_get(json, "public")),
        .auto_resume = json_is_true(json_object_get(json, "auto_resume")),
    };
    if (mask && preview_mask_ok(mask))
        (void) snprintf(rules->mask_host, sizeof rules->mask_host, "%s", mask);
    json_decref(json);
    return 0;
}
