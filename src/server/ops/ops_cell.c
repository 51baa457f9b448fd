/* A cell: code for an interpreter that is running already. Judged and noted as if it were a command of its own. */
#include "server/guard/audit.h"
#include "server/guard/policy_gate.h"
#include "server/guard/quota.h"
#include "server/ops/ops_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define STDIN_PIECE 32768

/* The analyser takes commands of up to POLICY_COMMAND_MAX, and a quote becomes four bytes there: longer cells (a
 * picture as a literal) are judged piece by piece. Pieces overlap, so that a call is whole in one of them. */
#define JUDGE_PIECE   (56 * 1024)
#define JUDGE_OVERLAP (4 * 1024)

static int judge_piece(struct ops *ops, const char *sandbox, const struct ops_cell *cell,
                       const char *code, struct policy_verdict *verdict, struct err *err)
{
    const char *const args[] = { cell->program, cell->option, code };
    int r = cell->program ? policy_gate_args(ops->app, ops->caller, sandbox, args, ARRAY_LEN(args),
                                             verdict, err)
                          : policy_gate_command(ops->app, ops->caller, sandbox, code, verdict, err);

    quota_policy_used(ops->caller, verdict->cpu_us);
    return r;
}

/* Where the piece that begins at `at` ends: with a line, where it can. One that begins inside a line ends with it, so that
 * whatever is left of a text that was cut does not turn the lines behind it inside out. */
static size_t piece_end(const char *code, size_t len, size_t at)
{
    size_t most = len - at < JUDGE_PIECE ? len - at : JUDGE_PIECE;
    bool inside = at > 0 && code[at - 1] != '\n';
    const char *newline = inside ? memchr(code + at, '\n', most) : memrchr(code + at, '\n', most);

    return newline && (inside || at + most < len) ? (size_t) (newline - code) + 1 : at + most;
}

/* Back by some whole lines, or within a line by some bytes. */
static size_t next_piece(const char *code, size_t at, size_t end)
{
    size_t back = end - at > 2 * JUDGE_OVERLAP ? end - JUDGE_OVERLAP : end;
    const char *newline;

    if (code[end - 1] != '\n')
        return back;
    newline = memchr(code + back, '\n', end - back);
    return newline ? (size_t) (newline - code) + 1 : end;
}

static int judge(struct ops *ops, const char *sandbox, const struct ops_cell *cell, struct err *err)
{
    size_t len = strlen(cell->code), at = 0, end;
    struct policy_verdict verdict = { .rule = "" };
    auto_free char *piece = NULL;
    int r = 0;

    if (!cell->program || len <= JUDGE_PIECE) {
        r = judge_piece(ops, sandbox, cell, cell->code, &verdict, err);
        return r < 0 ? caller_blame(ops->caller, "code", verdict.rule, "policy") : 0;
    }
    if (!(piece = malloc(JUDGE_PIECE + 1)))
        return err_set(err, ERR_NO_MEMORY, "no memory for the cell");
    do {
        end = piece_end(cell->code, len, at);
        memcpy(piece, cell->code + at, end - at);
        piece[end - at] = '\0';
        r = judge_piece(ops, sandbox, cell, piece, &verdict, err);
        at = next_piece(cell->code, at, end);
    } while (r == 0 && end < len);
    return r < 0 ? caller_blame(ops->caller, "code", verdict.rule, "policy") : 0;
}

int ops_cell_judge(struct ops *ops, const char *sandbox, const struct ops_cell *cell,
                   struct err *err)
{
    struct audit_facts facts = AUDIT_FACTS;
    int r = ops_sandbox_check(ops, sandbox, err);

    if (r == 0)
        r = quota_policy(ops->caller, err);
    if (r == 0)
        r = judge(ops, sandbox, cell, err);
    facts.code = cell->code;
    facts.code_len = strlen(cell->code);
    facts.refusal = r < 0 ? err : NULL;
    audit_note(ops->caller, "exec.cell", sandbox, &facts);
    return r;
}

int ops_cell_start(struct ops *ops, const char *sandbox, const struct ops_cell *cell,
                   struct ops_run *ret, struct err *err)
{
    if (ops_run_attach(ops, sandbox, cell->proc, cell->from_stdout, cell->from_stderr, 0, ret,
                       err) < 0)
        return -1;
    ret->input = cell->line;
    ret->input_len = cell->line_len;
    ret->feeding = true;
    return 0;
}

static void feed(struct ops_run *run)
{
    struct err ignored;

    while (run->feeding) {
        size_t left = run->input_len - run->input_done;
        uint32_t piece = left < STDIN_PIECE ? (uint32_t) left : STDIN_PIECE;

        run->feeding = left > 0;
        if (left == 0 || !exec_stdin(&run->exec, run->input + run->input_done, piece))
            break;
        run->input_done += piece;
    }
    /* It has ended, and says so next. */
    if (exec_flush(&run->exec, &ignored) < 0) {
        run->feeding = false;
        run->exec.stream.out_have = run->exec.stream.out_sent = 0;
    }
}

int ops_cell_next(struct ops *ops, struct ops_run *run, int wait_ms, bool *ret_gone,
                  struct exec_event *ret, struct err *err)
{
    uint64_t until = io_now_ms() + (uint64_t) wait_ms;

    for (;;) {
        struct pollfd fds[2] = { { .fd = run->exec.stream.fd, .events = POLLIN },
                                 { .fd = *ret_gone ? -1 : ops->caller->fd, .events = POLLRDHUP } };
        int r = ops_run_poll(ops, run, ret, err);
        uint64_t now = io_now_ms();

        if (r != 0)
            return r;
        feed(run);
        if (stream_pending(&run->exec.stream) || run->feeding)
            fds[0].events |= POLLOUT;
        if (now >= until)
            return 0;
        if (poll(fds, ARRAY_LEN(fds), (int) (until - now)) < 0 && errno != EINTR)
            return err_sys(err, errno, "wait for the kernel");
        if (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) {
            *ret_gone = true;
            return 0;
        }
    }
}
