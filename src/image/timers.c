/* files.img: two words of magic, then records, each a length and a file; of a timerfd, field 12 is its own part. */
#include "image/timers.h"

#include "base/io.h"
#include "base/own.h"
#include "image/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_LEN 8
#define NAME      "files.img"

enum { FILE_TIMER = 12 };
enum {
    TIMER_SECONDS = 7,
    TIMER_NANOSECONDS,
    TIMER_EVERY_SECONDS,
    TIMER_EVERY_NANOSECONDS,
    TIMER_FIELDS
};

/* Where to write the nanosecond; NULL: nothing is wrong with it. Zero takes one byte, and so does one. */
static const uint8_t *find_stuck(const struct proto_field *timer)
{
    const uint8_t *at = timer->data, *end = timer->data + timer->value;
    struct proto_field field[TIMER_FIELDS] = { { .last = NULL } }, f;

    while (proto_next(&at, end, &f))
        if (f.number < TIMER_FIELDS && !f.data)
            field[f.number] = f;
    if (field[TIMER_SECONDS].value || field[TIMER_NANOSECONDS].value ||
        !(field[TIMER_EVERY_SECONDS].value || field[TIMER_EVERY_NANOSECONDS].value))
        return NULL;
    return field[TIMER_NANOSECONDS].last;
}

static int fix(int fd, const uint8_t *text, const uint8_t *at, const uint8_t *end, struct err *err)
{
    struct proto_field f;

    while (proto_next(&at, end, &f)) {
        const uint8_t *stuck = f.number == FILE_TIMER && f.data ? find_stuck(&f) : NULL;

        if (stuck && pwrite(fd, "\1", 1, stuck - text) != 1)
            return err_sys(err, errno, "write " NAME);
    }
    return 0;
}

int timers_fix(int memory_fd, struct err *err)
{
    auto_close int fd = openat(memory_fd, NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    auto_free uint8_t *text = NULL;
    const uint8_t *at, *end;
    struct stat st;
    uint32_t size;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < MAGIC_LEN ||
        !(text = malloc((size_t) st.st_size)) || io_read_all(fd, text, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read " NAME);
    end = text + st.st_size;
    for (at = text + MAGIC_LEN; end - at >= (ptrdiff_t) sizeof size; at += size) {
        memcpy(&size, at, sizeof size);
        at += sizeof size;
        if (size > (size_t) (end - at))
            break;
        if (fix(fd, text, at, at + size, err) < 0)
            return -1;
    }
    return at == end ? 0
                     : err_set(err, ERR_UNSUPPORTED,
                               "criu wrote its list of files in a form that is unknown");
}
