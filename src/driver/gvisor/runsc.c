#include "driver/gvisor/runsc.h"

#include "base/io.h"
#include "base/own.h"
#include "wire/runsc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_MS 5000
#define NOBODY 65534

static const char *const places[] = { "/usr/local/bin/runsc", "/usr/bin/runsc" };

/* The last file that was asked. */
static struct {
    const char *path;
    struct stat file;
    uint32_t version; /* 0: it does not say, or does not run */
} known;

/* Whatever it is, it has no rights of ours. */
static _Noreturn void become_runsc(const char *path, int out)
{
    int keep[] = { -1 };
    char *argv[] = { (char *) "runsc", (char *) "--version", NULL };
    char *envp[] = { NULL };

    if (dup2(out, STDOUT_FILENO) < 0)
        _exit(1);
    io_keep_only(keep, ARRAY_LEN(keep));
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(1);
    (void) execve(path, argv, envp);
    _exit(1);
}

/* Up to its end, or to the end of our patience. */
static void read_answer(int fd, char *out, size_t size)
{
    uint64_t until = io_now_ms() + ASK_MS;
    size_t have = 0;

    while (have + 1 < size && io_wait_until(fd, 1 /* POLLIN */, until)) {
        ssize_t n = read(fd, out + have, size - 1 - have);

        if (n <= 0)
            break;
        have += (size_t) n;
    }
    out[have] = '\0';
}

static uint32_t ask_version(const char *path)
{
    auto_close int from = -1, to = -1;
    char text[256];
    int pair[2];
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return 0;
    from = pair[0];
    to = pair[1];
    pid = fork();
    if (pid == 0)
        become_runsc(path, to);
    own_close(&to);
    if (pid < 0)
        return 0;
    read_answer(from, text, sizeof text);
    (void) kill(pid, SIGKILL); /* it has said what it says, or takes too long */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return runsc_parse_version(text);
}

static bool is_known(const char *path, const struct stat *st)
{
    return known.path == path && known.file.st_dev == st->st_dev &&
           known.file.st_ino == st->st_ino && known.file.st_size == st->st_size &&
           known.file.st_mtim.tv_sec == st->st_mtim.tv_sec &&
           known.file.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* False: there is none. */
static bool look(void)
{
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (stat(places[i], &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (!is_known(places[i], &st)) {
            known.path = places[i];
            known.file = st;
            known.version = ask_version(places[i]);
        }
        return true;
    }
    return false;
}

int runsc_find(const char **ret, struct err *err)
{
    if (!look())
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation 'gvisor' needs runsc, which is not installed (package runsc of "
                       "Debian 13 or bookworm-backports)");
    if (known.version == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation 'gvisor' needs runsc, but %s does not tell its version",
                       known.path);
    if (known.version < RUNSC_OLDEST)
        return err_set(err, ERR_UNSUPPORTED,
                       "isolation 'gvisor' needs runsc of %u or later, and %s is of %u",
                       RUNSC_OLDEST, known.path, known.version);
    *ret = known.path;
    return 0;
}

const char *runsc_text(void)
{
    static char text[32];

    if (!look())
        return "no runsc";
    if (known.version == 0)
        return "runsc does not run";
    (void) snprintf(text, sizeof text,
                    known.version < RUNSC_OLDEST ? "runsc %u is too old" : "runsc %u",
                    known.version);
    return text;
}
