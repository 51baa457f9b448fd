#include "surface/tools/page.h"

#include "base/io.h"
#include "base/own.h"
#include "server/ops/ops_server.h"
#include "server/serve/route.h"
#include "surface/tools/tools.h"
#include "surface/tools/tools_text.h"

#include <stdio.h>
#include <string.h>

/* No scripts and nothing from elsewhere: a page that can be looked at and nothing more. */
#define PAGE_HEAD                                                                                  \
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"                                    \
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>cove</title>"   \
    "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:3rem auto;"             \
    "padding:0 1rem;color:#223}code,pre{font:14px/1.5 ui-monospace,monospace}"                     \
    "pre{background:#f4f5f7;padding:1rem;overflow:auto;border-radius:6px}"                         \
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .8rem .3rem 0;" \
    "border-bottom:1px solid #e3e5ea;vertical-align:top}a{color:#0a58ca}"                          \
    ":root{color-scheme:light dark}@media(prefers-color-scheme:dark){body{color:#dde;"             \
    "background:#16181d}pre{background:#23262d}td,th{border-color:#333843}a{color:#7ab0ff}}"       \
    "</style>"

static bool wants_html(struct exchange *x)
{
    const char *accept = exchange_header(x, "Accept");

    return accept && strstr(accept, "text/html");
}

static int reply_page(struct exchange *x, int status, const char *html, struct err *err)
{
    if (exchange_add_header(x, "Content-Security-Policy",
                            "default-src 'none'; style-src 'unsafe-inline'", err) < 0 ||
        exchange_add_header(x, "Vary", "Accept", err) < 0)
        return -1;
    return exchange_reply_text(x, status, "text/html; charset=utf-8", html, err);
}

/* Alive, and whether what it stands on is. No key: load balancers ask this. */
int page_health(struct exchange *x, struct err *err)
{
    struct ops_health health;
    bool healthy;
    json_t *reply;

    ops_server_health(exchange_app(x), &health);
    healthy = health.keeper && health.store;
    reply = json_pack("{s:s, s:b, s:b, s:s, s:I}", "status", healthy ? "healthy" : "unhealthy",
                      "keeper", health.keeper, "store", health.store, "version", COVE_VERSION,
                      "uptime_ms", (json_int_t) health.uptime_ms);
    /* Without it networks wait, and all else continues: the server is healthy. */
    if (health.keeper) /* full: what runs continues, and nothing is made */
        (void) json_object_set_new(reply, "disk", json_boolean(!health.disk_full));
    if (health.has_gateway)
        (void) json_object_set_new(reply, "gateway", json_boolean(health.gateway));
    return exchange_reply_json(x, healthy ? 200 : 503, reply, err);
}

static const char root_page[] = PAGE_HEAD
    "<h1>cove</h1><p>Runs code in isolated sandboxes. This server is up.</p>"
    "<pre>curl -X POST http://localhost:8000/bash \\\n"
    "  -H \"Content-Type: application/json\" \\\n"
    "  -d '{\"command\": \"echo Hello\"}'</pre>"
    "<p><a href=\"/docs\">All routes and tools</a> &middot; <a href=\"/health\">health</a> "
    "&middot; "
    "<a href=\"/openapi.yaml\">openapi.yaml</a> &middot; <a href=\"/metrics\">metrics</a></p>";

int page_root(struct exchange *x, struct err *err)
{
    struct ops_health health;

    if (wants_html(x))
        return reply_page(x, 200, root_page, err);
    ops_server_health(exchange_app(x), &health);
    return exchange_reply_json(
        x, 200,
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "service", "cove", "status",
                  health.keeper ? "running" : "degraded", "version", COVE_VERSION, "uptime_ms",
                  (json_int_t) health.uptime_ms, "docs", "/docs", "openapi", "/openapi.yaml"),
        err);
}

static int add_routes(struct text *out)
{
    static const char *const scopes[] = { "anyone", "read", "run", "admin" };

    if (text_addf(out, "<h2>Routes</h2><table><tr><th>Method<th>Path<th>Scope") < 0)
        return -1;
    for (size_t i = 0; i < route_count; i++)
        if (text_addf(out, "<tr><td>%s<td><code>%s</code><td>%s",
                      routes[i].method == METHOD_ANY ? "any" : method_name(routes[i].method),
                      routes[i].path, scopes[routes[i].scope]) < 0)
            return -1;
    return text_addf(out, "</table>");
}

static int add_tools(struct text *out)
{
    char arguments[512];

    if (text_addf(out,
                  "<h2>Tools</h2><p>For <code>POST /execute</code>: "
                  "<code>{\"tool_name\": \"Bash\", \"arguments\": {…}, \"sandbox_id\": …}</code>. "
                  "Without a sandbox_id: your default sandbox.</p><table>"
                  "<tr><th>Tool<th>What it does<th>Arguments") < 0)
        return -1;
    for (size_t i = 0; i < tools_count; i++) {
        tool_arguments(&tools_table[i], arguments, sizeof arguments);
        if (text_addf(out, "<tr><td>%s<td>%s<td><code>%s</code>", tools_table[i].name,
                      tools_table[i].help, arguments) < 0)
            return -1;
    }
    return text_addf(out, "</table>");
}

int page_docs(struct exchange *x, struct err *err)
{
    struct text out = { 0 };
    int r;

    if (text_addf(&out,
                  "%s<h1>cove: the API</h1><p>Described in full by "
                  "<a href=\"/openapi.yaml\">openapi.yaml</a>. Keys go into "
                  "<code>X-API-Key</code>; loopback needs none.</p>",
                  PAGE_HEAD) < 0 ||
        add_tools(&out) < 0 || add_routes(&out) < 0) {
        free(out.data);
        return err_set(err, ERR_NO_MEMORY, "no memory for the page");
    }
    r = reply_page(x, 200, out.data, err);
    free(out.data);
    return r;
}

bool page_wanted(struct exchange *x)
{
    struct slice mode = head_get(exchange_head(x), "Sec-Fetch-Mode");

    return wants_html(x) && (!mode.at || slice_is(mode, "navigate"));
}

/* Backquotes come in pairs: the texts are ours, what was put into them has none left. */
static int add_escaped(struct text *out, const char *text)
{
    bool code = false;

    for (const char *c = text; *c; c++) {
        int r;

        if (*c == '`') {
            code = !code;
            r = text_addf(out, code ? "<code>" : "</code>");
        } else if (strchr("<>&\"'", *c)) {
            r = text_addf(out, "&#%d;", *c);
        } else {
            r = text_addf(out, "%c", *c);
        }
        if (r < 0)
            return -1;
    }
    return code ? text_addf(out, "</code>") : 0;
}

int page_trouble(struct exchange *x, int status, const char *title, const char *what,
                 const char *todo, struct err *err)
{
    struct text out = { 0 };
    int r;

    if (text_addf(&out, "%s<h1>%s</h1><p>", PAGE_HEAD, title) < 0 || add_escaped(&out, what) < 0 ||
        text_addf(&out, "</p><p>") < 0 || add_escaped(&out, todo) < 0 ||
        text_addf(&out, "</p>") < 0) {
        free(out.data);
        return err_set(err, ERR_NO_MEMORY, "no memory for the page");
    }
    r = exchange_add_header(x, "Cache-Control", "no-store", err) < 0
            ? -1
            : reply_page(x, status, out.data, err);
    free(out.data);
    return r;
}
