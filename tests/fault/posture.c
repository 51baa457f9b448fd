/* A create that succeeds although a call failed may have left something out: a limit, a capability that was
 * to go, a mask over a file of /proc. What the host sees of PID 1 is compared with a healthy one's. */
#include "base/io.h"
#include "base/own.h"
#include "world.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#define POSTURE_MAX 65536

struct text {
    char *data;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(t->data + t->len, POSTURE_MAX - t->len, fmt, args);
    va_end(args);
    if (n > 0)
        t->len += (size_t) n < POSTURE_MAX - t->len ? (size_t) n : POSTURE_MAX - t->len - 1;
}

static FILE *open_of(pid_t pid, const char *file)
{
    char path[64];

    (void) snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return fopen(path, "re");
}

static void add_status(struct text *t, const struct keeper_sandbox *s)
{
    static const char *const wanted[] = { "Umask",   "Groups",         "CapInh", "CapPrm",
                                          "CapEff",  "CapBnd",         "CapAmb", "NoNewPrivs",
                                          "Seccomp", "Seccomp_filters" };
    auto_file FILE *file = open_of(s->pid, "status");
    char line[512];

    while (file && fgets(line, sizeof line, file)) {
        unsigned id;

        if (sscanf(line, "Uid: %u", &id) == 1 || sscanf(line, "Gid: %u", &id) == 1)
            add(t, "%.3s %u\n", line, id - s->uid_base);
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0 && line[strlen(wanted[i])] == ':')
                add(t, "%s", line);
    }
}

static void add_maps(struct text *t, const struct keeper_sandbox *s)
{
    static const char *const maps[] = { "uid_map", "gid_map" };

    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        auto_file FILE *file = open_of(s->pid, maps[i]);
        unsigned inside = 1, outside = 1, count = 0, more = 0;

        if (file && fscanf(file, "%u %u %u %u", &inside, &outside, &count, &more) == 3)
            add(t, "%s %u %u %u\n", maps[i], inside, outside - s->uid_base, count);
    }
}

static void add_limits(struct text *t, const struct keeper_sandbox *s)
{
    auto_file FILE *file = open_of(s->pid, "limits");
    char line[256];

    while (file && fgets(line, sizeof line, file)) {
        uint64_t soft, hard;

        if (sscanf(line, "Max file size %" SCNu64 " %" SCNu64, &soft, &hard) == 2 && soft == hard &&
            soft == s->limits.disk_bytes)
            add(t, "Max file size: its disk\n");
        else
            add(t, "%s", line);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* The kernel lists mounts by the order in which they were made, by two processes at once. */
static void sort_lines(struct text *t, size_t from)
{
    auto_free char *copy = strdup(t->data + from);
    char *lines[256], *rest = copy, *line;
    size_t count = 0;

    while (count < ARRAY_LEN(lines) && (line = strsep(&rest, "\n")) && line[0])
        lines[count++] = line;
    qsort(lines, count, sizeof lines[0], by_text);
    t->len = from;
    for (size_t i = 0; i < count; i++)
        add(t, "%s\n", lines[i]);
}

static void add_mounts(struct text *t, const struct keeper_sandbox *s)
{
    auto_file FILE *file = open_of(s->pid, "mountinfo");
    char line[2048], root[256], point[256], options[256], type[64];
    size_t from = t->len;

    while (file && fgets(line, sizeof line, file)) {
        const char *dash = strstr(line, " - ");

        if (!dash || sscanf(line, "%*s %*s %*s %255s %255s %255s", root, point, options) != 3 ||
            sscanf(dash, " - %63s", type) != 1)
            continue;
        if (strcmp(point, "/sys") == 0)
            (void) strcpy(root, "view"); /* numbered */
        add(t, "mount %s %s %s %s\n", root, point, options, type);
    }
    sort_lines(t, from);
}

static void add_namespaces(struct text *t, const struct keeper_sandbox *s)
{
    static const char *const names[] = { "user", "mnt", "pid", "ipc", "uts", "net", "cgroup" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64];
        struct stat ours, theirs;

        (void) snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        if (stat(path, &ours) < 0)
            continue;
        (void) snprintf(path, sizeof path, "/proc/%d/ns/%s", s->pid, names[i]);
        if (stat(path, &theirs) < 0)
            continue;
        add(t, "namespace %s %s\n", names[i], ours.st_ino == theirs.st_ino ? "host" : "own");
    }
}

static void add_cgroups(struct text *t, const struct keeper_sandbox *s)
{
    auto_file FILE *file = open_of(s->pid, "cgroup");
    char line[512];

    while (file && fgets(line, sizeof line, file))
        if (strstr(line, s->id) || strstr(line, "/spare-"))
            add(t, "in cgroup %.*s\n", (int) strcspn(strchr(line, ':'), "/"), strchr(line, ':'));
}

static void add_fds(struct text *t, const struct keeper_sandbox *s)
{
    for (int fd = 0; fd < 32; fd++) {
        char path[64], target[256];
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%d/fd/%d", s->pid, fd);
        n = readlink(path, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        target[strcspn(target, "0123456789")] = '\0';
        add(t, "fd %d %s\n", fd, target);
    }
}

char *posture_read(const struct keeper_sandbox *s)
{
    struct text t = { .data = calloc(1, POSTURE_MAX) };

    if (!t.data)
        return NULL;
    add_status(&t, s);
    add_maps(&t, s);
    add_limits(&t, s);
    add_mounts(&t, s);
    add_namespaces(&t, s);
    add_cgroups(&t, s);
    add_fds(&t, s);
    return t.data;
}

const char *posture_differs(const char *wanted, const char *got)
{
    static char why[512];
    size_t begin = 0, i = 0;

    for (; wanted[i] && wanted[i] == got[i]; i++)
        if (wanted[i] == '\n')
            begin = i + 1;
    if (!wanted[i] && !got[i])
        return NULL;
    (void) snprintf(why, sizeof why, "'%.*s', not '%.*s'", (int) strcspn(got + begin, "\n"),
                    got + begin, (int) strcspn(wanted + begin, "\n"), wanted + begin);
    return why;
}
