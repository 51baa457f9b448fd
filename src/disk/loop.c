#include "disk/loop.h"

#include "base/own.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>

int loop_find(int dev_fd, const struct stat *file)
{
    int list_fd = openat(dev_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = list_fd < 0 ? NULL : fdopendir(list_fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_close int fd = -1;
        struct loop_info64 info;

        if (strncmp(entry->d_name, "loop", 4) != 0 || entry->d_name[4] < '0' ||
            entry->d_name[4] > '9')
            continue;
        /* For reading, or its end would be news to the host's udev. */
        fd = openat(dev_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == file->st_ino &&
            info.lo_device == file->st_dev)
            return take_fd(&fd);
    }
    return -1;
}
