/* A coved that was started alone has no supervisor that would start the gateway again: a process that does nothing else does. It is
 * started before coved gives up making processes, and ends with it: coved has the other end of its standard input. */
#include "server/gateway/gateway.h"

#include "base/own.h"
#include "client/gateway_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#define PROGRAM   "cove-gateway"
#define SOCKET_FD 3

/* Beside this program. */
static int find_program(char out[PATH_MAX], struct err *err)
{
    ssize_t len = readlink("/proc/self/exe", out, PATH_MAX - sizeof PROGRAM - 1);
    char *slash;

    if (len < 0)
        return err_sys(err, errno, "read /proc/self/exe");
    out[len] = '\0';
    slash = strrchr(out, '/');
    (void) strcpy(slash ? slash + 1 : out, PROGRAM);
    return access(out, X_OK) < 0 ? err_sys(err, errno, "find %s", out) : 0;
}

__attribute__((noreturn)) static void become(const char *path, int listen_fd, int input)
{
    char self[] = PROGRAM, watch[] = "--watch", fd[] = "--fd", number[] = "3";
    char *argv[] = { self, watch, fd, number, NULL };
    int socket = fcntl(listen_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);

    (void) signal(SIGCHLD, SIG_DFL); /* the watcher waits for its own children */
    if (dup2(input, STDIN_FILENO) == STDIN_FILENO && socket >= 0 && dup2(socket, SOCKET_FD) >= 0)
        (void) execv(path, argv);
    _exit(126);
}

int gateway_child(const char *directory, struct err *err)
{
    auto_close int listen_fd = -1, input = -1;
    char path[PATH_MAX];
    int ends[2];
    pid_t pid;

    if (find_program(path, err) < 0 || gateway_listen(directory, geteuid(), &listen_fd, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "make a pipe");
    input = ends[0];
    (void) signal(SIGCHLD, SIG_IGN); /* should it end, it is reaped */
    pid = fork();
    if (pid == 0)
        become(path, listen_fd, input);
    if (pid < 0) {
        (void) close(ends[1]);
        return err_sys(err, errno, "fork");
    }
    /* ends[1] stays open as long as this process lives. */
    return 0;
}
