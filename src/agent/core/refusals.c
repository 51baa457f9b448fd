#include "agent/core/refusals.h"

#include "base/io.h"
#include "base/own.h"
#include "wire/seccomp_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#define PER_TURN 16

/* clang-format off */
static const struct {
    int32_t call;
    const char *name;
} names[] = {
#define REFUSE(name) { __NR_##name, #name },
    SECCOMP_REFUSED
#undef REFUSE
    /* refused for their arguments */
    { __NR_clone, "clone" },             { __NR_socket, "socket" },
    { __NR_socketpair, "socketpair" },   { __NR_setsockopt, "setsockopt" },
    { __NR_ioctl, "ioctl" },             { __NR_personality, "personality" },
    { __NR_futex, "futex" },             { __NR_prlimit64, "prlimit64" },
};
/* clang-format on */

const char *refusals_call_name(int32_t call, char *room, size_t size)
{
    if (call < 0)
        return "other";
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].call == call)
            return names[i].name;
    (void) snprintf(room, size, "system call %d", (int) call);
    return room;
}

static struct refusal *row_of(struct refusals *refusals, int32_t call, const char *program)
{
    struct refusal *row;

    for (size_t i = 0; i < refusals->row_count; i++) {
        row = &refusals->rows[i];
        if (row->call == call && strncmp(row->program, program, sizeof row->program - 1) == 0)
            return row;
    }
    if (refusals->row_count > REFUSALS_MAX)
        return &refusals->rows[REFUSALS_MAX];
    row = &refusals->rows[refusals->row_count++];
    if (refusals->row_count > REFUSALS_MAX)
        *row = (struct refusal){ .call = -1, .program = "other" };
    else {
        row->call = call;
        (void) snprintf(row->program, sizeof row->program, "%s", program);
    }
    return row;
}

void refusals_count(struct refusals *refusals, int32_t call, const char *program, uint32_t pid)
{
    struct refusal *row;

    refusals->total++;
    if (!refusals->rows)
        refusals->rows = calloc(REFUSALS_MAX + 1, sizeof *refusals->rows);
    if (!refusals->rows)
        return;
    row = row_of(refusals, call, program);
    row->count++;
    row->pid = pid;
}

static void name_of(pid_t pid, char program[REFUSALS_PROGRAM])
{
    char path[32], text[64];
    ssize_t n;

    (void) snprintf(path, sizeof path, "/proc/%d/comm", (int) pid);
    n = io_read_text(AT_FDCWD, path, text, sizeof text);
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = '\0';
    (void) snprintf(program, REFUSALS_PROGRAM, "%s", n > 0 ? text : "gone");
}

/* One notification. False: there is none any more. */
static bool take_one(struct refusals *refusals)
{
    struct seccomp_notif notif;
    struct seccomp_notif_resp resp = { .error = -EPERM };
    struct pollfd p = { .fd = refusals->watch.fd, .events = POLLIN };
    char program[REFUSALS_PROGRAM];

    /* RECV waits when there is nothing, so ask first. A caller that dies between the two leaves its
     * place in the kernel's count, and RECV says ENOENT instead of waiting. */
    if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLIN))
        return false;
    memset(&notif, 0, sizeof notif); /* the kernel insists */
    if (ioctl(refusals->watch.fd, SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
        return errno == ENOENT || errno == EINTR;
    name_of((pid_t) notif.pid, program);
    /* The name is that of the caller only if the caller is still there, waiting. */
    if (ioctl(refusals->watch.fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &notif.id) < 0)
        (void) snprintf(program, sizeof program, "gone");
    refusals_count(refusals, notif.data.nr, program, notif.pid);
    resp.id = notif.id;
    (void) ioctl(refusals->watch.fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
    return true;
}

static void on_ready(struct watch *watch, uint32_t events)
{
    struct refusals *refusals = CONTAINER(watch, struct refusals, watch);

    (void) events;
    for (int i = 0; i < PER_TURN && take_one(refusals); i++)
        ;
}

int refusals_open(struct refusals *refusals, struct loop *loop, int fd, struct err *err)
{
    refusals->watch = (struct watch){ .fd = fd, .ready = on_ready };
    if (loop_watch(loop, &refusals->watch, EPOLLIN) < 0)
        return err_sys(err, errno, "refusals");
    return 0;
}

bool refusals_close(struct refusals *refusals, struct loop *loop)
{
    if (!refusals->watch.ready)
        return false;
    loop_pause(loop, &refusals->watch);
    (void) close(refusals->watch.fd);
    refusals->watch = (struct watch){ .fd = -1 };
    return true;
}
