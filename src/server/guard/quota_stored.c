/* What a tenant stores: bytes on disks and in images, uploads that have not ended, and the number of images. */
#include "server/app/app.h"
#include "server/guard/quota_own.h"

#include <inttypes.h>
#include <string.h>

void quota_set_stored(struct app *app, const char *tenant, uint64_t bytes)
{
    struct quota_tenant *t = quota_enter_counts(app, tenant);

    if (!t)
        return;
    t->stored = bytes;
    quota_leave(app);
}

void quota_add_stored(struct app *app, const char *tenant, uint64_t bytes)
{
    struct quota_tenant *t = quota_enter_counts(app, tenant);

    if (!t)
        return;
    t->stored += bytes;
    quota_leave(app);
}

/* With `count`, what there is room for counts from now on. */
static int store_more(struct app *app, const char *tenant, uint64_t more, bool count,
                      struct err *err)
{
    struct quota_tenant *t = quota_enter(app, tenant, err);
    uint64_t stored, most;
    bool room;

    if (!t)
        return -1;
    stored = t->stored + t->sent;
    most = t->limits.stored_bytes;
    room = most == 0 || (stored < most && more <= most - stored);
    if (room && count)
        t->sent += more;
    quota_leave(app);
    if (room)
        return 0;
    return err_set(err, ERR_TOO_MANY,
                   "quota of stored-bytes: %g MiB are stored, %g MiB more are needed, %g MiB are "
                   "allowed",
                   (double) (stored >> 10) / 1024, (double) (more >> 10) / 1024,
                   (double) (most >> 10) / 1024);
}

int quota_store_more(struct app *app, const char *tenant, uint64_t more, struct err *err)
{
    return store_more(app, tenant, more, false, err);
}

int quota_upload_more(struct app *app, const char *tenant, uint64_t more, struct err *err)
{
    return store_more(app, tenant, more, true, err);
}

void quota_upload_end(struct app *app, const char *tenant, uint64_t counted, uint64_t kept)
{
    struct quota_tenant *t = quota_enter_counts(app, tenant);

    if (!t)
        return;
    t->sent -= counted;
    t->stored += kept;
    quota_leave(app);
}

int quota_image(struct app *app, const char *tenant, bool recorded, struct err *err)
{
    struct quota_tenant *t = quota_enter(app, tenant, err);
    uint64_t count = 0, most;

    if (!t)
        return -1;
    most = t->limits.images;
    quota_leave(app);
    if (most == 0)
        return 0;
    if (store_images(app->store, tenant, &count, err) < 0)
        return -1;
    count -= recorded && count > 0;
    if (count < most)
        return 0;
    return err_set(err, ERR_TOO_MANY,
                   "quota of images: %" PRIu64
                   " snapshots and sandboxes on disk are there, %" PRIu64 " are allowed",
                   count, most);
}

const char *quota_named(const struct err *err)
{
    for (size_t i = 0; i < quota_table_count; i++) {
        const char *at = strstr(err->msg, "quota of ");
        size_t len = strlen(quota_table[i].name);

        if (at && strncmp(at + 9, quota_table[i].name, len) == 0 && at[9 + len] == ':')
            return quota_table[i].name;
    }
    return NULL;
}

int quota_store(struct caller *caller, struct err *err)
{
    struct quota_tenant *t = quota_enter(caller->app, caller->tenant, err);
    uint64_t stored, most;

    if (!t)
        return -1;
    stored = t->stored;
    most = t->limits.stored_bytes;
    quota_leave(caller->app);
    if (most == 0 || stored < most)
        return 0;
    err_set(err, ERR_TOO_MANY, "quota of stored-bytes: %g MiB are stored, %g MiB are allowed",
            (double) (stored >> 10) / 1024, (double) (most >> 10) / 1024);
    return quota_refuse(caller, &caller->app->quota->refused.stored, "stored-bytes", "quota.stored",
                        QUOTA_RETRY_S, err);
}
