#include "cli/up/gate.h"

#include "base/io.h"
#include "base/lockdown.h"
#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/up/supervise.h"
#include "cli/users.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM "cove-gateway"

int gate_user(struct gate *gate, struct err *err)
{
    return user_ensure(GATEWAY_USER, &gate->start.uid, &gate->start.gid, err);
}

int gate_listen(struct gate *gate, uid_t server, struct err *err)
{
    gate->start.peer = server;
    return gateway_listen(report_state(), server, &gate->start.listen_fd, err);
}

int gate_start(void *with, pid_t *ret, struct err *err)
{
    struct gate *gate = with;
    auto_close int program = -1;
    char path[PATH_MAX];
    pid_t pid;

    if (program_find(PROGRAM, path, sizeof path, err) < 0)
        return -1;
    program = open(path, O_RDONLY | O_CLOEXEC);
    if (program < 0)
        return err_sys(err, errno, "open %s", path);
    gate->start.program_fd = program;
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        if (gateway_drop_privilege(&gate->start) == 0) {
            supervise_enter();
            gateway_exec(&gate->start);
        }
        report_note("start " PROGRAM ": %s", strerror(errno));
        _exit(126);
    }
    *ret = gate->pid = pid;
    return 0;
}

/* It has given up its rights: from then on it listens. */
bool gate_is_ready(void *with)
{
    const struct gate *gate = with;
    char path[48], text[4096];

    if (!lockdown_filters())
        return true;
    (void) snprintf(path, sizeof path, "/proc/%ld/status", (long) gate->pid);
    return io_read_text(AT_FDCWD, path, text, sizeof text) > 0 && strstr(text, "Seccomp:\t2");
}
