/* Two words of magic, a length, one record. */
#include "image/mm.h"

#include "base/io.h"
#include "base/own.h"
#include "image/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 12

enum { MM_DUMPABLE = 15 };

size_t mm_dumpable_at(const uint8_t *text, size_t len)
{
    const uint8_t *at = text + HEAD;
    struct proto_field f;
    uint32_t size;

    if (len < HEAD)
        return 0;
    memcpy(&size, text + HEAD - sizeof size, sizeof size);
    if (size != len - HEAD)
        return 0;
    while (proto_next(&at, text + len, &f))
        if (f.number == MM_DUMPABLE && !f.data)
            return f.value ? (size_t) (f.last - text) : 0;
    return 0;
}

int mm_read(int memory_fd, uint8_t **ret, size_t *ret_len, struct err *err)
{
    auto_close int fd = openat(memory_fd, MM_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    auto_free uint8_t *text = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "open " MM_NAME);
    if (st.st_size > MM_MOST)
        return err_set(err, ERR_INVALID, MM_NAME " of %lld bytes is too large",
                       (long long) st.st_size);
    text = malloc((size_t) st.st_size + 1);
    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for " MM_NAME);
    if (io_read_all(fd, text, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read " MM_NAME);
    *ret = take_ptr(&text);
    *ret_len = (size_t) st.st_size;
    return 0;
}

int mm_fix(int memory_fd, struct err *err)
{
    auto_free uint8_t *text = NULL;
    auto_close int fd = -1;
    size_t len, at;

    if (mm_read(memory_fd, &text, &len, err) < 0)
        return -1;
    at = mm_dumpable_at(text, len);
    if (!at)
        return 0;
    fd = openat(memory_fd, MM_NAME, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, "", 1, (off_t) at) != 1)
        return err_sys(err, errno, "write " MM_NAME);
    return 0;
}
