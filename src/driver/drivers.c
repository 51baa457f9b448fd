/* The table of drivers, and the one for sandboxes that none of them made. */
#include "driver/driver.h"

#include "base/own.h"
#include "driver/gvisor/gvisor.h"
#include "driver/jail/jail.h"
#include "driver/vm/vm.h"

#include <stdlib.h>

#ifdef COVE_FAULT_DRIVER /* a keeper for tests (tests/driver), never the product's */
extern const struct driver fault_driver;
#endif

static const struct driver *const drivers[] = {
    [ISOLATION_JAIL] = &jail_driver,
    [ISOLATION_GVISOR] = &gvisor_driver,
#ifdef COVE_FAULT_DRIVER
    [ISOLATION_VM] = &fault_driver,
#else
    [ISOLATION_VM] = &vm_driver,
#endif
    [ISOLATION_VM_EMULATED] = &vm_emulated_driver,
};

const struct driver *driver_find(uint32_t isolation, struct err *err)
{
    bool absent = false;

#ifdef COVE_FAULT_DRIVER /* as a keeper of a version that does not have it */
    absent = isolation == ISOLATION_VM && getenv("COVE_FAULT_ABSENT");
#endif
    if (isolation < ARRAY_LEN(drivers) && drivers[isolation] && !absent)
        return drivers[isolation];
    err_set(err, ERR_UNSUPPORTED, "isolation '%s' is not available on this host",
            isolation_name(isolation));
    return NULL;
}

int driver_lacks(const struct driver *driver, const char *what, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "isolation '%s' cannot %s",
                   isolation_name(driver->isolation), what);
}

/* ---- a sandbox of an isolation that this keeper does not have ---- */

static int unknown_connect(struct keeper *k, const struct sandbox *s, int *ret_fd, struct err *err)
{
    (void) k, (void) ret_fd;
    return driver_find(s->info.isolation, err) ? 0 : -1;
}

static int unknown_stats(struct keeper *k, struct sandbox *s, bool brief, struct keeper_stats *ret,
                         struct err *err)
{
    (void) k, (void) brief, (void) ret;
    return driver_find(s->info.isolation, err) ? 0 : -1;
}

static void nothing(struct keeper *k, struct sandbox *s)
{
    (void) k, (void) s;
}

static void leave_nothing(struct keeper *k, const struct sandbox *s)
{
    (void) k, (void) s;
}

/* Every driver's processes are in the sandbox's cgroups: that is enough to end one. */
static const struct driver unknown_driver = {
    .isolation = ISOLATION_COUNT,
    .connect = unknown_connect,
    .stats = unknown_stats,
    .died = nothing,
    .leave_disk = leave_nothing,
    .let_go = jail_let_go,
    .kill = jail_kill,
    .kill_workers = jail_kill_workers,
    .remove = jail_remove,
    .release = jail_release,
};

const struct driver *driver_unknown(void)
{
    return &unknown_driver;
}
