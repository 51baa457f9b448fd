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

#define UPLOADS_PART                                                                               \
    "part-" /* what a name begins with, behind <tenant>+, of a file that is in the making or a build's own */

struct uploads {
    uint64_t bytes, parts; /* parts: of those that are still being sent, or go with their build */
    size_t count;          /* of both */
};

void uploads_folder(struct app *app, char out[PATH_MAX]);
/* Those of one tenant (NULL: of all). One that was not used for a day is removed. */
struct uploads uploads_sweep(struct app *app, const char *tenant);
/* Before the first request: what a server before this one was still being sent, and what its builds had. */
void uploads_drop_parts(struct app *app);
/* What a build that has ended took out of its stages. */
void uploads_drop_build(struct app *app, const char *tenant, const char *build);
/* Of a tenant that is removed: the next of that name has none of them. */
void uploads_drop(struct app *app, const char *tenant);

#endif
