/* Tools that are about sandboxes: create_sandbox, list_sandboxes, delete_sandbox, preview_url. */
#include "surface/mcp/mcp.h"

#include "base/own.h"
#include "server/guard/keys.h"
#include "server/ops/ops.h"
#include "server/preview/preview.h"
#include "surface/tools/tools_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MOST 100

/* The text is freed here. */
static int give(struct text *text, json_t **ret, struct err *err)
{
    *ret = text->data ? mcp_content_text(text->data, false) : NULL;
    free(text->data);
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the answer");
}

/* ---- create_sandbox ---- */

static int create(struct exchange *x, json_t *arguments, json_t **ret, struct err *err)
{
    auto_free struct tools_config *config = calloc(1, sizeof *config);
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_sandbox box;
    struct text said = { 0 };
    bool as_default = false;

    if (!config)
        return err_set(err, ERR_NO_MEMORY, "no memory for the sandbox");
    if (tools_config_read(x, arguments, config, &as_default, err) < 0 ||
        session_make(&ops, config, as_default, &box, err) < 0)
        return -1;
    (void) text_addf(&said,
                     "sandbox %s of template %s: %.15g processors, %" PRIu64 " MiB memory, %" PRIu64
                     " MiB disk, %s\n%s",
                     box.id, box.template, (double) box.limits.cpu_milli / 1000,
                     box.limits.memory_bytes >> 20, box.limits.disk_bytes >> 20,
                     config->network ? "with a network" : "without a network",
                     as_default ? "Calls without a sandbox_id use it from now on."
                                : "Name it as sandbox_id in calls that are meant for it.");
    return give(&said, ret, err);
}

/* ---- list_sandboxes ---- */

static const struct form no_form = { .count = 0 };

static int list(struct exchange *x, json_t *arguments, json_t **ret, struct err *err)
{
    struct ops_filter filter = { .limit = LIST_MOST };
    struct ops ops = ops_of(exchange_caller(x));
    struct ops_page page;
    struct text said = { 0 };
    struct ops_sandbox *box;

    if (form_read(ops.caller, arguments, &no_form, NULL, err) < 0 ||
        ops_sandbox_list(&ops, &filter, &page, err) < 0)
        return -1;
    (void) text_addf(
        &said, "%s",
        page.count == 0 ? "There are no sandboxes. A call without a sandbox_id makes one." : "");
    for (size_t i = 0; i < page.count; i++) {
        box = &page.list[i];
        (void) text_addf(&said, "%s %s, template %s%s%s%s%s\n", box->id,
                         keeper_life_name(box->life), box->template,
                         box->isolation ? ", isolation " : "", box->isolation ? box->isolation : "",
                         box->name[0] ? ", named " : "", box->name);
    }
    if (page.next)
        (void) text_addf(&said, "… and more, older ones\n");
    free(page.list);
    return give(&said, ret, err);
}

/* ---- delete_sandbox ---- */

struct which {
    const char *sandbox;
    uint64_t port, seconds;
};

/* clang-format off */
static const struct form_field remove_rows[] = {
    { "sandbox_id", FORM_TEXT, .at = offsetof(struct which, sandbox), .most = 64, .needed = true,
      .help = "the sandbox to end, with all its files" },
};
/* clang-format on */
static const struct form remove_form = FORM_OF(remove_rows);

static int remove_box(struct exchange *x, json_t *arguments, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct session session = { 0 };
    struct which which = { 0 };
    struct text said = { 0 };

    if (form_read(ops.caller, arguments, &remove_form, &which, err) < 0 ||
        ops_sandbox_resolve(&ops, which.sandbox, session.sandbox, err) < 0 ||
        ops_sandbox_kill(&ops, session.sandbox, err) < 0)
        return -1;
    session_forget(&ops, &session);
    (void) text_addf(&said, "sandbox %s ended", session.sandbox);
    return give(&said, ret, err);
}

/* ---- preview_url ---- */

/* clang-format off */
static const struct form_field preview_rows[] = {
    { "port", FORM_COUNT, .at = offsetof(struct which, port), .least = 1, .most = 65535, .needed = true,
      .help = "port that a server in the sandbox listens on" },
    { "sandbox_id", FORM_CONTENT, .at = offsetof(struct which, sandbox), .most = 64,
      .help = "the sandbox (default: your own)" },
    { "expires_seconds", FORM_COUNT, .at = offsetof(struct which, seconds), .least = 1, .most = OPS_LINK_SECONDS_MOST,
      .help = "how long the address can be used", .fallback = "3600" },
};
/* clang-format on */
static const struct form link_form = FORM_OF(preview_rows);

static int preview(struct exchange *x, json_t *arguments, json_t **ret, struct err *err)
{
    struct ops ops = ops_of(exchange_caller(x));
    struct which which = { 0 };
    struct session session;
    struct text said = { 0 };
    char token[STORE_LINK_MAX];
    auto_free char *url = NULL;
    uint64_t expires;

    if (form_read(ops.caller, arguments, &link_form, &which, err) < 0 ||
        session_find(&ops, which.sandbox, &session, err) < 0 ||
        ops_preview_link(&ops, session.sandbox, (uint16_t) which.port, which.seconds, token,
                         sizeof token, &expires, err) < 0 ||
        preview_url(x, session.sandbox, (uint16_t) which.port, token, &url, err) < 0)
        return -1;
    (void) text_addf(&said, "%s\nAnyone with this address can use it for %" PRIu64 " seconds.", url,
                     which.seconds);
    return give(&said, ret, err);
}

/* clang-format off */
const struct mcp_own mcp_owns[] = {
    { "create_sandbox", "Create a sandbox",
      "Makes another sandbox: with other limits, another template, or a network. Not needed for ordinary work: every tool makes a "
      "sandbox by itself.", TOOL_RUNS, false, false, create, &tools_config_form },
    { "list_sandboxes", "List sandboxes", "Lists your sandboxes, newest first.", TOOL_READS, false, false, list, &no_form },
    { "delete_sandbox", "Delete a sandbox", "Ends a sandbox and removes its files.", TOOL_WRITES, true, false, remove_box, &remove_form },
    { "preview_url", "Preview a port",
      "Gives an address by which people can open a server that runs in the sandbox, such as a web application.",
      TOOL_RUNS, false, true, preview, &link_form },
};
/* clang-format on */
const size_t mcp_own_count = ARRAY_LEN(mcp_owns);
