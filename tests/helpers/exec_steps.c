/* exec_steps - a command on a terminal in a sandbox, left running and picked up again.
 *
 *   exec_steps STATE SANDBOX new STEP… -- COMMAND…    starts it
 *   exec_steps STATE SANDBOX pipe STEP… -- COMMAND…   starts it with pipes instead of a terminal
 *   exec_steps STATE SANDBOX PROC,OFFSET STEP…        attaches to it, from this byte on
 *     wait=TEXT   until it has printed TEXT (20 s at most, then exit 99)
 *     send=TEXT   types TEXT and a newline
 *     file=PATH   sends the file as fast as it is taken; what the command prints meanwhile is read and dropped
 *
 * Prints what the command prints on stderr, and "PROC,OFFSET" on stdout: where the next one continues. */
#include "base/io.h"
#include "client/exec.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 20000u

static struct exec process = EXEC_NONE;
static char seen[1 << 18];
static size_t seen_len, seen_from;

static _Noreturn void die(const struct err *err)
{
    (void) fprintf(stderr, "exec_steps: %s\n", err->msg);
    exit(99);
}

static void take(int ms)
{
    struct pollfd p = { .fd = process.stream.fd, .events = POLLIN };
    struct exec_event event;
    struct err err;
    int got = exec_poll(&process, &event, &err);

    if (got == 0 && poll(&p, 1, ms) == 1)
        got = exec_poll(&process, &event, &err);
    if (got < 0)
        die(&err);
    if (got == 0 || event.type == EXEC_END)
        return;
    if (event.len >= sizeof seen - seen_len) {
        (void) fprintf(stderr, "exec_steps: too much output\n");
        exit(99);
    }
    (void) fwrite(event.data, 1, event.len, stderr);
    memcpy(seen + seen_len, event.data, event.len);
    seen_len += event.len;
    seen[seen_len] = '\0';
}

static void wait_text(const char *text)
{
    uint64_t end = io_now_ms() + WAIT_MS;
    const char *at;

    while (!(at = strstr(seen + seen_from, text))) {
        if (io_now_ms() > end) {
            (void) fprintf(stderr, "exec_steps: '%s' did not come\n", text);
            exit(99);
        }
        take(100);
    }
    seen_from = (size_t) (at - seen) + strlen(text);
}

static void send_text(const char *text)
{
    struct err err;

    if (exec_stdin(&process, text, (uint32_t) strlen(text)) != 1 ||
        exec_stdin(&process, "\n", 1) != 1 || exec_flush(&process, &err) < 0) {
        (void) fprintf(stderr, "exec_steps: cannot type\n");
        exit(99);
    }
}

static void drop_output(void)
{
    struct exec_event event;
    struct err err;
    int got;

    while ((got = exec_poll(&process, &event, &err)) == 1)
        if (event.type == EXEC_END) {
            (void) fprintf(stderr, "exec_steps: it has ended\n");
            exit(99);
        }
    if (got < 0)
        die(&err);
}

/* What is queued, to its last byte. */
static void flush_all(void)
{
    struct pollfd p = { .fd = process.stream.fd, .events = POLLIN | POLLOUT };
    uint64_t end = io_now_ms() + WAIT_MS;
    struct err err;

    while (stream_pending(&process.stream)) {
        if (io_now_ms() > end) {
            (void) fprintf(stderr, "exec_steps: what was sent is not taken\n");
            exit(99);
        }
        if (exec_flush(&process, &err) < 0)
            die(&err);
        drop_output();
        if (stream_pending(&process.stream))
            (void) poll(&p, 1, 100);
    }
}

static void send_file(const char *path)
{
    static char data[16384];
    FILE *file = fopen(path, "re");
    size_t n;

    if (!file) {
        perror(path);
        exit(99);
    }
    while ((n = fread(data, 1, sizeof data, file)) > 0) {
        if (exec_stdin(&process, data, (uint32_t) n) != 1) {
            (void) fprintf(stderr, "exec_steps: cannot send\n");
            exit(99);
        }
        flush_all();
    }
    (void) fclose(file);
}

static void begin(struct link *link, char **argv, int argc)
{
    struct agent_request request = { .rows = 24, .columns = 80 };
    char *buffer = NULL, *comma;
    struct err err;
    int first = 4;

    if (strcmp(argv[3], "new") != 0 && strcmp(argv[3], "pipe") != 0) {
        request.proc = (uint32_t) strtoul(argv[3], &comma, 10);
        request.from_stdout = *comma ? strtoull(comma + 1, NULL, 10) : 0;
        if (exec_attach(&process, link, argv[2], &request, &err) < 0)
            die(&err);
        return;
    }
    while (first < argc && strcmp(argv[first], "--") != 0)
        first++;
    request.flags = AGENT_STDIN | (argv[3][0] == 'n' ? AGENT_PTY : 0);
    if (exec_texts((const char *const *) argv + first + 1, (size_t) (argc - first - 1),
                   &request.args, &buffer, &err) < 0 ||
        exec_start(&process, link, argv[2], &request, &err) < 0)
        die(&err);
    free(buffer);
}

int main(int argc, char **argv)
{
    struct link link;
    struct err err;

    if (argc < 5)
        return 64;
    if (link_open(&link, argv[1], &err) < 0)
        die(&err);
    begin(&link, argv, argc);
    for (int i = 4; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "wait=", 5) == 0)
            wait_text(argv[i] + 5);
        else if (strncmp(argv[i], "send=", 5) == 0)
            send_text(argv[i] + 5);
        else if (strncmp(argv[i], "file=", 5) == 0)
            send_file(argv[i] + 5);
        else
            return 64;
    }
    (void) printf("%u,%llu\n", process.proc, (unsigned long long) process.next_offset[0]);
    exec_close(&process);
    link_close(&link);
    return 0;
}
