#include "cli/up/keep.h"

#include "base/own.h"
#include "cli/programs.h"
#include "cli/report.h"
#include "cli/up/supervise.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define ARGS_MAX   16
#define ANSWERS_MS 200

static void keeper_argv(const struct keep *keep, const char *argv[ARGS_MAX])
{
    const struct {
        const char *flag, *value;
    } rows[] = {
        { "--state", report_state() },
        { "--group", keep->group },
        { "--max-sandboxes", keep->max_sandboxes },
        { "--slots", keep->slots },
        { "--disk-reserve", keep->disk_reserve },
    };
    size_t n = 0;

    argv[n++] = "cove-keeper";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].value) {
            argv[n++] = rows[i].flag;
            argv[n++] = rows[i].value;
        }
    }
    if (keep->vm_emulated)
        argv[n++] = "--allow-vm-emulated";
    if (keep->verbose)
        argv[n++] = "--verbose";
    argv[n] = NULL;
}

int keep_start(void *with, pid_t *ret, struct err *err)
{
    const char *argv[ARGS_MAX];
    char path[PATH_MAX];
    pid_t pid;

    if (program_find("cove-keeper", path, sizeof path, err) < 0)
        return -1;
    keeper_argv(with, argv);
    pid = fork();
    if (pid < 0)
        return err_sys(err, errno, "fork");
    if (pid == 0) {
        supervise_enter();
        (void) execv(path, (char **) (uintptr_t) argv);
        report_note("start %s: %s", path, strerror(errno));
        _exit(126);
    }
    *ret = pid;
    return 0;
}

bool keep_is_ready(void *with)
{
    struct keep *keep = with;
    struct link link;
    struct err ignored;
    bool ready;

    if (link_open(&link, report_state(), &ignored) < 0)
        return false;
    link.patience_ms = ANSWERS_MS;
    ready = keeper_hello(&link, &keep->hello, &ignored) == 0;
    link_close(&link);
    return ready;
}
