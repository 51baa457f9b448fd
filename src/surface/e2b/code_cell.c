/* A client that goes away interrupts its cell: SIGINT, again, and then the kernel is killed. The call returns only when the
 * kernel is free, so that the next cell never meets this one. */
#include "surface/e2b/code_cell.h"

#include "base/io.h"
#include "base/own.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define INTERRUPT_MS 2000
#define INTERRUPTS   3
#define ROOM_FROM    (1u << 20)
#define ROOM_MS      30000

int code_cell_init(struct code_cell *cell, struct err *err)
{
    uint64_t number;

    cell->run = OPS_RUN_NONE;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return err_set(err, ERR_INTERNAL, "no random bytes");
    (void) snprintf(cell->id, sizeof cell->id, "%016" PRIx64, number);
    return 0;
}

/* A kernel that came with the template has to be told its sandbox's environment. */
static int adopt(struct code_cell *cell, json_t *line, struct err *err)
{
    json_t *env;

    if (!line || !cell->context->warm)
        return 0;
    if (ops_sandbox_env(cell->ops, cell->context->sandbox, &env, err) < 0)
        return -1;
    return json_object_set_new(line, "adopt", env) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the environment")
               : 0;
}

int code_cell_say(struct code_cell *cell, json_t *line, struct err *err)
{
    if (adopt(cell, line, err) < 0) {
        json_decref(line);
        return -1;
    }
    if (line && json_object_set_new(line, "id", json_string(cell->id)) == 0)
        cell->text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(line);
    if (!cell->text)
        return err_set(err, ERR_NO_MEMORY, "no memory for the cell");
    cell->cell.line = cell->text;
    cell->cell.line_len = strlen(cell->text) + 1;
    cell->text[cell->cell.line_len - 1] = '\n'; /* in the place of the NUL */
    return 0;
}

void code_cell_done(struct code_cell *cell)
{
    free(take_ptr(&cell->text));
    free(take_ptr(&cell->line));
}

/* ---- from the kernel ---- */

/* What a kernel says that cannot even begin is why. */
static void keep_words(struct code_cell *c, const char *data, size_t len)
{
    size_t room = sizeof c->words - 1 - c->words_len, n = len < room ? len : room;

    memcpy(c->words + c->words_len, data, n);
    c->words_len += n;
    c->words[c->words_len] = '\0';
}

static void keep_stderr(struct code_cell *c, const struct code_event *event)
{
    json_t *text = event->text.len < 8 * CODE_WORDS_MAX
                       ? json_loadb(event->text.at, event->text.len, JSON_DECODE_ANY, NULL)
                       : NULL;

    keep_words(c, json_string_value(text) ?: "", json_string_length(text));
    json_decref(text);
}

static void take_line(struct code_cell *c, const char *line, size_t len)
{
    struct code_event event;
    struct err ignored;

    if (c->ended)
        return;
    if (code_event_parse(line, len, &event, &ignored) < 0) {
        c->malformed += c->begun;
        return;
    }
    if (event.type == CODE_BEGIN || event.type == CODE_END) {
        if (!code_event_is(&event, c->id))
            return; /* of a cell without a waiting caller */
        c->begun = true;
        c->ended = event.type == CODE_END;
    }
    if (!c->begun && event.type == CODE_STDERR)
        keep_stderr(c, &event);
    if (c->begun && !c->gone && c->sink->event)
        c->sink->event(c->to, &event);
}

static void drop_line(struct code_cell *c)
{
    if (c->has_room)
        code_room_give();
    c->has_room = false;
    if (c->room > ROOM_FROM) {
        free(take_ptr(&c->line));
        c->room = 0;
    }
    c->len = 0;
}

/* False: the line is too long, or there is no memory for it. */
static bool keep_part(struct code_cell *c, const char *data, size_t len)
{
    size_t want = c->room ? c->room : 4096;
    char *more;

    while (want < c->len + len)
        want *= 2;
    if (c->len + len > CODE_LINE_MAX)
        return false;
    if (want > ROOM_FROM && !c->has_room && !(c->has_room = code_room_take(ROOM_MS)))
        return false;
    if (want > c->room) {
        if (!(more = realloc(c->line, want)))
            return false;
        c->line = more;
        c->room = want;
    }
    memcpy(c->line + c->len, data, len);
    c->len += len;
    return true;
}

static void take_part(struct code_cell *c, const char *data, size_t len, bool whole)
{
    if (c->skipping) {
        c->skipping = !whole;
        return;
    }
    if (whole && c->len == 0) {
        take_line(c, data, len);
        return;
    }
    if (!keep_part(c, data, len)) {
        drop_line(c);
        c->skipping = !whole;
        if (c->begun && c->sink->too_big)
            c->sink->too_big(c->to);
        return;
    }
    if (whole) {
        take_line(c, c->line, c->len);
        drop_line(c);
    }
}

static void take_output(struct code_cell *c, const struct exec_event *event)
{
    const char *at = (const char *) event->data, *end = at + event->len;

    if (event->type == EXEC_STDERR) {
        keep_words(c, (const char *) event->data, event->len);
        return;
    }
    if (event->missed > 0) { /* before we came: what follows begins in the middle of a line */
        drop_line(c);
        c->skipping = true;
    }
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t) (end - at));

        take_part(c, at, (size_t) ((newline ? newline : end) - at), newline != NULL);
        at = newline ? newline + 1 : end;
    }
    if (c->sink->flush)
        c->sink->flush(c->to);
}

/* ---- to the end ---- */

/* The client is gone: from now on it is about the kernel. */
static enum code_ending interrupt(struct code_cell *c)
{
    const char *sandbox = c->context->sandbox;
    uint64_t next = 0, count;
    struct err ignored;
    int sent = 0;

    while (!c->ended) {
        uint64_t now = io_now_ms();
        struct exec_event event;
        int r;

        if (now >= next) {
            if (sent++ >= INTERRUPTS)
                code_context_kill(c->ops, c->context);
            else
                (void) ops_process_signal(c->ops, sandbox, c->context->proc, SIGINT, false, &count,
                                          &ignored);
            next = now + INTERRUPT_MS;
        }
        r = ops_cell_next(c->ops, &c->run,
                          (int) (next - now < INTERRUPT_MS ? next - now : INTERRUPT_MS), &c->gone,
                          &event, &ignored);
        if (r < 0)
            return CODE_LOST;
        if (r == 1 && event.type == EXEC_END)
            return CODE_DIED;
        if (r == 1)
            take_output(c, &event);
    }
    return CODE_ENDED;
}

static enum code_ending follow(struct code_cell *c, struct err *err)
{
    while (!c->ended && !c->gone) {
        struct exec_event event;
        int r = ops_cell_next(c->ops, &c->run, CODE_SILENCE_MS, &c->gone, &event, err);

        if (r < 0)
            return CODE_LOST;
        if (r == 0 && !c->gone && c->sink->silence)
            c->sink->silence(c->to);
        if (r == 1 && event.type == EXEC_END) {
            c->result = event.result;
            return c->begun ? CODE_DIED : CODE_NEVER_BEGUN;
        }
        if (r == 1)
            take_output(c, &event);
    }
    return c->ended ? CODE_ENDED : interrupt(c);
}

static enum code_ending run_once(struct code_cell *c, struct err *err)
{
    enum code_ending ending;

    c->begun = c->ended = c->skipping = false;
    c->len = c->words_len = 0;
    c->words[0] = '\0';
    c->cell.proc = c->context->proc;
    c->cell.from_stdout = c->context->from_stdout;
    c->cell.from_stderr = c->context->from_stderr;
    if (ops_cell_start(c->ops, c->context->sandbox, &c->cell, &c->run, err) < 0) {
        c->result = (struct exec_result){ .ended = EXIT_LOST };
        if (err->kind != ERR_NO_PROCESS)
            return CODE_LOST;
        c->context->proc = 0;
        return CODE_NEVER_BEGUN;
    }
    ending = follow(c, err);
    c->context->from_stdout = c->run.exec.next_offset[0];
    c->context->from_stderr = c->run.exec.next_offset[1];
    ops_run_close(&c->run);
    drop_line(c);
    if (ending == CODE_DIED || ending == CODE_NEVER_BEGUN)
        c->context->proc = 0;
    if (c->begun)
        c->context->warm = false; /* it has read the line, and what was in it */
    return ending;
}

enum code_ending code_cell_run(struct code_cell *cell, struct err *err)
{
    enum code_ending ending = CODE_NEVER_BEGUN;
    bool fresh = false;

    /* A kernel that ended between two cells is found out by the second. */
    for (int i = 0; i < 2 && ending == CODE_NEVER_BEGUN && !fresh && !cell->result.with_sandbox;
         i++) {
        if (code_context_start(cell->ops, cell->context, &fresh, err) < 0)
            return CODE_NO_KERNEL;
        ending = run_once(cell, err);
    }
    return ending;
}
