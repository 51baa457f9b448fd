#include "server/life/uploads.h"

#include "server/app/app.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "build-files"
#define KEPT_S 86400 /* after the last use */

void uploads_folder(struct app *app, char out[PATH_MAX])
{
    (void) snprintf(out, PATH_MAX, "%s/server/" FOLDER, app_config(app)->state);
}

/* Names are <tenant>+<hash>, and <tenant>+part-… while they are sent, or where they are a build's own. */
static bool is_part(const char *name)
{
    const char *plus = strchr(name, '+');

    return plus && strncmp(plus + 1, UPLOADS_PART, strlen(UPLOADS_PART)) == 0;
}

enum drop { DROP_OLD, DROP_PARTS, DROP_ALL };

static struct uploads sweep(struct app *app, const char *tenant, enum drop drop)
{
    size_t len = tenant ? strlen(tenant) : 0;
    time_t before = time(NULL) - KEPT_S;
    struct uploads all = { .count = 0 };
    char folder[PATH_MAX];
    struct dirent *item;
    struct stat st;
    DIR *dir;

    uploads_folder(app, folder);
    dir = opendir(folder);
    while (dir && (item = readdir(dir))) {
        if (item->d_name[0] == '.' ||
            (tenant && (strncmp(item->d_name, tenant, len) != 0 || item->d_name[len] != '+')) ||
            fstatat(dirfd(dir), item->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (st.st_mtime < before || drop == DROP_ALL ||
            (drop == DROP_PARTS && is_part(item->d_name))) {
            (void) unlinkat(dirfd(dir), item->d_name, 0);
            continue;
        }
        *(is_part(item->d_name) ? &all.parts : &all.bytes) += (uint64_t) st.st_size;
        all.count++;
    }
    if (dir)
        (void) closedir(dir);
    return all;
}

struct uploads uploads_sweep(struct app *app, const char *tenant)
{
    return sweep(app, tenant, DROP_OLD);
}

void uploads_drop_parts(struct app *app)
{
    (void) sweep(app, NULL, DROP_PARTS);
}

void uploads_drop_build(struct app *app, const char *tenant, const char *build)
{
    char folder[PATH_MAX], begin[256];
    struct dirent *item;
    int len = snprintf(begin, sizeof begin, "%s+" UPLOADS_PART "%s-", tenant, build);
    DIR *dir;

    uploads_folder(app, folder);
    dir = opendir(folder);
    while (dir && (item = readdir(dir)))
        if (strncmp(item->d_name, begin, (size_t) len) == 0)
            (void) unlinkat(dirfd(dir), item->d_name, 0);
    if (dir)
        (void) closedir(dir);
}

void uploads_drop(struct app *app, const char *tenant)
{
    (void) sweep(app, tenant, DROP_ALL);
}
