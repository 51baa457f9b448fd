#include "driver/io_rule.h"

#include "keeper/life.h"

/* One that died has the device no longer, although we may not have heard of its death yet. */
static void forget_others(struct keeper *k, const struct sandbox *s)
{
    struct sandbox *other;

    for (uint32_t at = 0; (other = keeper_next_alive(k, &at));)
        if (other != s && other->io_device == s->io_device)
            other->io_device = 0;
}

void io_rule_find(struct keeper *k, struct sandbox *s)
{
    s->io_device = 0;
    if (s->disk_fd < 0 || (!limits_io(&s->info.limits) && !k->host->io.used))
        return;
    s->io_device = io_limit_device(s->disk_fd);
    if (s->io_device)
        forget_others(k, s);
}

int io_rule_begin(struct keeper *k, const struct sandbox *s, struct err *err)
{
    return io_limit_set(&k->host->io, &k->host->cgroups, s->cgroup, &s->info.limits, s->io_device,
                        err);
}

void io_rule_pause(struct keeper *k, const struct sandbox *s)
{
    if (limits_io(&s->info.limits))
        io_limit_lift(&k->host->io, &k->host->cgroups, s->cgroup, s->io_device);
}

int io_rule_resume(struct keeper *k, const struct sandbox *s, struct err *err)
{
    return limits_io(&s->info.limits) ? io_rule_begin(k, s, err) : 0;
}

void io_rule_end(struct keeper *k, struct sandbox *s)
{
    io_rule_pause(k, s);
    s->io_device = 0;
}
