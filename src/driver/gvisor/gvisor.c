#include "driver/gvisor/gvisor.h"

#include "driver/guest/guest.h"
#include "driver/gvisor/runsc.h"
#include "driver/jail/connect.h"
#include "driver/jail/jail.h"
#include "driver/jail/launch.h"
#include "driver/jail/load.h"
#include "jail/machine.h"
#include "keeper/life.h"
#include "wire/boot.h"

/* Of a state, what is not the memory of commands: the guest kernel's objects, each of which some memory of commands belongs to. */
#define STATE_BESIDE (96ull << 20)

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

static int describe(const struct keeper *k, struct sandbox *s, int templates_fd,
                    struct machine *ret, struct err *err)
{
    (void) templates_fd;
    *ret = (struct machine){ .isolation = isolation_name(ISOLATION_GVISOR),
                             .bridge_fd = k->host->bridge_fd,
                             .kvm_fd = -1,
                             .memory_fd = -1,
                             .state_fd = -1,
                             .way = s->image_memory ? BOOT_BRIDGE_LOAD : BOOT_BRIDGE_START };
    return runsc_find(&ret->program, err);
}

static void done(struct machine *machine)
{
    (void) machine;
}

static const struct guest_kind kind = { .program = "runsc",
                                        .version = runsc_version,
                                        .file = MACHINE_PROGRAM,
                                        .disk = &MACHINE_DISK[1],
                                        .beside = STATE_BESIDE,
                                        .from_file = true,
                                        .answers = true,
                                        .machine = describe,
                                        .done = done };

static void start(struct keeper *k, struct sandbox *s)
{
    struct machine machine;
    struct err err;

    if (describe(k, s, k->host->templates_fd, &machine, &err) < 0)
        sandbox_fail(k, s, &err);
    else
        launch_machine(k, s, &machine, guest_loader);
}

static int check_load(struct keeper *k, const struct limits *limits, const struct image_meta *meta,
                      bool files_only, struct err *err)
{
    if (load_check_limits(k, limits, meta, files_only, err) < 0)
        return -1;
    return files_only || !(meta->image.flags & KEEPER_IMAGE_MEMORY)
               ? 0
               : guest_check_version(&kind, meta, err);
}

static int load(struct keeper *k, const struct keeper_request *r, const struct image_meta *meta,
                struct sandbox **ret, struct err *err)
{
    static const struct load_way by = { check_load, load_layers };

    return load_begin_by(k, r, meta, &by, ret, err);
}

static int stats(struct keeper *k, struct sandbox *s, bool brief, struct keeper_stats *ret,
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
    .gives_files = true,
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
    .save = guest_save,
    .load = load,
    .guest = &kind,
    .network = jail_network,
    .rename = jail_rename,
    .stale = jail_stale,
};
