#include "driver/bases.h"

#include "base/own.h"
#include "driver/disks.h"
#include "jail/home.h"
#include "jail/root.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

_Static_assert(BASES_MAX == HOME_BASES, "a place for each base");

static struct base *find_base(struct keeper *k, uint64_t number)
{
    for (size_t i = 0; i < BASES_MAX; i++)
        if (k->host->bases[i].number == number)
            return &k->host->bases[i];
    return NULL;
}

static bool base_wanted(const struct keeper *k, uint64_t number)
{
    const struct sandbox *s;

    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        for (uint32_t n = 1; n < s->layers.count; n++)
            if (s->info.life == LIFE_NEW && s->layers.number[n] == number)
                return true;
    return false;
}

static void close_base(struct keeper *k, struct base *b)
{
    root_base_close(&b->mount_fd, (size_t) (b - k->host->bases));
    b->number = 0;
}

/* A free place, or that of one without a waiting create: sandboxes hold their own clones. */
static struct base *place_for_base(struct keeper *k)
{
    struct base *b = find_base(k, 0);

    for (size_t i = 0; !b && i < BASES_MAX; i++)
        if (k->host->bases[i].mount_fd >= 0 && !base_wanted(k, k->host->bases[i].number))
            b = &k->host->bases[i];
    if (b)
        close_base(k, b);
    return b;
}

int bases_open(struct keeper *k, struct sandbox *s, struct err *err)
{
    bool all = true;

    for (uint32_t i = 1; i < s->layers.count; i++) {
        struct base *b = find_base(k, s->layers.number[i]);

        if (b && b->mount_fd >= 0)
            continue;
        all = false;
        if (b)
            continue;
        b = place_for_base(k);
        if (!b)
            return err_set(err, ERR_TOO_MANY, "too many images are being loaded at once");
        if (disks_open(&k->host->disks, s->layers.number[i], true, host_next_order(k->host), err) <
            0)
            return -1;
        b->number = s->layers.number[i];
    }
    for (uint32_t i = 1; all && i < s->layers.count; i++)
        s->base_fd[i] = find_base(k, s->layers.number[i])->mount_fd; /* borrowed from the table */
    return all ? 1 : 0;
}

void bases_got(struct keeper *k, uint64_t number, int mount_fd, const struct err *why)
{
    struct base *b = find_base(k, number);
    struct sandbox *s;
    struct err err;

    if (!b) {
        own_close(&mount_fd);
        return;
    }
    if (mount_fd >= 0 && root_base_open(mount_fd, (size_t) (b - k->host->bases), &err) < 0) {
        own_close(&mount_fd);
        why = &err;
    }
    b->mount_fd = mount_fd;
    if (mount_fd < 0)
        b->number = 0;
    for (uint32_t at = 0; (s = keeper_next_alive(k, &at));)
        for (uint32_t n = 1; n < s->layers.count; n++)
            if (s->info.life == LIFE_NEW && s->layers.number[n] == number) {
                if (mount_fd < 0)
                    sandbox_fail(k, s, why);
                else
                    disks_continue(k, s);
                break;
            }
}

void bases_drop(struct keeper *k, uint64_t number)
{
    struct base *b = find_base(k, number);

    if (b && b->mount_fd >= 0)
        close_base(k, b);
}

void bases_lost(struct keeper *k, const struct err *why)
{
    for (size_t i = 0; i < BASES_MAX; i++)
        if (k->host->bases[i].number && k->host->bases[i].mount_fd < 0)
            bases_got(k, k->host->bases[i].number, -1, why);
}
