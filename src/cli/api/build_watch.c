/* On a terminal, the last lines of the running step are shown below its name, and replaced by the time it took; elsewhere every
 * line is printed as it comes. */
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/build.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "remote/ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#define WINDOW  5  /* lines of a step that are shown on a terminal */
#define KEPT    20 /* and when it failed */
#define TEXT    400
#define TRIES   5 /* connections, one after the other without a line */
#define WAIT_MS 1000

struct watch {
    const json_t *lines;
    bool tty;
    unsigned columns;
    size_t seen;   /* lines of the log */
    char step[16]; /* "": none yet */
    char title[TEXT];
    bool cached;
    uint64_t begun_ms;
    char kept[KEPT][TEXT];
    size_t count; /* of the step's lines */
    unsigned drawn;
    size_t cached_count, step_count;
};

/* ---- signals ---- */

static volatile sig_atomic_t signalled, watched_fd = -1;

/* The connection ends, and with it the wait for a line. A second signal ends cove. */
static void on_signal(int number)
{
    signalled = number;
    if (watched_fd >= 0)
        (void) shutdown((int) watched_fd, SHUT_RDWR);
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };

    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
}

/* ---- what is shown ---- */

static void print_line(const struct watch *w, const char *before, const char *text)
{
    char safe[TEXT];

    (void) report_text(safe, sizeof safe, text);
    if (w->tty)
        (void) fprintf(
            stderr, "%s%.*s\n", before,
            (int) (w->columns > strlen(before) + 1 ? w->columns - strlen(before) - 1 : 1), safe);
    else
        (void) fprintf(stderr, "%s%s\n", before, safe);
}

static void wipe(struct watch *w)
{
    if (w->drawn > 0)
        (void) fprintf(stderr, "\033[%uA\033[J", w->drawn);
    w->drawn = 0;
}

static void draw(struct watch *w)
{
    size_t first = w->count > WINDOW ? w->count - WINDOW : 0;

    wipe(w);
    print_line(w, "", w->title);
    for (size_t i = first; i < w->count; i++)
        print_line(w, "    ", w->kept[i % KEPT]);
    w->drawn = 1 + (unsigned) (w->count - first);
}

/* The step that was shown last is over. */
static void end_step(struct watch *w, bool failed)
{
    char span[32], title[TEXT + 40];
    size_t first = w->count > KEPT ? w->count - KEPT : 0;

    if (!w->step[0])
        return;
    (void) report_span(span, sizeof span, io_now_ms() - w->begun_ms);
    if (w->tty) {
        wipe(w);
        (void) snprintf(title, sizeof title, "%s%s%s", w->title, w->cached ? "" : "  ",
                        w->cached ? "" : span);
        print_line(w, "", title);
        for (size_t i = first; failed && i < w->count; i++)
            print_line(w, "    ", w->kept[i % KEPT]);
    } else if (!w->cached) {
        (void) fprintf(stderr, "    %s\n", span);
    }
    w->step[0] = '\0';
}

static void begin_step(struct watch *w, const char *step, const char *text)
{
    uint64_t number = 0;
    struct err ignored;
    size_t len;

    end_step(w, false);
    (void) snprintf(w->step, sizeof w->step, "%s", step);
    (void) snprintf(w->title, sizeof w->title, "%s", text);
    w->title[strcspn(w->title, "\n")] = '\0';
    w->cached = strncmp(text, "CACHED ", 7) == 0;
    w->begun_ms = io_now_ms();
    w->count = 0;
    w->step_count++;
    w->cached_count += w->cached;
    len = strlen(w->title);
    if (parse_u64(step, &number, &ignored) == 0 && number > 0)
        (void) snprintf(
            w->title + len, sizeof w->title - len, "  (line %llu)",
            (unsigned long long) json_integer_value(json_array_get(w->lines, (size_t) number - 1)));
    if (w->tty)
        draw(w);
    else
        print_line(w, "", w->title);
}

static void take_line(struct watch *w, json_t *line)
{
    const char *step = show_text(line, "step"), *text = show_text(line, "text");
    bool number = step[0] >= '1' && step[0] <= '9';

    if (number && strcmp(step, w->step) != 0) {
        begin_step(w, step, text);
        return;
    }
    if (!number && w->step[0])
        end_step(w, false);
    if (!number || !w->tty) {
        print_line(w, number ? "    " : "", text);
        if (!number)
            return;
    }
    (void) snprintf(w->kept[w->count++ % KEPT], TEXT, "%s", text);
    if (w->tty)
        draw(w);
}

/* ---- the stream ---- */

static void take_end(json_t *event, struct watch_end *ret)
{
    (void) snprintf(ret->state, sizeof ret->state, "%s", show_text(event, "state"));
    (void) snprintf(ret->reason, sizeof ret->reason, "%s", show_text(event, "reason"));
    (void) snprintf(ret->step, sizeof ret->step, "%s", show_text(event, "step"));
}

/* 1: the build has ended, 0: the connection has, -1. */
static int read_log(struct watch *w, struct call *call, struct watch_end *ret, struct err *err)
{
    struct ask_lines lines = { .call = call };
    json_t *event = NULL;
    size_t number = 0;
    int r = 0, n;

    if (call_answer(call, err) < 0 || ask_check(call, err) < 0)
        return -1;
    while (r == 0 && (n = ask_next(&lines, &event, err)) == 1) {
        const char *type = show_text(event, "type");

        if (strcmp(type, "line") == 0 && ++number > w->seen) {
            w->seen = number;
            take_line(w, event);
        } else if (strcmp(type, "end") == 0) {
            take_end(event, ret);
            r = 1;
        } else if (strcmp(type, "error") == 0) {
            r = ask_error(json_object_get(event, "error"), err);
        }
        json_decref(event);
    }
    ask_lines_done(&lines);
    return r;
}

static int follow(struct watch *w, const struct remote *remote, const char *build,
                  struct watch_end *ret, struct err *err)
{
    auto_free char *path = ask_path("/v1/builds/%s/logs", build);
    const struct call_request request = { .method = "GET",
                                          .path = path,
                                          .accept = "application/x-ndjson" };
    struct call call = CALL_NONE;
    int r;

    if (!path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (call_open(&call, remote, &request, err) < 0)
        return -1;
    watched_fd = call.fd;
    r = signalled ? 0 : read_log(w, &call, ret, err);
    watched_fd = -1;
    call_close(&call);
    return r;
}

static void cancel(struct watch *w, const struct remote *remote, const char *build)
{
    auto_free char *path = ask_path("/v1/builds/%s", build);
    struct err err;

    end_step(w, false);
    (void) fprintf(stderr, "cancelling the build …\n");
    if (!path || ask(remote, "DELETE", path, NULL, NULL, &err) < 0)
        report_note("the build %s is not cancelled: %s", build, path ? err.msg : "no memory");
}

int watch_build(const struct remote *remote, const char *build, const json_t *lines,
                struct watch_end *ret, struct err *err)
{
    auto_free struct watch *w = calloc(1, sizeof *w);
    bool cancelled = false;
    uint16_t rows, columns;
    int r = 0, tries = 0;

    if (!w)
        return err_set(err, ERR_NO_MEMORY, "no memory for a log");
    terminal_size(&rows, &columns);
    w->lines = lines;
    w->tty = isatty(STDERR_FILENO) == 1;
    w->columns = columns;
    *ret = (struct watch_end){ .interrupted = false };
    catch_signals();
    /* A connection that ends is made again: a build continues without its client. */
    while (r != 1) {
        size_t before = w->seen;

        if (signalled && !cancelled) {
            cancelled = ret->interrupted = true;
            cancel(w, remote, build);
            signalled = 0;
        }
        r = follow(w, remote, build, ret, err);
        tries = w->seen > before ? 0 : tries + 1;
        if (r == 1 || signalled)
            continue;
        if (tries >= TRIES)
            return r < 0 ? -1
                         : err_set(err, ERR_UNAVAILABLE, "the server ended the log of build %s",
                                   build);
        (void) poll(NULL, 0, WAIT_MS);
    }
    end_step(w, strcmp(ret->state, "ready") != 0);
    ret->cached = w->cached_count;
    ret->steps = w->step_count;
    return 0;
}
