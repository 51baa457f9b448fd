#include "agent/worker/port.h"

#include "agent/worker/answer.h"
#include "base/io.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PORTS_MAX    4096u
#define STATE_LISTEN 0x0a

struct ports {
    struct port *list; /* PORTS_MAX */
    size_t count;
    bool cut;
};

bool port_parse(const char *line, bool v6, struct port *ret)
{
    unsigned words[4] = { 0 }, port, state, uid;
    unsigned long long inode;
    int n = -1;

    memset(ret, 0, sizeof *ret);
    if (v6)
        (void) sscanf(line, " %*u: %8x%8x%8x%8x:%4x %*x:%*x %2x %*x:%*x %*x:%*x %*x %u %*u %llu%n",
                      &words[0], &words[1], &words[2], &words[3], &port, &state, &uid, &inode, &n);
    else
        (void) sscanf(line, " %*u: %8x:%4x %*x:%*x %2x %*x:%*x %*x:%*x %*x %u %*u %llu%n",
                      &words[0], &port, &state, &uid, &inode, &n);
    if (n < 0 || state != STATE_LISTEN)
        return false;
    /* The kernel prints each word of the address as it lies in memory. */
    if (!inet_ntop(v6 ? AF_INET6 : AF_INET, words, ret->address, sizeof ret->address))
        return false;
    ret->port = port;
    ret->uid = uid;
    ret->inode = inode;
    return true;
}

/* Of the agent's own. */
static uint32_t hidden[2];

void ports_hide(uint32_t port)
{
    hidden[hidden[0] != 0] = port;
}

static void add_port(struct ports *ports, const struct port *port)
{
    if (port->port == hidden[0] || port->port == hidden[1])
        return;
    /* Several sockets may share an address (SO_REUSEPORT); a caller sees one port. */
    for (size_t i = 0; i < ports->count; i++)
        if (ports->list[i].port == port->port && strcmp(ports->list[i].address, port->address) == 0)
            return;
    if (ports->count == PORTS_MAX)
        ports->cut = true;
    else
        ports->list[ports->count++] = *port;
}

static void read_table(struct ports *ports, const char *path, bool v6)
{
    auto_file FILE *file = fopen(path, "re");
    char line[512];
    struct port port;

    while (file && fgets(line, sizeof line, file))
        if (port_parse(line, v6, &port))
            add_port(ports, &port);
}

/* The name of a process, as it gave it to itself. */
static void read_program(int proc, const char *pid, char *out, size_t size)
{
    char path[300];
    ssize_t n;

    (void) snprintf(path, sizeof path, "%s/comm", pid);
    n = io_read_text(proc, path, out, size);
    if (n > 0 && out[n - 1] == '\n')
        out[n - 1] = '\0';
    else if (n < 0)
        out[0] = '\0';
}

/* Which of the ports does this process hold? */
static void match_process(struct port *list, size_t count, int proc, const char *pid)
{
    char path[300], target[64];
    auto_dir DIR *fds = NULL;
    const struct dirent *e;
    int fd;

    (void) snprintf(path, sizeof path, "%s/fd", pid);
    fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return; /* another process's */
    fds = fdopendir(fd);
    if (!fds) {
        (void) close(fd);
        return;
    }
    while ((e = readdir(fds))) {
        ssize_t n = readlinkat(fd, e->d_name, target, sizeof target - 1);
        unsigned long long inode;

        if (n <= 0)
            continue;
        target[n] = '\0';
        if (sscanf(target, "socket:[%llu]", &inode) != 1)
            continue;
        for (size_t i = 0; i < count; i++) {
            struct port *port = &list[i];

            if (port->inode != inode || port->pid)
                continue;
            port->pid = (uint32_t) strtoul(pid, NULL, 10);
            read_program(proc, pid, port->program, sizeof port->program);
        }
    }
}

void port_find_processes(struct port *list, size_t count)
{
    auto_dir DIR *proc = opendir("/proc");
    const struct dirent *e;

    while (proc && count > 0 && (e = readdir(proc)))
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            match_process(list, count, dirfd(proc), e->d_name);
}

int port_list(struct worker *w, struct err *err)
{
    auto_free struct port *list = calloc(PORTS_MAX, sizeof *list);
    struct ports ports = { .list = list };
    struct agent_reply end = { 0 };

    if (!list)
        return err_sys(err, ENOMEM, "ports");
    read_table(&ports, "/proc/net/tcp", false);
    read_table(&ports, "/proc/net/tcp6", true);
    port_find_processes(ports.list, ports.count);
    for (size_t i = 0; i < ports.count; i++) {
        const struct port *port = &list[i];
        struct agent_reply item = { .port = port->port,
                                    .address = port->address,
                                    .uid = port->uid,
                                    .pid = port->pid,
                                    .program = port->program[0] ? port->program : NULL };

        if (answer_record(w, FRAME_ITEM, &item, err) < 0)
            return -1;
    }
    end.count = ports.count;
    end.flags = ports.cut ? AGENT_TRUNCATED : 0;
    return answer_record(w, FRAME_END, &end, err);
}
