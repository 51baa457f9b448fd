/* leaks.c - what belongs to the host or to a neighbour and must not be seen: sockets, shared
 * memory, queues, keys, processes, the kernel's own state. */
#include "escape.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define PROC_MAGIC 0x9fa0
#define OPEN_ONLY  1

/* The kernel's state: a file with anything in it. Masks are empty files. */
static struct outcome kernel_file(const struct attempt *attempt)
{
    char text[65536];
    struct statfs fs;
    int fd = open(attempt->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return by_call(-1, attempt->path);
    /* Reading /proc/kmsg takes lines away from whoever reads it on the host: having it is enough.
     */
    if (attempt->number == OPEN_ONLY)
        return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_MAGIC
                   ? escaped("opened %s", attempt->path)
                   : held(0, "a mask");
    /* So that the list of locks is not empty for want of locks. */
    (void) flock(open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600), LOCK_EX);
    n = read(fd, text, sizeof text);
    if (n < 0)
        return by_call(-1, "read");
    return n ? escaped("%s has %zd bytes", attempt->path, n)
             : held(ENODATA, "%s is empty", attempt->path);
}

/* Symbols count only when their addresses are there. */
static struct outcome symbol_addresses(const struct attempt *attempt)
{
    char line[512];
    FILE *file = fopen("/proc/kallsyms", "re");

    (void) attempt;
    if (!file)
        return by_call(-1, "/proc/kallsyms");
    while (fgets(line, sizeof line, file))
        if (strtoul(line, NULL, 16))
            return escaped("an address of the kernel: %.16s", line);
    return held(0, "no addresses");
}

static struct outcome directory_has_entries(const struct attempt *attempt)
{
    DIR *dir = opendir(attempt->path);
    struct dirent *entry;

    if (!dir)
        return by_call(-1, attempt->path);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            return escaped("%s has %s", attempt->path, entry->d_name);
    return held(ENODATA, "%s is empty", attempt->path);
}

static struct outcome kernel_log(const struct attempt *attempt)
{
    static char text[65536];

    (void) attempt;
    return by_call(syscall(SYS_syslog, 3L /* READ_ALL */, text, sizeof text), "syslog");
}

static struct outcome hears_token(int fd, const char *what)
{
    char text[256] = "";
    struct timeval limit = { .tv_sec = 1 };

    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (recv(fd, text, sizeof text - 1, 0) < 0)
        return by_call(-1, what);
    if (strstr(text, bait.token))
        return escaped("%s answered with the secret", what);
    return held(0, "%s answered something else", what);
}

/* `number`: 0 the host's TCP, 1 its UDP, 2 the neighbour's TCP, 3 the host's by IPv6-mapped name.
 */
static struct outcome loopback_port(const struct attempt *attempt)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    struct sockaddr_in6 addr6 = { .sin6_family = AF_INET6 };
    int port = attempt->number == 2 ? bait.neighbour_port : bait.port;
    int udp = attempt->number == 1, six = attempt->number == 3;
    int fd = socket(six ? AF_INET6 : AF_INET, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return by_call(-1, "socket");
    addr.sin_port = addr6.sin6_port = htons((uint16_t) port);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void) inet_pton(AF_INET6, "::ffff:127.0.0.1", &addr6.sin6_addr);
    if (six ? connect(fd, (struct sockaddr *) &addr6, sizeof addr6)
            : connect(fd, (struct sockaddr *) &addr, sizeof addr))
        return by_call(-1, "connect");
    if (udp && send(fd, "?", 1, 0) < 0)
        return by_call(-1, "send");
    return hears_token(fd, attempt->name);
}

static struct outcome abstract_socket(const struct attempt *attempt)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char name[256];
    socklen_t len;

    bait_name(name, sizeof name, "", attempt->path);
    (void) snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "%.100s", name);
    len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    if (connect(fd, (struct sockaddr *) &addr, len) < 0)
        return by_call(-1, "connect");
    return hears_token(fd, attempt->name);
}

static struct outcome path_socket(const struct attempt *attempt)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char path[256];

    bait_name(path, sizeof path, attempt->path, ".sock");
    (void) snprintf(addr.sun_path, sizeof addr.sun_path, "%.100s", path);
    if (connect(fd, (struct sockaddr *) &addr, sizeof addr) < 0)
        return by_call(-1, "connect");
    return hears_token(fd, attempt->name);
}

static struct outcome socket_list(const struct attempt *attempt)
{
    char line[512], name[256];
    FILE *file = fopen(attempt->path, "re");

    if (!file)
        return by_call(-1, attempt->path);
    bait_name(name, sizeof name, "", "");
    while (fgets(line, sizeof line, file))
        if (strstr(line, name))
            return escaped("%s names a socket of the host", attempt->path);
    return held(0, "%s names nothing of the host", attempt->path);
}

/* The host's listener, found by its port in a list of TCP sockets. */
static struct outcome port_list(const struct attempt *attempt)
{
    char line[512], want[32];
    FILE *file = fopen(attempt->path, "re");

    if (!file)
        return by_call(-1, attempt->path);
    (void) snprintf(want, sizeof want, "0100007F:%04X 00000000:0000 0A", (unsigned) bait.port);
    while (fgets(line, sizeof line, file))
        if (strstr(line, want))
            return escaped("%s shows a listener of the host", attempt->path);
    return held(0, "%s shows no listener of the host", attempt->path);
}

static struct outcome interfaces(const struct attempt *attempt)
{
    struct if_nameindex *list = if_nameindex();

    (void) attempt;
    if (!list)
        return by_call(-1, "if_nameindex");
    for (size_t i = 0; list[i].if_index; i++)
        if (strcmp(list[i].if_name, "lo") != 0)
            return escaped("there is an interface %s", list[i].if_name);
    return held(ENODEV, "only lo");
}

static struct outcome shared_memory(const struct attempt *attempt)
{
    int id = shmget(bait_key(), 4096, 0);
    const char *at;

    (void) attempt;
    if (id < 0)
        return by_call(-1, "shmget");
    at = shmat(id, NULL, SHM_RDONLY);
    if (at == (void *) -1)
        return by_call(-1, "shmat");
    return strstr(at, bait.token) ? escaped("read the host's shared memory") : held(0, "another's");
}

static struct outcome message_queue(const struct attempt *attempt)
{
    char name[256];

    (void) attempt;
    bait_name(name, sizeof name, "/", "");
    return by_call(mq_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC), "mq_open");
}

/* request_key finds what is in the session, process, thread and user keyrings. */
static struct outcome key_of_host(const struct attempt *attempt)
{
    char name[256];

    (void) attempt;
    bait_name(name, sizeof name, "", "");
    return by_call(syscall(SYS_keyctl, 10L /* SEARCH */, -4L, "user", name, 0L), "keyctl search");
}

static struct outcome host_process(const struct attempt *attempt)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    char path[300], comm[64];

    (void) attempt;
    while (dir && (entry = readdir(dir))) {
        int fd;
        ssize_t n;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        (void) snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, comm, sizeof comm - 1);
        comm[n > 0 ? n - 1 : 0] = '\0';
        (void) close(fd);
        if (!strcmp(comm, "cove-bait"))
            return escaped("process %s of the host", entry->d_name);
    }
    return held(0, "no process of the host in /proc");
}

static struct outcome host_signal(const struct attempt *attempt)
{
    char path[64], comm[64] = "";
    int fd;

    (void) attempt;
    (void) snprintf(path, sizeof path, "/proc/%d/comm", bait.pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, comm, sizeof comm - 1) > 0 && strcmp(comm, "cove-bait\n") != 0)
        return held(ESRCH, "that number is a process of the sandbox");
    return by_call(kill(bait.pid, 0), "kill");
}

static struct outcome host_name(const struct attempt *attempt)
{
    char name[256] = "";

    (void) attempt;
    (void) gethostname(name, sizeof name - 1);
    return bait.host && !strcmp(name, bait.host) ? escaped("the host is called %s", name)
                                                 : held(0, "called %s", name);
}

static struct outcome machine_id(const struct attempt *attempt)
{
    unsigned long hash = bait_hash_file("/etc/machine-id");

    (void) attempt;
    if (!hash || !bait.machine)
        return held(ENOENT, "no machine-id");
    return hash == bait.machine ? escaped("the host's machine-id") : held(0, "another");
}

static struct outcome mount_sources(const struct attempt *attempt)
{
    char line[4096];
    FILE *file;

    if (bait.outside && bait.state)
        (void) mount(bait.state, "/mnt", NULL, MS_BIND, NULL);
    file = fopen(attempt->path, "re");
    if (!file)
        return by_call(-1, attempt->path);
    while (bait.state && fgets(line, sizeof line, file))
        if (strstr(line, bait.state))
            return escaped("a path of the host: %.120s", line);
    return held(0, "no path of the host");
}

static struct outcome outer_ids(const struct attempt *attempt)
{
    unsigned long first = 0, outer = 0, len = 0;
    FILE *file = fopen(attempt->path, "re");

    if (!file || fscanf(file, "%lu %lu %lu", &first, &outer, &len) != 3)
        return held(errno, "no %s", attempt->path);
    (void) fclose(file);
    return outer < 65536 ? escaped("id 0 of the host is mapped") : held(0, "starts at %lu", outer);
}

#define HOST           .outside = ON_HOST
#define FILE_OF(path_) kernel_file, .path = (path_), HOST
#define WITHOUT        .lacking = { ENOENT, ENODATA }, .reason = "this kernel does not have it"

/* clang-format off */
const struct attempt leak_attempts[] = {
    { "host-loopback-tcp",   "services of the host on 127.0.0.1", loopback_port, .number = 0, HOST },
    { "host-loopback-udp",   "services of the host on 127.0.0.1", loopback_port, .number = 1, HOST },
    { "host-loopback-mapped","the same by an IPv6 name", loopback_port, .number = 3, HOST, .lacking = { EAFNOSUPPORT, EADDRNOTAVAIL, ENETUNREACH }, .reason = "this host has no IPv6" },
    { "neighbour-loopback",  "services of another sandbox", loopback_port, .number = 2, HOST },
    { "host-abstract",       "CVE-2020-15257: control sockets without a path", abstract_socket, .path = "-host", HOST },
    { "neighbour-abstract",  "sockets of another sandbox", abstract_socket, .path = "-neighbour", HOST },
    { "host-unix-socket",    "services of the host in /run", path_socket, .path = "/run/", HOST },
    { "host-unix-list",      "names of the host's sockets", socket_list, .path = "/proc/net/unix", HOST },
    { "host-tcp-list",       "listeners of the host", port_list, .path = "/proc/net/tcp", HOST },
    { "interfaces",          "the host's network", interfaces, HOST, .lacking = { ENODEV }, .reason = "this host has only lo" },
    { "host-shared-memory",  "System V memory of the host", shared_memory, HOST },
    { "host-queue",          "message queues of the host", message_queue, HOST },
    { "host-key",            "keys of the host's root", key_of_host, HOST },
    { "host-process",        "processes of the host", host_process, HOST },
    { "host-signal",         "signals to processes of the host", host_signal, HOST },
    { "host-name",           "the name of the host", host_name, HOST },
    { "machine-id",          "the identity of the host", machine_id, HOST, .lacking = { ENOENT }, .reason = "this host has no machine-id" },
    { "mount-sources",       "paths of the host in the mount table", mount_sources, .path = "/proc/self/mountinfo", .outside = IN_SPACES },
    { "mapped-uid",          "uid 0 of the host: every usermode-helper path of the kernel", outer_ids, .path = "/proc/self/uid_map", HOST },
    { "mapped-gid",          "gid 0 of the host", outer_ids, .path = "/proc/self/gid_map", HOST },
    { "kernel-log",          "addresses and events of the host", kernel_log, HOST },
    { "kernel-symbols",      "where the kernel is", symbol_addresses, HOST },
    { "dev-kmsg",            "the kernel's log", FILE_OF("/dev/kmsg"), WITHOUT },
    { "proc-kmsg",           "the kernel's log", FILE_OF("/proc/kmsg"), .number = OPEN_ONLY },
    { "proc-keys",           "keys of the host", FILE_OF("/proc/keys") },
    { "proc-key-users",      "users of keys", FILE_OF("/proc/key-users") },
    { "proc-kcore",          "all memory", FILE_OF("/proc/kcore"), WITHOUT },
    { "proc-kpagecount",     "sharing of pages: a side channel", FILE_OF("/proc/kpagecount"), WITHOUT },
    { "proc-kpageflags",     "sharing of pages: a side channel", FILE_OF("/proc/kpageflags"), WITHOUT },
    { "proc-timer-list",     "addresses and timers of everybody", FILE_OF("/proc/timer_list"), WITHOUT },
    { "proc-interrupts",     "keystroke timing", FILE_OF("/proc/interrupts") },
    { "proc-softirqs",       "traffic of others", FILE_OF("/proc/softirqs") },
    { "proc-slabinfo",       "heap layout of the kernel", FILE_OF("/proc/slabinfo"), WITHOUT },
    { "proc-vmallocinfo",    "addresses of the kernel", FILE_OF("/proc/vmallocinfo"), WITHOUT },
    { "proc-zoneinfo",       "memory of the host", FILE_OF("/proc/zoneinfo") },
    { "proc-buddyinfo",      "heap layout of the kernel", FILE_OF("/proc/buddyinfo") },
    { "proc-pagetypeinfo",   "heap layout of the kernel", FILE_OF("/proc/pagetypeinfo"), WITHOUT },
    { "proc-iomem",          "physical addresses", FILE_OF("/proc/iomem") },
    { "proc-ioports",        "hardware", FILE_OF("/proc/ioports") },
    { "proc-modules",        "what can be attacked", FILE_OF("/proc/modules"), WITHOUT },
    { "proc-config",         "what can be attacked", FILE_OF("/proc/config.gz"), WITHOUT },
    { "proc-cmdline",        "boot parameters of the host", FILE_OF("/proc/cmdline") },
    { "proc-partitions",     "disks of the host", FILE_OF("/proc/partitions") },
    { "proc-diskstats",      "activity of the host", FILE_OF("/proc/diskstats") },
    { "proc-locks",          "files of the host", FILE_OF("/proc/locks") },
    { "proc-swaps",          "disks of the host", FILE_OF("/proc/swaps") },
    { "proc-devices",        "drivers of the host", FILE_OF("/proc/devices") },
    { "proc-sched-debug",    "every task of the host", FILE_OF("/proc/sched_debug"), WITHOUT },
    { "proc-schedstat",      "activity of the host", FILE_OF("/proc/schedstat"), WITHOUT },
    { "proc-latency",        "activity of the host", FILE_OF("/proc/latency_stats"), WITHOUT },
    { "proc-acpi",           "hardware", directory_has_entries, .path = "/proc/acpi", HOST, WITHOUT },
    { "proc-tty-driver",     "hardware", directory_has_entries, .path = "/proc/tty", HOST, WITHOUT },
    { "sys-firmware",        "serial numbers of the host", directory_has_entries, .path = "/sys/firmware", HOST, WITHOUT },
    { "sys-block",           "disks of the host", directory_has_entries, .path = "/sys/block", HOST, WITHOUT },
    { "sys-kernel",          "the kernel's own knobs", FILE_OF("/sys/kernel/notes"), WITHOUT },
    { "sys-security",        "security modules", directory_has_entries, .path = "/sys/kernel/security", HOST, WITHOUT },
    { "sys-powercap",        "PLATYPUS: power as a side channel", directory_has_entries, .path = "/sys/class/powercap", HOST, WITHOUT },
    { "sys-pci",             "hardware of the host", directory_has_entries, .path = "/sys/bus/pci/devices", HOST, WITHOUT },
    { "sys-cgroup-tasks",    "processes of the host", FILE_OF("/sys/fs/cgroup/pids/tasks"), WITHOUT },
};
/* clang-format on */
const size_t leak_attempt_count = ARRAY_LEN(leak_attempts);
