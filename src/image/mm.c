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

int mm_mend(int memory_fd, struct err *err)
{
    auto_close int fd = openat(memory_fd, MM_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    auto_free uint8_t *text = NULL;
    struct stat st;
    size_t at;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > MM_MOST ||
        !(text = malloc((size_t) st.st_size + 1)) || io_read_all(fd, text, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read " MM_NAME);
    at = mm_dumpable_at(text, (size_t) st.st_size);
    if (at && pwrite(fd, "", 1, (off_t) at) != 1)
        return err_sys(err, errno, "write " MM_NAME);
    return 0;
}
