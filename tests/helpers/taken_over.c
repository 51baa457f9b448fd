/* taken_over.c - in place of cove-pull or cove-import: one that a registry, or a layer, has taken over.
 *
 * As cove-pull it takes its order and says nothing ever. As cove-import it has the real one, cove-import.real beside it, do
 * the work without its bound on bytes, and says of the image that it has one byte. */
#include "base/io.h"
#include "base/own.h"
#include "importer/message.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void be_real(int sock, char **argv)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 6);
    int n = 0;

    if (len < 0 || dup2(sock, IMPORT_SOCKET) < 0)
        _exit(126);
    (void) memcpy(path + len, ".real", 6);
    for (int i = 0; argv[i]; i++)
        if (strcmp(argv[i], "--max-bytes") == 0)
            i++;
        else
            argv[n++] = argv[i];
    argv[n] = NULL;
    (void) execv(path, argv);
    _exit(127);
}

/* One message with its descriptor. false: there are no more. */
static bool pass(int from, int to, bool lie)
{
    static char text[IMPORT_MESSAGE_MAX + 1];
    auto_close int fd = -1;
    size_t fds = 0;
    ssize_t n = io_recv_fds(from, text, IMPORT_MESSAGE_MAX, &fd, 1, &fds);

    if (n <= 0)
        return false;
    text[n] = '\0';
    if (lie && strncmp(text, "m bytes=", 8) == 0)
        n = sprintf(text, "m bytes=1");
    return io_send_fds(to, text, (size_t) n, &fd, fds) == n;
}

int main(int argc, char **argv)
{
    int pair[2], parent = fcntl(IMPORT_SOCKET, F_DUPFD_CLOEXEC, 100), status = 1;
    pid_t pid;

    (void) argc;
    if (strcmp(argv[0], "cove-pull") == 0)
        for (;;)
            (void) pause();
    if (parent < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return 126;
    pid = fork();
    if (pid == 0)
        be_real(pair[1], argv);
    (void) close(pair[1]);
    for (;;) {
        struct pollfd fds[] = { { .fd = pair[0], .events = POLLIN },
                                { .fd = parent, .events = POLLIN } };

        if (poll(fds, 2, -1) < 0 || (fds[0].revents && !pass(pair[0], parent, true)) ||
            (fds[1].revents && !pass(parent, pair[0], false)))
            break;
    }
    (void) close(pair[0]);
    (void) waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
