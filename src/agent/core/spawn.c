#include "agent/core/spawn.h"

#include "agent/core/rights.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define USER_BIN     ".local/bin"
#define DEFAULT_TERM "xterm-256color"
#define OWN_TEXTS                                                                                  \
    9 /* HOME USER LOGNAME SHELL PATH TERM OMP_NUM_THREADS GOMAXPROCS PYTHON_CPU_COUNT */
#define SPAWN_CORES_MOST 65536u
#define ARGS_MAX         65536u
#define ENV_MAX          2048u /* the environment is searched for every entry of it */

static bool same_key(const char *a, const char *b)
{
    size_t len = strcspn(b, "=");

    return strncmp(a, b, len) == 0 && a[len] == '=';
}

/* The later text with a key wins, at the place of the first. */
static void env_put(char **envp, size_t *count, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (same_key(envp[i], text)) {
            envp[i] = (char *) (uintptr_t) text;
            return;
        }
    envp[(*count)++] = (char *) (uintptr_t) text;
}

/* "KEY=value" in the space at *at, which has room for it. */
static char *own_text(char **at, const char *key, const char *value)
{
    char *text = *at;
    size_t k = strlen(key), v = strlen(value);

    memcpy(text, key, k);
    text[k] = '=';
    memcpy(text + k + 1, value, v + 1);
    *at += k + v + 2;
    return text;
}

static const char *env_get(char *const *envp, const char *key)
{
    size_t len = strlen(key);

    for (; *envp; envp++)
        if (strncmp(*envp, key, len) == 0 && (*envp)[len] == '=')
            return *envp + len + 1;
    return NULL;
}

static int check_env(const struct texts *env, struct err *err)
{
    if (env->count > ENV_MAX)
        return err_set(err, ERR_TOO_BIG, "env: more than %u", ENV_MAX);
    for (const char *item = NULL; (item = texts_next(env, item));)
        if (item[0] == '=' || !strchr(item, '='))
            return err_set(err, ERR_INVALID, "env: '%.64s' is not K=V", item);
    return 0;
}

static size_t env_count(char *const *env)
{
    size_t n = 0;

    while (env && env[n])
        n++;
    return n;
}

unsigned spawn_parse_cores(const char *text)
{
    char *end;
    unsigned long last;

    if (text[0] != '0')
        return 0;
    if (text[1] != '-')
        return 1;
    last = strtoul(text + 2, &end, 10);
    return end == text + 2 || last >= SPAWN_CORES_MOST ? 0 : (unsigned) last + 1;
}

void spawn_learn_cores(struct spawn_base *base)
{
    long kernel = sysconf(_SC_NPROCESSORS_ONLN);
    char text[32];

    if (base->cores > 0)
        return;
    if (io_read_text(AT_FDCWD, "/sys/devices/system/cpu/online", text, sizeof text) > 0)
        base->cores = spawn_parse_cores(text);
    if (base->cores == 0 || (kernel > 0 && base->cores >= (unsigned long) kernel))
        base->cores = SPAWN_CORES_ALL;
}

/* Not by affinity: a sandbox of one core may use whichever is idle. Programs that ask the kernel for the number of
 * processors, and not /sys or /proc, are told by the variables that they look at before. */
static void put_cores(char **envp, size_t *count, char **at, unsigned cores)
{
    char number[16];

    if (cores == 0 || cores == SPAWN_CORES_ALL)
        return;
    (void) snprintf(number, sizeof number, "%u", cores);
    env_put(envp, count, own_text(at, "OMP_NUM_THREADS", number)); /* nproc, too */
    env_put(envp, count, own_text(at, "GOMAXPROCS", number));
    env_put(envp, count, own_text(at, "PYTHON_CPU_COUNT", number)); /* from 3.13 on */
}

static const char *template_path(const struct spawn_base *base)
{
    const char *path = base->env ? env_get(base->env, "PATH") : NULL;

    return path ? path : DEFAULT_PATH;
}

/* As login shells have it: what a user installs for himself comes first. */
static void put_path(char **envp, size_t *count, char **at, const struct user *user,
                     const char *path)
{
    char *text = *at;
    bool has_home = user->home[0] && strcmp(user->home, "/") != 0;

    *at += sprintf(text, "PATH=%s%s%s", has_home ? user->home : "",
                   has_home ? "/" USER_BIN ":" : "", path) +
           1;
    env_put(envp, count, text);
}

/* The template's, then the user's own, then the request's. */
static int build_env(struct spawn *spawn, const struct spawn_base *base,
                     const struct agent_request *request, struct err *err)
{
    const struct user *user = &spawn->user;
    size_t count = 0;
    char *at;

    spawn->envp = calloc(env_count(base->env) + request->env.count + OWN_TEXTS + 1, sizeof(char *));
    spawn->texts = malloc(sizeof user->name * 2 + sizeof user->home + sizeof user->shell +
                          sizeof user->home + strlen(template_path(base)) + 288);
    if (!spawn->envp || !spawn->texts)
        return err_set(err, ERR_NO_MEMORY, "environment");
    at = spawn->texts;
    if (spawn->pty)
        env_put(spawn->envp, &count, own_text(&at, "TERM", DEFAULT_TERM));
    put_cores(spawn->envp, &count, &at, base->cores);
    for (char **env = base->env; env && *env; env++)
        env_put(spawn->envp, &count, *env);
    put_path(spawn->envp, &count, &at, user, template_path(base));
    env_put(spawn->envp, &count, own_text(&at, "HOME", user->home[0] ? user->home : "/"));
    env_put(spawn->envp, &count, own_text(&at, "USER", user->name));
    env_put(spawn->envp, &count, own_text(&at, "LOGNAME", user->name));
    env_put(spawn->envp, &count, own_text(&at, "SHELL", user->shell));
    for (const char *item = NULL; (item = texts_next(&request->env, item));)
        env_put(spawn->envp, &count, item);
    return 0;
}

/* Accounts without a login have a shell that only says so. */
static void settle_shell(struct user *user)
{
    const char *name = strrchr(user->shell, '/');

    if (!name || strcmp(name, "/nologin") == 0 || strcmp(name, "/false") == 0)
        (void) snprintf(user->shell, sizeof user->shell, "/bin/sh");
}

static int build_argv(struct spawn *spawn, const struct agent_request *request, struct err *err)
{
    size_t count = 0;

    if (request->args.count > ARGS_MAX)
        return err_set(err, ERR_TOO_BIG, "args: more than %u", ARGS_MAX);
    /* One slot in front is spare, for the /bin/sh that runs a script without a first line. */
    spawn->argv = calloc((request->command ? 3 : request->args.count) + 2, sizeof(char *));
    if (!spawn->argv)
        return err_set(err, ERR_NO_MEMORY, "arguments");
    spawn->argv++;
    if (request->command) {
        spawn->shell = true;
        spawn->argv[0] = spawn->user.shell;
        spawn->argv[1] = (char *) (uintptr_t) "-lc";
        spawn->argv[2] = (char *) (uintptr_t) request->command;
        return 0;
    }
    for (const char *item = NULL; (item = texts_next(&request->args, item));)
        spawn->argv[count++] = (char *) (uintptr_t) item;
    if (!spawn->argv[0][0])
        return err_set(err, ERR_INVALID, "args: the first one is empty");
    return 0;
}

int spawn_prepare(struct spawn *spawn, const struct spawn_base *base,
                  const struct agent_request *request, const struct user *user, struct err *err)
{
    *spawn = (struct spawn){ .user = *user,
                             .root_profile = base->root_profile,
                             .pty = request->flags & AGENT_PTY,
                             .own_cwd = request->cwd != NULL,
                             .open_files = base->open_files,
                             .cwd = request->cwd };
    if (request->cwd && !request->cwd[0])
        return err_set(err, ERR_INVALID, "cwd: empty");
    if (check_env(&request->env, err) < 0)
        return -1;
    settle_shell(&spawn->user);
    if (!spawn->cwd && base->workdir && base->workdir[0] && strcmp(user->name, base->user) == 0)
        spawn->cwd = base->workdir;
    if (build_env(spawn, base, request, err) < 0 || build_argv(spawn, request, err) < 0) {
        spawn_done(spawn);
        return -1;
    }
    return 0;
}

void spawn_done(struct spawn *spawn)
{
    if (spawn->argv)
        free(spawn->argv - 1);
    free(spawn->envp);
    free(spawn->texts);
    spawn->argv = spawn->envp = NULL;
    spawn->texts = NULL;
}

/* A relative cwd is relative to home, like every path of the protocol. */
static int enter_cwd(const struct spawn *spawn, struct err *err)
{
    const char *home = spawn->user.home[0] ? spawn->user.home : "/";

    if (spawn->own_cwd) {
        if (spawn->cwd[0] != '/' && chdir(home) < 0)
            return err_sys(err, errno, "cwd %.128s", home);
        if (chdir(spawn->cwd) < 0)
            return err_sys(err, errno, "cwd %.128s", spawn->cwd);
        return 0;
    }
    if ((spawn->cwd && chdir(spawn->cwd) == 0) || chdir(home) == 0 || chdir("/") == 0)
        return 0;
    return err_sys(err, errno, "cwd /");
}

/* exec, and /bin/sh for a file that is executable but no program, as execvp does it. */
static void try_exec(const char *path, char **argv, char **envp)
{
    (void) execve(path, argv, envp);
    if (errno == ENOEXEC) {
        char *first = argv[0];

        argv[-1] = (char *) (uintptr_t) "/bin/sh";
        argv[0] = (char *) (uintptr_t) path;
        (void) execve("/bin/sh", argv - 1, envp);
        argv[0] = first;
        errno = ENOEXEC;
    }
}

/* Along the command's own PATH. A file that may not be run counts only if no other is found. */
static int search_exec(const struct spawn *spawn)
{
    const char *name = spawn->argv[0];
    const char *dirs = env_get(spawn->envp, "PATH");
    size_t name_len = strlen(name);
    int denied = 0;

    if (strchr(name, '/')) {
        try_exec(name, spawn->argv, spawn->envp);
        return errno;
    }
    for (const char *dir = dirs ? dirs : DEFAULT_PATH; dir;) {
        size_t len = strcspn(dir, ":");
        char path[4096];

        if (len + name_len + 2 <= sizeof path) {
            memcpy(path, dir, len);
            path[len] = '/';
            memcpy(path + len + (len > 0), name, name_len + 1);
            try_exec(path, spawn->argv, spawn->envp);
            if (errno == EACCES)
                denied = EACCES;
            else if (errno != ENOENT && errno != ENOTDIR)
                return errno;
        }
        dir = dir[len] ? dir + len + 1 : NULL;
    }
    return denied ? denied : ENOENT;
}

void spawn_child(const struct spawn *spawn, struct err *err)
{
    struct rlimit files = { spawn->open_files, spawn->open_files };
    sigset_t none;
    int errnum;

    (void) setsid();
    if (spawn->pty && ioctl(0, TIOCSCTTY, 0) < 0) {
        err_sys(err, errno, "controlling terminal");
        return;
    }
    if (spawn->open_files && setrlimit(RLIMIT_NOFILE, &files) < 0) {
        err_sys(err, errno, "limit of open files");
        return;
    }
    if (rights_become(&spawn->user, spawn->root_profile, err) < 0)
        return;
    (void) umask(022);
    if (enter_cwd(spawn, err) < 0)
        return;
    /* Descriptors of the agent are closed by exec; so is anything that forgot to say so. */
    if (io_close_from(3, true) < 0) {
        err_sys(err, errno, "close what a command must not hold");
        return;
    }
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    errnum = search_exec(spawn);
    if (spawn->shell && (errnum == ENOENT || errnum == EACCES)) {
        spawn->argv[0] = (char *) (uintptr_t) "/bin/sh";
        errnum = search_exec(spawn);
    }
    err_sys(err, errnum, "exec %.128s", spawn->argv[0]);
}
