/* /v1/host: what verbs of root on the host have the server do with the store. */
#include "base/own.h"
#include "server/net/network_rules.h"
#include "server/ops/ops_host.h"
#include "surface/v1/v1.h"

#include <stdlib.h>
#include <string.h>

#define AGE_MOST_MS 1000000000000 /* of a FORM_SECONDS */

/* ---- templates ---- */

int v1_host_template_list(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *list;

    if (ops_host_templates(&ops, &list, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, json_pack("{s:o}", "templates", list), err);
}

int v1_host_template_get(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    json_t *template;

    if (ops_host_template(&ops, exchange_param(x, "name"), &template, err) < 0)
        return -1;
    return exchange_reply_json(x, 200, template, err);
}

struct made_body {
    const char *how, *from;
};

/* clang-format off */
static const char *const ways[] = { "build", "import", "pull", "update", NULL };
static const struct form_field made_fields[] = {
    { "how", FORM_TEXT, .at = offsetof(struct made_body, how), .help = "how its files were made", .choices = ways, .needed = true },
    { "from", FORM_TEXT, .at = offsetof(struct made_body, from), 0, 700, "the image or the file" },
};
/* clang-format on */
const struct form v1_host_made_form = FORM_OF(made_fields);

static int reply_cooled(struct exchange *x, bool cooled, struct err *err)
{
    return exchange_reply_json(x, 200, json_pack("{s:b}", "cooled", cooled), err);
}

int v1_host_template_put(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct made_body body = { .how = NULL };
    bool cooled = false;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_host_made_form, &body, err);
    if (r == 0)
        r = ops_host_made(&ops, exchange_param(x, "name"), body.how, body.from, &cooled, err);
    json_decref(json);
    return r < 0 ? -1 : reply_cooled(x, cooled, err);
}

int v1_host_template_delete(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    bool cooled;

    if (ops_host_gone(&ops, exchange_param(x, "name"), &cooled, err) < 0)
        return -1;
    return reply_cooled(x, cooled, err);
}

#define AT(field) offsetof(struct ops_host_warm, field)
/* clang-format off */
static const struct form_field warm_fields[] = {
    { "image", FORM_TEXT, .at = AT(image), .help = "the id of the image", .needed = true },
    { "start", FORM_CONTENT, .at = AT(start), 0, OPS_COMMAND_MAX - 1, "the command that runs in the image" },
    { "ready", FORM_CONTENT, .at = AT(ready), 0, OPS_COMMAND_MAX - 1, "the command that ended with 0 once the image was ready" },
    { "import", FORM_CONTENT, .at = AT(modules), 0, OPS_COMMAND_MAX - 1, "the modules of the python kernel that waits in the image" },
};
/* clang-format on */
#undef AT
static const struct form warm_form = FORM_OF(warm_fields);

struct change_body {
    json_t *network, *warm;
};

/* clang-format off */
static const struct form_field change_fields[] = {
    { "network", FORM_OBJECT, .at = offsetof(struct change_body, network), .help = "the default network of its sandboxes; null: none any more",
      .items = &network_form, .nullable = true },
    { "warm", FORM_OBJECT, .at = offsetof(struct change_body, warm), .help = "its memory image; null: none any more",
      .items = &warm_form, .nullable = true },
};
/* clang-format on */
const struct form v1_host_template_form = FORM_OF(change_fields);

static int change(struct exchange *x, json_t *json, json_t **ret, struct err *err)
{
    auto_free struct reach *network = malloc(sizeof *network);
    struct ops ops = ops_of(exchange_caller(x));
    struct change_body body = { .network = NULL };
    struct ops_host_warm warm = { .image = NULL };
    struct ops_host_change change = { .network_given = json_object_get(json, "network") != NULL,
                                      .warm_given = json_object_get(json, "warm") != NULL };

    if (!network)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (form_read(exchange_caller(x), json, &v1_host_template_form, &body, err) < 0 ||
        (body.network &&
         network_read_trusted(exchange_caller(x), "network", body.network, network, err) < 0) ||
        (body.warm &&
         form_read_within(exchange_caller(x), "warm.", body.warm, &warm_form, &warm, err) < 0))
        return -1;
    change.network = body.network ? network : NULL;
    change.warm = body.warm ? &warm : NULL;
    return ops_host_change(&ops, exchange_param(x, "name"), &change, ret, err);
}

int v1_host_template_patch(struct exchange *x, struct err *err)
{
    json_t *json, *template = NULL;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = change(x, json, &template, err);
    json_decref(json);
    return r < 0 ? -1 : exchange_reply_json(x, 200, template, err);
}

/* ---- what nothing needs any more ---- */

/* clang-format off */
static const struct form_field gc_fields[] = {
    { "dry_run", FORM_BOOL, .at = offsetof(struct ops_gc, dry_run), .help = "only say what would be done", .fallback = "false" },
    { "older_than", FORM_SECONDS, .at = offsetof(struct ops_gc, older_ms), 1, AGE_MOST_MS, "snapshots that are older go, too; an age in seconds" },
    { "compress", FORM_SECONDS, .at = offsetof(struct ops_gc, compress_ms), 0, AGE_MOST_MS,
      "the memory of images that were not used for so many seconds is compressed" },
};
/* clang-format on */
const struct form v1_gc_form = FORM_OF(gc_fields);

static int send_item(void *arg, const struct ops_gc_item *item, struct err *err)
{
    json_t *error = json_null();

    if (!item)
        return v1_stream_ping(arg, err);
    if (item->failure)
        error = json_pack("{s:s, s:o}", "code", err_kind_info(item->failure->kind)->name, "message",
                          form_text(item->failure->msg, strlen(item->failure->msg)));
    return v1_stream_event(
        arg,
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "type", "item", "kind", item->kind, "id",
                  item->id, "action", item->action, "reason", item->reason, "freed_bytes",
                  (json_int_t) (item->failure ? 0 : item->freed), "error", error),
        err);
}

int v1_host_gc(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_gc wish = { .compress_ms = OPS_GC_NEVER };
    struct v1_stream stream;
    uint64_t seen = 0;
    struct err why;
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_gc_form, &wish, err);
    json_decref(json);
    if (r < 0 || v1_stream_begin(&stream, x, v1_accepts(x) == V1_SSE, err) < 0)
        return -1;
    if (ops_gc(&ops, &wish, send_item, &stream, &seen, &why) < 0)
        return v1_stream_fail(&stream, &why, err);
    return v1_stream_end(&stream, json_pack("{s:I}", "seen", (json_int_t) seen), err);
}

/* ---- the copy of the store ---- */

int v1_host_copy(struct exchange *x, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    const char *file;

    if (ops_host_copy(&ops, &file, err) < 0)
        return -1;
    return exchange_reply_json(x, 201, json_pack("{s:s}", "file", file), err);
}
