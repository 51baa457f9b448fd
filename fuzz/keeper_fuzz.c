/* What arrives at the keeper's socket, and what its callers get back. Whatever passes the check is
 * safe to use: its texts end, and it names no path. */
#include "wire/keeper.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

static void check_text(const char text[KEEPER_NAME_MAX])
{
    must(strnlen(text, KEEPER_NAME_MAX) < KEEPER_NAME_MAX);
    must(!text[0] || name_ok(text));
}

static void check_request(const struct keeper_request *r, size_t len)
{
    struct err err = { 0 };

    if (keeper_request_check(r, len, &err) < 0) {
        must(err.kind != ERR_NONE && err.msg[0]);
        return;
    }
    must(r->op < KEEPER_OP_COUNT && r->version == KEEPER_VERSION);
    check_text(r->sandbox);
    check_text(r->name);
    check_text(r->template);
    check_text(r->hostname);
    must(!keeper_ops[r->op].needs_sandbox || r->sandbox[0]);
    must(!keeper_ops[r->op].is_create || (id_ok(r->sandbox) && r->template[0]));
    for (size_t i = 0; i < volume_use_count(r->volumes); i++)
        must(volume_id_ok(r->volumes[i].volume) &&
             (!keeper_ops[r->op].is_create || volume_path_check(r->volumes[i].path, &err) == 0));
    if (keeper_ops[r->op].is_create)
        (void) limits_check(&r->limits, 1ull << 34, 4000, &err);
}

static void check_reply(const uint8_t *data, size_t size)
{
    static struct keeper_reply reply;
    struct err err;

    memset(&reply, 0, sizeof reply);
    memcpy(&reply, data, size < sizeof reply ? size : sizeof reply);
    for (int op = 0; op < KEEPER_OP_COUNT; op++)
        if (keeper_reply_check(&reply, sizeof reply, (enum keeper_op) op, &err) == 0) {
            must(reply.count <= KEEPER_LIST_MAX);
            must(strnlen(reply.err.msg, ERR_MSG_MAX) < ERR_MSG_MAX);
            (void) keeper_life_name(reply.sandbox[0].life);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct keeper_request request;
    size_t used = size < sizeof request ? size : sizeof request;

    memset(&request, 0, sizeof request);
    memcpy(&request, data, used);
    check_request(&request, size);
    /* Most inputs are too short or lack the magic: give them a second chance behind it. */
    request.magic = KEEPER_MAGIC;
    request.version = KEEPER_VERSION;
    request.op %= KEEPER_OP_COUNT + 1;
    check_request(&request, sizeof request);
    check_reply(data, size);
    return 0;
}
