/* route.h - the whole surface in one table: method, path, who may, how much, and who does it.
 *
 * A path's segments are literal or ":name", which takes one whole segment; "*" at the end takes the rest, raw:
 * with its slash, "/" where there is none, and whatever is in it. It is the param "*". */
#ifndef COVE_SERVER_SERVE_ROUTE_H
#define COVE_SERVER_SERVE_ROUTE_H

#include "server/serve/exchange.h"

#define KiB      1024ull
#define MiB      (1024ull * KiB)
#define BODY_ANY UINT64_MAX /* streamed, never held */

#define METHOD_ANY METHOD_COUNT /* of a route: every method, known or not */

typedef int route_handler(struct exchange *x, struct err *err);

struct form;

struct route {
    enum method method;
    const char *path;
    enum scope scope;
    uint64_t body_limit;
    route_handler *handler;
    /* of a body that is a JSON object; NULL: it is something else, or there is none */
    const struct form *form;
};

extern const struct route routes[];
extern const size_t route_count;

#endif
