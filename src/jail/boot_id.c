#include "jail/boot_id.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/mountfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

#define FILE_NAME "/disk/boot_id"
#define TEXT_LEN  37 /* with the end of the line */

static int random_id(char text[TEXT_LEN + 1])
{
    static const char hyphens[] = "\4\6\10\12"; /* before these bytes */
    unsigned char byte[16];
    size_t at = 0, hyphen = 0;

    if (getrandom(byte, sizeof byte, 0) != sizeof byte)
        return -1;
    byte[6] = (byte[6] & 0x0f) | 0x40; /* version 4: at random */
    byte[8] = (byte[8] & 0x3f) | 0x80;
    for (size_t i = 0; i < sizeof byte; i++) {
        if (i == (size_t) hyphens[hyphen]) {
            text[at++] = '-';
            hyphen++;
        }
        (void) snprintf(text + at, 3, "%02x", byte[i]);
        at += 2;
    }
    text[at++] = '\n';
    text[at] = '\0';
    return 0;
}

int boot_id_make(bool again, struct err *err)
{
    /* Written in place where there is one: that needs no room on the disk. */
    auto_close int fd = open(FILE_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    char text[TEXT_LEN + 1];

    if (fd < 0 && errno == ENOSPC)
        return 0;
    if (fd < 0)
        return err_sys(err, errno, "open the boot id");
    if (!again && lseek(fd, 0, SEEK_END) == TEXT_LEN)
        return 0;
    if (random_id(text) < 0)
        return err_sys(err, errno, "random bytes for a boot id");
    if (pwrite(fd, text, TEXT_LEN, 0) != TEXT_LEN && errno != ENOSPC)
        return err_sys(err, errno, "write the boot id");
    return 0;
}

int boot_id_mount(void)
{
    auto_close int fd = mountfd_clone(AT_FDCWD, FILE_NAME, 0);

    if (fd < 0 && errno == ENOENT)
        fd = mountfd_clone(AT_FDCWD, "/dev/null", 0);
    if (fd < 0 || mountfd_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0) < 0)
        return -1;
    return take_fd(&fd);
}
