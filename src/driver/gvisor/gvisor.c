#include "driver/gvisor/gvisor.h"

#include "driver/guest/guest.h"
#include "driver/gvisor/runsc.h"
#include "driver/jail/connect.h"
#include "driver/jail/jail.h"
#include "driver/jail/launch.h"
#include "jail/machine.h"
#include "keeper/life.h"
#include "wire/boot.h"

static int check(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                 struct err *err)
{
    const char *program;
    struct template t;

    if (runsc_find(&program, err) < 0)
        return -1;
    if (io_limit_check(&k->host->io, &r->limits, err) < 0 ||
        template_open(&t, k->host->templates_fd, r->template, err) < 0)
        return -1;
    *ret_build = t.build;
    template_close(&t);
    return 0;
}

static void start(struct keeper *k, struct sandbox *s)
{
    struct machine machine = { .isolation = isolation_name(ISOLATION_GVISOR),
                               .bridge_fd = k->host->bridge_fd,
                               .kvm_fd = -1,
                               .memory_fd = -1,
                               .state_fd = -1,
                               .way = BOOT_BRIDGE_START };
    struct err err;

    if (runsc_find(&machine.program, &err) < 0)
        sandbox_fail(k, s, &err);
    else
        launch_machine(k, s, &machine, NULL);
}

static int stats(struct keeper *k, const struct sandbox *s, bool brief, struct keeper_stats *ret,
                 struct err *err)
{
    return guest_stats(k, s, MACHINE_ROOT, brief, ret, err);
}

static void adopt(struct keeper *k, struct sandbox *s)
{
    guest_adopt(k, s, false);
}

const struct driver gvisor_driver = {
    .isolation = ISOLATION_GVISOR,
    .takes_files = true,
    .check = check,
    .create = jail_create,
    .start = start,
    .connect = jail_connect,
    .freeze = jail_freeze,
    .frozen = jail_frozen,
    .stats = stats,
    .resumed = guest_resumed,
    .died = jail_died,
    .leave_disk = guest_leave_disk,
    .let_go = jail_let_go,
    .kill = jail_kill,
    .kill_workers = jail_kill_workers,
    .remove = jail_remove,
    .release = jail_release,
    .adopt = adopt,
    .why_lost = guest_why_lost,
    .settle = guest_settle,
    .network = jail_network,
    .rename = jail_rename,
    .stale = jail_stale,
};
