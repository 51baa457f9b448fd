#include "bridge/initrd.h"

#include "base/io.h"
#include "base/own.h"
#include "bridge/cpio.h"
#include "wire/boot.h"
#include "wire/vm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- the kernel ---- */

static bool is_own(void)
{
    static enum { UNKNOWN, OWN, DEBIAN } which;

    if (which == UNKNOWN)
        which = access(INITRD_PARTS VM_OWN VM_KERNEL, R_OK) == 0 ? OWN : DEBIAN;
    return which == OWN;
}

const char *initrd_kernel(void)
{
    return is_own() ? INITRD_PARTS VM_OWN VM_KERNEL : INITRD_PARTS VM_KERNEL;
}

const char *initrd_modules(void)
{
    return is_own() ? INITRD_PARTS VM_OWN VM_MODULES : INITRD_PARTS VM_MODULES;
}

uint64_t initrd_kernel_memory(void)
{
    return is_own() ? VM_OWN_MEMORY : VM_KERNEL_MEMORY;
}

/* ---- the archive ---- */

static int add_modules(int archive, struct err *err)
{
    auto_dir DIR *dir = opendir(initrd_modules());
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

int initrd_make(const struct guest_start *start, bool all, struct err *err)
{
    auto_close int archive = -1, agent = -1;
    const char *name = strrchr(start->argv[0], '/');
    char path[300];

    (void) unlink(INITRD_FILE); /* of a machine that did not start */
    archive = open(INITRD_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (archive < 0 || !name)
        return err_sys(err, archive < 0 ? errno : EINVAL, "make the first file system");
    (void) snprintf(path, sizeof path, "/agent%s", name);
    agent = open(path, O_RDONLY | O_CLOEXEC);
    if (agent < 0)
        return err_sys(err, errno, "open the agent");
    if (add_modules(archive, err) < 0 || cpio_file(archive, "init", 0700, agent, err) < 0 ||
        (all && cpio_data(archive, BOOT_INIT_ALL, "", 0, err) < 0))
        return -1;
    return cpio_end(archive, err);
}

/* ---- what one machine is told ---- */

static int add_text(struct boot_told *told, const char *text, struct err *err)
{
    size_t more = strlen(text) + 1;

    if (more > sizeof told->texts - told->len)
        return err_set(err, ERR_TOO_BIG, "the template's environment is too large");
    memcpy(told->texts + told->len, text, more);
    told->len += (uint32_t) more;
    return 0;
}

static int add_all(struct boot_told *told, char *const *list, struct err *err)
{
    for (; *list; list++)
        if (add_text(told, *list, err) < 0)
            return -1;
    return 0;
}

int initrd_tell(const struct guest_start *start, int trunk, struct err *err)
{
    static struct boot_told told;

    told = (struct boot_told){ .magic = BOOT_TOLD_MAGIC, .time_ms = io_real_ms() };
    if (getrandom(told.seed, sizeof told.seed, 0) != sizeof told.seed)
        return err_sys(err, errno, "random bytes");
    if (add_text(&told, start->processes, err) < 0 || add_text(&told, start->volumes, err) < 0 ||
        add_text(&told, start->roots, err) < 0 || add_all(&told, start->argv, err) < 0 ||
        add_all(&told, start->envp, err) < 0)
        return -1;
    return io_write_all(trunk, &told, BOOT_TOLD_HEAD + told.len) < 0
               ? err_sys(err, errno, "tell the machine what it is")
               : 0;
}
