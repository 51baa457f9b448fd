#include "bridge/qemu.h"

#include "base/io.h"
#include "base/lockdown.h"
#include "base/own.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define MiB         ((uint64_t) 1 << 20)
#define MEM_MOST    (2048 * MiB) /* below the hole that a larger machine has in its addresses */
#define OPTIONS_MAX (32 + 6 * BOOT_ROOTS_MAX)
#define HOST_CPU    "host,vmx=off,svm=off" /* no KVM inside: its nested part had the ways out of KVM */
#define EMULATED_CPU                                                                               \
    "max,erms=off,fsrm=off" /* or the kernel would copy and clear memory by single bytes, each of which is emulated */

/* Descriptors of QEMU beside those of wire/boot.h. */
enum { FD_TRUNK = 3, FD_MONITOR, FD_STARTER };
_Static_assert(FD_TRUNK == 3 && FD_MONITOR == 4 && FD_STARTER == 5 && BOOT_FD_KVM == 7 &&
                   BOOT_FD_MEMORY == 8,
               "QEMU is told so");

static char *const no_env[] = { NULL };

_Noreturn void qemu_become(const char *const *argv, bool with_rights)
{
    struct err err;

    if (with_rights || lockdown_capabilities(0, &err) == 0)
        (void) execve(argv[0], (char *const *) (uintptr_t) argv, no_env);
    _exit(127);
}

/* An emulated processor has the host's counter, and no way to find out how fast it is. */
static uint64_t counter_khz(void)
{
    struct timespec begin, end;
    const struct timespec moment = { .tv_nsec = 50 * 1000 * 1000 };
    unsigned long long from, to;
    uint64_t ns;

    (void) clock_gettime(CLOCK_MONOTONIC, &begin);
    from = __rdtsc();
    (void) nanosleep(&moment, NULL);
    (void) clock_gettime(CLOCK_MONOTONIC, &end);
    to = __rdtsc();
    ns = (uint64_t) (end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t) end.tv_nsec -
         (uint64_t) begin.tv_nsec;
    return ns ? (uint64_t) (to - from) * 1000000u / ns : 0;
}

/* What is told in numbers. */
struct texts {
    char cpus[16], memory[32], object[128], append[200];
    struct {
        char fd[24], file[96], disk[64];
    } root[BOOT_ROOTS_MAX];
};

/* Shared with virtiofsd, which writes to it; a file of memory in the two ways that have one. */
static const char *backend(const struct guest_start *start, enum qemu_way way)
{
    if (way == QEMU_MAKE)
        return "file,share=on,mem-path=/proc/self/fd/8";
    if (way == QEMU_COPY)
        return "file,share=off,readonly=on,rom=off,mem-path=/proc/self/fd/8";
    return start->roots[0] && !start->volumes[0] ? "ram" : "memfd,share=on";
}

/* Files that are disks, each read-only. */
static void write_roots(const struct guest_start *start, struct texts *ret)
{
    for (int i = 0; start->roots[i]; i++) {
        (void) snprintf(ret->root[i].fd, sizeof ret->root[i].fd, "fd=%d,set=%d", BOOT_FD_ROOT + i,
                        BOOT_FD_ROOT + i);
        (void) snprintf(ret->root[i].file, sizeof ret->root[i].file,
                        "driver=file,node-name=root%d,filename=/dev/fdset/%d,read-only=on,"
                        "locking=off",
                        i, BOOT_FD_ROOT + i);
        (void) snprintf(ret->root[i].disk, sizeof ret->root[i].disk,
                        "virtio-blk-device,drive=root%d,serial=" BOOT_INIT_ROOT "%d", i, i);
    }
}

/* What its kernel is told.
 *
 * mem: a machine has the same size with every kernel, so that what was saved with one is loaded with another. A kernel that takes less for
 * itself must not give the rest to the sandbox. In a large machine the rest is next to nothing.
 *
 * init_on_alloc: an emulated processor keeps translations of code until it sees a write to the code's page. It does not see virtiofsd's writes.
 * So the kernel has to clear a page before virtiofsd reads the next file into it. */
static void write_append(const struct guest_start *start, char *out, size_t size)
{
    int len = snprintf(out, size, "console=ttyS0 quiet loglevel=3 reboot=t panic=-1");

    if (initrd_kernel_memory() < VM_KERNEL_MEMORY && start->memory < MEM_MOST)
        len += snprintf(out + len, size - (size_t) len, " mem=%" PRIu64 "M",
                        (start->memory + initrd_kernel_memory()) / MiB);
    if (start->emulated)
        (void) snprintf(out + len, size - (size_t) len,
                        " tsc_early_khz=%" PRIu64 " tsc=reliable init_on_alloc=1", counter_khz());
}

static void write_texts(const struct guest_start *start, enum qemu_way way, struct texts *ret)
{
    uint64_t memory_mib = (start->memory + VM_KERNEL_MEMORY) / MiB;

    (void) snprintf(ret->cpus, sizeof ret->cpus, "%u",
                    start->cpus > VM_CPUS_MOST ? VM_CPUS_MOST : start->cpus);
    (void) snprintf(ret->memory, sizeof ret->memory, "%" PRIu64 "M", memory_mib);
    (void) snprintf(ret->object, sizeof ret->object,
                    "memory-backend-%s,id=memory,size=%" PRIu64 "M", backend(start, way),
                    memory_mib);
    if (way == QEMU_BOOT || way == QEMU_MAKE)
        write_append(start, ret->append, sizeof ret->append);
}

static const char **add(const char **at, const char *const *options)
{
    for (; options && *options; options++)
        *at++ = *options;
    return at;
}

/* What not every machine has. One that gets a memory has its kernel and its first file system there. */
static void add_options(const struct guest_start *start, enum qemu_way way, const struct texts *t,
                        bool starter, const char **at)
{
    static const char *const load[] = { "-incoming", "defer", "-S", NULL };
    const char *const boot[] = { "-kernel", initrd_kernel(), "-append", t->append,
                                 "-initrd", INITRD_FILE,     NULL };
    static const char *const files[] = { "-chardev", "socket,id=root,path=" QEMU_FS_SOCKET,
                                         "-device",
                                         "vhost-user-fs-device,chardev=root,tag=" BOOT_INIT_ROOT,
                                         NULL };
    static const char *const volumes[] = {
        "-chardev", "socket,id=volumes,path=" QEMU_VOLUMES_SOCKET, "-device",
        "vhost-user-fs-device,chardev=volumes,tag=" BOOT_INIT_VOLUMES, NULL
    };
    static const char *const kvm[] = { "-add-fd", "fd=7,set=1", NULL };
    static const char *const second[] = { "-chardev", "socket,id=starter,fd=5", "-mon",
                                          "chardev=starter,mode=control", NULL };
    const char *const *const options[] = { start->roots[0] ? NULL : files,
                                           start->volumes[0] ? volumes : NULL,
                                           start->emulated ? NULL : kvm, starter ? second : NULL };

    at = add(at, way == QEMU_LOAD || way == QEMU_COPY ? load : boot);
    /* Devices get their places in this order, and a machine that was saved finds its own there: the template, then the volumes. */
    for (size_t i = 0; start->roots[i]; i++)
        at = add(at, (const char *const[]){ "-add-fd", t->root[i].fd, "-blockdev", t->root[i].file,
                                            "-device", t->root[i].disk, NULL });
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        at = add(at, options[i]);
    *at = NULL;
}

/* Each in its place, through numbers that are surely free; all others are closed by the exec. */
static int place(const struct guest_start *start, enum qemu_way way, const struct qemu_lines *lines)
{
    const struct {
        int from, to;
    } move[] = { { start->log, 1 },
                 { start->log, 2 },
                 { lines->trunk, FD_TRUNK },
                 { lines->monitor, FD_MONITOR },
                 { lines->starter, FD_STARTER } };
    const struct {
        bool wanted;
        int fd;
    } kept[] = { { !start->emulated, BOOT_FD_KVM },
                 { way == QEMU_MAKE || way == QEMU_COPY, BOOT_FD_MEMORY } };
    int high[ARRAY_LEN(move)];

    for (size_t i = 0; i < ARRAY_LEN(move); i++) {
        high[i] = move[i].from < 0
                      ? -1
                      : fcntl(move[i].from, F_DUPFD_CLOEXEC, BOOT_FD_ROOT + BOOT_ROOTS_MAX);
        if (high[i] < 0 && move[i].from >= 0)
            return -1;
    }
    if (io_close_from(3, true) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(move); i++)
        if (high[i] >= 0 && dup2(high[i], move[i].to) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (kept[i].wanted && fcntl(kept[i].fd, F_SETFD, 0) < 0)
            return -1;
    for (int i = 0; start->roots[i]; i++)
        if (fcntl(BOOT_FD_ROOT + i, F_SETFD, 0) < 0)
            return -1;
    return 0;
}

static _Noreturn void become(const struct guest_start *start, enum qemu_way way,
                             const struct qemu_lines *lines)
{
    struct texts t;
    const char *const machine[] = { QEMU_LOADER,
                                    INITRD_PARTS "/qemu",
                                    "-L",
                                    INITRD_PARTS "/share",
                                    "-no-user-config",
                                    "-nodefaults",
                                    "-display",
                                    "none",
                                    "-no-reboot",
                                    "-machine",
                                    "microvm,acpi=on,pcie=off,usb=off,isa-serial=on,rtc=on,pit=off,"
                                    "pic=off,memory-backend=memory",
                                    "-accel",
                                    start->emulated ? "tcg,tb-size=64" : "kvm,device=/dev/fdset/1",
                                    "-cpu",
                                    start->emulated ? EMULATED_CPU : HOST_CPU,
                                    "-smp",
                                    t.cpus,
                                    "-m",
                                    t.memory,
                                    "-object",
                                    t.object,
                                    "-blockdev",
                                    "driver=file,node-name=disk,filename=" QEMU_DISK
                                    ",discard=unmap,cache.no-flush=on,locking=off",
                                    "-device",
                                    "virtio-blk-device,drive=disk,werror=report,rerror=report,"
                                    "serial=" BOOT_INIT_DISK,
                                    "-device",
                                    "virtio-serial-device",
                                    "-chardev",
                                    "socket,id=trunk,fd=3",
                                    "-device",
                                    "virtserialport,chardev=trunk,name=" BOOT_INIT_PORT,
                                    "-chardev",
                                    "stdio,id=console,signal=off",
                                    "-serial",
                                    "chardev:console",
                                    "-chardev",
                                    "socket,id=monitor,fd=4",
                                    "-mon",
                                    "chardev=monitor,mode=control" };
    const char *argv[ARRAY_LEN(machine) + OPTIONS_MAX];

    memcpy(argv, machine, sizeof machine);
    write_texts(start, way, &t);
    write_roots(start, &t);
    add_options(start, way, &t, lines->starter >= 0, argv + ARRAY_LEN(machine));
    if (place(start, way, lines) == 0)
        qemu_become(argv, false);
    _exit(127);
}

int qemu_start(const struct guest_start *start, enum qemu_way way, const struct qemu_lines *lines,
               pid_t *ret, struct err *err)
{
    pid_t pid = fork();

    if (pid == 0)
        become(start, way, lines);
    *ret = pid;
    return pid < 0 ? err_sys(err, errno, "start QEMU") : 0;
}
