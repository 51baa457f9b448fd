/* QEMU gets a machine without anything that can be left out: no firmware but a loader of kernels, no bus, no network, no display.
 *
 *   memory      the sandbox's limit and what the guest's kernel takes; shared with virtiofsd, which reads for the guest
 *   root        the template, by virtiofsd, read-only
 *   volumes     directories of another virtiofsd's, which may write where the mount of a volume lets it
 *   disk        an image in the sandbox's disk, as large as that: the guest's file system is never mounted by the host
 *   port        the trunk
 *   monitor     QEMU's own protocol (qmp.h), by which a machine is saved and loaded
 *   console     a pipe that is read only when a start fails: what does not fit is lost
 *
 * mke2fs and QEMU are started without rights; virtiofsd has one, to read all that is in the template; that of the volumes acts as the
 * guest's users. */
#include "bridge/guest.h"

#include "base/io.h"
#include "base/lockdown.h"
#include "base/own.h"
#include "bridge/cpio.h"
#include "wire/boot.h"
#include "wire/vm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define PARTS          "/machine"
#define LOADER         PARTS VM_LOADER, "--library-path", PARTS VM_LIBRARIES
#define IMAGE          "/disk/image"
#define INITRD         "/run/initrd"
#define FS_SOCKET      "/run/root"
#define VOLUMES_SOCKET "/run/volumes"
#define MiB            ((uint64_t) 1 << 20)
#define TEXTS_MAX      32768
#define OPTIONS_MAX    16
#define HOST_CPU       "host,vmx=off,svm=off" /* no KVM inside: its nested part had the ways out of KVM */

/* Descriptors of the programs. */
enum { FD_TRUNK = 3, FD_MONITOR, FD_LISTEN = 3, FD_HELPER };

static char *const no_env[] = { NULL };

/* mke2fs and QEMU; virtiofsd keeps the right to read what is in the template, for every owner, and drops the other one itself. */
static _Noreturn void become(const char *const *argv, bool with_rights)
{
    struct err err;

    if (with_rights || lockdown_capabilities(0, &err) == 0)
        (void) execve(argv[0], (char *const *) (uintptr_t) argv, no_env);
    _exit(127);
}

/* ---- the disk ---- */

/* Of what the sandbox may write, the image's own file system takes a little. One that was saved has an image. */
static int make_image(const struct guest_start *start, struct err *err)
{
    auto_close int fd = open(IMAGE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct statvfs disk;
    uint64_t size;
    char inodes[24];
    const char *const argv[] = { LOADER, PARTS "/mke2fs",
                                 "-q",   "-F",
                                 "-t",   "ext4",
                                 "-b",   "4096",
                                 "-m",   "0",
                                 "-N",   inodes,
                                 "-O",   "^has_journal,^resize_inode",
                                 "-E",   "lazy_itable_init=1,nodiscard,root_owner=0:0",
                                 IMAGE,  NULL };
    int status = 0;
    pid_t pid;

    if (fd < 0 && errno == EEXIST)
        return 0;
    if (fd < 0 || fstatvfs(fd, &disk) < 0)
        return err_sys(err, errno, "make the image of the disk");
    size = (uint64_t) disk.f_bavail * disk.f_frsize / MiB;
    size -= size / 64 + 1; /* blocks that map the image */
    if (ftruncate(fd, (off_t) (size * MiB)) < 0)
        return err_sys(err, errno, "size the image of the disk");
    (void) snprintf(inodes, sizeof inodes, "%" PRIu64,
                    start->inodes < size * MiB / 8192 ? start->inodes : size * MiB / 8192);
    pid = fork();
    if (pid == 0) {
        if (dup2(start->log, 1) >= 0 && dup2(start->log, 2) >= 0 && io_close_from(3, true) == 0)
            become(argv, false);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return err_sys(err, errno, "run mke2fs");
    return status == 0 ? 0
                       : err_set(err, ERR_UNAVAILABLE, "mke2fs failed (%d)",
                                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* ---- the first file system ---- */

static int add_modules(int archive, struct err *err)
{
    auto_dir DIR *dir = opendir(PARTS "/" BOOT_INIT_MODULES);
    const struct dirent *entry;

    if (!dir || cpio_directory(archive, BOOT_INIT_MODULES, err) < 0)
        return dir ? -1 : err_sys(err, errno, "open the kernel's modules");
    while ((entry = readdir(dir))) {
        auto_close int fd = -1;
        char name[300];

        if (entry->d_name[0] == '.')
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        (void) snprintf(name, sizeof name, BOOT_INIT_MODULES "/%s", entry->d_name);
        if (fd < 0)
            return err_sys(err, errno, "open %s", name);
        if (cpio_file(archive, name, 0400, fd, err) < 0)
            return -1;
    }
    return 0;
}

static int add_text(char *texts, size_t *len, const char *text, struct err *err)
{
    size_t more = strlen(text) + 1;

    if (more > TEXTS_MAX - *len)
        return err_set(err, ERR_TOO_BIG, "the template's environment is too large");
    memcpy(texts + *len, text, more);
    *len += more;
    return 0;
}

static int add_boot(int archive, const struct guest_start *start, struct err *err)
{
    char texts[TEXTS_MAX];
    size_t len = 0;

    if (add_text(texts, &len, start->processes, err) < 0 ||
        add_text(texts, &len, start->volumes, err) < 0)
        return -1;
    for (char **arg = start->argv; *arg; arg++)
        if (add_text(texts, &len, *arg, err) < 0)
            return -1;
    for (char **env = start->envp; *env; env++)
        if (add_text(texts, &len, *env, err) < 0)
            return -1;
    return cpio_data(archive, BOOT_INIT_FILE, texts, len, err);
}

static int make_initrd(const struct guest_start *start, struct err *err)
{
    auto_close int archive = open(INITRD, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    auto_close int agent = -1;
    const char *name = strrchr(start->argv[0], '/');
    char path[300];

    if (archive < 0 || !name)
        return err_sys(err, archive < 0 ? errno : EINVAL, "make the first file system");
    (void) snprintf(path, sizeof path, "/agent%s", name);
    agent = open(path, O_RDONLY | O_CLOEXEC);
    if (agent < 0)
        return err_sys(err, errno, "open the agent");
    return add_modules(archive, err) < 0 || cpio_file(archive, "init", 0700, agent, err) < 0 ||
                   add_boot(archive, start, err) < 0
               ? -1
               : cpio_end(archive, err);
}

/* ---- the template, and volumes ---- */

static int listen_at(const char *path, struct err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void) snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *) &at, sizeof at) < 0 || listen(fd, 1) < 0)
        return err_sys(err, errno, "listen at %s", path);
    return take_fd(&fd);
}

/* Its end is the guest's (serve): the guest would wait for its files for ever. */
static int start_virtiofsd(const struct guest_start *start, int helper, const char *path,
                           const char *const *argv, struct err *err)
{
    auto_close int sock = listen_at(path, err);
    pid_t pid;

    if (sock < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        int high = fcntl(helper, F_DUPFD_CLOEXEC, FD_HELPER + 8);

        if (high >= 0 && dup2(sock, FD_LISTEN) >= 0 && dup2(start->log, 1) >= 0 &&
            dup2(start->log, 2) >= 0 && dup2(high, FD_HELPER) >= 0 &&
            io_close_from(FD_HELPER + 1, true) == 0)
            become(argv, true);
        _exit(127);
    }
    return pid < 0 ? err_sys(err, errno, "start virtiofsd") : 0;
}

/* Files may go while a machine is saved, from a volume or from the host's /usr: that is an error to who had it open, and no more. */
#define VIRTIOFSD                                                                                  \
    LOADER, PARTS "/virtiofsd", "--fd=3", "--sandbox=none", "--no-announce-submounts",             \
        "--inode-file-handles=never", "--rlimit-nofile=0", "--log-level=error",                    \
        "--migration-on-error=guest-error"

static int serve_template(const struct guest_start *start, struct err *err)
{
    static const char *const argv[] = { VIRTIOFSD,
                                        "--shared-dir=/bundle/rootfs",
                                        "--readonly",
                                        "--cache=always",
                                        "--modcaps=-chown:-dac_override:-fowner:-fsetid:-setgid:"
                                        "-setuid:-mknod:-setfcap:+dac_read_search",
                                        NULL };

    return start_virtiofsd(start, start->helper[0], FS_SOCKET, argv, err);
}

static int serve_volumes(const struct guest_start *start, struct err *err)
{
    static const char *const argv[] = { VIRTIOFSD, "--shared-dir=/volumes",     "--cache=auto",
                                        "--xattr", "--modcaps=-mknod:-setfcap", NULL };

    return start->volumes[0] ? start_virtiofsd(start, start->helper[1], VOLUMES_SOCKET, argv, err)
                             : 0;
}

/* ---- the machine ---- */

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

/* What not every machine has. */
static void add_options(const struct guest_start *start, bool emulated, const char **at)
{
    static const char *const load[] = { "-incoming", "defer", "-S", NULL };
    static const char *const boot[] = { "-initrd", INITRD, NULL };
    static const char *const volumes[] = {
        "-chardev", "socket,id=volumes,path=" VOLUMES_SOCKET, "-device",
        "vhost-user-fs-device,chardev=volumes,tag=" BOOT_INIT_VOLUMES, NULL
    };
    static const char *const kvm[] = { "-add-fd", "fd=7,set=1", NULL };
    /* One that is loaded has its first file system in the memory that it gets. */
    const char *const *const options[] = { start->load ? load : boot,
                                           start->volumes[0] ? volumes : NULL,
                                           emulated ? NULL : kvm };

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        for (const char *const *option = options[i]; option && *option; option++)
            *at++ = *option;
    *at = NULL;
}

/* What is told in numbers. */
struct texts {
    char cpus[16], memory[32], object[96], append[160];
};

static void write_texts(const struct guest_start *start, bool emulated, struct texts *ret)
{
    uint64_t memory_mib = (start->memory + VM_KERNEL_MEMORY) / MiB;

    (void) snprintf(ret->cpus, sizeof ret->cpus, "%u",
                    start->cpus > VM_CPUS_MOST ? VM_CPUS_MOST : start->cpus);
    (void) snprintf(ret->memory, sizeof ret->memory, "%" PRIu64 "M", memory_mib);
    (void) snprintf(ret->object, sizeof ret->object,
                    "memory-backend-memfd,id=memory,share=on,size=%" PRIu64 "M", memory_mib);
    if (emulated)
        (void) snprintf(ret->append, sizeof ret->append,
                        "console=ttyS0 quiet loglevel=3 reboot=t panic=-1 tsc_early_khz=%" PRIu64
                        " tsc=reliable",
                        counter_khz());
    else
        (void) snprintf(ret->append, sizeof ret->append,
                        "console=ttyS0 quiet loglevel=3 reboot=t panic=-1");
}

static _Noreturn void become_qemu(const struct guest_start *start, bool emulated)
{
    struct texts t;
    int monitor;
    const char *const machine[] = { LOADER,
                                    PARTS "/qemu",
                                    "-L",
                                    PARTS "/share",
                                    "-no-user-config",
                                    "-nodefaults",
                                    "-display",
                                    "none",
                                    "-no-reboot",
                                    "-machine",
                                    "microvm,acpi=on,pcie=off,usb=off,isa-serial=on,rtc=on,pit=off,"
                                    "pic=off,memory-backend=memory",
                                    "-accel",
                                    emulated ? "tcg,tb-size=64" : "kvm,device=/dev/fdset/1",
                                    "-cpu",
                                    emulated ? "max" : HOST_CPU,
                                    "-smp",
                                    t.cpus,
                                    "-m",
                                    t.memory,
                                    "-object",
                                    t.object,
                                    "-blockdev",
                                    "driver=file,node-name=disk,filename=" IMAGE
                                    ",discard=unmap,cache.no-flush=on,locking=off",
                                    "-device",
                                    "virtio-blk-device,drive=disk,werror=report,rerror=report",
                                    "-chardev",
                                    "socket,id=root,path=" FS_SOCKET,
                                    "-device",
                                    "vhost-user-fs-device,chardev=root,tag=" BOOT_INIT_ROOT,
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
                                    "chardev=monitor,mode=control",
                                    "-kernel",
                                    PARTS VM_KERNEL,
                                    "-append",
                                    t.append };
    const char *argv[ARRAY_LEN(machine) + OPTIONS_MAX];

    memcpy(argv, machine, sizeof machine);
    add_options(start, emulated, argv + ARRAY_LEN(machine));
    write_texts(start, emulated, &t);
    monitor = fcntl(start->monitor, F_DUPFD_CLOEXEC, BOOT_FD_KVM + 1);
    if (monitor >= 0 && dup2(start->trunk, FD_TRUNK) >= 0 && dup2(monitor, FD_MONITOR) >= 0 &&
        dup2(start->log, 1) >= 0 && dup2(start->log, 2) >= 0 &&
        io_close_from(FD_MONITOR + 1, true) == 0 &&
        (emulated || fcntl(BOOT_FD_KVM, F_SETFD, 0) == 0))
        become(argv, false);
    _exit(127);
}
_Static_assert(BOOT_FD_KVM == 7 && FD_TRUNK == 3 && FD_MONITOR == 4, "QEMU is told so");

static int start_machine(const struct guest_start *start, bool emulated, struct err *err)
{
    pid_t pid;

    if (make_image(start, err) < 0 || (!start->load && make_initrd(start, err) < 0) ||
        serve_template(start, err) < 0 || serve_volumes(start, err) < 0)
        return -1;
    pid = fork();
    if (pid == 0)
        become_qemu(start, emulated);
    return pid < 0 ? err_sys(err, errno, "start QEMU") : 0;
}

int guest_start_vm(const struct guest_start *start, struct err *err)
{
    int rc = start_machine(start, false, err);

    (void) close(BOOT_FD_KVM); /* the machine has it */
    return rc;
}

int guest_start_vm_emulated(const struct guest_start *start, struct err *err)
{
    return start_machine(start, true, err);
}
