/* Volumes, as their tenant asks for them. The store has names and owners, the keeper the images and who mounts them.
 *
 * A new volume is in the store before it is at the keeper; an old one stays in the store until the keeper has removed it. So
 * a crash between the two leaves a name without an image, which can be removed, and never an image without a name. */
#include "server/form/form.h"
#include "server/guard/audit.h"
#include "server/ops/ops_own.h"

#include "base/own.h"
#include "client/volume.h"

#include <stdlib.h>
#include <string.h>

static int note(struct ops *ops, const char *action, const char *name, struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.detail = name;
    return audit_durable(ops->caller, action, "", &facts, err);
}

static void show(const struct store_volume *record, const struct volume_info *kept,
                 struct ops_volume *ret)
{
    *ret = (struct ops_volume){ .bytes = record->bytes,
                                .inodes = record->inodes,
                                .created_ms = record->created_ms };
    memcpy(ret->id, record->id, sizeof ret->id);
    memcpy(ret->name, record->name, sizeof ret->name);
    (void) snprintf(ret->tenant, sizeof ret->tenant, "%s", record->tenant);
    if (!kept)
        return;
    ret->stored = kept->stored;
    ret->readers = kept->readers;
    ret->writers = kept->writers;
}

/* ---- making and removing ---- */

static int fill(struct ops *ops, const char *name, uint64_t bytes, uint64_t inodes,
                struct store_volume *ret, struct err *err)
{
    *ret = (struct store_volume){ .bytes = volume_round(bytes),
                                  .inodes = inodes ? inodes : volume_inodes_default(bytes),
                                  .created_ms = store_now_ms() };
    if (!name_ok(name)) {
        err_set(err, ERR_INVALID, "name: 1 to 63 of a-z, 0-9, '-', '_', '.'");
        return caller_blame(ops->caller, "name", NULL, NULL);
    }
    if (volume_size_check(ret->bytes, ret->inodes, err) < 0)
        return caller_blame(ops->caller, strncmp(err->msg, "inodes", 6) == 0 ? "inodes" : "size",
                            NULL, NULL);
    (void) snprintf(ret->name, sizeof ret->name, "%s", name);
    (void) snprintf(ret->tenant, sizeof ret->tenant, "%s", ops->caller->tenant);
    return volume_new_id(ret->id, err);
}

static void blame(struct ops *ops, const struct err *err)
{
    if (err->kind == ERR_EXISTS)
        (void) caller_blame(ops->caller, "name", NULL, NULL);
    if (err->kind == ERR_TOO_MANY)
        (void) caller_blame(ops->caller, NULL, "stored-bytes", "quota");
    if (err->kind == ERR_LIMIT_HOST || err->kind == ERR_DISK_FULL)
        (void) caller_blame(ops->caller, "size", NULL, NULL);
}

int ops_volume_create(struct ops *ops, const char *name, uint64_t bytes, uint64_t inodes,
                      struct ops_volume *ret, struct err *err)
{
    struct store_volume record;
    struct link link;
    int r;

    if (fill(ops, name, bytes, inodes, &record, err) < 0)
        return -1;
    r = store_volume_add(ops->app->store, &record, err);
    if (r == 0) {
        r = app_link_take(ops->app, &link, err);
        if (r == 0) {
            r = volume_make(&link, record.id, record.bytes, record.inodes, err);
            ops_box_close(ops, &link, r, err);
        }
        if (r < 0)
            (void) store_volume_remove(ops->app->store, record.id, &(struct err){ 0 });
    }
    if (r < 0) {
        blame(ops, err);
        ops_audit(ops, "volume.create", "", err);
        return -1;
    }
    show(&record, NULL, ret);
    return note(ops, "volume.create", record.name, err);
}

static int refuse_user(void *arg, const struct store_volume_use *use, struct err *err)
{
    struct ops *ops = arg;
    struct store_snapshot snapshot;
    struct err ignored;
    bool saved = store_snapshot_get(ops->app->store, NULL, use->sandbox, &snapshot, &ignored) == 0;

    return err_set(err, ERR_VOLUME_BUSY, "volume '%s' is in use by %s '%s'", use->name,
                   saved ? "snapshot" : "sandbox", use->sandbox);
}

int ops_volume_remove(struct ops *ops, const char *name, struct err *err)
{
    struct store_volume record;
    struct link link;
    int r;

    if (store_volume_get(ops->app->store, ops->caller->tenant, name, &record, err) < 0)
        return -1;
    /* Snapshots have volumes, too, of which the keeper knows nothing. */
    r = store_volume_users(ops->app->store, record.id, refuse_user, ops, err);
    if (r == 0 && (r = app_link_take(ops->app, &link, err)) == 0) {
        r = volume_drop(&link, record.id, err);
        if (r < 0 && err->kind == ERR_NO_VOLUME)
            r = 0; /* only its name was left */
        ops_box_close(ops, &link, r, err);
    }
    if (r < 0) {
        ops_audit(ops, "volume.remove", "", err);
        return -1;
    }
    return store_volume_remove(ops->app->store, record.id, err) < 0
               ? -1
               : note(ops, "volume.remove", record.name, err);
}

/* ---- looking ---- */

struct listing {
    struct ops_volume *list;
    size_t count, room;
};

static int add_volume(void *arg, const struct store_volume *record, struct err *err)
{
    struct listing *l = arg;

    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 16;
        void *more = realloc(l->list, room * sizeof *l->list);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for the list");
        l->list = more;
        l->room = room;
    }
    show(record, NULL, &l->list[l->count++]);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct volume_info *) a)->id, ((const struct volume_info *) b)->id);
}

/* One question to the keeper for all of them. */
static int look(struct ops *ops, struct listing *l, struct err *err)
{
    auto_free struct volume_info *kept = NULL;
    size_t count = 0;
    struct link link;
    int r;

    if (app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = volume_list(&link, NULL, &kept, &count, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0)
        return -1;
    qsort(kept, count, sizeof *kept, by_id);
    for (size_t i = 0; i < l->count; i++) {
        struct volume_info key = { 0 };
        const struct volume_info *found;

        memcpy(key.id, l->list[i].id, sizeof key.id);
        found = count ? bsearch(&key, kept, count, sizeof *kept, by_id) : NULL;
        if (!found)
            continue;
        l->list[i].stored = found->stored;
        l->list[i].readers = found->readers;
        l->list[i].writers = found->writers;
    }
    return 0;
}

int ops_volume_list(struct ops *ops, struct ops_volume **ret, size_t *ret_count, struct err *err)
{
    struct listing l = { 0 };

    if (store_volume_list(ops->app->store, ops->caller->tenant, add_volume, &l, err) < 0 ||
        (l.count > 0 && look(ops, &l, err) < 0)) {
        free(l.list);
        return -1;
    }
    *ret = l.list;
    *ret_count = l.count;
    return 0;
}

int ops_volume_get(struct ops *ops, const char *name, struct ops_volume *ret,
                   struct volume_user **ret_users, size_t *ret_count, struct err *err)
{
    auto_free struct volume_info *kept = NULL;
    struct volume_user *users = NULL;
    struct store_volume record;
    size_t count = 0;
    struct link link;
    int r;

    if (store_volume_get(ops->app->store, ops->caller->tenant, name, &record, err) < 0 ||
        app_link_take(ops->app, &link, err) < 0)
        return -1;
    r = volume_list(&link, record.id, &kept, &count, err);
    if (r == 0)
        r = volume_users(&link, record.id, &users, ret_count, err);
    ops_box_close(ops, &link, r, err);
    if (r < 0)
        return -1;
    show(&record, count == 1 ? kept : NULL, ret);
    *ret_users = users;
    return 0;
}

/* ---- in sandboxes ---- */

int ops_volumes_resolve(struct ops *ops, const struct ops_create *create,
                        struct volume_use uses[VOLUMES_MAX],
                        struct store_volume_use records[VOLUMES_MAX], struct err *err)
{
    memset(uses, 0, VOLUMES_MAX * sizeof uses[0]);
    memset(records, 0, VOLUMES_MAX * sizeof records[0]);
    for (size_t i = 0; i < create->volume_count; i++) {
        const struct ops_mount *mount = &create->volumes[i];
        struct store_volume volume;

        if (store_volume_get(ops->app->store, ops->caller->tenant, mount->name, &volume, err) < 0)
            return caller_blame(ops->caller, "volumes", NULL, NULL);
        /* Not the array: what is behind the end of its text would go along. */
        (void) snprintf(uses[i].volume, sizeof uses[i].volume, "%s", volume.id);
        (void) snprintf(uses[i].path, sizeof uses[i].path, "%s", mount->path);
        uses[i].flags = mount->read_only ? VOLUME_READ_ONLY : 0;
        memcpy(records[i].volume, uses[i].volume, sizeof uses[i].volume);
        memcpy(records[i].path, uses[i].path, sizeof records[i].path);
        records[i].read_only = mount->read_only;
    }
    if (volume_uses_check(uses, err) < 0)
        return caller_blame(ops->caller, "volumes", NULL, NULL);
    return 0;
}

json_t *ops_volumes_json(const struct ops_mount *mounts, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        (void) json_array_append_new(list,
                                     json_pack("{s:s, s:s, s:b}", "name", mounts[i].name, "path",
                                               mounts[i].path, "read_only", mounts[i].read_only));
    return list;
}

static int add_use(void *arg, const struct store_volume_use *use, struct err *err)
{
    struct ops_uses *uses = arg;

    (void) err;
    if (uses->count < VOLUMES_MAX)
        uses->list[uses->count++] = *use;
    return 0;
}

int ops_volumes_of(struct ops *ops, const char *id, struct ops_uses *ret, struct err *err)
{
    ret->count = 0;
    return store_volume_uses_of(ops->app->store, id, add_use, ret, err);
}

static int add_mount(void *arg, const struct store_volume_use *use, struct err *err)
{
    struct ops_sandbox *s = arg;
    struct ops_mount *mount = &s->volumes[s->volume_count];

    (void) err;
    if (s->volume_count == VOLUMES_MAX)
        return 0;
    memcpy(mount->name, use->name, sizeof mount->name);
    memcpy(mount->path, use->path, sizeof mount->path);
    mount->read_only = use->read_only;
    s->volume_count++;
    return 0;
}

int ops_volumes_show(struct ops *ops, struct ops_sandbox *sandbox, struct err *err)
{
    sandbox->volume_count = 0;
    return store_volume_uses_of(ops->app->store, sandbox->id, add_mount, sandbox, err);
}

/* ---- of a create's body ---- */

struct mount_body {
    const char *name, *path;
    bool read_only;
};

/* clang-format off */
static const struct form_field mount_fields[] = {
    { "name", FORM_TEXT, .at = offsetof(struct mount_body, name), .help = "of a volume of the same tenant", .needed = true },
    { "path", FORM_TEXT, .at = offsetof(struct mount_body, path),
      .help = "where it is mounted; not /, /proc, /sys or /dev, nor behind a link", .needed = true,
      .schema = "{\"maxLength\": 127, \"examples\": [\"/data\"]}" },
    { "read_only", FORM_BOOL, .at = offsetof(struct mount_body, read_only),
      .help = "any number of sandboxes read a volume at a time and at most one writes", .fallback = "false" },
};
/* clang-format on */
const struct form ops_mount_form = FORM_OF(mount_fields);

int ops_mounts_read(struct caller *caller, const char *field, json_t *list,
                    struct ops_mount mounts[VOLUMES_MAX], size_t *ret_count, struct err *err)
{
    size_t count = json_array_size(list);

    if (count > VOLUMES_MAX)
        return form_bad(caller, err, field, "must have at most %d items", VOLUMES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct mount_body body = { .name = NULL };
        json_t *item = json_array_get(list, i);
        char within[40];

        if (!json_is_object(item))
            return form_bad(caller, err, field, "item %zu must be an object", i);
        (void) snprintf(within, sizeof within, "%s[%zu].", field, i);
        if (form_read_within(caller, within, item, &ops_mount_form, &body, err) < 0)
            return -1;
        if (!name_ok(body.name) || strlen(body.name) >= sizeof mounts[i].name) {
            err_set(err, ERR_NO_VOLUME, "there is no volume '%.63s'", body.name);
            return caller_blame(caller, field, NULL, NULL);
        }
        if (volume_path_check(body.path, err) < 0)
            return caller_blame(caller, field, NULL, NULL);
        (void) snprintf(mounts[i].name, sizeof mounts[i].name, "%s", body.name);
        (void) snprintf(mounts[i].path, sizeof mounts[i].path, "%s", body.path);
        mounts[i].read_only = body.read_only;
    }
    *ret_count = count;
    return 0;
}
