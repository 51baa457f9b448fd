#include "template/image_tools.h"

#include "base/io.h"
#include "base/own.h"
#include "http/tar.h"
#include "template/template_files.h"
#include "template/template_kernels.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SUDO       "opt/cove/bin/sudo"
#define ENTRYPOINT "opt/cove/bin/entrypoint"
#define AGENT_MOST (16u << 20)

static int put_entry(int fd, enum tar_type type, const char *path, const char *target,
                     uint32_t mode, const void *data, size_t len, struct err *err)
{
    static const char zeros[TAR_BLOCK];
    struct tar_entry entry = { .type = type, .mode = mode, .size = len };
    char head[TAR_HEAD_MAX];
    ssize_t n;

    (void) snprintf(entry.path, sizeof entry.path, "%s", path);
    (void) snprintf(entry.target, sizeof entry.target, "%s", target);
    n = tar_put_head(head, sizeof head, &entry, err);
    if (n < 0)
        return -1;
    if (io_write_all(fd, head, (size_t) n) < 0 || io_write_all(fd, data, len) < 0 ||
        io_write_all(fd, zeros, tar_padding(len)) < 0)
        return err_sys(err, errno, "write cove's files for images");
    return 0;
}

static int put_file(int fd, const char *path, const char *text, uint32_t mode, struct err *err)
{
    return put_entry(fd, TAR_FILE, path, "", mode, text, strlen(text), err);
}

static int put_agent(int fd, const char *agent, struct err *err)
{
    auto_close int from = open(agent, O_RDONLY | O_CLOEXEC);
    auto_free char *data = NULL;
    struct stat st;

    if (from < 0 || fstat(from, &st) < 0)
        return err_sys(err, errno, "open %s", agent);
    if (st.st_size > AGENT_MOST || !(data = malloc((size_t) st.st_size)))
        return err_set(err, ERR_NO_MEMORY, "no memory for %s", agent);
    if (io_read_all(from, data, (size_t) st.st_size) < 0)
        return err_sys(err, errno, "read %s", agent);
    return put_entry(fd, TAR_FILE, SUDO, "", 0755, data, (size_t) st.st_size, err) < 0
               ? -1
               : put_entry(fd, TAR_SAME, ENTRYPOINT, SUDO, 0755, "", 0, err);
}

int image_tools_make(const struct template_maker *maker, int *ret_fd, struct err *err)
{
    static const char zeros[TAR_END_SIZE];
    auto_close int fd = memfd_create("cove-tools", MFD_CLOEXEC);
    struct template_file file;
    const char *path, *text;
    mode_t mode;

    if (!maker->agent)
        return err_set(err, ERR_UNAVAILABLE, "sudo for the template: there is no cove-agent");
    if (fd < 0)
        return err_sys(err, errno, "memory for cove's files");
    if (put_agent(fd, maker->agent, err) < 0)
        return -1;
    for (size_t i = 0; template_kernels_at(i, &path, &text, &mode); i++)
        if (put_file(fd, path, text, mode, err) < 0)
            return -1;
    for (size_t i = 0; template_files_at(i, FILES_IMAGE, &file); i++)
        if (put_file(fd, file.path, file.text, file.mode, err) < 0)
            return -1;
    if (io_write_all(fd, zeros, sizeof zeros) < 0)
        return err_sys(err, errno, "write cove's files for images");
    *ret_fd = take_fd(&fd);
    return 0;
}
