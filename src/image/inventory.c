/* inventory.img: a word of magic, a length, one record. criu believes its field 11 more than what it is asked for. */
#include "image/inventory.h"

#include "base/own.h"
#include "image/proto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define NAME     "inventory.img"
#define HEAD     8 /* magic and length */
#define ROOM     4096
#define NFTABLES 1
#define NO_LOCK  "\2"

enum { INVENTORY_LOCK = 11 };

size_t inventory_lock_at(const uint8_t *text, size_t len)
{
    const uint8_t *at = text + HEAD;
    struct proto_field f;
    uint32_t size;

    if (len < HEAD)
        return 0;
    memcpy(&size, text + sizeof size, sizeof size);
    if (size != len - HEAD)
        return 0;
    while (proto_next(&at, text + len, &f))
        if (f.number == INVENTORY_LOCK && !f.data)
            return f.value == NFTABLES ? (size_t) (f.last - text) : 0;
    return 0;
}

/* Whether TCP connections are among what was saved. */
static bool connected(int memory_fd)
{
    int own = openat(memory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, "tcp-stream-", 11) == 0)
            return true;
    return !dir; /* not known: there may be some */
}

int inventory_fix(int memory_fd, struct err *err)
{
    auto_close int fd = openat(memory_fd, NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    uint8_t text[ROOM];
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    size_t at;

    if (len < 0)
        return err_sys(err, errno, "read " NAME);
    if (connected(memory_fd))
        return 0;
    at = inventory_lock_at(text, (size_t) len);
    if (at && pwrite(fd, NO_LOCK, 1, (off_t) at) != 1)
        return err_sys(err, errno, "write " NAME);
    return 0;
}
