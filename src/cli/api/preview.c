#include "base/own.h"
#include "base/parse.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_MS  (3600u * 1000)
#define MOST_S      (7u * 24 * 3600)
#define LOCAL_OUTER "http://localhost:8000"

struct preview_values {
    const char *server, *tenant;
    uint64_t expires_ms;
    bool roll;
};

#define AT(field) offsetof(struct preview_values, field)

/* clang-format off */
static const struct option preview_options[] = {
    { 0, "expires", OPTION_DURATION, AT(expires_ms), "TIME", COMPLETE_NONE, "works for 10m, 12h …, at most 7d (1h)" },
    { 0, "server",  OPTION_TEXT,     AT(server),     "URL",  COMPLETE_NONE, "where browsers find the server (" LOCAL_OUTER ")" },
    { 0, "roll",    OPTION_FLAG,     AT(roll),       NULL,   COMPLETE_NONE, "first take back every link there is to it" },
    { 0, "tenant",  OPTION_TEXT,     AT(tenant),     "NAME", COMPLETE_NONE, "of that tenant: for the operator (your own)" },
};

const struct verb preview_verb = {
    .name = "preview",
    .synopsis = "[OPTION…] SANDBOX PORT",
    .summary = "print a link to a web server in a sandbox",
    .details =
        "The link works in a browser, without a key, until it expires.",
    .options = preview_options,
    .option_count = ARRAY_LEN(preview_options),
    .operands = COMPLETE_SANDBOX,
    .run = verb_preview,
};
/* clang-format on */

/* "https://example.com:8443" → what is before the host and what {port}-{id}. is put before. */
static int split_server(const char *server, const char **ret_host, struct err *err)
{
    const char *host = strstr(server, "://");

    if (!host || (strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0) ||
        !host[3] || host[3] == '/' || strpbrk(host + 3, "?#@ "))
        return err_set(err, ERR_USAGE, "--server: http://NAME[:PORT] or https://… is needed");
    *ret_host = host + 3;
    return 0;
}

/* A server elsewhere says its own URL. This host's is asked over a socket, and knows of no address in the request. */
static int print_link(const char *server, const char *id, uint64_t port, json_t *link,
                      struct err *err)
{
    const struct remote *remote;
    const char *host;
    char text[1024], box[64];

    if (server_find(&remote, err) < 0)
        return -1;
    if (!server && remote->kind != REMOTE_LOCAL) {
        printf("%s\n", report_text(text, sizeof text, show_text(link, "url")));
        return 0;
    }
    server = server ? server : LOCAL_OUTER;
    if (split_server(server, &host, err) < 0)
        return -1;
    printf("%.*s%u-%s.%.*s/?cove_token=%s\n", (int) (host - server), server, (unsigned) port,
           report_text(box, sizeof box, id), (int) strcspn(host, "/"), host,
           report_text(text, sizeof text, show_text(link, "token")));
    return 0;
}

static int make_link(const struct preview_values *values, const char *sandbox, uint64_t port,
                     struct err *err)
{
    json_t *box = NULL, *link = NULL, *body;
    const char *host;
    int r;

    if (values->expires_ms < 1000 || values->expires_ms / 1000 > MOST_S)
        return err_set(err, ERR_USAGE, "--expires: 1s to 7d");
    if ((values->server && split_server(values->server, &host, err) < 0) ||
        server_act_for(values->tenant, err) < 0 ||
        server_ask("GET", NULL, &box, err, "/v1/sandboxes/%s", sandbox) < 0)
        return -1;
    body = json_pack("{s:I}", "expires_seconds", (json_int_t) (values->expires_ms / 1000));
    r = values->roll ? server_ask("POST", json_object(), NULL, err, "/v1/sandboxes/%s/preview/roll",
                                  show_text(box, "id"))
                     : 0;
    if (r == 0)
        r = server_ask("POST", json_incref(body), &link, err, "/v1/sandboxes/%s/ports/%u/link",
                       show_text(box, "id"), (unsigned long long) port);
    if (r == 0)
        r = print_link(values->server, show_text(box, "id"), port, link, err);
    json_decref(body);
    json_decref(link);
    json_decref(box);
    return r;
}

int verb_preview(int argc, char **argv)
{
    struct preview_values values = { .expires_ms = DEFAULT_MS };
    struct err err;
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
    if (parse_u64(operands[1], &port, &err) < 0 || port < 1 || port > UINT16_MAX) {
        (void) err_set(&err, ERR_USAGE, "preview: '%.20s' is not a port", operands[1]);
        return report_error(&err);
    }
    return make_link(&values, operands[0], port, &err) < 0 ? report_error(&err) : report_end(0);
}
