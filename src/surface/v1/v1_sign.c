#include "surface/v1/v1.h"

#include "base/io.h"
#include "base/own.h"
#include "server/guard/audit.h"
#include "server/serve/sign.h"

#include <string.h>

struct sign_body {
    const char *path, *operation, *user;
    uint64_t expires_ms;
};

static const char *const operations[] = { "read", "write", NULL };

#define AT(field) offsetof(struct sign_body, field)
/* clang-format off */
static const struct form_field fields[] = {
    { "path", FORM_TEXT, .at = AT(path), 0, AGENT_PATH_MAX - 1, "absolute, or relative to the user's home", .needed = true },
    { "operation", FORM_TEXT, .at = AT(operation), .help = "what the URL is for", .needed = true, .choices = operations },
    { "expires_in", FORM_SECONDS, .at = AT(expires_ms), 1000, SIGN_SECONDS_MOST * 1000ull, "seconds", .fallback = "3600" },
    { "user", FORM_TEXT, .at = AT(user), .help = "whose rights; default: the template's user" },
};
/* clang-format on */
#undef AT
const struct form v1_sign_form = FORM_OF(fields);

static int check(struct exchange *x, const struct sign_body *body, struct err *err)
{
    if (body->operation[0] == 'w' && exchange_caller(x)->scope < SCOPE_RUN)
        return err_set(err, ERR_DENIED, "a key of scope read may not sign URLs for writing");
    return 0;
}

static int sign(struct exchange *x, const struct sign_body *body, struct err *err)
{
    auto_free struct ops_sandbox *sandbox = malloc(sizeof *sandbox);
    auto_free char *url = NULL;
    struct ops ops = ops_of(exchange_caller(x));
    /* Up to the end of the second: a URL never works for less than it says. */
    struct sign sign = { .sandbox = exchange_param(x, "id"),
                         .path = body->path,
                         .user = body->user ? body->user : "",
                         .write = body->operation[0] == 'w',
                         .expires = (io_real_ms() + body->expires_ms + 999) / 1000 };

    if (!sandbox)
        return err_set(err, ERR_NO_MEMORY, "no memory for a sandbox");
    if (ops_sandbox_get(&ops, sign.sandbox, sandbox, err) < 0 || sign_url(x, &sign, &url, err) < 0)
        return -1;
    audit_note(exchange_caller(x), "url.sign", sign.sandbox, NULL);
    return exchange_reply_json(
        x, 200, json_pack("{s:s, s:o}", "url", url, "expires_at", form_time(sign.expires * 1000)),
        err);
}

int v1_file_sign(struct exchange *x, struct err *err)
{
    struct sign_body body = { .path = NULL };
    json_t *json;
    int r;

    if (exchange_json(x, &json, err) < 0)
        return -1;
    r = form_read(exchange_caller(x), json, &v1_sign_form, &body, err);
    if (r == 0)
        r = check(x, &body, err);
    if (r == 0)
        r = sign(x, &body, err);
    json_decref(json);
    return r;
}
