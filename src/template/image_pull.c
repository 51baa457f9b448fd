#include "template/image_pull.h"

#include "base/io.h"
#include "base/lockdown.h"
#include "base/own.h"
#include "puller/message.h"
#include "template/image_store.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beyond the limit, which cove-pull has, too: its own sentence is the better one. */
#define GRACE_MS 2000

static _Noreturn void be_puller(const struct image_pull *p, int sock, int program, int dialer)
{
    int fds[] = { fcntl(sock, F_DUPFD, 100), fcntl(dialer, F_DUPFD, 100),
                  fcntl(program, F_DUPFD, 100) };
    char name[] = "cove-pull", *argv[] = { name, NULL }, *env[] = { NULL };
    struct err ignored;

    (void) dup2(open("/dev/null", O_RDWR | O_CLOEXEC), STDIN_FILENO);
    if (fds[2] < 0 || dup2(fds[0], PULLER_SOCKET) < 0 || dup2(fds[1], PULLER_DIALER) < 0)
        _exit(126);
    (void) syscall(__NR_close_range, PULLER_DIALER + 1, (unsigned) fds[2] - 1, 0);
    (void) syscall(__NR_close_range, (unsigned) fds[2] + 1, ~0u, 0);
    (void) fcntl(fds[2], F_SETFD, FD_CLOEXEC);
    if (lockdown_bounds(0, &ignored) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(p->gid, p->gid, p->gid) < 0 || setresuid(p->uid, p->uid, p->uid) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        chdir("/") < 0)
        _exit(126);
    (void) fexecve(fds[2], argv, env);
    _exit(127);
}

static int start(struct image_pull *p, struct err *err)
{
    auto_close int program = open(p->program, O_RDONLY | O_CLOEXEC), theirs = -1;
    auto_close int dialer = open(p->dialer, O_RDONLY | O_CLOEXEC);
    int pair[2];

    if (program < 0 || dialer < 0)
        return err_sys(err, errno, "open %s", program < 0 ? p->program : p->dialer);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "socketpair");
    p->sock = pair[0];
    theirs = pair[1];
    p->pid = fork();
    if (p->pid == 0)
        be_puller(p, theirs, program, dialer);
    return p->pid < 0 ? err_sys(err, errno, "start cove-pull") : 0;
}

/* ---- its messages ---- */

/* "e KIND TEXT": the last word, and the one that the user sees. */
static int failed(char *text, struct err *err)
{
    char *space = strchr(text, ' ');
    uint32_t kind = ERR_INTERNAL;

    if (space)
        *space++ = '\0';
    for (uint32_t i = 1; space && i < ERR_KIND_COUNT; i++)
        if (strcmp(err_kind_info(i)->name, text) == 0)
            kind = i;
    for (char *c = space; c && *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            *c = '?';
    return err_set(err, (enum err_kind) kind, "%s", space ? space : "cove-pull failed");
}

static void show(const struct image_pull *p, const char *text)
{
    unsigned long long bytes, size;
    char detail[80];

    if (sscanf(text, "p %llu %llu", &bytes, &size) != 2 || size == 0)
        return;
    (void) snprintf(detail, sizeof detail, "%.1f of %.1f MiB", (double) bytes / (1 << 20),
                    (double) size / (1 << 20));
    template_step(p->maker, bytes < size ? (unsigned) (bytes * 99.0 / (double) size) : 99,
                  "downloading a layer", detail);
}

/* Up to an answer that begins with `letter`. */
static int await(const struct image_pull *p, char letter, char text[PULLER_MESSAGE_MAX],
                 struct err *err)
{
    for (;;) {
        size_t fds = 0;
        ssize_t n;

        if (io_now_ms() >= p->until_ms || !io_wait_until(p->sock, POLLIN, p->until_ms))
            return err_set(err, ERR_TIMEOUT, "the download takes too long");
        n = io_recv_fds(p->sock, text, PULLER_MESSAGE_MAX - 1, NULL, 0, &fds);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(err, ERR_INTERNAL, "cove-pull ended before it was done");
        text[n] = '\0';
        if (text[0] == letter)
            return 0;
        if (strncmp(text, "e ", 2) == 0)
            return failed(text + 2, err);
        show(p, text);
    }
}

int image_pull_begin(struct image_pull *p, const struct pull_order *order, struct err *err)
{
    char text[PULLER_MESSAGE_MAX];

    p->manifest_fd = p->sock = -1;
    p->pid = -1;
    p->until_ms = io_now_ms() + pull_order_limit(order) + GRACE_MS;
    if (image_store_temporary(p->templates_fd, &p->manifest_fd, err) < 0 || start(p, err) < 0)
        return -1;
    if (io_send_fds(p->sock, order, sizeof *order, &p->manifest_fd, 1) != (ssize_t) sizeof *order)
        return err_sys(err, errno, "ask cove-pull");
    if (await(p, 'd', text, err) < 0)
        return -1;
    if (strlen(text) != 73 || strncmp(text, "d sha256:", 9) != 0 ||
        strspn(text + 9, "0123456789abcdef") != 64)
        return err_set(err, ERR_PROTOCOL, "cove-pull said a digest that is none");
    (void) snprintf(p->digest, sizeof p->digest, "%.71s", text + 2);
    return 0;
}

int image_pull_blob(void *context, const char *hex, int *ret_fd, struct err *err)
{
    struct image_pull *p = context;
    char text[PULLER_MESSAGE_MAX];
    auto_close int fd = -1;
    int len;

    if (strcmp(hex, p->digest + strlen("sha256:")) == 0) {
        *ret_fd = fcntl(p->manifest_fd, F_DUPFD_CLOEXEC, 3);
        return *ret_fd < 0 ? err_sys(err, errno, "open the manifest") : 0;
    }
    if (image_store_temporary(p->templates_fd, &fd, err) < 0)
        return -1;
    len = snprintf(text, sizeof text, "g %.64s", hex);
    if (io_send_fds(p->sock, text, (size_t) len, &fd, 1) != len)
        return err_sys(err, errno, "ask cove-pull");
    if (await(p, '+', text, err) < 0)
        return -1;
    *ret_fd = take_fd(&fd);
    return 0;
}

void image_pull_end(struct image_pull *p)
{
    own_close(&p->sock);
    own_close(&p->manifest_fd);
    if (p->pid > 0) {
        (void) kill(p->pid, SIGKILL);
        (void) waitpid(p->pid, NULL, 0);
    }
    p->pid = -1;
}
