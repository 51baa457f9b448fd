/* uploads.h - the files that tenants sent for builds: <state>/server/build-files/<tenant>+<name>.
 *
 * Callers: server/build, which makes them; upkeep.c, which counts them for the quota of stored bytes; the
 * removal of a tenant. */
#ifndef COVE_SERVER_LIFE_UPLOADS_H
#define COVE_SERVER_LIFE_UPLOADS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct app;

struct uploads {
    uint64_t bytes, parts; /* parts: of those that are still being sent */
    size_t count;          /* of both */
};

void uploads_folder(struct app *app, char out[PATH_MAX]);
/* Those of one tenant (NULL: of all). One that was not used for a day is removed. */
struct uploads uploads_sweep(struct app *app, const char *tenant);
/* Before the first request: what a server before this one was still being sent. */
void uploads_drop_parts(struct app *app);
/* Of a tenant that is removed: the next of that name has none of them. */
void uploads_drop(struct app *app, const char *tenant);

#endif
