#include "server/life/uploads.h"

#include "server/app/app.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "build-files"

void uploads_folder(struct app *app, char out[PATH_MAX])
{
    (void) snprintf(out, PATH_MAX, "%s/server/" FOLDER, app_config(app)->state);
}

uint64_t uploads_sweep(struct app *app, const char *tenant, time_t before)
{
    size_t len = tenant ? strlen(tenant) : 0;
    char folder[PATH_MAX];
    uint64_t bytes = 0;
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
        if (st.st_mtime < before)
            (void) unlinkat(dirfd(dir), item->d_name, 0);
        else
            bytes += (uint64_t) st.st_size;
    }
    if (dir)
        (void) closedir(dir);
    return bytes;
}
