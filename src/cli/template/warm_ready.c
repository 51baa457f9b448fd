#include "cli/template/warm_ready.h"

#include "base/io.h"
#include "base/own.h"
#include "client/exec.h"

#include <ctype.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_MS   50
#define TRY_MS     10000 /* one that hangs is tried again */
#define WORDS_MAX  200
#define EVENTS_MAX 65536

/* As in surface/e2b/code_context.c. */
#define KERNEL_TAG     "cove.kernel.python.warm"
#define KERNEL_PROGRAM "/opt/cove/kernels/kernel.py"
#define KERNEL_CWD     "/home/user"
#define KERNEL_RING    (1u << 20)

/* ---- commands ---- */

/* The last bytes that were said, on one line. */
struct words {
    char text[WORDS_MAX];
    size_t len;
};

static void keep_words(struct words *words, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = isprint(data[i]) ? (char) data[i] : ' ';

        if (words->len == WORDS_MAX - 1)
            memmove(words->text, words->text + 1, --words->len);
        words->text[words->len++] = c;
        words->text[words->len] = '\0';
    }
    while (words->len > 0 && words->text[words->len - 1] == ' ')
        words->text[--words->len] = '\0';
}

/* To its end, which the agent sees to. */
static int follow(struct exec *exec, struct words *words, struct exec_result *ret, struct err *err)
{
    struct exec_event event = { .type = EXEC_STDOUT };

    while (event.type != EXEC_END) {
        if (exec_next(exec, &event, err) < 0)
            return -1;
        if (event.type != EXEC_END)
            keep_words(words, event.data, event.len);
    }
    *ret = event.result;
    return 0;
}

static bool went_well(const struct exec_result *result)
{
    return result->ended == EXIT_CODE && result->exit_code == 0;
}

/* words: kept as they are when this time nothing is said, since the last try is cut short by the time that is left. */
static int try_once(struct link *link, const char *sandbox, const char *command, uint64_t most_ms,
                    struct words *words, bool *ret_ready, struct err *err)
{
    const struct agent_request request = { .command = command,
                                           .timeout_ms = most_ms < TRY_MS ? most_ms : TRY_MS,
                                           .flags = AGENT_KILL_ON_CLOSE };
    struct exec exec = EXEC_NONE;
    struct words said = { .len = 0 };
    struct exec_result result;
    int r;

    if (exec_start(&exec, link, sandbox, &request, err) < 0)
        return -1;
    r = follow(&exec, &said, &result, err);
    exec_close(&exec);
    if (said.len > 0)
        *words = said;
    *ret_ready = r == 0 && went_well(&result);
    return r;
}

struct ended {
    bool failed;
    uint32_t code;
};

static int look(void *context, const struct agent_reply *item, struct err *err)
{
    struct ended *ended = context;

    (void) err;
    ended->failed =
        !(item->flags & AGENT_RUNNING) && (item->ended != EXIT_CODE || item->exit_code != 0);
    ended->code = item->ended == EXIT_CODE ? item->exit_code : 128 + item->signal;
    return 0;
}

/* A command that put itself into the background ends with 0 and is fine. */
static int check_started(struct link *link, const char *sandbox, uint32_t proc, struct err *err)
{
    const struct agent_request which = { .proc = proc };
    struct ended ended = { .failed = false };
    struct exec exec = EXEC_NONE;
    struct exec_result result;
    struct words words = { .len = 0 };
    struct err ignored;

    if (exec_find(link, sandbox, &which, look, &ended, err) < 0)
        return -1;
    if (!ended.failed)
        return 0;
    if (exec_attach(&exec, link, sandbox, &which, &ignored) == 0) {
        (void) follow(&exec, &words, &result, &ignored);
        exec_close(&exec);
    }
    return err_set(err, ERR_STATE, "the start command ended with %u%s%s", ended.code,
                   words.len ? ": " : "", words.text);
}

int warm_ready_wait(struct link *link, const char *sandbox, uint32_t proc, const char *command,
                    uint64_t until_ms, struct err *err)
{
    struct words words = { .len = 0 };
    bool ready = false;
    uint64_t now;

    while ((now = io_now_ms()) < until_ms) {
        if (try_once(link, sandbox, command, until_ms - now, &words, &ready, err) < 0 ||
            check_started(link, sandbox, proc, err) < 0)
            return -1;
        if (ready)
            return 0;
        (void) poll(NULL, 0, EVERY_MS);
    }
    return err_set(err, ERR_TIMEOUT, "the start command was not ready in time%s%s",
                   words.len ? ": the ready command said: " : "", words.text);
}

/* ---- the kernel ---- */

bool warm_modules_ok(const char *modules)
{
    bool begins = true;

    if (strlen(modules) >= 1024)
        return false;
    for (const char *c = modules; *c; c++) {
        bool letter = isalpha((unsigned char) *c) || *c == '_';

        if (!letter && (begins || (!isdigit((unsigned char) *c) && *c != '.' && *c != ',')))
            return false;
        begins = *c == '.' || *c == ',';
    }
    return !begins;
}

/* {"id":"warm","warm":["a","b.c"]}: names need no quoting. */
static char *warm_line(const char *modules, size_t *ret_len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_len);

    if (!out)
        return NULL;
    (void) fputs("{\"id\":\"warm\",\"warm\":[\"", out);
    for (const char *c = modules; *c; c++)
        (void) fputs(*c == ',' ? "\",\"" : (char[]){ *c, '\0' }, out);
    (void) fputs("\"]}\n", out);
    return fclose(out) == 0 ? text : NULL;
}

/* Until its events say that it is done. Both words are written by our own kernel, one event per line. */
static int hear(struct exec *exec, uint64_t until_ms, struct err *err)
{
    auto_free char *heard = calloc(1, EVENTS_MAX);
    struct words words = { .len = 0 };
    size_t len = 0;

    if (!heard)
        return err_set(err, ERR_NO_MEMORY, "no memory for events");
    while (!strstr(heard, "{\"type\":\"end\"")) {
        struct pollfd p = { .fd = exec->stream.fd, .events = POLLIN };
        struct exec_event event;
        uint64_t now = io_now_ms();
        int r = exec_poll(exec, &event, err);

        if (r < 0)
            return -1;
        if (r == 0 && now >= until_ms)
            return err_set(err, ERR_TIMEOUT, "the kernel did not import its modules in time");
        if (r == 0) {
            (void) poll(&p, 1, (int) (until_ms - now));
            continue;
        }
        if (event.type == EXEC_STDERR)
            keep_words(&words, event.data, event.len);
        if (event.type == EXEC_END || len + event.len >= EVENTS_MAX)
            return err_set(err, ERR_STATE, "the kernel ended: %s",
                           words.len ? words.text : "is the template of an older cove?");
        if (event.type == EXEC_STDOUT) {
            memcpy(heard + len, event.data, event.len);
            len += event.len;
        }
    }
    if (strstr(heard, "{\"type\":\"error\"")) {
        const char *said = strstr(strstr(heard, "{\"type\":\"error\""), "\"value\":");

        return err_set(err, ERR_STATE, "a module was not imported: %.*s",
                       said ? (int) strcspn(said + 8, "}") : 0, said ? said + 8 : "");
    }
    return 0;
}

int warm_kernel_start(struct link *link, const char *sandbox, bool root, const char *modules,
                      uint64_t until_ms, struct err *err)
{
    static const char *const args[] = { "python3", KERNEL_PROGRAM, "python" };
    auto_free char *buffer = NULL, *line = NULL;
    struct agent_request request = { .cwd = KERNEL_CWD,
                                     .user = root ? "root" : NULL,
                                     .tag = KERNEL_TAG,
                                     .ring_bytes = KERNEL_RING,
                                     .flags = AGENT_STDIN | AGENT_DETACH };
    struct exec exec = EXEC_NONE;
    size_t len;
    int r = -1;

    line = warm_line(modules, &len);
    if (!line)
        return err_set(err, ERR_NO_MEMORY, "no memory for a kernel");
    if (exec_texts(args, ARRAY_LEN(args), &request.args, &buffer, err) < 0 ||
        exec_start(&exec, link, sandbox, &request, err) < 0)
        return -1;
    request = (struct agent_request){ .proc = exec.proc };
    exec_close(&exec);
    if (exec_attach(&exec, link, sandbox, &request, err) < 0)
        return -1;
    /* Short enough for an empty buffer, whole. */
    if (exec_stdin(&exec, line, (uint32_t) len) == 1 && exec_flush(&exec, err) == 0)
        r = hear(&exec, until_ms, err);
    exec_close(&exec);
    return r < 0 ? err_wrap(err, "a python kernel") : 0;
}
