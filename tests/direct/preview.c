/* Links are made of a secret of the store: no server has to run for it, and whoever may read the store may make them. */
#include "base/own.h"
#include "base/parse.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/substore.h"
#include "cli/subverbs.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_MS (3600u * 1000)
#define MOST_S     (7u * 24 * 3600)

struct preview_values {
    const char *server;
    uint64_t expires_ms;
    bool roll;
};

#define AT(field) offsetof(struct preview_values, field)

/* clang-format off */
static const struct option preview_options[] = {
    { 0, "expires", OPTION_DURATION, AT(expires_ms), "TIME", COMPLETE_NONE, "works for 10m, 12h …, at most 7d (1h)" },
    { 0, "server",  OPTION_TEXT,     AT(server),     "URL",  COMPLETE_NONE, "of the server (http://localhost:8000)" },
    { 0, "roll",    OPTION_FLAG,     AT(roll),       NULL,   COMPLETE_NONE, "first take back every link there is to it" },
};

const struct verb preview_verb = {
    .name = "preview",
    .synopsis = "[OPTION…] SANDBOX PORT",
    .summary = "print a link to a web server in a sandbox",
    .details =
        "The link works in a browser, without a key, until it expires.\n"
        "SANDBOX is one that the server made; of the tenant 'local', also its name.",
    .options = preview_options,
    .option_count = ARRAY_LEN(preview_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_preview,
};
/* clang-format on */

static int find(struct store *store, const char *name, struct store_sandbox *ret, struct err *err)
{
    if (store_sandbox_get(store, NULL, name, ret, err) == 0)
        return 0;
    if (err->kind == ERR_NO_SANDBOX &&
        store_sandbox_find_name(store, STORE_LOCAL_TENANT, name, ret, err) == 0)
        return 0;
    return err->kind == ERR_NO_SANDBOX
               ? err_set(err, ERR_NO_SANDBOX, "the server has no sandbox '%.40s'", name)
               : -1;
}

/* "https://example.com:8443" → "https://", and what {port}-{id}. is put before. */
static int split_server(const char *server, const char **ret_host, struct err *err)
{
    const char *host = strstr(server, "://");

    if (!host || (strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0) ||
        !host[3] || host[3] == '/' || strpbrk(host + 3, "?#@ "))
        return err_set(err, ERR_USAGE, "--server: http://NAME[:PORT] or https://… is needed");
    *ret_host = host + 3;
    return 0;
}

static int print_link(struct store *store, const struct preview_values *values, const char *name,
                      uint16_t port, struct err *err)
{
    struct store_link link;
    char token[STORE_LINK_MAX], detail[80];
    struct store_sandbox sandbox;
    const char *host = values->server;

    if (values->expires_ms < 1000 || values->expires_ms / 1000 > MOST_S)
        return err_set(err, ERR_USAGE, "--expires: 1s to 7d");
    if (split_server(values->server, &host, err) < 0 || find(store, name, &sandbox, err) < 0 ||
        (values->roll && store_preview_roll(store, sandbox.id, err) < 0) ||
        store_link_init(store, sandbox.id, port, &link, err) < 0)
        return -1;
    link.expires = (store_now_ms() + values->expires_ms + 999) / 1000;
    (void) snprintf(detail, sizeof detail, "%s port %u", sandbox.id, port);
    if (store_link_make(store, &link, token, err) < 0 ||
        (values->roll &&
         subverb_audit(store, sandbox.tenant, "preview.roll", sandbox.id, err) < 0) ||
        subverb_audit(store, sandbox.tenant, "preview.link", detail, err) < 0)
        return -1;
    printf("%.*s%u-%s.%.*s/?cove_token=%s\n", (int) (host - values->server), values->server, port,
           sandbox.id, (int) strcspn(host, "/"), host, token);
    return 0;
}

int verb_preview(int argc, char **argv)
{
    struct preview_values values = { .server = "http://localhost:8000", .expires_ms = DEFAULT_MS };
    struct store *store = NULL;
    struct err err = { 0 };
    char **operands;
    int count, code;
    uint64_t port;

    code = common_parse(&preview_verb, argc, argv, &values, &operands, &count);
    if (code >= 0)
        return code;
    if (count < 2)
        return common_missing(&preview_verb, count == 0 ? "the sandbox" : "the port");
    if (count > 2)
        return common_excess(&preview_verb, operands[2]);
    if (parse_u64(operands[1], &port, &err) < 0 || port < 1 || port > UINT16_MAX)
        (void) err_set(&err, ERR_USAGE, "preview: '%.20s' is not a port", operands[1]);
    else if (subverb_store(&store, &err) == 0 &&
             print_link(store, &values, operands[0], (uint16_t) port, &err) == 0)
        code = report_end(0);
    if (code < 0)
        code = report_error(&err);
    store_close(store);
    return code;
}
