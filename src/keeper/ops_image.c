/* Requests about saved sandboxes: the workers of save.c and load.c do the work, this tells who asked. */
#include "base/log.h"
#include "base/own.h"
#include "keeper/load.h"
#include "keeper/ops.h"
#include "keeper/ops_table.h"
#include "keeper/sandbox.h"
#include "keeper/save.h"
#include "keeper/shrink.h"
#include "keeper/worker.h"

#include <string.h>
#include <sys/sysinfo.h>

#define RECLAIM_MS 30000 /* who asks for a warm pause waits for it */

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
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (ops_waits_for(&k->connections[i], s) && k->connections[i].op == KEEPER_SAVE)
            ops_answer_saved(k, i, image, err);
}

int op_save(struct keeper *k, int index, const struct keeper_request *request,
            struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) reply, (void) ret_fds;
    if (save_begin(k, sandbox, request, err) < 0)
        return -1;
    ops_wait_for(k, index, KEEPER_SAVE, sandbox);
    return LATER;
}

int op_load(struct keeper *k, int index, const struct keeper_request *request,
            struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    struct sandbox *made = NULL;

    (void) sandbox, (void) ret_fds;
    if (load_begin(k, request, &made, err) < 0)
        return -1;
    if (made->info.life == LIFE_RUNNING) { /* it was in the pool */
        reply->sandbox[0] = made->info;
        reply->count = 1;
        return 0;
    }
    ops_wait_for(k, index, KEEPER_LOAD, made);
    return LATER;
}

/* As it is now: with the layers of others that are there only for it. */
static void put_image(const struct keeper *k, struct keeper_reply *reply,
                      const struct keeper_image *image)
{
    const struct image_entry *entry = images_entry(&k->images, image->id);
    struct keeper_image *to = &reply->image[reply->count++];

    *to = *image;
    to->used_s = image_used(&k->images, image->id);
    if (k->shrink.pid && strcmp(k->shrink.image, image->id) == 0)
        to->flags |= KEEPER_IMAGE_SHRINKING;
    for (uint32_t i = 1; entry && i < entry->layers.count; i++)
        if (entry->charged & 1u << i)
            to->bytes += disk_bytes(&k->disks, entry->layers.number[i]);
}

int op_image(struct keeper *k, int index, const struct keeper_request *request,
             struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    struct image_meta meta;

    (void) index, (void) sandbox, (void) ret_fds;
    if (image_read(&k->images, request->image, &meta, err) < 0)
        return -1;
    put_image(k, reply, &meta.image);
    return 0;
}

int op_images(struct keeper *k, int index, const struct keeper_request *request,
              struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) index, (void) sandbox, (void) ret_fds;
    for (uint32_t i = request->cursor; i < IMAGES_MAX; i++) {
        struct image_meta meta;

        if (!k->images.entry[i].id[0])
            continue;
        if (reply->count == KEEPER_LIST_MAX) {
            reply->next = i;
            return 0;
        }
        if (image_read(&k->images, k->images.entry[i].id, &meta, err) < 0)
            continue;
        put_image(k, reply, &meta.image);
    }
    return 0;
}

int op_drop(struct keeper *k, int index, const struct keeper_request *request,
            struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    struct image_meta meta;
    bool whole;

    (void) index, (void) sandbox, (void) reply, (void) ret_fds;
    /* One that was tampered with goes, too; what it was made of is found by the sweep at the next start. */
    whole = image_read(&k->images, request->image, &meta, err) == 0;
    if (!whole && err->kind == ERR_NO_IMAGE)
        return -1;
    if (image_busy(&k->images, request->image) || sandbox_of_image(k, request->image))
        return err_set(err, ERR_STATE, "image '%s' is being worked on", request->image);
    err->kind = ERR_NONE;
    shrink_cancel(k, request->image);
    load_discard(k, request->image, "");
    images_forget(&k->images, request->image);
    if (whole)
        sandbox_release(k, &meta.layers, NULL);
    return 0;
}

int op_compress(struct keeper *k, int index, const struct keeper_request *request,
                struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    struct connection *c = &k->connections[index];
    int begun = shrink_begin(k, request->image, err);

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
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &k->connections[i];

        if (c->watch.fd >= 0 && c->pending && c->op == KEEPER_COMPRESS && strcmp(c->id, id) == 0)
            answer_image(k, i, KEEPER_COMPRESS, image, err);
    }
}

/* In a process of its own: the kernel takes seconds. */
static int reclaim(struct worker *w, const struct keeper_request *request, struct err *err)
{
    struct keeper_stats before = { 0 }, after = { 0 };
    struct sysinfo info;

    (void) request;
    if (sysinfo(&info) < 0 || info.totalswap == 0)
        return err_set(err, ERR_UNSUPPORTED, "this host has no swap");
    if (cgroup_stats(&w->keeper->cgroups, w->sandbox.made_as, &before, err) < 0 ||
        cgroup_reclaim(&w->keeper->cgroups, w->sandbox.made_as,
                       w->sandbox.info.limits.memory_bytes, RECLAIM_MS, err) < 0 ||
        cgroup_stats(&w->keeper->cgroups, w->sandbox.made_as, &after, err) < 0)
        return -1;
    if (before.memory_bytes > after.memory_bytes)
        w->result.reclaimed = before.memory_bytes - after.memory_bytes;
    return 0;
}

static void on_reclaimed(struct keeper *k, struct sandbox *s, struct worker_result *result)
{
    struct err err;

    if (result->err.kind && cgroup_limit(&k->cgroups, s->made_as, &s->info.limits, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s %s", s->info.id, err.msg);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        struct keeper_reply reply = { .reclaimed = result->reclaimed };

        if (!ops_waits_for(&k->connections[i], s) || k->connections[i].op != KEEPER_RECLAIM)
            continue;
        k->connections[i].pending = false;
        keeper_watch_quiet(k, &k->connections[i].watch, false);
        ops_answer(k, i, KEEPER_RECLAIM, &reply, NULL, result->err.kind ? &result->err : NULL);
    }
}

int op_reclaim(struct keeper *k, int index, const struct keeper_request *request,
               struct sandbox *sandbox, struct keeper_reply *reply, int *ret_fds, struct err *err)
{
    (void) reply, (void) ret_fds;
    if (sandbox->worker)
        return err_set(err, ERR_STATE, "sandbox '%s' is being worked on", sandbox->info.id);
    if (sandbox->info.life != LIFE_PAUSED)
        return err_set(err, ERR_STATE, "sandbox '%s' is %s, not paused", sandbox->info.id,
                       keeper_life_name(sandbox->info.life));
    if (worker_start(k, sandbox, "cove-reclaim", reclaim, request, on_reclaimed, err) < 0)
        return -1;
    ops_wait_for(k, index, KEEPER_RECLAIM, sandbox);
    return LATER;
}
