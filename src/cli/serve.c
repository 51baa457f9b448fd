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
#define ARGS_MAX      24
#define TLS_FILE_MAX  (256 * 1024)
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

static int listen_at(const char *text, int *ret_fd, char *out, size_t size, struct err *err)
{
    struct address address;

    if (address_parse(text, &address, err) < 0 || address_listen(&address, ret_fd, err) < 0)
        return -1;
    address_print(&address, out, size);
    return 0;
}

int serve_listen(struct serve *serve, const char *listen, const char *tls_listen, struct err *err)
{
    if (!serve->tls_cert != !serve->tls_key)
        return err_set(err, ERR_USAGE, "up: --tls-cert and --tls-key go together");
    if (tls_listen && !serve->tls_cert)
        return err_set(err, ERR_USAGE, "up: --tls-listen needs --tls-cert and --tls-key");
    if (listen_at(listen, &serve->listen_fd, serve->listen, sizeof serve->listen, err) < 0)
        return -1;
    return tls_listen ? listen_at(tls_listen, &serve->tls_fd, serve->tls_listen,
                                  sizeof serve->tls_listen, err)
                      : 0;
}

/* Under another name first: the server may be reading. */
static int copy_file(const struct serve *serve, const char *from, int to, const char *name,
                     struct err *err)
{
    auto_free char *text = malloc(TLS_FILE_MAX);
    auto_close int fd = -1;
    ssize_t len;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "read %s", from);
    len = io_read_text(AT_FDCWD, from, text, TLS_FILE_MAX);
    if (len <= 0 || len == TLS_FILE_MAX - 1)
        return err_set(err, ERR_USAGE, "up: %s cannot be read, is empty or too large", from);
    (void) unlinkat(to, "new.tmp", 0);
    fd = openat(to, "new.tmp", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchown(fd, serve->uid, serve->gid) < 0 ||
        io_write_all(fd, text, (size_t) len) < 0 || renameat(to, "new.tmp", to, name) < 0)
        return err_sys(err, errno, "copy %s for the server", from);
    return 0;
}

int serve_copy_tls(const struct serve *serve, const char *state, struct err *err)
{
    auto_close int fd = -1, own = -1;

    if (!serve->tls_cert)
        return 0;
    fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own = fd < 0 ? -1 : openat(fd, "server", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0)
        return err_sys(err, errno, "open %s/server", state);
    return copy_file(serve, serve->tls_cert, own, "tls-cert.pem", err) < 0
               ? -1
               : copy_file(serve, serve->tls_key, own, "tls-key.pem", err);
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

static void server_argv(const struct serve *serve, const char *state, const char *cert,
                        const char *key, const char *argv[ARGS_MAX])
{
    const struct {
        const char *flag, *value;
    } rows[] = {
        { "--state", state },
        { "--listen", serve->listen },
        { "--tls-listen", serve->tls_listen[0] ? serve->tls_listen : NULL },
        { "--tls-cert", cert },
        { "--tls-key", key },
        { "--domain", serve->domain },
        { "--public-domain", serve->public_domain },
        { "--verbose", serve->verbose ? "yes" : NULL },
    };
    size_t n = 0;

    argv[n++] = "coved";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].value) {
            argv[n++] = rows[i].flag;
            argv[n++] = rows[i].value;
        }
    }
    argv[n] = NULL;
}

/* From LISTEN_FD on, in the order that the server knows, and not to be closed by exec. */
static int hand_over(const struct serve *serve)
{
    /* Moved out of the way first: each may stand where the other belongs. */
    int plain = fcntl(serve->listen_fd, F_DUPFD_CLOEXEC, LISTEN_FD + 2);
    int tls = serve->tls_fd < 0 ? -1 : fcntl(serve->tls_fd, F_DUPFD_CLOEXEC, LISTEN_FD + 2);

    if (plain < 0 || dup2(plain, LISTEN_FD) < 0)
        return -1;
    if (serve->tls_fd >= 0 && (tls < 0 || dup2(tls, LISTEN_FD + 1) < 0))
        return -1;
    return setenv("LISTEN_FDS", serve->tls_fd < 0 ? "1" : "2", 1);
}

/* In the child. All privilege is gone before the program is loaded, and nothing it executes can get any back.
 * By descriptor: the user may not be able to walk to where the program lies. */
__attribute__((noreturn)) static void become(const struct serve *serve, const char *state,
                                             int program, const sigset_t *mask)
{
    const char *argv[ARGS_MAX];
    char pid[32], cert[PATH_MAX + 32], key[PATH_MAX + 32];

    (void) snprintf(cert, sizeof cert, "%s/server/tls-cert.pem", state);
    (void) snprintf(key, sizeof key, "%s/server/tls-key.pem", state);
    server_argv(serve, state, serve->tls_cert ? cert : NULL, serve->tls_cert ? key : NULL, argv);

    (void) setpgid(0, 0);
    (void) snprintf(pid, sizeof pid, "%ld", (long) getpid());
    if (hand_over(serve) < 0 || setenv("LISTEN_PID", pid, 1) < 0)
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
    if (directory_make(serve, state, err) < 0 || serve_copy_tls(serve, state, err) < 0 ||
        program_find("coved", path, sizeof path, err) < 0)
        return -1;
    /* Above those from LISTEN_FD on, which are about to be taken. */
    program = open(path, O_RDONLY | O_CLOEXEC);
    if (program >= 0 && program <= LISTEN_FD + 1) {
        int higher = fcntl(program, F_DUPFD_CLOEXEC, LISTEN_FD + 2);

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
