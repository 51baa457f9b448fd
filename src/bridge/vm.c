/* QEMU gets a machine without anything that can be left out: no firmware but a loader of kernels, no bus, no network, no display.
 *
 *   memory      the sandbox's limit and what the guest's kernel takes; shared with virtiofsd, where there is one
 *   root        the template, read-only: a disk for each file that it is, or a tree, by virtiofsd
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
#include "base/own.h"
#include "bridge/memory.h"
#include "bridge/qemu.h"
#include "wire/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB ((uint64_t) 1 << 20)

/* Descriptors of virtiofsd, which keeps the right to read what is in the template, for every owner, and drops the other one itself. */
enum { FD_LISTEN = 3, FD_HELPER };

/* ---- the disk ---- */

/* Of what the sandbox may write, the image's own file system takes a little. One that was saved has an image. */
static int make_image(const struct guest_start *start, struct err *err)
{
    auto_close int fd = open(QEMU_DISK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct statvfs disk;
    uint64_t size;
    char inodes[24];
    const char *const argv[] = { QEMU_LOADER, INITRD_PARTS "/mke2fs",
                                 "-q",        "-F",
                                 "-t",        "ext4",
                                 "-b",        "4096",
                                 "-m",        "0",
                                 "-N",        inodes,
                                 "-O",        "^has_journal,^resize_inode",
                                 "-E",        "lazy_itable_init=1,nodiscard,root_owner=0:0",
                                 QEMU_DISK,   NULL };
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
            qemu_become(argv, false);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return err_sys(err, errno, "run mke2fs");
    return status == 0 ? 0
                       : err_set(err, ERR_UNAVAILABLE, "mke2fs failed (%d)",
                                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
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
            qemu_become(argv, true);
        _exit(127);
    }
    return pid < 0 ? err_sys(err, errno, "start virtiofsd") : 0;
}

/* Files may go while a machine is saved, from a volume or from the host's /usr: that is an error to who had it open, and no more. */
#define VIRTIOFSD                                                                                  \
    QEMU_LOADER, INITRD_PARTS "/virtiofsd", "--fd=3", "--sandbox=none",                            \
        "--inode-file-handles=never", "--rlimit-nofile=0", "--log-level=error",                    \
        "--migration-on-error=guest-error"

static int serve_template(const struct guest_start *start, struct err *err)
{
    static const char *const argv[] = { VIRTIOFSD,
                                        "--no-announce-submounts",
                                        "--shared-dir=/bundle/rootfs",
                                        "--readonly",
                                        "--cache=always",
                                        "--modcaps=-chown:-dac_override:-fowner:-fsetid:-setgid:"
                                        "-setuid:-mknod:-setfcap:+dac_read_search",
                                        NULL };

    return start->roots[0]
               ? 0
               : start_virtiofsd(start, start->helper[GUEST_TEMPLATE], QEMU_FS_SOCKET, argv, err);
}

/* A volume is a mount of its own in the guest, too: the guest's sync(2) is one request for each mount, and virtiofsd passes a request on to one
 * file system. */
static int serve_volumes(const struct guest_start *start, struct err *err)
{
    static const char *const argv[] = { VIRTIOFSD,
                                        "--announce-submounts",
                                        "--shared-dir=/volumes",
                                        "--cache=auto",
                                        "--xattr",
                                        "--modcaps=-mknod:-setfcap",
                                        NULL };

    return start->volumes[0] ? start_virtiofsd(start, start->helper[GUEST_VOLUMES],
                                               QEMU_VOLUMES_SOCKET, argv, err)
                             : 0;
}

/* One that can have the memory of another has it; where that fails, it starts as others do. */
static int start_machine(struct guest_start *start, struct err *err)
{
    const struct qemu_lines lines = { .trunk = start->trunk,
                                      .monitor = start->monitor,
                                      .starter = -1 };
    struct err why;
    pid_t pid;

    if (make_image(start, err) < 0)
        return -1;
    if (start->way == GUEST_MAKE || start->way == GUEST_COPY) {
        if ((start->way == GUEST_COPY || memory_make(start, &why) == 0) &&
            memory_copy(start, &why) == 0)
            return 0;
        (void) send(BOOT_FD_CONTROL, BOOT_WORD_STARTED, 1, MSG_NOSIGNAL);
    }
    if ((start->way != GUEST_LOAD && initrd_make(start, false, err) < 0) ||
        serve_template(start, err) < 0 || serve_volumes(start, err) < 0)
        return -1;
    return qemu_start(start, start->way == GUEST_LOAD ? QEMU_LOAD : QEMU_BOOT, &lines, &pid, err);
}

int guest_start_vm(struct guest_start *start, struct err *err)
{
    int rc = start_machine(start, err);

    (void) close(BOOT_FD_KVM); /* the machine has it */
    return rc;
}

int guest_start_vm_emulated(struct guest_start *start, struct err *err)
{
    start->emulated = true;
    return start_machine(start, err);
}
