/* uploads.h - the files that tenants sent for builds: <state>/server/build-files/<tenant>+<name>.
 *
 * Callers: server/build, which makes them; upkeep.c, which counts them for the quota of stored bytes. */
#ifndef COVE_SERVER_LIFE_UPLOADS_H
#define COVE_SERVER_LIFE_UPLOADS_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

struct app;

void uploads_folder(struct app *app, char out[PATH_MAX]);
/* Of one tenant (NULL: of all); those older than `before` are removed. Returns the bytes that are left. */
uint64_t uploads_sweep(struct app *app, const char *tenant, time_t before);

#endif
