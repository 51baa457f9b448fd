#include "remote/ask.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_MOST (256u * 1024 * 1024)
#define LINE_MOST   (8u * 1024 * 1024)
#define ERROR_MOST  65536

enum err_kind ask_kind(const char *code)
{
    for (unsigned kind = ERR_NONE + 1; kind < ERR_KIND_COUNT; kind++)
        if (code && strcmp(err_kind_info(kind)->name, code) == 0)
            return (enum err_kind) kind;
    return code && strcmp(code, "bad_request") == 0 ? ERR_INVALID : ERR_INTERNAL;
}

int ask_error(json_t *error, struct err *err)
{
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));

    return err_set(err, ask_kind(code), "%s",
                   message ? message : "the server refused without a reason");
}

/* What is no error of cove's is of something in between. */
static int not_ours(int status, struct err *err)
{
    return err_set(err, status == 401 || status == 403 ? ERR_DENIED : ERR_PROTOCOL,
                   "the server answered with status %d, and not as cove does", status);
}

int ask_check(struct call *call, struct err *err)
{
    auto_free char *text = NULL;
    json_t *json, *error;
    size_t len;

    if (call->status >= 200 && call->status < 300)
        return 0;
    if (call_text(call, ERROR_MOST, &text, &len, err) < 0)
        return -1;
    json = json_loadb(text, len, 0, NULL);
    error = json_object_get(json, "error");
    if (json_is_object(error))
        (void) ask_error(error, err);
    else
        (void) not_ours(call->status, err);
    json_decref(json);
    return -1;
}

static int read_answer(struct call *call, json_t **ret, struct err *err)
{
    auto_free char *text = NULL;
    json_error_t why;
    size_t len;

    if (call_answer(call, err) < 0 || ask_check(call, err) < 0 ||
        call_text(call, ANSWER_MOST, &text, &len, err) < 0)
        return -1;
    if (!ret)
        return 0;
    *ret = len == 0 ? NULL : json_loadb(text, len, 0, &why);
    return len > 0 && !*ret
               ? err_set(err, ERR_PROTOCOL, "the server's answer is not JSON: %.80s", why.text)
               : 0;
}

int ask(const struct remote *remote, const char *method, const char *path, json_t *take_body,
        json_t **ret, struct err *err)
{
    auto_free char *body = take_body ? json_dumps(take_body, JSON_COMPACT) : NULL;
    struct call_request request = {
        .method = method, .path = path, .body = body, .body_len = body ? strlen(body) : 0
    };
    bool lost = take_body && !body;
    struct call call;
    int r;

    json_decref(take_body);
    if (lost || !path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (call_open(&call, remote, &request, err) < 0)
        return -1;
    r = read_answer(&call, ret, err);
    call_close(&call);
    return r;
}

static void put_encoded(FILE *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *) text; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("-._~", *c);

        if (plain)
            (void) fputc(*c, out);
        else
            (void) fprintf(out, "%%%02X", *c);
    }
}

char *ask_path(const char *fmt, ...)
{
    va_list args;
    char *path;

    va_start(args, fmt);
    path = ask_vpath(fmt, args);
    va_end(args);
    return path;
}

char *ask_vpath(const char *fmt, va_list args)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    for (; *fmt; fmt++) {
        if (*fmt != '%')
            (void) fputc(*fmt, out);
        else if (*++fmt == 's')
            put_encoded(out, va_arg(args, const char *));
        else if (*fmt == 'u')
            (void) fprintf(out, "%llu", va_arg(args, unsigned long long));
        else
            (void) fputc(*fmt, out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int take_line(struct ask_lines *l, json_t **ret, struct err *err)
{
    char *begin, *end;

    if (l->have == l->at)
        return 0;
    begin = l->text + l->at;
    end = memchr(begin, '\n', l->have - l->at);
    if (!end)
        return 0;
    l->at += (size_t) (end - begin) + 1;
    *ret = json_loadb(begin, (size_t) (end - begin), 0, NULL);
    return json_is_object(*ret)
               ? 1
               : err_set(err, ERR_PROTOCOL, "the server sent a line that is not an object");
}

static int make_room(struct ask_lines *l, struct err *err)
{
    size_t left = l->have - l->at;
    char *more;

    if (left > 0)
        memmove(l->text, l->text + l->at, left);
    l->at = 0;
    l->have = left;
    if (l->have + 16384 <= l->room)
        return 0;
    if (l->room > LINE_MOST)
        return err_set(err, ERR_PROTOCOL, "the server sent a line that is too long");
    more = realloc(l->text, l->room = l->room ? 2 * l->room : 65536);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for a line");
    l->text = more;
    return 0;
}

int ask_next(struct ask_lines *lines, json_t **ret, struct err *err)
{
    for (;;) {
        ssize_t n;
        int r = take_line(lines, ret, err);

        if (r != 0)
            return r;
        if (make_room(lines, err) < 0)
            return -1;
        n = call_read(lines->call, lines->text + lines->have, lines->room - lines->have, err);
        if (n <= 0)
            return (int) n;
        lines->have += (size_t) n;
    }
}

void ask_lines_done(struct ask_lines *lines)
{
    free(lines->text);
    lines->text = NULL;
}
