#include "driver/jail/stage.h"

#include "base/io.h"
#include "base/own.h"
#include "driver/jail/launch.h"
#include "image/mm.h"
#include "jail/boot_id.h"
#include "jail/creds.h"
#include "jail/mountfd.h"
#include "jail/mounts.h"
#include "jail/root.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int stay(void *arg)
{
    (void) arg;
    (void) syscall(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
    (void) syscall(__NR_pause);
    return 0;
}

/* A user namespace with the sandbox's map, for the mounts: criu makes the processes' own, with the same. It needs a process
 * to be of; that one shares our memory, so that none is copied for it, and touches nothing there but its stack. */
static int open_map(uint32_t base, struct err *err)
{
    _Alignas(16) char stack[4096], path[40];
    auto_close int fd = -1;
    pid_t pid = clone(stay, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, NULL);

    if (pid < 0)
        return err_sys(err, errno, "make a user namespace");
    if (launch_write_maps(pid, base, err) == 0) {
        (void) snprintf(path, sizeof path, "/proc/%d/ns/user", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err_sys(err, errno, "open a user namespace");
    }
    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
    return fd < 0 ? -1 : take_fd(&fd);
}

/* A record of two maps, each 0 -> base, in criu's form: two words of magic, the length, protobuf. */
static int write_ids_file(const struct worker *w, const struct image_meta *meta, int memory_fd,
                          int fd, struct err *err)
{
    auto_close int old = openat(memory_fd, meta->ids_file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint32_t base = w->sandbox.info.uid_base;
    uint8_t map[32], all[96];
    size_t len = 0, at = 8;
    const uint32_t values[] = { 0, base, IDS_PER_SANDBOX };
    uint32_t size;

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        uint32_t value = values[i];

        map[len++] = (uint8_t) ((i + 1) << 3);
        for (; value > 0x7f; value >>= 7)
            map[len++] = (uint8_t) (value | 0x80);
        map[len++] = (uint8_t) value;
    }
    if (old < 0 || io_read_all(old, all, 8) < 0)
        return err_sys(err, errno, "read the id map");
    size = (uint32_t) (2 * (len + 2));
    memcpy(all + at, &size, sizeof size);
    at += sizeof size;
    for (uint8_t field = 1; field <= 2; field++) {
        all[at++] = (uint8_t) (field << 3 | 2);
        all[at++] = (uint8_t) len;
        memcpy(all + at, map, len);
        at += len;
    }
    return io_write_all(fd, all, at) < 0 ? err_sys(err, errno, "write the id map") : 0;
}

/* Of an image whose agent would be restored dumpable, as versions before saved it: another file over that one. */
static int attach_mm(const struct worker *w, int memory_fd, struct err *err)
{
    auto_close int fd = -1, mm = -1;
    auto_free uint8_t *text = NULL;
    size_t len, at;

    if (mm_read(memory_fd, &text, &len, err) < 0)
        return -1;
    at = mm_dumpable_at(text, len);
    if (!at)
        return 0;
    text[at] = 0;
    fd = openat(w->scratch_fd, MM_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || io_write_all(fd, text, len) < 0)
        return err_sys(err, errno, "write " MM_NAME);
    mm = mountfd_clone(w->scratch_fd, MM_NAME, 0);
    if (mm < 0 || mountfd_attach(mm, AT_FDCWD, "/image/" MM_NAME) < 0)
        return err_sys(err, errno, "attach " MM_NAME);
    return 0;
}

/* criu's files as it is to see them: at /image, with the id map of this slot over the one that was saved. */
int stage_image(const struct worker *w, const struct image_meta *meta, int *memory_fd,
                struct err *err)
{
    auto_close int fd = openat(w->scratch_fd, "ids", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    auto_close int memory = -1, ids = -1;
    char at[16 + IMAGE_FILE_MAX];

    (void) snprintf(at, sizeof at, "/images/%s/memory", meta->image.id);
    memory = mountfd_clone(AT_FDCWD, at, 0);
    if (fd < 0 || write_ids_file(w, meta, *memory_fd, fd, err) < 0)
        return fd < 0 ? err_sys(err, errno, "make an id map") : -1;
    if (memory < 0 || mountfd_attach(memory, AT_FDCWD, "/image") < 0)
        return err_sys(err, errno, "attach the image");
    ids = mountfd_clone(w->scratch_fd, "ids", 0);
    (void) snprintf(at, sizeof at, "/image/%s", meta->ids_file);
    if (ids < 0 || mountfd_attach(ids, AT_FDCWD, at) < 0)
        return err_sys(err, errno, "attach the id map");
    if (attach_mm(w, *memory_fd, err) < 0)
        return -1;
    own_close(memory_fd);
    *memory_fd = open("/image", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *memory_fd < 0 ? err_sys(err, errno, "open the image") : 0;
}

int stage_root(struct worker *w, const struct template *template, struct err *err)
{
    struct sandbox *s = &w->sandbox;
    auto_close int map = open_map(s->info.uid_base, err), root = -1, shm = -1;
    struct root_layers layers = { .disk_fd = s->disk_fd,
                                  .kind = DISK_IMAGE,
                                  .base_count = s->layers.count - 1 };
    int rc;

    if (map < 0)
        return -1;
    memcpy(layers.base_fd, s->base_fd + 1, layers.base_count * sizeof layers.base_fd[0]);
    rc = root_assemble(template, &layers, map, s->info.uid_base, &root, &shm, err);
    root_close_template(&layers);
    for (size_t i = 1; i < LAYERS_MAX; i++)
        own_close(&s->base_fd[i]);
    if (rc < 0 || volumes_map(s, map, err) < 0)
        return -1;
    if (jail_stage(root, s->disk_fd, shm, s->volume_fd, err) < 0)
        return -1;
    creds_files(s->info.uid_base);
    rc = boot_id_make(false, err); /* a copy has its own */
    creds_files(0);
    return rc;
}
