#include "driver/vm/parts.h"

#include "base/io.h"
#include "base/own.h"
#include "driver/ask.h"
#include "wire/vm.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FETCH "'tools/vm', or fetch-vm of the package, fetches it"

/* The last file that was asked. */
static struct {
    struct stat file;
    uint32_t version; /* 0: it does not say, or does not run */
} known;

/* False: there is none. */
static bool look(void)
{
    static const char *const argv[] = {
        VM_PREFIX VM_LOADER, "--library-path", VM_PREFIX VM_LIBRARIES,
        VM_PREFIX VM_QEMU,   "--version",      NULL
    };
    struct stat st;
    char text[256];

    if (stat(VM_PREFIX VM_QEMU, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    if (!ask_is_same(&known.file, &st)) {
        known.file = st;
        ask_program(argv, text, sizeof text);
        known.version = vm_parse_qemu_version(text);
    }
    return true;
}

static int lacks(const char *isolation, const char *what, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "isolation '%s' is not available on this host: %s",
                   isolation, what);
}

/* Modules have a number before their name, which says when they are loaded. */
static bool has_erofs(void)
{
    static const char name[] = "-erofs.ko";
    auto_dir DIR *dir = opendir(VM_PREFIX VM_MODULES);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);

        if (len > sizeof name && strcmp(entry->d_name + len - (sizeof name - 1), name) == 0)
            return true;
    }
    return false;
}

int parts_check(const char *isolation, struct err *err)
{
    char text[120];

    if (!look())
        return lacks(isolation, "QEMU is not in " VM_PREFIX " (" FETCH ")", err);
    if (known.version == 0)
        return lacks(isolation, "QEMU in " VM_PREFIX " does not tell its version", err);
    if (known.version < VM_QEMU_OLDEST) {
        (void) snprintf(text, sizeof text,
                        "QEMU %u or later is needed, and that of " VM_PREFIX " is %u",
                        VM_QEMU_OLDEST, known.version);
        return lacks(isolation, text, err);
    }
    if (access(VM_PREFIX VM_OWN VM_KERNEL, R_OK) == 0)
        return 0;
    if (access(VM_PREFIX VM_KERNEL, R_OK) < 0)
        return lacks(isolation, "there is no kernel in " VM_PREFIX " (" FETCH ")", err);
    return has_erofs()
               ? 0
               : lacks(isolation, VM_PREFIX " is of an earlier version, without erofs (" FETCH ")",
                       err);
}

void parts_qemu(const struct stat *file, char *out, size_t size)
{
    char text[256];

    if ((file && !(look() && ask_is_same(file, &known.file))) ||
        io_read_text(AT_FDCWD, VM_PREFIX VM_VERSION, text, sizeof text) < 0)
        text[0] = '\0';
    vm_parse_parts(text, "qemu", out, size);
}

const char *parts_text(void)
{
    static char text[32];

    if (!look())
        return "no QEMU";
    if (known.version == 0)
        return "QEMU does not run";
    (void) snprintf(text, sizeof text,
                    known.version < VM_QEMU_OLDEST ? "QEMU %u is too old" : "QEMU %u",
                    known.version);
    return text;
}
