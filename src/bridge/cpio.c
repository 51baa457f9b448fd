#include "bridge/cpio.h"

#include "base/io.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD      110u
#define NAME_MOST 200u

static int put(int fd, const void *data, size_t len, struct err *err)
{
    return io_write_all(fd, data, len) < 0 ? err_sys(err, errno, "write the archive") : 0;
}

/* Every part begins at a multiple of four. */
static int pad(int fd, uint64_t len, struct err *err)
{
    static const char zeros[4];

    return put(fd, zeros, (size_t) (-len & 3u), err);
}

static int head(int fd, const char *name, unsigned mode, uint64_t size, struct err *err)
{
    char text[HEAD + NAME_MOST + 1];
    size_t len = strlen(name) + 1;

    if (len > NAME_MOST || size > UINT32_MAX)
        return err_set(err, ERR_TOO_BIG, "%.60s does not fit into the archive", name);
    /* magic, inode, mode, uid, gid, links, mtime, size, four numbers of devices, length of the name, checksum */
    (void) snprintf(text, sizeof text,
                    "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s", 0u, mode, 0u,
                    0u, 1u, 0u, (unsigned) size, 0u, 0u, 0u, 0u, (unsigned) len, 0u, name);
    return put(fd, text, HEAD + len, err) < 0 ? -1 : pad(fd, HEAD + len, err);
}

int cpio_directory(int fd, const char *name, struct err *err)
{
    return head(fd, name, S_IFDIR | 0755, 0, err);
}

int cpio_data(int fd, const char *name, const void *data, size_t len, struct err *err)
{
    return head(fd, name, S_IFREG | 0600, len, err) < 0 || put(fd, data, len, err) < 0
               ? -1
               : pad(fd, len, err);
}

int cpio_file(int fd, const char *name, unsigned mode, int from, struct err *err)
{
    char data[65536];
    uint64_t left;
    struct stat st;

    if (fstat(from, &st) < 0)
        return err_sys(err, errno, "size of %s", name);
    if (head(fd, name, S_IFREG | mode, (uint64_t) st.st_size, err) < 0)
        return -1;
    for (left = (uint64_t) st.st_size; left > 0;) {
        ssize_t n = read(from, data, left < sizeof data ? (size_t) left : sizeof data);

        if (n <= 0)
            return err_sys(err, n < 0 ? errno : EIO, "read %s", name);
        if (put(fd, data, (size_t) n, err) < 0)
            return -1;
        left -= (uint64_t) n;
    }
    return pad(fd, (uint64_t) st.st_size, err);
}

int cpio_end(int fd, struct err *err)
{
    return head(fd, "TRAILER!!!", 0, 0, err);
}
