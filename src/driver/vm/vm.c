#include "driver/vm/vm.h"

#include "base/kvm.h"
#include "base/own.h"
#include "driver/disks.h"
#include "driver/guest/guest.h"
#include "driver/jail/connect.h"
#include "driver/jail/jail.h"
#include "driver/jail/launch.h"
#include "driver/vm/load.h"
#include "driver/vm/memory.h"
#include "driver/vm/parts.h"
#include "jail/machine.h"
#include "keeper/life.h"
#include "wire/vm.h"

#define MEMORY_LEAST                                                                               \
    (64ull << 20)               /* a kernel and an agent start with less, and then nothing does */
#define DISK_LEAST (8ull << 20) /* a file system in an image in a file system */
#define EMULATED_MS                                                                                \
    300000u /* a kernel starts in a few seconds of a processor that is shared with others */

static int lacks(const struct driver *driver, const char *why, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "isolation '%s' is not available on this host: %s",
                   isolation_name(driver->isolation), why);
}

static int check(const struct driver *driver, struct keeper *k, const struct keeper_request *r,
                 uint64_t *ret_build, struct err *err)
{
    struct template t;

    if (parts_check(isolation_name(driver->isolation), err) < 0)
        return -1;
    if (r->limits.memory_bytes < MEMORY_LEAST)
        return err_set(err, ERR_LIMIT, "memory: isolation '%s' needs at least %llu MiB",
                       isolation_name(driver->isolation), MEMORY_LEAST >> 20);
    if (r->limits.disk_bytes < DISK_LEAST)
        return err_set(err, ERR_LIMIT, "disk: isolation '%s' needs at least %llu MiB",
                       isolation_name(driver->isolation), DISK_LEAST >> 20);
    if (io_limit_check(&k->host->io, &r->limits, err) < 0 ||
        template_open(&t, k->host->templates_fd, r->template, err) < 0)
        return -1;
    *ret_build = t.build;
    template_close(&t);
    return 0;
}

static int check_vm(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                    struct err *err)
{
    struct host *host = k->host;

    if (host->kvm_fd < 0 && !host->kvm_why) /* by the first who asks: few hosts have machines */
        host->kvm_fd = kvm_try(host->dev_fd, &host->kvm_why);
    if (host->kvm_fd < 0)
        return lacks(&vm_driver, host->kvm_why, err);
    return check(&vm_driver, k, r, ret_build, err);
}

static int check_emulated(struct keeper *k, const struct keeper_request *r, uint64_t *ret_build,
                          struct err *err)
{
    if (!k->host->vm_emulated)
        return lacks(&vm_emulated_driver,
                     "it is no boundary of its own, so 'cove up --allow-vm-emulated' must allow it",
                     err);
    return check(&vm_emulated_driver, k, r, ret_build, err);
}

/* The disk is never memory: the guest's own has what the sandbox may have, and is all of it. */
static void create(struct keeper *k, struct sandbox *s)
{
    s->info.disk_kind = DISK_IMAGE;
    disks_begin(k, s);
}

static void start(struct keeper *k, struct sandbox *s)
{
    struct machine machine;
    struct err err;

    if (load_machine(k, s, k->host->templates_fd, &machine, &err) < 0) {
        sandbox_fail(k, s, &err);
        return;
    }
    memory_find(k, s, &machine);
    launch_machine(k, s, &machine, guest_loader);
    load_machine_done(&machine);
}

static int stats(struct keeper *k, struct sandbox *s, bool brief, struct keeper_stats *ret,
                 struct err *err)
{
    return guest_stats(k, s, MACHINE_DISK, brief, ret, err);
}

static void adopt(struct keeper *k, struct sandbox *s)
{
    guest_adopt(k, s, true);
}

#define BOTH                                                                                       \
    .takes_files = true, .create = create, .start = start, .connect = jail_connect,                \
    .freeze = jail_freeze, .frozen = jail_frozen, .stats = stats, .resumed = guest_resumed,        \
    .died = jail_died, .leave_disk = guest_leave_disk, .let_go = jail_let_go, .kill = jail_kill,   \
    .kill_workers = jail_kill_workers, .remove = jail_remove, .release = jail_release,             \
    .adopt = adopt, .why_lost = guest_why_lost, .settle = guest_settle, .save = guest_save,        \
    .load = load_vm, .guest = &load_vm_kind, .network = jail_network, .rename = jail_rename,       \
    .stale = jail_stale

const struct driver vm_driver = {
    .isolation = ISOLATION_VM,
    .start_ms = VM_START_MS,
    .check = check_vm,
    BOTH,
};

const struct driver vm_emulated_driver = {
    .isolation = ISOLATION_VM_EMULATED,
    .start_ms = EMULATED_MS,
    .check = check_emulated,
    BOTH,
};
