/* Why a port of a sandbox cannot be seen. People get a page that says what they can do; programs get JSON, of which SDKs
 * know the 502s. */
#include "base/own.h"
#include "server/serve/port_host.h"
#include "surface/e2b/e2b.h"
#include "surface/tools/page.h"

#include <stdio.h>

enum trouble { BAD_NAME, GONE, PAUSED, CLOSED, PRIVATE, CROWDED, SILENT, GARBLED, OTHER };

/* %s: what was refused, in one sentence. %u: the port. The texts are plain, with `code` in them. */
static const struct {
    const char *title, *what, *todo;
} pages[] = {
    [BAD_NAME] = { "No such address", "This address names no port of a sandbox.",
                   "It has to be `{port}-{sandbox id}` before the server's name, with a port from "
                   "1 to 65535." },
    [GONE] = { "No such sandbox",
               "The sandbox that this address names is not running: it was ended, or it never was.",
               "Start another sandbox, or ask the sender of this address for a new one." },
    [PAUSED] = { "The sandbox is paused",
                 "The sandbox that this address names sleeps, and may not be woken by a visit.",
                 "Its owner can resume it (`POST /v1/sandboxes/{id}/resume`), or let visits wake "
                 "it "
                 "(`auto_resume` of its preview, `autoResume` at the create)." },
    [CLOSED] = { "Nothing listens there",
                 "The sandbox runs, and nothing in it listens on port `%u`.",
                 "If a server was just started, give it a moment and reload. It has to listen on "
                 "`0.0.0.0`, `::` or `localhost`." },
    [PRIVATE] = { "This port is private",
                  "The server in this sandbox is not open to everybody: %s.",
                  "Ask its owner for a link (`cove preview`). Programs send the traffic token as "
                  "`e2b-traffic-access-token`, or a key of the owner as `X-API-Key`." },
    [CROWDED] = { "Too many at once", "This sandbox is asked too much at the same time: %s.",
                  "Close other windows that show it, wait a moment, and reload." },
    [SILENT] = { "The server does not answer",
                 "Something listens on port `%u`, took the request, and did not answer in time.",
                 "Look at what the server in the sandbox says, and reload." },
    [GARBLED] = { "The answer makes no sense",
                  "What listens on port `%u` answered, and not with HTTP that could be passed on.",
                  "Look whether it is a web server at all, and whether it wants HTTPS." },
    [OTHER] = { "That did not work", "%s.", "Reload, or try again later." },
};

static enum trouble trouble_of(struct exchange *x, const struct err *why, int status, bool named)
{
    if (status == 400 && !named)
        return BAD_NAME;
    if (status == 403)
        return PRIVATE;
    switch ((int) why->kind) {
    case ERR_NO_SANDBOX:
        return exchange_param(x, "paused")[0] ? PAUSED : GONE;
    case ERR_NO_PORT:
        return CLOSED;
    case ERR_TOO_MANY:
        return CROWDED;
    case ERR_TIMEOUT:
        return SILENT;
    case ERR_PROTOCOL:
        return GARBLED;
    default:
        return OTHER;
    }
}

static int show(struct exchange *x, enum trouble trouble, int status, uint16_t port,
                const struct err *why)
{
    static const char *const by_port = "%u";
    char what[ERR_MSG_MAX + 200], said[ERR_MSG_MAX];
    const char *form = pages[trouble].what, *at = strchr(form, '%');
    struct err ignored;

    (void) snprintf(said, sizeof said, "%s", why->msg);
    for (char *c = said; *c; c++)
        if (*c == '`')
            *c = '\'';
    if (!at)
        (void) snprintf(what, sizeof what, "%s", form);
    else if (strncmp(at, by_port, 2) == 0)
        (void) snprintf(what, sizeof what, "%.*s%u%s", (int) (at - form), form, port, at + 2);
    else
        (void) snprintf(what, sizeof what, "%.*s%s%s", (int) (at - form), form, said, at + 2);
    return page_trouble(x, status, pages[trouble].title, what, pages[trouble].todo, &ignored);
}

static int tell(struct exchange *x, enum trouble trouble, uint16_t port, const struct err *why)
{
    const char *sandbox = exchange_param(x, "sandbox");
    struct err ignored;

    switch (trouble) {
    case BAD_NAME:
        return exchange_reply_text(x, 400, "text/plain; charset=utf-8", why->msg, &ignored);
    case PAUSED:
    case GONE:
        return e2b_refuse_gone(x, sandbox, 0);
    case CLOSED:
        return e2b_refuse_gone(x, sandbox, port);
    case PRIVATE:
        return exchange_reply_json(
            x, 403,
            json_pack("{s:s, s:s, s:i}", "sandboxId", sandbox, "message", why->msg, "code", 403),
            &ignored);
    case CROWDED:
    case SILENT:
    case GARBLED:
    case OTHER:
        break;
    }
    return e2b_refuse(x, why);
}

int e2b_ports_refuse(struct exchange *x, const struct err *why)
{
    int status = exchange_error_status(x, why);
    enum trouble trouble;
    uint16_t port = 0;
    bool named =
        port_parse(slice_of(exchange_param(x, "port")), &port) && exchange_param(x, "sandbox")[0];

    trouble = trouble_of(x, why, status, named);
    return page_wanted(x) ? show(x, trouble, status, port, why) : tell(x, trouble, port, why);
}
