#include "world.h"

#include "base/io.h"
#include "base/own.h"
#include "client/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define START_MS  15000
#define SETTLE_MS 3000
#define POOL      4 /* image disks that a keeper keeps ready */

/* Where agents' sockets may be, in a directory of the instance; else in <state>/sandboxes. */
static const char *const socket_places[] = { "/run/cove", "/dev/shm" };

static void moment(void)
{
    (void) usleep(500);
}

int world_open(struct world *w, const char *build, const char *state, struct err *err)
{
    struct stat st;

    *w = (struct world){ .fd_base = -1 };
    (void) snprintf(w->program, sizeof w->program, "%s/cove-keeper", build);
    (void) snprintf(w->state, sizeof w->state, "%s", state);
    (void) snprintf(w->log, sizeof w->log, "%s/keeper.log", state);
    if (stat(state, &st) < 0)
        return err_sys(err, errno, "%s", state);
    (void) snprintf(w->instance, sizeof w->instance, "cove-%" PRIx64 "-%" PRIx64,
                    (uint64_t) st.st_dev, (uint64_t) st.st_ino);
    return 0;
}

static void find_cgroups(struct world *w)
{
    auto_file FILE *mounts = fopen("/proc/self/mounts", "re");
    char dir[128], type[32];

    w->cgroup_count = 0;
    while (mounts && fscanf(mounts, "%*s %127s %31s %*[^\n]", dir, type) == 2)
        if (strncmp(type, "cgroup", 6) == 0 && w->cgroup_count < HIERARCHIES_MAX) {
            char *path = w->cgroups[w->cgroup_count];

            (void) snprintf(path, sizeof w->cgroups[0], "%s/%s", dir, w->instance);
            w->cgroup_count += access(path, F_OK) == 0;
        }
}

static bool answers(const struct world *w)
{
    struct link link;
    struct keeper_hello hello;
    struct err err;
    bool yes = link_open(&link, w->state, &err) == 0 && keeper_hello(&link, &hello, &err) == 0 &&
               hello.pid == (uint32_t) w->keeper;

    link_close(&link);
    return yes;
}

int world_start(struct world *w, struct err *err)
{
    uint64_t until = io_now_ms() + START_MS;
    int log = open(w->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    w->keeper = fork();
    if (w->keeper == 0) {
        (void) dup2(log, 1);
        (void) dup2(log, 2);
        (void) execl(w->program, w->program, "--state", w->state, w->spare ? NULL : "--no-spare",
                     (char *) NULL);
        _exit(127);
    }
    own_close(&log);
    if (w->keeper < 0)
        return err_sys(err, errno, "fork the keeper");
    while (!answers(w)) {
        int status;

        if (waitpid(w->keeper, &status, WNOHANG) == w->keeper) {
            w->keeper = 0;
            return err_set(err, ERR_UNAVAILABLE, "the keeper ended with %x; see %s", status,
                           w->log);
        }
        if (io_now_ms() > until)
            return err_set(err, ERR_TIMEOUT, "the keeper does not answer; see %s", w->log);
        moment();
    }
    find_cgroups(w);
    return 0;
}

void world_stop(struct world *w, int signal)
{
    if (w->keeper <= 1)
        return;
    (void) kill(w->keeper, signal);
    (void) waitpid(w->keeper, NULL, 0);
    w->keeper = 0;
}

/* Calls fn for each child of the keeper; returns how many there are. */
static int children(const struct world *w, pid_t out[], int most)
{
    char path[64], text[4096];
    int count = 0, used = 0, pid, n;

    (void) snprintf(path, sizeof path, "/proc/%d/task/%d/children", w->keeper, w->keeper);
    if (io_read_text(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    while (sscanf(text + used, "%d %n", &pid, &n) == 1) {
        if (count < most)
            out[count] = pid;
        count++;
        used += n;
    }
    return count;
}

static void comm_of(pid_t pid, char out[32])
{
    char path[40];

    (void) snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (io_read_text(AT_FDCWD, path, out, 32) < 0)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

pid_t world_maker(const struct world *w)
{
    pid_t pids[64];
    int count = children(w, pids, 64);
    char name[32];

    for (int i = 0; i < count && i < 64; i++) {
        comm_of(pids[i], name);
        if (strcmp(name, "cove-disks") == 0)
            return pids[i];
    }
    return 0;
}

/* Of a child that did not become another program yet. */
static bool is_of_child(const char *name)
{
    return strcmp(name, "cove-child") == 0 || strcmp(name, "cove-keeper") == 0;
}

static int spares(const struct world *w, pid_t *ret)
{
    pid_t pids[64];
    int count = children(w, pids, 64), found = 0;
    char name[32];

    for (int i = 0; i < count && i < 64; i++) {
        comm_of(pids[i], name);
        if (!is_of_child(name))
            continue;
        *ret = pids[i];
        found++;
    }
    return found;
}

pid_t world_spare(const struct world *w)
{
    char path[40], text[512];
    pid_t pid = 0;

    if (spares(w, &pid) != 1)
        return 0;
    (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return io_read_text(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, ") S ") ? pid : 0;
}

pid_t world_await_spare(const struct world *w, unsigned patience_ms)
{
    uint64_t until = io_now_ms() + patience_ms;
    pid_t pid = 0;

    while (!(pid = world_spare(w)) && io_now_ms() < until)
        moment();
    return pid;
}

int world_ask(const struct world *w, const char *sandbox, struct err *err)
{
    struct exec_info info;
    struct link link;
    int rc = link_open(&link, w->state, err);

    link.patience_ms = 5000;
    if (rc == 0)
        rc = exec_info(&link, sandbox, &info, err);
    link_close(&link);
    return rc;
}

int world_create(const struct world *w, const char *id, bool ready, struct keeper_sandbox *ret,
                 struct err *err)
{
    struct sandbox_spec spec = { .id = id, .template = "host" };
    struct link link;
    int rc = link_open(&link, w->state, err);

    limits_default(&spec.limits);
    if (!ready)
        spec.limits.disk_bytes = 16u << 20;
    link.patience_ms = 10000;
    if (rc == 0)
        rc = sandbox_create(&link, &spec, ret, err);
    link_close(&link);
    return rc;
}

int world_clear(const struct world *w, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    size_t count = 0;
    struct link link;
    int rc = link_open(&link, w->state, err);

    link.patience_ms = 5000;
    if (rc == 0)
        rc = sandbox_list(&link, &list, &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        if (strcmp(list[i].id, w->neighbour.id) != 0 &&
            sandbox_destroy(&link, list[i].id, err) < 0 && err->kind != ERR_NO_SANDBOX)
            rc = err_wrap(err, "destroy %s", list[i].id);
    link_close(&link);
    return rc;
}

static int entries(const char *path, const char *but, char found[64])
{
    auto_dir DIR *dir = opendir(path);
    const struct dirent *entry;
    int count = 0;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || (but[0] && strncmp(entry->d_name, but, strlen(but)) == 0))
            continue;
        (void) snprintf(found, 64, "%.63s", entry->d_name);
        count++;
    }
    return count;
}

/* Sandboxes' cgroups: directories that are not the neighbour's. */
int world_disks(const struct world *w)
{
    char path[300];
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;
    int count = 0;

    (void) snprintf(path, sizeof path, "%s/disks", w->state);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        count += entry->d_name[0] == 'd' && strlen(entry->d_name) == 17;
    count -= POOL + (w->neighbour.id[0] != '\0');
    return count < 0 ? 0 : count;
}

static int check_cgroups(const struct world *w, struct err *err)
{
    for (size_t i = 0; i < w->cgroup_count; i++) {
        auto_dir DIR *dir = opendir(w->cgroups[i]);
        const struct dirent *entry;
        pid_t pid = 0;
        int spare = w->spare ? spares(w, &pid) : 0;

        while (dir && (entry = readdir(dir)))
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                strcmp(entry->d_name, w->neighbour.id) != 0 &&
                (strncmp(entry->d_name, "spare-", 6) != 0 || spare-- < 1))
                return err_set(err, ERR_STATE, "cgroup %s/%s is left", w->cgroups[i],
                               entry->d_name);
    }
    return 0;
}

/* The maker, the watcher of the disk's room, the neighbour when it is our own child, and nobody else; no zombies. */
static int check_children(const struct world *w, struct err *err)
{
    pid_t pids[64];
    int count = children(w, pids, 64), makers = 0, watchers = 0, spare = w->spare;

    for (int i = 0; i < count && i < 64; i++) {
        char name[32], path[40], text[512];

        comm_of(pids[i], name);
        if (strcmp(name, "cove-disks") == 0)
            makers++;
        else if (strcmp(name, "cove-room") == 0)
            watchers++;
        else if (is_of_child(name) && spare > 0)
            spare--;
        else if (pids[i] != w->neighbour.pid)
            return err_set(err, ERR_STATE, "process %d (%s) is left", pids[i], name);
        (void) snprintf(path, sizeof path, "/proc/%d/stat", pids[i]);
        if (io_read_text(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, ") Z "))
            return err_set(err, ERR_STATE, "process %d (%s) is not reaped", pids[i], name);
    }
    if (watchers > 1) /* none: its end was what failed, and another one comes a second later */
        return err_set(err, ERR_STATE, "there are %d watchers of the disk's room", watchers);
    return makers == 1 ? 0 : err_set(err, ERR_STATE, "there are %d disk makers", makers);
}

/* Loop devices whose image was in our state directory. */
static int loops_in_use(const struct world *w)
{
    auto_dir DIR *dir = opendir("/sys/block");
    const struct dirent *entry;
    int count = 0;

    while (dir && (entry = readdir(dir))) {
        char path[320], text[512];

        if (strncmp(entry->d_name, "loop", 4) != 0)
            continue;
        (void) snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
        if (io_read_text(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, w->state))
            count++;
    }
    return count;
}

/* The keeper's descriptors, less the network namespaces that it makes ahead. */
static int fds_of(const struct world *w)
{
    char path[64];
    auto_dir DIR *dir = NULL;
    const struct dirent *entry;
    int count = 0;

    (void) snprintf(path, sizeof path, "/proc/%d/fd", w->keeper);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        char target[64];
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);

        count += n > 0 && strncmp(target, "net:", 4) != 0;
    }
    return count;
}

/* Without the three descriptors of a spare child: its pidfd, its control socket, its ready pipe. */
static int fds_at_rest(const struct world *w, int loops)
{
    pid_t pid;

    return fds_of(w) - loops - 3 * spares(w, &pid);
}

static int check_once(const struct world *w, struct err *err)
{
    char path[300], found[64];
    int loops, fds;

    if (check_cgroups(w, err) < 0 || check_children(w, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(socket_places); i++) {
        (void) snprintf(path, sizeof path, "%s/%s", socket_places[i], w->instance);
        if (entries(path, w->neighbour.id, found) > 0)
            return err_set(err, ERR_STATE, "%s/%s is left", path, found);
    }
    (void) snprintf(path, sizeof path, "%s/sandboxes", w->state);
    if (entries(path, w->neighbour.id, found) > 0)
        return err_set(err, ERR_STATE, "%s/%s is left", path, found);
    loops = loops_in_use(w) - (w->neighbour.id[0] != '\0');
    if (loops > POOL)
        return err_set(err, ERR_STATE, "%d loop devices are attached", loops);
    fds = fds_at_rest(w, loops);
    if (w->fd_base >= 0 && fds != w->fd_base)
        return err_set(err, ERR_STATE, "the keeper has %d descriptors and %d images, not %d", fds,
                       loops, w->fd_base);
    return 0;
}

int world_check(const struct world *w, struct err *err)
{
    uint64_t until = io_now_ms() + SETTLE_MS;

    while (check_once(w, err) < 0) {
        if (io_now_ms() > until)
            return -1;
        moment();
    }
    return 0;
}

int world_rest(struct world *w, struct err *err)
{
    uint64_t until = io_now_ms() + SETTLE_MS;
    int last = -1, same = 0;

    w->fd_base = -1;
    while (same < 50 && io_now_ms() < until) {
        int now = fds_at_rest(w, loops_in_use(w) - (w->neighbour.id[0] != '\0'));

        same = now == last ? same + 1 : 0;
        last = now;
        moment();
    }
    w->fd_base = last;
    return world_check(w, err);
}
