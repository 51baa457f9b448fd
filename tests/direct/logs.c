#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/report.h"
#include "cli/saved.h"
#include "cli/verbs.h"
#include "direct/common.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

/* A sandbox that says it ran more commands than this is lying. */
#define PROCS_MOST 1000000

struct logs_options {
    bool follow;
    uint64_t from;
};

/* clang-format off */
static const struct option logs_options[] = {
    { 'f', "follow", OPTION_FLAG, offsetof(struct logs_options, follow), NULL, COMPLETE_NONE,
      "continue until the command has ended" },
    { 0, "from", OPTION_NUMBER, offsetof(struct logs_options, from), "N", COMPLETE_NONE,
      "begin at byte N of stdout and of stderr" },
};

const struct verb logs_verb = {
    .name = "logs",
    .synopsis = "[OPTION…] SANDBOX [PROC]",
    .summary = "what the commands of a sandbox wrote",
    .details =
        "PROC is the number that 'cove exec --detach' printed and 'cove ps SANDBOX' lists;\n"
        "without it, all commands are shown, in the order of their start. A sandbox keeps the\n"
        "last 256 KiB of each stream; what was dropped before is said on stderr.",
    .options = logs_options,
    .option_count = sizeof logs_options / sizeof logs_options[0],
    .operands = COMPLETE_SANDBOX,
    .run = verb_logs,
};
/* clang-format on */

struct proc {
    uint32_t number;
    bool running;
    uint64_t bytes[2];
};

struct procs {
    struct proc *list;
    size_t count;
    uint32_t only; /* 0: all */
};

static int keep_proc(void *context, const struct agent_reply *item, struct err *err)
{
    struct procs *procs = context;
    struct proc *longer;

    if (procs->only && item->proc != procs->only)
        return 0;
    if (procs->count == PROCS_MOST)
        return err_set(err, ERR_PROTOCOL, "the agent's list of processes does not end");
    longer = reallocarray(procs->list, procs->count + 1, sizeof *longer);
    if (!longer)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list of processes");
    procs->list = longer;
    longer[procs->count++] = (struct proc){
        .number = item->proc,
        .running = item->flags & AGENT_RUNNING,
        .bytes = { [EXEC_STDOUT] = item->stdout_bytes, [EXEC_STDERR] = item->stderr_bytes },
    };
    return 0;
}

/* Not what is before `from`: a stream that was shorter is read from its end. */
static int write_event(const struct exec_event *event, uint64_t from, struct err *err)
{
    int fd = event->type == EXEC_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
    uint64_t before = from > event->offset ? from - event->offset : 0;
    uint32_t skip = before < event->len ? (uint32_t) before : event->len;

    if (event->missed)
        report_note("%" PRIu64 " earlier bytes are gone", event->missed);
    if (io_write_all(fd, event->data + skip, event->len - skip) < 0) {
        /* Nobody reads any more: end as quietly as SIGPIPE would have ended us. */
        if (errno == EPIPE)
            exit(128 + SIGPIPE);
        return err_sys(err, errno, "write");
    }
    return 0;
}

/* Everything that was there when we asked has been shown. */
static bool caught_up(const struct exec *exec, const struct proc *proc)
{
    return exec->next_offset[EXEC_STDOUT] >= proc->bytes[EXEC_STDOUT] &&
           exec->next_offset[EXEC_STDERR] >= proc->bytes[EXEC_STDERR];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int show(struct link *link, const char *sandbox, const struct proc *proc,
                const struct logs_options *options, struct err *err)
{
    struct agent_request request = { .proc = proc->number,
                                     .from_stdout = least(options->from, proc->bytes[EXEC_STDOUT]),
                                     .from_stderr =
                                         least(options->from, proc->bytes[EXEC_STDERR]) };
    struct exec_event event;
    struct exec exec;
    int r = 0;

    if (exec_attach(&exec, link, sandbox, &request, err) < 0)
        return -1;
    while (options->follow || !caught_up(&exec, proc)) {
        r = exec_next(&exec, &event, err);
        if (r < 0 || event.type == EXEC_END)
            break;
        r = write_event(&event, options->from, err);
        if (r < 0)
            break;
    }
    exec_close(&exec);
    return r < 0 ? -1 : 0;
}

static int show_all(struct link *link, const char *sandbox, const struct procs *procs,
                    const struct logs_options *options, struct err *err)
{
    if (procs->only && procs->count == 0)
        return err_set(err, ERR_NO_PROCESS, "there is no process %u in '%s'", procs->only, sandbox);
    for (size_t i = 0; i < procs->count; i++)
        if (show(link, sandbox, &procs->list[i], options, err) < 0)
            return -1;
    return 0;
}

static int parse_proc(const char *text, uint32_t *ret, struct err *err)
{
    uint64_t value;

    if (parse_u64(text, &value, err) < 0)
        return err_wrap(err, "PROC");
    if (value == 0 || value > UINT32_MAX)
        return err_set(err, ERR_INVALID, "PROC: '%s' is not a process number", text);
    *ret = (uint32_t) value;
    return 0;
}

int verb_logs(int argc, char **argv)
{
    struct logs_options options = { .follow = false };
    struct procs procs = { .count = 0 };
    struct link link;
    struct err err;
    char **operands;
    int count, code, r;

    code = common_parse(&logs_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count == 0)
        return common_missing(&logs_verb, "a sandbox");
    if (count > 2)
        return common_excess(&logs_verb, operands[2]);
    if (count == 2 && parse_proc(operands[1], &procs.only, &err) < 0)
        return report_error(&err);
    if (common_open(&link, &err) < 0)
        return report_error(&err);
    r = saved_resolve(&link, &operands[0], &err);
    if (r == 0)
        r = exec_items(&link, operands[0], AGENT_PROCS, keep_proc, &procs, &err);
    if (r == 0)
        r = show_all(&link, operands[0], &procs, &options, &err);
    link_close(&link);
    free(procs.list);
    return r < 0 ? report_error(&err) : 0;
}
