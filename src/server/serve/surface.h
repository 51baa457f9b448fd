/* surface.h - a dialect of the API: which requests are its own, their routes, who asks, and how it says no.
 *
 * A surface translates; what it does with sandboxes it does through ops.h. The list of all surfaces is
 * coved/surfaces.c, the one place that knows every dialect. */
#ifndef COVE_SERVER_SERVE_SURFACE_H
#define COVE_SERVER_SERVE_SURFACE_H

#include "server/serve/route.h"

struct surface {
    const char *name;

    /* Whether a request is for this surface by more than its path: a header, the Host. What it finds it keeps with
     * exchange_set_param. NULL: the request is its own if one of its routes has the path. */
    bool (*claims)(struct exchange *x);

    /* Before a route is looked for, on surfaces that claim: header lines for every answer, preflights. 1: answered. */
    int (*greet)(struct exchange *x, struct err *err);

    const struct route *routes;
    size_t route_count;
    bool slashes;            /* a ":name" of its routes may have an encoded slash in it */
    const struct route *all; /* instead of routes: takes every method and path, raw */

    /* Fills in the caller (exchange_set_caller), or says who it is not. NULL: by key, auth.h. */
    int (*identify)(struct exchange *x, struct err *err);

    /* Behind the check of who asks, before the handler: what the parts of the path stand for. NULL: themselves. */
    int (*settle)(struct exchange *x, struct err *err);

    /* Answers an error in its own words. NULL: {"error":{…}}. */
    int (*refuse)(struct exchange *x, const struct err *why);
};

extern const struct surface *const surfaces[];
extern const size_t surface_count;

/* The native one and the tools: the paths of route.h. */
extern const struct surface native_surface;

#endif
