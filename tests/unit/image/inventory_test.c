#include "check.h"

#include "base/own.h"
#include "image/inventory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As criu writes it: magic, length, fields; the lock is field 11. */
static const uint8_t example[] = { 0x16, 0x31, 0x31, 0x58, 8,    0, 0,    0,
                                   0x08, 2,    0x10, 1,    0x58, 1, 0x62, 0 };
#define LOCK 13

static char dir[] = "/tmp/cove-inventory.XXXXXX";

static int begin(void)
{
    static int fd = -1;
    auto_close int file = -1;

    if (fd < 0)
        fd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    (void) unlinkat(fd, "tcp-stream-7.img", 0);
    file = openat(fd, "inventory.img", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(write(file, example, sizeof example) == sizeof example);
    return fd;
}

static int lock_of(int fd)
{
    auto_close int file = openat(fd, "inventory.img", O_RDONLY | O_CLOEXEC);
    uint8_t text[sizeof example + 1];

    CHECK(read(file, text, sizeof text) == sizeof example);
    return text[LOCK];
}

static void what_is_no_inventory_has_no_lock(void)
{
    uint8_t text[sizeof example];

    memcpy(text, example, sizeof text);
    CHECK(inventory_lock_at(text, 0) == 0);
    CHECK(inventory_lock_at(text, 7) == 0);
    CHECK(inventory_lock_at(text, sizeof text - 1) == 0); /* shorter than it says */
    text[4] = 4;                                          /* longer than it says */
    CHECK(inventory_lock_at(text, sizeof text) == 0);
}

static void another_lock_is_left_alone(void)
{
    uint8_t text[sizeof example];

    memcpy(text, example, sizeof text);
    CHECK(inventory_lock_at(text, sizeof text) == LOCK);
    text[LOCK] = 0;
    CHECK(inventory_lock_at(text, sizeof text) == 0);
}

static void an_image_without_connections_needs_no_lock(void)
{
    int fd = begin();
    struct err err;

    CHECK(inventory_fix(fd, &err) == 0);
    CHECK(lock_of(fd) == 2);
    CHECK(inventory_fix(fd, &err) == 0);
    CHECK(lock_of(fd) == 2);
}

static void an_image_with_connections_keeps_it(void)
{
    int fd = begin();
    auto_close int stream = openat(fd, "tcp-stream-7.img", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct err err;

    CHECK(stream >= 0);
    CHECK(inventory_fix(fd, &err) == 0);
    CHECK(lock_of(fd) == 1);
}

static void an_image_without_inventory_is_an_error(void)
{
    int fd = begin();
    struct err err;

    CHECK(unlinkat(fd, "inventory.img", 0) == 0);
    CHECK(inventory_fix(fd, &err) == -1);
}

static void nothing_is_left(void)
{
    int fd = begin();

    CHECK(unlinkat(fd, "inventory.img", 0) == 0);
    CHECK(rmdir(dir) == 0);
}

CHECK_MAIN(T(what_is_no_inventory_has_no_lock), T(another_lock_is_left_alone),
           T(an_image_without_connections_needs_no_lock), T(an_image_with_connections_keeps_it),
           T(an_image_without_inventory_is_an_error), T(nothing_is_left))
