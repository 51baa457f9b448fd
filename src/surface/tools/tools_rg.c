#include "surface/tools/tools_rg.h"

#include "base/base64.h"
#include "base/own.h"
#include "server/guard/policy_gate.h"
#include "surface/tools/tools_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (1u << 20) /* of one event: longer lines of a file are passed over */
#define ERRORS_MAX     2048
#define ARGS_MAX       24
#define TIMEOUT_MS     120000
#define EXIT_NONE      1 /* nothing found */

struct search {
    const struct agent_request *request;
    struct gate_sieve sieve;
    exec_item_fn each;
    void *context;
    struct text line; /* an event whose end has not come */
    bool skipping;    /* … and that is too long */
    char errors[ERRORS_MAX];
    size_t errors_len;
    uint64_t found;
    bool full;
};

/* ---- the command ---- */

static size_t write_args(const struct agent_request *r, const char *path, char numbers[3][24],
                         const char *args[ARGS_MAX])
{
    size_t n = 0;

    args[n++] = "rg";
    args[n++] = "--json";
    args[n++] = "--no-config"; /* what a file inside says is not what was asked for */
    args[n++] = "--sort=path";
    if (r->flags & AGENT_IGNORE_CASE)
        args[n++] = "--ignore-case";
    if (r->flags & AGENT_FIXED)
        args[n++] = "--fixed-strings";
    if (r->flags & AGENT_HIDDEN)
        args[n++] = "--hidden";
    if (r->flags & AGENT_FILES_ONLY)
        args[n++] = "--max-count=1";
    if (r->context_before > 0) {
        (void) snprintf(numbers[0], sizeof numbers[0], "--before-context=%u", r->context_before);
        args[n++] = numbers[0];
    }
    if (r->context_after > 0) {
        (void) snprintf(numbers[1], sizeof numbers[1], "--after-context=%u", r->context_after);
        args[n++] = numbers[1];
    }
    if (r->include) {
        args[n++] = "--glob";
        args[n++] = r->include;
    }
    args[n++] = "--regexp";
    args[n++] = r->pattern;
    args[n++] = "--";
    args[n++] = path;
    return n;
}

/* ---- events ---- */

/* {"text": "…"}, or {"bytes": base64} for what is no UTF-8. The caller frees. */
static char *bytes_of(const json_t *value, size_t *ret_len)
{
    const json_t *text = json_object_get(value, "text"), *bytes = json_object_get(value, "bytes");
    size_t len = json_string_length(text ? text : bytes);
    char *out = text || bytes ? malloc(len + 1) : NULL;
    ssize_t n = (ssize_t) len;

    if (!out)
        return NULL;
    if (text)
        memcpy(out, json_string_value(text), len);
    else
        n = base64_get(json_string_value(bytes), len, (uint8_t *) out);
    if (n < 0) {
        free(out);
        return NULL;
    }
    out[n] = '\0';
    *ret_len = (size_t) n;
    return out;
}

static int take(struct search *s, const json_t *data, bool match, struct err *err)
{
    const json_t *first = json_array_get(json_object_get(data, "submatches"), 0);
    json_int_t start = json_integer_value(json_object_get(first, "start"));
    json_int_t line = json_integer_value(json_object_get(data, "line_number"));
    size_t path_len, len = 0;
    auto_free char *path = bytes_of(json_object_get(data, "path"), &path_len);
    auto_free char *text = bytes_of(json_object_get(data, "lines"), &len);
    struct agent_reply item = { .path = path,
                                .line = line > 0 ? (uint64_t) line : 0,
                                .column = start > 0 ? (uint64_t) start + 1 : 1,
                                .flags = match ? 0 : AGENT_CONTEXT };

    if (!path || strlen(path) != path_len || !text)
        return 0;
    if (!policy_gate_sieve_passes(&s->sieve, path)) /* as ops_file_search leaves it out */
        return 0;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    item.data.data = (const uint8_t *) text;
    item.data.len = (uint32_t) len;
    if (match && s->found == s->request->limit) {
        s->full = true;
        return 0;
    }
    s->found += match;
    return s->each(s->context, &item, err);
}

static int take_line(struct search *s, struct err *err)
{
    json_t *event = json_loadb(s->line.data, s->line.len, 0, NULL);
    const char *type = json_string_value(json_object_get(event, "type"));
    int r = 0;

    if (type && (strcmp(type, "match") == 0 || strcmp(type, "context") == 0))
        r = take(s, json_object_get(event, "data"), type[0] == 'm', err);
    json_decref(event);
    return r;
}

static int take_output(struct search *s, const char *data, size_t len, struct err *err)
{
    while (len > 0 && !s->full) {
        const char *end = memchr(data, '\n', len);
        size_t piece = end ? (size_t) (end - data) : len;

        if (s->line.len + piece > LINE_MAX_BYTES)
            s->skipping = true;
        if (!s->skipping && text_add(&s->line, data, piece) < 0)
            return err_set(err, ERR_NO_MEMORY, "no memory for the matches");
        if (!end)
            return 0;
        if (!s->skipping && take_line(s, err) < 0)
            return -1;
        s->line.len = 0;
        s->skipping = false;
        data = end + 1;
        len -= piece + 1;
    }
    return 0;
}

static void take_error(struct search *s, const void *data, size_t len)
{
    size_t room = sizeof s->errors - 1 - s->errors_len;

    if (len > room)
        len = room;
    memcpy(s->errors + s->errors_len, data, len);
    s->errors_len += len;
    s->errors[s->errors_len] = '\0';
}

/* ---- the search ---- */

/* Exit 2 is a pattern that it does not take, or files that it could not read beside those that it could. */
static int judge(const struct search *s, const struct exec_result *result, struct err *err)
{
    if (result->ended == EXIT_TIMEOUT)
        return err_set(err, ERR_TIMEOUT, "the search took longer than %d seconds",
                       TIMEOUT_MS / 1000);
    if (result->ended == EXIT_OOM)
        return err_set(err, ERR_OOM, "the search was ended: the sandbox ran out of memory");
    if (result->ended == EXIT_CODE &&
        (result->exit_code <= EXIT_NONE || !strstr(s->errors, "regex parse error")))
        return 0;
    return err_set(err, ERR_INVALID, "pattern: %.200s", s->errors);
}

static int follow(struct ops *ops, struct ops_run *run, struct search *s, struct err *err)
{
    for (;;) {
        struct exec_event event;
        int r = ops_run_next(ops, run, &event, err);

        if (r < 0)
            return -1;
        if (r == 0)
            continue;
        if (event.type == EXEC_END)
            return judge(s, &event.result, err);
        if (event.type == EXEC_STDERR)
            take_error(s, event.data, event.len);
        else if (take_output(s, (const char *) event.data, event.len, err) < 0)
            return -1;
        if (s->full)
            return 0; /* closing ends it */
    }
}

int tools_rg(struct ops *ops, const struct ops_file *file, const struct agent_request *request,
             exec_item_fn each, void *context, bool *ret_truncated, struct err *err)
{
    char numbers[3][24];
    const char *args[ARGS_MAX];
    struct search s = { .request = request, .each = each, .context = context };
    struct ops_command command = {
        .args = args, .user = file->user, .timeout_ms = TIMEOUT_MS, .flags = AGENT_KILL_ON_CLOSE
    };
    struct ops_run run = OPS_RUN_NONE;
    struct file_info info;
    int r;

    /* The path is asked for first: its rules and its errors are those of files, not of a command; and matches are
     * told by whole paths. */
    if (ops_file_stat(ops, file, 0, &info, err) < 0)
        return -1;
    command.arg_count = write_args(request, info.path, numbers, args);
    if (policy_gate_sieve_open(ops->app, file->sandbox, &s.sieve, err) < 0)
        return -1;
    r = ops_run_start(ops, file->sandbox, &command, &run, err);
    if (r < 0) {
        policy_gate_sieve_close(&s.sieve);
        return err->kind == ERR_NO_PATH ? 0 : -1;
    }
    r = follow(ops, &run, &s, err);
    ops_run_close(&run);
    policy_gate_sieve_close(&s.sieve);
    free(s.line.data);
    *ret_truncated = s.full;
    return r < 0 ? -1 : 1;
}
