#include "driver/vm/memory.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "keeper/sandbox.h"
#include "wire/boot.h"
#include "wire/vm.h"
#include "wire/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MiB   ((uint64_t) 1 << 20)

/* So often one is tried to be made, and then not for that long: what failed may have been the host's load, or a tenant who ends machines. */
#define TRIES   3u
#define REST_MS 600000u

/* What a memory is of. False: it is not known. */
static bool describe(const struct keeper *k, const struct sandbox *s, const struct machine *machine,
                     struct memory_kind *ret)
{
    struct stat st;

    if (stat(VM_PREFIX VM_VERSION, &st) < 0)
        return false;
    memset(ret, 0, sizeof *ret); /* it is compared as a whole */
    ret->isolation = s->info.isolation;
    ret->disks = strlen(machine->roots);
    ret->cpus = (uint32_t) ((s->info.limits.cpu_milli + 999) / 1000);
    ret->bytes = (s->info.limits.memory_bytes + VM_KERNEL_MEMORY) / MiB * MiB;
    ret->parts_device = (uint64_t) st.st_dev;
    ret->parts_inode = (uint64_t) st.st_ino;
    ret->parts_s = (uint64_t) st.st_mtim.tv_sec;
    ret->parts_ns = (uint64_t) st.st_mtim.tv_nsec;
    memcpy(ret->agent, k->host->agents.name, sizeof k->host->agents.name);
    return true;
}

static void drop(struct memory *m)
{
    if (!m->used)
        return;
    own_close(&m->memory_fd);
    own_close(&m->state_fd);
    m->used = 0;
}

static bool is_starting(struct keeper *k, const char *id)
{
    const struct sandbox *s = sandbox_find(k, id);

    return s && (s->info.life == LIFE_NEW || s->info.life == LIFE_STARTING);
}

/* The kernel's word, not the bridge's. */
static bool is_sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & SEALS) == SEALS;
}

static bool is_whole(const struct memory *m)
{
    struct stat memory, state;

    return is_sealed(m->memory_fd) && is_sealed(m->state_fd) && fstat(m->memory_fd, &memory) == 0 &&
           fstat(m->state_fd, &state) == 0 && (uint64_t) memory.st_size == m->kind.bytes &&
           state.st_size > 0;
}

/* A free one, or the one that was not used for longest; not one that is being made. */
static struct memory *place_for(struct keeper *k)
{
    struct memory *best = NULL;

    for (size_t i = 0; i < MEMORIES_MAX; i++) {
        struct memory *m = &k->host->memories[i];

        if (m->used && !m->whole && is_starting(k, m->maker))
            continue;
        if (!best || m->used < best->used)
            best = m;
    }
    return best;
}

static int begin(struct keeper *k, const struct sandbox *s, const struct memory_kind *kind,
                 unsigned tries, struct memory **ret)
{
    auto_close int memory = memfd_create("cove-machine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    auto_close int state = memfd_create("cove-machine-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct memory *m = place_for(k);

    if (!m || memory < 0 || state < 0 || ftruncate(memory, (off_t) kind->bytes) < 0)
        return -1;
    drop(m);
    *m = (struct memory){ .kind = *kind,
                          .memory_fd = take_fd(&memory),
                          .state_fd = take_fd(&state),
                          .begun_ms = io_now_ms(),
                          .tries = tries + 1 };
    (void) snprintf(m->maker, sizeof m->maker, "%s", s->info.id);
    *ret = m;
    return 0;
}

static struct memory *find(struct host *host, const struct memory_kind *kind)
{
    for (size_t i = 0; i < MEMORIES_MAX; i++)
        if (host->memories[i].used && memcmp(&host->memories[i].kind, kind, sizeof *kind) == 0)
            return &host->memories[i];
    return NULL;
}

/* A bridge could not use one, and did not say which: all are made again, so often as is tried. */
static void drop_refused(struct host *host)
{
    for (size_t i = 0; host->memory_refused && i < MEMORIES_MAX; i++) {
        struct memory *m = &host->memories[i];

        if (!m->used || !is_whole(m))
            continue;
        own_close(&m->memory_fd);
        own_close(&m->state_fd);
        m->whole = false;
    }
    host->memory_refused = false;
}

static bool rests(const struct memory *m)
{
    return m->tries >= TRIES && io_now_ms() < m->begun_ms + REST_MS;
}

static void give(struct host *host, struct memory *m, const char *way, struct machine *machine)
{
    m->used = ++host->memories_used;
    machine->memory_fd = m->memory_fd;
    machine->state_fd = m->state_fd;
    machine->way = way;
}

void memory_find(struct keeper *k, const struct sandbox *s, struct machine *machine)
{
    struct host *host = k->host;
    struct memory_kind kind;
    struct memory *m;
    unsigned tries;

    if (!machine->roots[0] || s->image_memory || volume_use_count(s->volumes) > 0 ||
        !describe(k, s, machine, &kind))
        return;
    drop_refused(host);
    m = find(host, &kind);
    if (m && !m->whole && is_whole(m)) {
        m->whole = true;
        log_line(
            LOG_INFO, "machines isolation=%s memory=%llu cpus=%u disks=%u are copies from now on",
            machine->isolation, (unsigned long long) kind.bytes, kind.cpus, (unsigned) kind.disks);
    }
    if (m && m->whole) {
        give(host, m, BOOT_BRIDGE_COPY, machine);
        return;
    }
    if (s->info.limits.cpu_milli < MEMORY_MAKER_MILLI || (m && is_starting(k, m->maker)) ||
        (m && rests(m)))
        return;
    tries = m && m->tries < TRIES ? m->tries : 0;
    if (m) {
        log_line(LOG_WARNING, "sandbox=%s made no memory that other machines can use", m->maker);
        drop(m);
    }
    if (begin(k, s, &kind, tries, &m) == 0)
        give(host, m, BOOT_BRIDGE_MAKE, machine);
}
