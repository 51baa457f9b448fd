/* Requests about saved sandboxes: the drivers do the work, this tells who asked. */
#include "keeper/ops.h"
#include "keeper/ops_table.h"
#include "keeper/sandbox.h"

#include <string.h>

static void answer_image(struct keeper *k, int index, uint32_t op, const struct keeper_image *image,
                         const struct err *err)
{
    struct keeper_reply reply = { 0 };

    if (image) {
        reply.image[0] = *image;
        reply.count = 1;
    }
    k->connections[index].pending = false;
    keeper_watch_quiet(k, &k->connections[index].watch, false);
    ops_answer(k, index, op, &reply, NULL, err);
}

void ops_answer_saved(struct keeper *k, int index, const struct keeper_image *image,
                      const struct err *err)
{
    answer_image(k, index, KEEPER_SAVE, image, err);
}

void ops_saved(struct keeper *k, const struct sandbox *s, const struct keeper_image *image,
               const struct err *err)
{
    for (int i = 0; i < k->connection_count; i++)
        if (ops_waits_for(&k->connections[i], s) && k->connections[i].op == KEEPER_SAVE)
            ops_answer_saved(k, i, image, err);
}

int op_save(struct keeper *k, int index, const struct keeper_request *request,
            struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) reply, (void) ret_fds;
    if (!sandbox->driver->save)
        return driver_lacks(sandbox->driver, "save", err);
    if (sandbox->driver->save(k, sandbox, request, err) < 0)
        return -1;
    if (sandbox->info.life != LIFE_PAUSING) /* or the answer would never come */
        return err_set(err, ERR_INTERNAL, "isolation '%s' did not begin to save",
                       isolation_name(sandbox->info.isolation));
    ops_wait_for(k, index, KEEPER_SAVE, sandbox);
    return LATER;
}

int op_load(struct keeper *k, int index, const struct keeper_request *request,
            struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    struct sandbox *made = NULL;

    (void) sandbox, (void) ret_fds;
    if (host_load(k, request, &made, err) < 0) {
        if (made) /* it was begun, and its owner is told that it was not */
            sandbox_stop(k, made, "load failed");
        return -1;
    }
    if (!made || strcmp(made->info.id, request->sandbox) != 0)
        return err_set(err, ERR_INTERNAL, "image '%s' became no sandbox", request->image);
    if (made->info.life == LIFE_RUNNING) { /* it was in the pool */
        reply->sandbox[0] = made->info;
        reply->count = 1;
        return 0;
    }
    ops_wait_for(k, index, KEEPER_LOAD, made);
    return LATER;
}

int op_image(struct keeper *k, int index, const struct keeper_request *request,
             struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) index, (void) sandbox, (void) ret_fds;
    if (host_image(k, request->image, &reply->image[0], err) < 0)
        return -1;
    reply->count = 1;
    return 0;
}

int op_images(struct keeper *k, int index, const struct keeper_request *request,
              struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) index, (void) sandbox, (void) ret_fds, (void) err;
    host_images(k, request->cursor, reply);
    return 0;
}

int op_drop(struct keeper *k, int index, const struct keeper_request *request,
            struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) index, (void) sandbox, (void) reply, (void) ret_fds;
    return host_drop_image(k, request->image, err);
}

int op_compress(struct keeper *k, int index, const struct keeper_request *request,
                struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    struct connection *c = &k->connections[index];
    int begun = host_compress_image(k, request->image, err);

    if (begun < 0)
        return -1;
    if (!begun || request->flags & KEEPER_COMPRESS_BEGIN)
        return op_image(k, index, request, sandbox, reply, ret_fds, err);
    c->pending = true;
    keeper_watch_quiet(k, &c->watch, true);
    c->op = KEEPER_COMPRESS;
    memcpy(c->id, request->image, sizeof c->id);
    return LATER;
}

void ops_shrunk(struct keeper *k, const char *id, const struct keeper_image *image,
                const struct err *err)
{
    for (int i = 0; i < k->connection_count; i++) {
        struct connection *c = &k->connections[i];

        if (c->watch.fd >= 0 && c->pending && c->op == KEEPER_COMPRESS && strcmp(c->id, id) == 0)
            answer_image(k, i, KEEPER_COMPRESS, image, err);
    }
}

void ops_reclaimed(struct keeper *k, const struct sandbox *s, uint64_t bytes, const struct err *err)
{
    for (int i = 0; i < k->connection_count; i++) {
        struct keeper_reply reply = { .reclaimed = bytes };

        if (!ops_waits_for(&k->connections[i], s) || k->connections[i].op != KEEPER_RECLAIM)
            continue;
        k->connections[i].pending = false;
        keeper_watch_quiet(k, &k->connections[i].watch, false);
        ops_answer(k, i, KEEPER_RECLAIM, &reply, NULL, err);
    }
}

int op_reclaim(struct keeper *k, int index, const struct keeper_request *request,
               struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) request, (void) reply, (void) ret_fds;
    if (!sandbox->driver->reclaim)
        return driver_lacks(sandbox->driver, "move memory to swap", err);
    if (sandbox->worker)
        return err_set(err, ERR_STATE, "sandbox '%s' is being worked on", sandbox->info.id);
    if (sandbox->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s, not paused", sandbox->info.id,
                       keeper_life_name(sandbox->info.life));
    if (sandbox->driver->reclaim(k, sandbox, err) < 0)
        return -1;
    if (!sandbox->worker) /* or the answer would never come */
        return err_set(err, ERR_INTERNAL, "isolation '%s' did not begin to move memory",
                       isolation_name(sandbox->info.isolation));
    ops_wait_for(k, index, KEEPER_RECLAIM, sandbox);
    return LATER;
}
