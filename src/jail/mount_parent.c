#include "jail/mount_parent.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/agents.h"
#include "jail/mountfd.h"
#include "jail/mounts.h"
#include "jail/spaces.h"
#include "jail/sysview.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int open_own(void)
{
    return open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
}

static int bring(const char *path, int root, struct err *err)
{
    auto_close int fd = mountfd_clone(AT_FDCWD, path, 0);

    if (fd < 0 ||
        mountfd_set(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0) < 0 || /* and what it has */
        mountfd_attach(fd, root, path + 1) < 0)
        return err_sys(err, errno, "bring %s to the parent of jails", path);
    return 0;
}

static int make_dirs(int root, struct err *err)
{
    static const char *const dirs[] = { "proc", "dev",    "usr",           "empty",
                                        "disk", "agents", &AGENTS_SHUT[1], &SYSVIEW_SHOWN[1] };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(root, dirs[i], 0755) < 0)
            return err_sys(err, errno, "make /%s for the parent of jails", dirs[i]);
    return 0;
}

/* In new mount and process namespaces: a root of its own, from the keeper's. Then nothing else is there. */
static int build(bool with_usr, struct err *err)
{
    static const char *const brought[] = { "/dev", SYSVIEW_SHOWN, AGENTS_SHUT, "/usr" };
    auto_close int proc = -1,
                   root =
                       mountfd_new("tmpfs",
                                   (const char *const[]){ "source", "parent", "size", "16k",
                                                          "nr_inodes", "16", "mode", "0755", NULL },
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);

    if (root < 0 || make_dirs(root, err) < 0)
        return -1;
    proc = mountfd_proc(err);
    if (proc < 0)
        return -1;
    if (mountfd_attach(root, AT_FDCWD, "/new") < 0 || mountfd_attach(proc, root, "proc") < 0)
        return err_sys(err, errno, "attach the root of the parent of jails");
    for (size_t i = 0; i < ARRAY_LEN(brought) - !with_usr; i++)
        if (bring(brought[i], root, err) < 0)
            return -1;
    if (mountfd_set(root, MOUNT_ATTR_RDONLY, 0) < 0)
        return err_sys(err, errno, "protect the parent of jails");
    return jail_pivot(root, err);
}

/* The namespace's descriptor goes to the keeper with the answer, and the process namespace ends with us. */
static _Noreturn void run(int answer, bool with_usr)
{
    auto_close int own = open_own();
    struct err said = { .kind = ERR_NONE };

    if (own < 0)
        err_sys(&said, errno, "open the parent of jails");
    else
        (void) build(with_usr, &said);
    (void) io_send_fds(answer, &said, sizeof said, &own, own >= 0);
    _exit(0);
}

static int make(bool with_usr, struct err *err)
{
    struct err said = { .kind = ERR_INTERNAL, .msg = "the maker of the parent of jails died" };
    auto_close int answer = -1, theirs = -1, fd = -1;
    size_t count = 0;
    int pair[2];
    long pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    answer = pair[0];
    theirs = pair[1];
    pid = syscall(__NR_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0)
        return err_sys(err, errno, "make the parent of jails");
    if (pid == 0)
        run(theirs, with_usr);
    own_close(&theirs);
    if (io_recv_fds(answer, &said, sizeof said, &fd, 1, &count) != (ssize_t) sizeof said)
        err_set(&said, ERR_INTERNAL, "the maker of the parent of jails died");
    while (waitpid((pid_t) pid, NULL, 0) < 0 && errno == EINTR)
        ;
    said.msg[sizeof said.msg - 1] = '\0';
    if (said.kind == ERR_NONE && count == 1)
        return take_fd(&fd);
    *err = said;
    return -1;
}

int mount_parent_open(struct mount_parent *p, struct err *err)
{
    p->own_fd = open_own();
    if (p->own_fd < 0)
        return err_sys(err, errno, "open our mount namespace");
    p->fd = make(false, err);
    if (p->fd < 0)
        return -1;
    p->with_usr_fd = make(true, err);
    return p->with_usr_fd < 0 ? -1 : 0;
}

int mount_parent_enter(const struct mount_parent *p, bool with_usr, struct err *err)
{
    if (setns(with_usr ? p->with_usr_fd : p->fd, CLONE_NEWNS) < 0)
        return err_sys(err, errno, "enter the parent of jails");
    return 0;
}

void mount_parent_leave(const struct mount_parent *p)
{
    spaces_return(p->own_fd, CLONE_NEWNS, "mount");
}
