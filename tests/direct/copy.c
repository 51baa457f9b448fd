#include "direct/copy.h"

#include "base/io.h"
#include "cli/report.h"

#include <inttypes.h>
#include <string.h>

#define PROGRESS_EVERY_MS 200

bool copy_name_ok(const char *name)
{
    return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
           strlen(name) <= 255;
}

int copy_join(char out[AGENT_PATH_MAX], const char *dir, const char *name, struct err *err)
{
    size_t len = strlen(dir);
    bool slash = len > 0 && dir[len - 1] == '/';
    int n = snprintf(out, AGENT_PATH_MAX, "%s%s%s", dir, slash ? "" : "/", name);

    if (n < 0 || (size_t) n >= AGENT_PATH_MAX)
        return err_set(err, ERR_TOO_BIG, "a path is longer than %u bytes", AGENT_PATH_MAX - 1);
    return 0;
}

void copy_progress(struct copy *copy, uint64_t bytes, uint64_t files)
{
    uint64_t now;
    char text[32];

    copy->bytes += bytes;
    copy->files += files;
    if (!copy->shows)
        return;
    now = io_now_ms();
    if (!copy->shown_ms)
        copy->shown_ms = now;
    if (now - copy->shown_ms < PROGRESS_EVERY_MS)
        return;
    copy->shown_ms = now;
    copy->has_shown = true;
    (void) fprintf(stderr, "\rcove: %" PRIu64 " files, %s\033[K", copy->files,
                   report_size(text, sizeof text, copy->bytes));
}

void copy_progress_end(struct copy *copy)
{
    if (copy->has_shown)
        (void) fputs("\r\033[K", stderr);
    copy->has_shown = false;
}

void copy_skip(struct copy *copy, const char *path, const char *what)
{
    char text[1024];

    copy_progress_end(copy);
    report_note("left out %s: %s", report_text(text, sizeof text, path), what);
    copy->skipped++;
}
