#include "wire/keeper.h"

#include "base/own.h"

#include <stdbool.h>
#include <string.h>

const struct keeper_op_info keeper_ops[KEEPER_OP_COUNT] = {
    [KEEPER_HELLO] = { "hello", 0, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_CREATE] = { "create", 1, 1, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_GET] = { "get", 1, 0, 0, 0, VOLUME_FIELD_NONE, 1 },
    [KEEPER_LIST] = { "list", 0, 0, 0, 1, VOLUME_FIELD_NONE, 0 },
    [KEEPER_CONNECT] = { "connect", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_STATS] = { "stats", 1, 0, 0, 0, VOLUME_FIELD_NONE, 1 },
    [KEEPER_FREEZE] = { "freeze", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_THAW] = { "thaw", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_DESTROY] = { "destroy", 1, 0, 0, 0, VOLUME_FIELD_NONE, 1 },
    [KEEPER_TIE] = { "tie", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_WAIT] = { "wait", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_GATEWAY] = { "gateway", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_SAVE] = { "save", 1, 0, 1, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_LOAD] = { "load", 0, 0, 1, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_IMAGE] = { "image", 0, 0, 1, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_IMAGES] = { "images", 0, 0, 0, 1, VOLUME_FIELD_NONE, 0 },
    [KEEPER_DROP] = { "drop", 0, 0, 1, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_RECLAIM] = { "reclaim", 1, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_VOLUME_MAKE] = { "volume make", 0, 0, 0, 0, VOLUME_FIELD_MUST, 0 },
    [KEEPER_VOLUME_LIST] = { "volume list", 0, 0, 0, 1, VOLUME_FIELD_MAY, 0 },
    [KEEPER_VOLUME_USERS] = { "volume users", 0, 0, 0, 1, VOLUME_FIELD_MUST, 0 },
    [KEEPER_VOLUME_DROP] = { "volume drop", 0, 0, 0, 0, VOLUME_FIELD_MUST, 0 },
    [KEEPER_COMPRESS] = { "compress", 0, 0, 1, 0, VOLUME_FIELD_NONE, 0 },
    [KEEPER_TEMPLATES] = { "templates", 0, 0, 0, 1, VOLUME_FIELD_NONE, 0 },
    [KEEPER_TEMPLATE] = { "template", 0, 0, 0, 0, VOLUME_FIELD_NONE, 0 },
};

static const char *const life_names[] = {
    [LIFE_NEW] = "new",         [LIFE_STARTING] = "starting", [LIFE_RUNNING] = "running",
    [LIFE_PAUSING] = "pausing", [LIFE_PAUSED] = "paused",     [LIFE_STOPPING] = "stopping",
    [LIFE_GONE] = "gone",
};
_Static_assert(ARRAY_LEN(life_names) == LIFE_COUNT, "every state has a name");

static const char *const disk_names[] = { [DISK_MEMORY] = "memory", [DISK_IMAGE] = "image" };
_Static_assert(ARRAY_LEN(disk_names) == DISK_KIND_COUNT, "every kind has a name");

const char *keeper_life_name(uint32_t life)
{
    return life < LIFE_COUNT ? life_names[life] : "unknown";
}

const char *keeper_disk_name(uint32_t kind)
{
    return kind < DISK_KIND_COUNT ? disk_names[kind] : "unknown";
}

void keeper_request_init(struct keeper_request *request, enum keeper_op op)
{
    memset(request, 0, sizeof *request);
    request->magic = KEEPER_MAGIC;
    request->version = KEEPER_VERSION;
    request->op = op;
}

/* Ends within its array, and nothing hides behind the end. */
static bool text_ends(const char text[KEEPER_NAME_MAX])
{
    size_t len = strnlen(text, KEEPER_NAME_MAX);

    if (len == KEEPER_NAME_MAX)
        return false;
    for (size_t i = len; i < KEEPER_NAME_MAX; i++)
        if (text[i] != '\0')
            return false;
    return true;
}

static bool all_zero(const void *data, size_t len)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < len; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* What names a sandbox that is to be. */
static int check_names(const struct keeper_request *r, struct err *err)
{
    if (!id_ok(r->sandbox))
        return err_set(err, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
    if (r->name[0] && (!name_ok(r->name) || id_ok(r->name)))
        return err_set(
            err, ERR_INVALID,
            "name: not a name (a-z, 0-9, inner '-', '_', '.', at most 63, unlike an id)");
    if (r->hostname[0] && !name_ok(r->hostname))
        return err_set(err, ERR_INVALID, "hostname: not a name (a-z, 0-9, inner '-', '_', '.')");
    return 0;
}

static int check_isolation(const struct keeper_request *r, struct err *err)
{
    return isolation_known(r->isolation)
               ? 0
               : err_set(err, ERR_INVALID, "isolation: unknown number %u", r->isolation);
}

static int check_create(const struct keeper_request *r, struct err *err)
{
    if (check_names(r, err) < 0)
        return -1;
    if (!name_ok(r->template))
        return err_set(err, ERR_INVALID, "template: not a name (a-z, 0-9, inner '-', '_', '.')");
    if (r->flags & ~KEEPER_FLAG_ALL)
        return err_set(err, ERR_INVALID, "flags: unknown bits");
    if (check_isolation(r, err) < 0)
        return -1;
    if ((r->flags & KEEPER_FLAG_POOLED) &&
        (r->flags & (KEEPER_FLAG_TIED | KEEPER_FLAG_TAKE) || r->name[0] || r->hostname[0] ||
         !all_zero(r->volumes, sizeof r->volumes)))
        return err_set(err, ERR_INVALID, "flags: a sandbox made for the pool has no owner yet");
    return volume_uses_check(r->volumes, err);
}

/* The id of one volume and nothing else of the array; for a new one also its size. */
static int check_volume(const struct keeper_request *r, struct err *err)
{
    const struct keeper_op_info *info = &keeper_ops[r->op];
    struct limits size = { .disk_bytes = r->limits.disk_bytes,
                           .disk_inodes = r->limits.disk_inodes };
    const char *id = r->volumes[0].volume;

    if (strnlen(id, VOLUME_ID_MAX) == VOLUME_ID_MAX)
        return err_set(err, ERR_PROTOCOL, "%s: a text does not end", info->name);
    if (!all_zero(id + strlen(id), sizeof r->volumes - strlen(id)))
        return err_set(err, ERR_INVALID, "%s takes one volume's id", info->name);
    if (info->volume == VOLUME_FIELD_NONE
            ? id[0] != '\0'
            : !volume_id_ok(id) && (id[0] || info->volume == VOLUME_FIELD_MUST))
        return err_set(err, ERR_INVALID, "volume: not an id ('v' and 20 of a-z, 0-9)");
    if (r->op != KEEPER_VOLUME_MAKE)
        size = (struct limits){ 0 };
    if (memcmp(&r->limits, &size, sizeof size) != 0)
        return err_set(err, ERR_INVALID, "%s takes no fields of create", info->name);
    return r->op == KEEPER_VOLUME_MAKE ? volume_size_check(size.disk_bytes, size.disk_inodes, err)
                                       : 0;
}

/* A paused sandbox, whose image has its id, continues as who it was. */
static int check_load(const struct keeper_request *r, struct err *err)
{
    if (check_names(r, err) < 0)
        return -1;
    if ((r->flags & KEEPER_FLAG_POOLED) &&
        (r->flags & KEEPER_FLAG_TAKE || r->name[0] || r->hostname[0]))
        return err_set(err, ERR_INVALID, "flags: a sandbox made for the pool has no owner yet");
    if ((r->flags & KEEPER_LOAD_POOL) && strcmp(r->image, r->sandbox) == 0)
        return err_set(err, ERR_INVALID, "flags: there is no pool for a sandbox that is resumed");
    if ((r->flags & KEEPER_LOAD_POOL) && (r->flags & (KEEPER_LOAD_FILES | KEEPER_LOAD_AS)))
        return err_set(err, ERR_INVALID, "flags: there is no pool for files alone");
    if ((r->flags & KEEPER_LOAD_AS) && strcmp(r->image, r->sandbox) == 0)
        return err_set(err, ERR_INVALID, "flags: a sandbox that is resumed has its own isolation");
    return check_isolation(r, err);
}

/* save and load, and those about images alone */
static int check_image(const struct keeper_request *r, struct err *err)
{
    if (!id_ok(r->image))
        return err_set(err, ERR_INVALID, "image: not an id ('i' and 20 of a-z, 0-9)");
    if (r->op == KEEPER_LOAD)
        return check_load(r, err);
    if (r->name[0] || r->hostname[0])
        return err_set(err, ERR_INVALID, "%s takes no names", keeper_ops[r->op].name);
    if (r->op != KEEPER_SAVE && (r->sandbox[0] || r->owner[0]))
        return err_set(err, ERR_INVALID, "%s takes nothing but an image", keeper_ops[r->op].name);
    if (r->op == KEEPER_SAVE && !name_ok(r->sandbox))
        return err_set(err, ERR_INVALID, "sandbox: neither an id nor a name");
    return 0;
}

static int check_saving(const struct keeper_request *r, struct err *err)
{
    static const uint32_t flags[KEEPER_OP_COUNT] = { [KEEPER_SAVE] = KEEPER_SAVE_ALL,
                                                     [KEEPER_LOAD] = KEEPER_LOAD_ALL,
                                                     [KEEPER_COMPRESS] = KEEPER_COMPRESS_BEGIN };

    if (r->template[0] || !all_zero(r->volumes, sizeof r->volumes) ||
        (r->op != KEEPER_LOAD && !all_zero(&r->limits, sizeof r->limits)))
        return err_set(err, ERR_INVALID, "%s takes no fields of create", keeper_ops[r->op].name);
    if (r->flags & ~flags[r->op])
        return err_set(err, ERR_INVALID, "flags: unknown bits");
    return check_image(r, err);
}

static int check_other(const struct keeper_request *r, struct err *err)
{
    static const uint32_t flags[KEEPER_OP_COUNT] = {
        [KEEPER_LIST] = KEEPER_FLAG_POOLED,
        [KEEPER_STATS] = KEEPER_STATS_BRIEF,
        [KEEPER_CONNECT] = KEEPER_STATS_BRIEF,
    };

    if (r->image[0] || r->owner[0])
        return err_set(err, ERR_INVALID, "%s takes no image", keeper_ops[r->op].name);
    if (keeper_ops[r->op].needs_sandbox && !name_ok(r->sandbox))
        return err_set(err, ERR_INVALID, "sandbox: neither an id nor a name");
    if (!keeper_ops[r->op].needs_sandbox && r->sandbox[0])
        return err_set(err, ERR_INVALID, "sandbox: must be empty for %s", keeper_ops[r->op].name);
    if (r->op == KEEPER_TEMPLATE && !name_ok(r->template))
        return err_set(err, ERR_INVALID, "template: not a name (a-z, 0-9, inner '-', '_', '.')");
    if (r->name[0] || (r->template[0] && r->op != KEEPER_TEMPLATE) || r->hostname[0] ||
        (r->flags & ~flags[r->op]))
        return err_set(err, ERR_INVALID, "%s takes no fields of create", keeper_ops[r->op].name);
    return check_volume(r, err);
}

int keeper_request_check(const struct keeper_request *r, size_t len, struct err *err)
{
    if (len != sizeof *r || r->magic != KEEPER_MAGIC)
        return err_set(err, ERR_PROTOCOL, "not a request");
    if (r->version != KEEPER_VERSION)
        return err_set(err, ERR_PROTOCOL, "version %u, this keeper speaks %u", r->version,
                       KEEPER_VERSION);
    if (r->op >= KEEPER_OP_COUNT)
        return err_set(err, ERR_PROTOCOL, "unknown request %u", r->op);
    if (r->cursor && !keeper_ops[r->op].is_list)
        return err_set(err, ERR_PROTOCOL, "%s: reserved field set", keeper_ops[r->op].name);
    if (r->isolation && !keeper_ops[r->op].is_create &&
        !(r->op == KEEPER_LOAD && r->flags & KEEPER_LOAD_AS))
        return err_set(err, ERR_PROTOCOL, "%s takes no isolation", keeper_ops[r->op].name);
    if (!text_ends(r->sandbox) || !text_ends(r->name) || !text_ends(r->template) ||
        !text_ends(r->hostname) || !text_ends(r->image) || !text_ends(r->owner))
        return err_set(err, ERR_PROTOCOL, "%s: a text does not end", keeper_ops[r->op].name);
    if (keeper_ops[r->op].needs_image)
        return check_saving(r, err);
    return keeper_ops[r->op].is_create ? check_create(r, err) : check_other(r, err);
}

static bool sandbox_ends(const struct keeper_sandbox *s)
{
    return text_ends(s->id) && text_ends(s->name) && text_ends(s->template);
}

static bool image_ends(const struct keeper_image *image)
{
    return text_ends(image->id) && text_ends(image->owner) && sandbox_ends(&image->sandbox);
}

static bool digest_ends(const char text[KEEPER_DIGEST_MAX])
{
    return memchr(text, '\0', KEEPER_DIGEST_MAX) != NULL;
}

static bool answers_images(enum keeper_op op)
{
    return op == KEEPER_SAVE || op == KEEPER_IMAGE || op == KEEPER_IMAGES || op == KEEPER_COMPRESS;
}

/* The texts of entry i. */
static bool entry_ends(const struct keeper_reply *r, enum keeper_op op, uint32_t i)
{
    if (op == KEEPER_VOLUME_LIST)
        return memchr(r->volume[i].id, '\0', sizeof r->volume[i].id);
    if (op == KEEPER_VOLUME_USERS)
        return memchr(r->user[i].sandbox, '\0', sizeof r->user[i].sandbox) &&
               memchr(r->user[i].path, '\0', sizeof r->user[i].path);
    if (op == KEEPER_TEMPLATES)
        return text_ends(r->template[i]);
    if (op == KEEPER_TEMPLATE)
        return text_ends(r->about.name) && digest_ends(r->about.layer) &&
               digest_ends(r->about.digest) && digest_ends(r->about.named);
    return answers_images(op) ? image_ends(&r->image[i]) : sandbox_ends(&r->sandbox[i]);
}

int keeper_reply_check(const struct keeper_reply *r, size_t len, enum keeper_op op, struct err *err)
{
    if (len != sizeof *r || r->magic != KEEPER_MAGIC || r->version != KEEPER_VERSION ||
        r->op != op || r->count > KEEPER_LIST_MAX)
        return err_set(err, ERR_PROTOCOL, "the keeper answered something else");
    if (strnlen(r->err.msg, sizeof r->err.msg) == sizeof r->err.msg)
        return err_set(err, ERR_PROTOCOL, "the keeper's message does not end");
    for (uint32_t i = 0;
         op != KEEPER_HELLO && op != KEEPER_STATS && op != KEEPER_RECLAIM && i < r->count; i++)
        if (!entry_ends(r, op, i))
            return err_set(err, ERR_PROTOCOL, "a text of the keeper does not end");
    return 0;
}
