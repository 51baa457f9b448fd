#include "client/image.h"

#include <string.h>

static int put(char out[KEEPER_NAME_MAX], const char *what, const char *text, struct err *err)
{
    return text && text[0] ? link_name(out, what, text, err) : 0;
}

/* One question about images, with one image or sandbox for an answer. */
static int ask_one(struct link *link, const struct keeper_request *request,
                   struct keeper_reply *reply, struct err *err)
{
    if (link_call(link, request, reply, NULL, err) < 0)
        return -1;
    if (reply->count != 1)
        return err_set(err, ERR_PROTOCOL, "the keeper answered something else");
    return 0;
}

int image_save(struct link *link, const char *sandbox, const char *image, const char *owner,
               uint32_t flags, struct keeper_image *ret, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_SAVE);
    request.flags = flags;
    if (link_name(request.sandbox, "sandbox", sandbox, err) < 0 ||
        link_name(request.image, "image", image, err) < 0 ||
        put(request.owner, "owner", owner, err) < 0 || ask_one(link, &request, &reply, err) < 0)
        return -1;
    *ret = reply.image[0];
    return 0;
}

int image_load(struct link *link, const struct image_load_spec *spec, struct keeper_sandbox *ret,
               struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_LOAD);
    request.flags = spec->flags | (spec->files_only ? KEEPER_LOAD_FILES : 0);
    request.limits = spec->limits;
    if (spec->isolation) {
        request.flags |= KEEPER_LOAD_AS;
        request.isolation = *spec->isolation;
    }
    if (link_name(request.sandbox, "sandbox", spec->id, err) < 0 ||
        link_name(request.image, "image", spec->image, err) < 0 ||
        put(request.owner, "owner", spec->owner, err) < 0 ||
        put(request.name, "name", spec->name, err) < 0 ||
        put(request.hostname, "hostname", spec->hostname, err) < 0 ||
        ask_one(link, &request, &reply, err) < 0)
        return -1;
    *ret = reply.sandbox[0];
    return 0;
}

int image_get(struct link *link, const char *image, struct keeper_image *ret, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_IMAGE);
    if (link_name(request.image, "image", image, err) < 0 ||
        ask_one(link, &request, &reply, err) < 0)
        return -1;
    *ret = reply.image[0];
    return 0;
}

int image_drop(struct link *link, const char *image, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_DROP);
    if (link_name(request.image, "image", image, err) < 0)
        return -1;
    return link_call(link, &request, &reply, NULL, err);
}

int image_compress(struct link *link, const char *image, bool wait, struct keeper_image *ret,
                   struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    int patience = link->patience_ms, r;

    keeper_request_init(&request, KEEPER_COMPRESS);
    request.flags = wait ? 0 : KEEPER_COMPRESS_BEGIN;
    if (link_name(request.image, "image", image, err) < 0)
        return -1;
    if (wait)
        link->patience_ms = -1; /* it yields to whatever else the machine has to do */
    r = ask_one(link, &request, &reply, err);
    link->patience_ms = patience;
    if (r == 0)
        *ret = reply.image[0];
    return r;
}

int image_list(struct link *link, struct keeper_image **ret_list, size_t *ret_count,
               struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;
    void *list;

    keeper_request_init(&request, KEEPER_IMAGES);
    if (link_list(link, &request, &reply, reply.image, sizeof reply.image[0], &list, ret_count,
                  err) < 0)
        return -1;
    *ret_list = list;
    return 0;
}

int sandbox_reclaim(struct link *link, const char *sandbox, uint64_t *ret_bytes, struct err *err)
{
    struct keeper_request request;
    struct keeper_reply reply;

    keeper_request_init(&request, KEEPER_RECLAIM);
    if (link_name(request.sandbox, "sandbox", sandbox, err) < 0 ||
        link_call(link, &request, &reply, NULL, err) < 0)
        return -1;
    *ret_bytes = reply.reclaimed;
    return 0;
}
