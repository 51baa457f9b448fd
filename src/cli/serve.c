#include "cli/serve.h"

#include "base/address.h"
#include "base/io.h"
#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define USER          "cove"
#define LISTEN_FD     3
#define AGAIN_WAIT_MS 200
#define ENDS_MOST     5 /* within this time, and it is given up */
#define ENDS_WITHIN   10000ull

static int user_make(struct err *err)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        (void) execlp("useradd", "useradd", "--system", "--user-group", "--no-create-home",
                      "--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", USER,
                      (char *) NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) < 0)
        return err_sys(err, errno, "wait for useradd");
    if (status != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "the server needs a user '" USER "', and useradd could not make it; "
                       "make it, or use --no-server");
    return 0;
}

int serve_user(struct serve *serve, struct err *err)
{
    const struct passwd *user = getpwnam(USER);

    if (!user) {
        /* Another `cove up` may have made it at the same moment. */
        int r = user_make(err);

        user = getpwnam(USER);
        if (!user)
            return r < 0 ? -1 : err_set(err, ERR_UNAVAILABLE, "there is no user '" USER "'");
    }
    if (user->pw_uid == 0)
        return err_set(err, ERR_DENIED, "the user '" USER "' is root: the server must not be");
    serve->uid = user->pw_uid;
    serve->gid = serve->keeper_gid = user->pw_gid;
    return 0;
}

int serve_listen(struct serve *serve, const char *listen, struct err *err)
{
    struct address address;

    if (address_parse(listen, &address, err) < 0 ||
        address_listen(&address, &serve->listen_fd, err) < 0)
        return -1;
    address_print(&address, serve->listen, sizeof serve->listen);
    return 0;
}

/* What the server remembers: its user's alone. */
static int directory_make(const struct serve *serve, const char *state, struct err *err)
{
    auto_close int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_close int own = -1;
    static const char *const files[] = { "cove.db", "cove.db-wal", "cove.db-shm" };

    if (fd < 0 || (mkdirat(fd, "server", 0700) < 0 && errno != EEXIST))
        return err_sys(err, errno, "make %s/server", state);
    own = openat(fd, "server", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0 || fchown(own, serve->uid, serve->gid) < 0 || fchmod(own, 0700) < 0)
        return err_sys(err, errno, "give %s/server to the user '" USER "'", state);
    /* The command line may have made the store before there was a server. */
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (fchownat(own, files[i], serve->uid, serve->gid, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno != ENOENT)
            return err_sys(err, errno, "give %s/server/%s to the user '" USER "'", state, files[i]);
    return 0;
}

/* In the child. All privilege is gone before the program is loaded, and nothing it executes can get any back.
 * By descriptor: the user may not be able to walk to where the program lies. */
__attribute__((noreturn)) static void become(const struct serve *serve, const char *state,
                                             int program, const sigset_t *mask)
{
    const char *argv[] = { "coved",    "--state",     state,
                           "--listen", serve->listen, serve->verbose ? "--verbose" : NULL,
                           NULL };
    char pid[32];

    (void) setpgid(0, 0);
    (void) snprintf(pid, sizeof pid, "%ld", (long) getpid());
    if (dup2(serve->listen_fd, LISTEN_FD) < 0 || setenv("LISTEN_FDS", "1", 1) < 0 ||
        setenv("LISTEN_PID", pid, 1) < 0)
        goto fail;
    /* Where the descriptor was 3 already, dup2 left it to be closed. */
    if (fcntl(LISTEN_FD, F_SETFD, 0) < 0)
        goto fail;
    if (setgroups(1, &serve->keeper_gid) < 0 || setresgid(serve->gid, serve->gid, serve->gid) < 0 ||
        setresuid(serve->uid, serve->uid, serve->uid) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir("/") < 0)
        goto fail;
    (void) umask(077);
    (void) sigprocmask(SIG_SETMASK, mask, NULL);
    (void) fexecve(program, (char **) (uintptr_t) argv, environ);

fail:
    report_note("start coved: %s", strerror(errno));
    _exit(126);
}

int serve_start(struct serve *serve, const char *state, const sigset_t *mask, struct err *err)
{
    auto_close int program = -1;
    char path[PATH_MAX], whole[PATH_MAX];

    if (!realpath(state, whole))
        return err_sys(err, errno, "find %s", state);
    if (directory_make(serve, state, err) < 0 || program_find("coved", path, sizeof path, err) < 0)
        return -1;
    /* Above LISTEN_FD, which is about to be taken. */
    program = open(path, O_RDONLY | O_CLOEXEC);
    if (program >= 0 && program <= LISTEN_FD) {
        int higher = fcntl(program, F_DUPFD_CLOEXEC, LISTEN_FD + 1);

        (void) close(program);
        program = higher;
    }
    if (program < 0)
        return err_sys(err, errno, "open %s", path);
    serve->pid = fork();
    if (serve->pid < 0)
        return err_sys(err, errno, "fork");
    if (serve->pid == 0)
        become(serve, whole, program, mask);
    return 0;
}

int serve_again(struct serve *serve, const char *state, const sigset_t *mask, struct err *err)
{
    uint64_t now = io_now_ms();

    if (serve->ends == 0 || now - serve->since_ms > ENDS_WITHIN) {
        serve->since_ms = now;
        serve->ends = 0;
    }
    if (++serve->ends >= ENDS_MOST)
        return err_set(err, ERR_UNAVAILABLE, "coved keeps ending; what it said is above");
    report_note("coved ended; starting it again");
    (void) poll(NULL, 0, AGAIN_WAIT_MS);
    return serve_start(serve, state, mask, err);
}

/* A connection that waits in our own socket until some coved takes it. */
static int probe_open(const struct serve *serve)
{
    static const char ask[] =
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    auto_close int fd = -1;
    struct address address;
    struct err ignored;

    if (address_parse(serve->listen, &address, &ignored) < 0)
        return -1;
    fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *) &address.at, address.len) < 0 ||
        io_write_all(fd, ask, sizeof ask - 1) < 0)
        return -1;
    return take_fd(&fd);
}

bool serve_is_ready(struct serve *serve, int wait_ms)
{
    struct pollfd p = { .events = POLLIN };
    char byte;
    bool ready;

    if (serve->probe_fd < 0)
        serve->probe_fd = probe_open(serve);
    p.fd = serve->probe_fd;
    if (poll(&p, 1, wait_ms) < 1)
        return false;
    /* TLS speaks otherwise, but it speaks. An end without a word: it died meanwhile. */
    ready = read(serve->probe_fd, &byte, 1) == 1;
    own_close(&serve->probe_fd);
    return ready;
}
