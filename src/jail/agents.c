#include "jail/agents.h"

#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static int hash_name(int fd, char out[AGENT_NAME], struct err *err)
{
    unsigned char hash[SHA256_LEN];
    char hex[SHA256_HEX], block[8192];
    struct sha256 sha;
    ssize_t n;

    sha256_init(&sha);
    while ((n = read(fd, block, sizeof block)) > 0)
        sha256_add(&sha, block, (size_t) n);
    if (n < 0)
        return err_sys(err, errno, "read the agent");
    sha256_done(&sha, hash);
    sha256_hex(hash, sizeof hash, hex);
    memcpy(out, hex, AGENT_NAME - 1);
    out[AGENT_NAME - 1] = '\0';
    return 0;
}

static int copy(int from, int dir_fd, const char *name, mode_t mode, struct err *err)
{
    auto_close int to =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;
    off_t at = 0;

    if (to < 0 || fstat(from, &st) < 0)
        return err_sys(err, errno, "place the agent");
    while (at < st.st_size)
        if (sendfile(to, from, &at, (size_t) (st.st_size - at)) <= 0)
            return err_sys(err, errno, "place the agent");
    return fchmod(to, mode) < 0 ? err_sys(err, errno, "place the agent") : 0;
}

/* Versions before this one did not wait for the disk: a power cut could leave a file of that name without its content. */
static bool is_whole(const struct agents *agents)
{
    auto_close int fd = openat(agents->store_fd, agents->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char name[AGENT_NAME];
    struct err ignored;

    return fd >= 0 && hash_name(fd, name, &ignored) == 0 && strcmp(name, agents->name) == 0;
}

/* Its content is on the host's disk before its name is. */
static int add(const struct agents *agents, int program_fd, struct err *err)
{
    auto_close int fd = -1;

    (void) unlinkat(agents->store_fd, "new", 0);
    if (copy(program_fd, agents->store_fd, "new", 0600, err) < 0)
        return -1;
    fd = openat(agents->store_fd, "new", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0 ||
        renameat(agents->store_fd, "new", agents->store_fd, agents->name) < 0 ||
        fsync(agents->store_fd) < 0)
        return err_sys(err, errno, "save the agent");
    return 0;
}

int agents_open(struct agents *agents, int state_fd, int program_fd, struct err *err)
{
    if (mkdirat(state_fd, "agents", 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make agents");
    agents->store_fd = openat(state_fd, "agents", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (agents->store_fd < 0)
        return err_sys(err, errno, "open agents");
    if (hash_name(program_fd, agents->name, err) < 0)
        return -1;
    if (is_whole(agents))
        return 0;
    if (add(agents, program_fd, err) < 0)
        return -1;
    return fsync(state_fd) < 0 ? err_sys(err, errno, "save the agents") : 0;
}

int agents_place(const struct agents *agents, struct err *err)
{
    int own = openat(agents->store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    auto_close int open_fd = -1, shut_fd = -1;
    const struct dirent *entry;

    /* Searchable, not to be listed. */
    if (!dir || mkdir(AGENTS_SHUT, 0711) < 0 || mkdir(AGENTS_OPEN, 0711) < 0)
        return err_sys(err, errno, "place the agents");
    open_fd = open(AGENTS_OPEN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    shut_fd = open(AGENTS_SHUT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while ((entry = readdir(dir))) {
        auto_close int fd = -1;

        if (strlen(entry->d_name) != AGENT_NAME - 1)
            continue;
        fd = openat(own, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return err_sys(err, errno, "open an agent");
        if (copy(fd, open_fd, entry->d_name, 0555, err) < 0 ||
            copy(fd, shut_fd, entry->d_name, 0111, err) < 0)
            return -1;
    }
    return 0;
}
