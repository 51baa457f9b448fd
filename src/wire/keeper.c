#include "wire/keeper.h"

#include "base/own.h"

#include <stdbool.h>
#include <string.h>

const struct keeper_op_info keeper_ops[KEEPER_OP_COUNT] = {
    [KEEPER_HELLO]   = { "hello", 0, 0, 0 },
    [KEEPER_CREATE]  = { "create", 1, 1, 0 },
    [KEEPER_GET]     = { "get", 1, 0, 1 },
    [KEEPER_LIST]    = { "list", 0, 0, 0 },
    [KEEPER_CONNECT] = { "connect", 1, 0, 0 },
    [KEEPER_STATS]   = { "stats", 1, 0, 1 },
    [KEEPER_FREEZE]  = { "freeze", 1, 0, 0 },
    [KEEPER_THAW]    = { "thaw", 1, 0, 0 },
    [KEEPER_DESTROY] = { "destroy", 1, 0, 1 },
    [KEEPER_TIE]     = { "tie", 1, 0, 0 },
    [KEEPER_WAIT]    = { "wait", 1, 0, 0 },
    [KEEPER_GATEWAY] = { "gateway", 1, 0, 0 },
};

static const char *const life_names[] = {
    [LIFE_NEW] = "new",         [LIFE_STARTING] = "starting", [LIFE_RUNNING] = "running",
    [LIFE_PAUSED] = "paused",   [LIFE_STOPPING] = "stopping", [LIFE_GONE] = "gone",
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

static int check_create(const struct keeper_request *r, struct err *err)
{
    if (!id_ok(r->sandbox))
        return err_set(err, ERR_INVALID, "sandbox: not an id ('i' and 20 of a-z, 0-9)");
    if (r->name[0] && (!name_ok(r->name) || id_ok(r->name)))
        return err_set(err, ERR_INVALID,
                       "name: not a name (a-z, 0-9, inner '-', '_', '.', at most 63, unlike an id)");
    if (!name_ok(r->template))
        return err_set(err, ERR_INVALID, "template: not a name (a-z, 0-9, inner '-', '_', '.')");
    if (r->hostname[0] && !name_ok(r->hostname))
        return err_set(err, ERR_INVALID, "hostname: not a name (a-z, 0-9, inner '-', '_', '.')");
    if (r->flags & ~KEEPER_FLAG_ALL)
        return err_set(err, ERR_INVALID, "flags: unknown bits");
    if ((r->flags & KEEPER_FLAG_POOLED) &&
        (r->flags & (KEEPER_FLAG_TIED | KEEPER_FLAG_TAKE) || r->name[0] || r->hostname[0]))
        return err_set(err, ERR_INVALID, "flags: what is made for the pool is for nobody yet");
    return 0;
}

static int check_other(const struct keeper_request *r, struct err *err)
{
    if (keeper_ops[r->op].needs_sandbox && !name_ok(r->sandbox))
        return err_set(err, ERR_INVALID, "sandbox: neither an id nor a name");
    if (!keeper_ops[r->op].needs_sandbox && r->sandbox[0])
        return err_set(err, ERR_INVALID, "sandbox: must be empty for %s", keeper_ops[r->op].name);
    if (r->name[0] || r->template[0] || r->hostname[0] ||
        (r->flags & ~(r->op == KEEPER_LIST ? KEEPER_FLAG_POOLED : 0u)) ||
        !all_zero(&r->limits, sizeof r->limits))
        return err_set(err, ERR_INVALID, "%s takes no fields of create", keeper_ops[r->op].name);
    return 0;
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
    if (r->reserved || (r->cursor && r->op != KEEPER_LIST))
        return err_set(err, ERR_PROTOCOL, "%s: reserved field set", keeper_ops[r->op].name);
    if (!text_ends(r->sandbox) || !text_ends(r->name) || !text_ends(r->template) ||
        !text_ends(r->hostname))
        return err_set(err, ERR_PROTOCOL, "%s: a text does not end", keeper_ops[r->op].name);
    return keeper_ops[r->op].is_create ? check_create(r, err) : check_other(r, err);
}

int keeper_reply_check(const struct keeper_reply *r, size_t len, enum keeper_op op,
                       struct err *err)
{
    if (len != sizeof *r || r->magic != KEEPER_MAGIC || r->version != KEEPER_VERSION ||
        r->op != op || r->count > KEEPER_LIST_MAX)
        return err_set(err, ERR_PROTOCOL, "the keeper answered something else");
    if (strnlen(r->err.msg, sizeof r->err.msg) == sizeof r->err.msg)
        return err_set(err, ERR_PROTOCOL, "the keeper's message does not end");
    for (uint32_t i = 0; op != KEEPER_HELLO && op != KEEPER_STATS && i < r->count; i++)
        if (!text_ends(r->sandbox[i].id) || !text_ends(r->sandbox[i].name) ||
            !text_ends(r->sandbox[i].template))
            return err_set(err, ERR_PROTOCOL, "a text of the keeper does not end");
    return 0;
}
