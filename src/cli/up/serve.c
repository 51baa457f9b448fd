#include "cli/up/serve.h"

#include "base/address.h"
#include "base/admin_socket.h"
#include "base/io.h"
#include "base/lockdown.h"
#include "base/log.h"
#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/up/supervise.h"
#include "cli/users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define USER         "cove"
#define LISTEN_FD    3
#define LISTEN_MOST  3
#define ARGS_MAX     24
#define TLS_FILE_MAX (256 * 1024)
#define SHOWN_MAX    32768
#define CONNECT_MS   100
#define ASK_MS       10000 /* for coved to say its settings */

int serve_user(struct serve *serve, struct err *err)
{
    if (user_ensure(USER, &serve->uid, &serve->gid, err) < 0)
        return -1;
    serve->keeper_gid = serve->gid;
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

int serve_listen(struct serve *serve, struct err *err)
{
    if (listen_at(serve->settings.listen, &serve->listen_fd, serve->listen, sizeof serve->listen,
                  err) < 0)
        return -1;
    return serve->settings.tls_listen[0]
               ? listen_at(serve->settings.tls_listen, &serve->tls_fd, serve->tls_listen,
                           sizeof serve->tls_listen, err)
               : 0;
}

int serve_listen_admin(struct serve *serve, struct err *err)
{
    return admin_listen(report_state(), serve->admin_gid, &serve->admin_fd, err);
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

/* Takes certificate and key as they are now. */
static int copy_tls(const struct serve *serve, const char *state, struct err *err)
{
    const struct serve_settings *from = &serve->settings;
    auto_close int fd = -1, own = -1;

    if (!from->tls_cert[0])
        return 0;
    fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own = fd < 0 ? -1 : openat(fd, "server", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0)
        return err_sys(err, errno, "open %s/server", state);
    return copy_file(serve, from->tls_cert, own, "tls-cert.pem", err) < 0
               ? -1
               : copy_file(serve, from->tls_key, own, "tls-key.pem", err);
}

/* A coved that ran as root, or on another host, left files of others. The directory is of a user that counts as hostile: a link to a file elsewhere is not
 * followed, and one that has a second name stays whose it is. */
static int give_files(const struct serve *serve, int dir_fd, bool folders, struct err *err)
{
    int again = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    struct stat st;

    if (!dir)
        return err_sys(err, errno, "list the server's files");
    while ((entry = readdir(dir))) {
        auto_close int fd = -1;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (S_ISDIR(st.st_mode) ? !folders : st.st_uid == serve->uid || !S_ISREG(st.st_mode)))
            continue;
        fd = openat(dir_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && st.st_nlink != 1))
            continue;
        if (st.st_uid != serve->uid && fchown(fd, serve->uid, serve->gid) < 0)
            return err_sys(err, errno, "give %.100s to the user '" USER "'", entry->d_name);
        if (folders && S_ISDIR(st.st_mode) && give_files(serve, fd, false, err) < 0)
            return -1;
    }
    return 0;
}

/* What the server remembers: its user's alone. */
static int directory_make(const struct serve *serve, const char *state, struct err *err)
{
    auto_close int fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_close int own = -1;

    if (fd < 0 || (mkdirat(fd, "server", 0700) < 0 && errno != EEXIST))
        return err_sys(err, errno, "make %s/server", state);
    own = openat(fd, "server", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (own < 0 || fchown(own, serve->uid, serve->gid) < 0 || fchmod(own, 0700) < 0)
        return err_sys(err, errno, "give %s/server to the user '" USER "'", state);
    return give_files(serve, own, true, err);
}

struct flag {
    const char *name, *value; /* NULL: not given */
};

static void argv_of(const struct flag *flags, size_t count, const char *last,
                    const char *argv[ARGS_MAX])
{
    size_t n = 0;

    argv[n++] = "coved";
    for (size_t i = 0; i < count; i++) {
        if (flags[i].value) {
            argv[n++] = flags[i].name;
            argv[n++] = flags[i].value;
        }
    }
    argv[n++] = last;
    argv[n] = NULL;
}

/* From LISTEN_FD on, in the order that the server knows, and not to be closed by exec. */
static int hand_over(const struct serve *serve)
{
    int sockets[LISTEN_MOST] = { serve->listen_fd, serve->tls_fd, serve->admin_fd };
    int count = 0;
    char pid[32], number[32];

    /* Moved out of the way first: each may stand where another belongs. */
    for (size_t i = 0; i < LISTEN_MOST; i++)
        if (sockets[i] >= 0 &&
            (sockets[i] = fcntl(sockets[i], F_DUPFD_CLOEXEC, LISTEN_FD + LISTEN_MOST)) < 0)
            return -1;
    for (size_t i = 0; i < LISTEN_MOST; i++)
        if (sockets[i] >= 0 && dup2(sockets[i], LISTEN_FD + count++) < 0)
            return -1;
    (void) snprintf(pid, sizeof pid, "%ld", (long) getpid());
    (void) snprintf(number, sizeof number, "%d", count);
    return setenv("LISTEN_FDS", number, 1) < 0 ? -1 : setenv("LISTEN_PID", pid, 1);
}

/* All privilege is gone before the program is loaded, and nothing it executes can get any back. */
static int drop(const struct serve *serve)
{
    struct err ignored;

    if (lockdown_bounds(0, &ignored) < 0 || setgroups(1, &serve->keeper_gid) < 0 ||
        setresgid(serve->gid, serve->gid, serve->gid) < 0 ||
        setresuid(serve->uid, serve->uid, serve->uid) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir("/") < 0)
        return -1;
    (void) umask(077);
    return 0;
}

__attribute__((noreturn)) static void become(int program, const char *const *argv)
{
    (void) fexecve(program, (char **) (uintptr_t) argv, environ);
    report_note("start coved: %s", strerror(errno));
    _exit(126);
}

/* By descriptor: the user may not be able to walk to where the program lies. Above those from LISTEN_FD on, which are
 * about to be taken. */
static int program_open(struct err *err)
{
    char path[PATH_MAX];
    int fd, higher;

    if (program_find("coved", path, sizeof path, err) < 0)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    higher = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LISTEN_FD + LISTEN_MOST);
    if (higher < 0)
        err_sys(err, errno, "open %s", path);
    own_close(&fd);
    return higher;
}

int serve_start(void *with, pid_t *ret, struct err *err)
{
    struct serve *serve = with;
    const char *state = report_state(), *argv[ARGS_MAX];
    char whole[PATH_MAX], cert[PATH_MAX + 32], key[PATH_MAX + 32];
    bool tls = serve->settings.tls_cert[0];
    char group[32];
    const struct flag flags[] = {
        { "--config", serve->config },
        { "--state", whole },
        { "--listen", serve->listen },
        { "--gateway", whole },
        { "--admin-group", serve->admin_gid == ADMIN_ROOT ? NULL : group },
        { "--tls-listen", serve->tls_listen[0] ? serve->tls_listen : NULL },
        { "--tls-cert", tls ? cert : NULL },
        { "--tls-key", tls ? key : NULL },
        { "--domain", serve->domain },
        { "--public-domain", serve->public_domain },
        { "--verbose", serve->verbose ? "yes" : NULL },
    };
    auto_close int program = -1;
    pid_t pid;

    if (!realpath(state, whole))
        return err_sys(err, errno, "find %s", state);
    if (directory_make(serve, state, err) < 0 || copy_tls(serve, state, err) < 0 ||
        (program = program_open(err)) < 0)
        return -1;
    (void) snprintf(cert, sizeof cert, "%s/server/tls-cert.pem", whole);
    (void) snprintf(group, sizeof group, "%u", (unsigned) serve->admin_gid);
    (void) snprintf(key, sizeof key, "%s/server/tls-key.pem", whole);
    argv_of(flags, ARRAY_LEN(flags), NULL, argv);
    own_close(&serve->probe_fd);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        if (hand_over(serve) < 0 || drop(serve) < 0)
            _exit(126);
        supervise_enter();
        become(program, argv);
    }
    *ret = pid;
    return 0;
}

/* A connection that waits in our own socket until some coved takes it. Where clients have filled the socket's queue
 * meanwhile, the kernel would let us wait for minutes: the supervisor must not. */
static int probe_open(const struct serve *serve)
{
    static const char plain[] =
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    /* A hello that is cut short. To HTTP in the clear a TLS server says nothing at all, to this it says what is wrong. */
    static const char hello[] = "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    bool tls = serve->settings.tls_cert[0] && serve->tls_fd < 0;
    const struct timeval patience = { .tv_usec = CONNECT_MS * 1000 };
    auto_close int fd = -1;
    struct address address;
    struct err ignored;

    if (address_parse(serve->listen, &address, &ignored) < 0)
        return -1;
    fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *) &address.at, address.len) < 0 ||
        io_write_all(fd, tls ? hello : plain, (tls ? sizeof hello : sizeof plain) - 1) < 0)
        return -1;
    return take_fd(&fd);
}

bool serve_is_ready(void *with)
{
    struct serve *serve = with;
    struct pollfd p = { .events = POLLIN };
    char byte;
    bool ready;

    if (serve->probe_fd < 0)
        serve->probe_fd = probe_open(serve);
    p.fd = serve->probe_fd;
    if (p.fd < 0 || poll(&p, 1, 0) < 1)
        return false;
    /* An end without a word: it died meanwhile. */
    ready = read(serve->probe_fd, &byte, 1) == 1;
    own_close(&serve->probe_fd);
    return ready;
}

/* What a program that says little says, on stdout or stderr; its wait status. The supervisor waits here, and must not wait for ever: a settings
 * file can be a FIFO, or on a disk that does not answer. */
static int read_all(int fd, pid_t pid, char *out, size_t size, struct err *err)
{
    uint64_t until = io_now_ms() + ASK_MS;
    auto_close int pid_fd = (int) syscall(SYS_pidfd_open, pid, 0);
    size_t len = 0;
    int status = 0;
    ssize_t n = 1;

    while (len < size - 1 && n != 0 && io_wait_until(fd, POLLIN, until)) {
        n = read(fd, out + len, size - 1 - len);
        if (n < 0 && errno != EINTR)
            break;
        len += n > 0 ? (size_t) n : 0;
    }
    out[len] = '\0';
    if (io_wait_until(pid_fd, POLLIN, until))
        return waitpid(pid, &status, 0) == pid ? status : err_sys(err, errno, "wait for coved");
    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, &status, 0);
    return err_set(err, ERR_TIMEOUT, "coved did not say its settings within %d s", ASK_MS / 1000);
}

/* coved itself says what its settings are, from flags, environment and file: as its user, who must be able to read
 * the file later, too. */
static int settings_ask(const struct serve *serve, const struct serve_given *given, char *out,
                        struct err *err)
{
    const struct flag flags[] = {
        { "--config", serve->config },         { "--listen", given->listen },
        { "--tls-listen", given->tls_listen }, { "--tls-cert", given->tls_cert },
        { "--tls-key", given->tls_key },
    };
    const char *argv[ARGS_MAX];
    auto_close int program = program_open(err), from = -1, to = -1;
    int ends[2];
    pid_t pid;

    if (program < 0)
        return -1;
    argv_of(flags, ARRAY_LEN(flags), "--show-config", argv);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    from = ends[0];
    to = ends[1];
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        if (dup2(to, STDOUT_FILENO) < 0 || dup2(to, STDERR_FILENO) < 0 || drop(serve) < 0)
            _exit(126);
        become(program, argv);
    }
    own_close(&to);
    return read_all(from, pid, out, SHOWN_MAX, err);
}

static enum err_kind kind_of_exit(int status)
{
    for (unsigned kind = ERR_NONE + 1; kind < ERR_KIND_COUNT; kind++)
        if (WIFEXITED(status) && err_kind_info(kind)->exit_code == WEXITSTATUS(status))
            return (enum err_kind) kind;
    return ERR_INTERNAL;
}

#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct serve_settings, name), sizeof(((struct serve_settings *) 0)->name)  \
    }

/* "name = value" lines. */
static void settings_take(char *text, struct serve_settings *ret)
{
    static const struct {
        const char *name;
        size_t offset, size;
    } fields[] = { FIELD(state), FIELD(listen), FIELD(tls_listen), FIELD(tls_cert),
                   FIELD(tls_key) };

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *value = strstr(line, " = ");

        for (size_t i = 0; value && i < ARRAY_LEN(fields); i++)
            if (strlen(fields[i].name) == (size_t) (value - line) &&
                strncmp(line, fields[i].name, (size_t) (value - line)) == 0)
                (void) snprintf((char *) ret + fields[i].offset, fields[i].size, "%s", value + 3);
    }
}

int serve_settings(struct serve *serve, const struct serve_given *given, struct err *err)
{
    auto_free char *text = malloc(SHOWN_MAX);
    int status;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the settings");
    status = settings_ask(serve, given, text, err);
    if (status < 0)
        return -1;
    if (status != 0) {
        text[strcspn(text, "\n")] = '\0';
        return err_set(err, kind_of_exit(status),
                       "the settings of coved, read as the user '" USER "': %.300s",
                       strncmp(text, "coved: ", 7) == 0 ? text + 7 : text);
    }
    settings_take(text, &serve->settings);
    return 0;
}

void serve_reload(void *with)
{
    struct serve *serve = with, fresh = *serve;
    struct err err;

    if (!serve->settings.tls_cert[0])
        return;
    /* Whether there is TLS at all is settled at the start; where the files are may have changed. */
    if (serve_settings(&fresh, serve->given, &err) < 0)
        log_line(LOG_ERROR, "%s; the old settings stay", err.msg);
    else if (fresh.settings.tls_cert[0])
        serve->settings = fresh.settings;
    if (copy_tls(serve, report_state(), &err) < 0)
        log_line(LOG_ERROR, "%s; the old certificate stays", err.msg);
}
