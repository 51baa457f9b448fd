#include "client/volume.h"

#include "client/sandbox.h"

#include <string.h>

int volume_new_id(char out[VOLUME_ID_MAX], struct err *err)
{
    _Static_assert(ID_LEN == VOLUME_ID_LEN && ID_LEN < VOLUME_ID_MAX, "they differ in a letter");
    memset(out, 0, VOLUME_ID_MAX);
    if (sandbox_new_id(out, err) < 0)
        return -1;
    out[0] = 'v';
    return 0;
}

uint64_t volume_round(uint64_t bytes)
{
    return bytes > UINT64_MAX - VOLUME_MIB ? bytes
                                           : (bytes + VOLUME_MIB - 1) / VOLUME_MIB * VOLUME_MIB;
}

static int begin(struct keeper_request *request, enum keeper_op op, const char *volume,
                 struct err *err)
{
    keeper_request_init(request, op);
    if (!volume)
        return 0;
    if (!volume_id_ok(volume))
        return err_set(err, ERR_INVALID, "volume: not an id ('v' and 20 of a-z, 0-9)");
    memcpy(request->volumes[0].volume, volume, VOLUME_ID_LEN);
    return 0;
}

int volume_make(struct link *link, const char *volume, uint64_t bytes, uint64_t inodes,
                struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    if (begin(&request, KEEPER_VOLUME_MAKE, volume, err) < 0)
        return -1;
    request.limits.disk_bytes = bytes;
    request.limits.disk_inodes = inodes;
    return link_call(link, &request, &reply, NULL, err);
}

int volume_drop(struct link *link, const char *volume, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    return begin(&request, KEEPER_VOLUME_DROP, volume, err) < 0
               ? -1
               : link_call(link, &request, &reply, NULL, err);
}

int volume_list(struct link *link, const char *volume, struct volume_info **ret, size_t *ret_count,
                struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    void *list;

    if (begin(&request, KEEPER_VOLUME_LIST, volume, err) < 0 ||
        link_list(link, &request, &reply, reply.volume, sizeof reply.volume[0], &list, ret_count,
                  err) < 0)
        return -1;
    *ret = list;
    return 0;
}

int volume_users(struct link *link, const char *volume, struct volume_user **ret, size_t *ret_count,
                 struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    void *list;

    if (begin(&request, KEEPER_VOLUME_USERS, volume, err) < 0 ||
        link_list(link, &request, &reply, reply.user, sizeof reply.user[0], &list, ret_count, err) <
            0)
        return -1;
    *ret = list;
    return 0;
}
