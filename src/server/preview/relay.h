/* relay.h - one exchange with an HTTP server inside a sandbox: a reverse proxy, and for WebSockets a pipe.
 *
 * The request goes in as it is: method, raw path and query, body as a stream. Headers that belong to a single
 * connection stay here, and so do keys of this server. The answer comes out of a sandbox and counts as hostile: its head is
 * parsed strictly and written again, its body is framed by us. Bytes are passed on as they come, in both directions at once; a
 * slow side holds up the other side and no other connection.
 *
 * Never:   ends an answer well that did not end well: the client's connection is cut instead. */
#ifndef COVE_SERVER_PREVIEW_RELAY_H
#define COVE_SERVER_PREVIEW_RELAY_H

#include "server/serve/exchange.h"

struct relay_ask {
    const char *sandbox;
    uint16_t port;
    struct slice path; /* raw; the query is the request's */
    /* headers of the request that are not for the sandbox; in any case of letters */
    const char *const *drop;
    size_t drop_count;
    const char *host;       /* that the server inside sees; NULL: the client's */
    const char *drop_query; /* a key of the query that is not for the sandbox; NULL: none */
    const char *const *drop_cookies;
    size_t drop_cookie_count;
};

/* Answers, with the header lines that were added to the exchange. The caller's rights were checked. -1 before an answer
 * has begun: ERR_NO_SANDBOX, ERR_NO_PORT, ERR_TIMEOUT (504), ERR_PROTOCOL (502: what came was no answer). */
int relay_exchange(struct exchange *x, const struct relay_ask *ask, struct err *err);

#endif
