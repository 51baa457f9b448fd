#include "surface/tools/tools_text.h"

#include "base/base64.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int text_add(struct text *text, const char *data, size_t len)
{
    if (text->room < text->len + len + 1) {
        size_t room = 2 * (text->len + len + 1);
        char *grown = realloc(text->data, room);

        if (!grown)
            return -1;
        text->data = grown;
        text->room = room;
    }
    if (len > 0)
        memcpy(text->data + text->len, data, len);
    text->len += len;
    text->data[text->len] = '\0';
    return 0;
}

int text_addf(struct text *text, const char *fmt, ...)
{
    char *line = NULL;
    va_list args;
    int n, r;

    va_start(args, fmt);
    n = vasprintf(&line, fmt, args);
    va_end(args);
    if (n < 0)
        return -1;
    r = text_add(text, line, (size_t) n);
    free(line);
    return r;
}

/* ---- edits ---- */

static size_t count_of(const struct text *text, const char *old, size_t old_len)
{
    const char *at = text->data, *end = text->data + text->len;
    size_t count = 0;

    while (at && (at = memmem(at, (size_t) (end - at), old, old_len))) {
        count++;
        at += old_len;
    }
    return count;
}

int text_edit(struct text *text, const char *old, const char *new, bool all, size_t *ret_count,
              struct err *err)
{
    size_t old_len = strlen(old), new_len = strlen(new), count;
    struct text edited = { 0 };
    char most[SIZE_TEXT_MAX];
    const char *at = text->data, *hit, *end = text->data + text->len;

    if (old_len == 0)
        return err_set(err, ERR_INVALID, "old_string is empty");
    if (strcmp(old, new) == 0)
        return err_set(err, ERR_INVALID, "old_string and new_string are the same");
    count = text->data ? count_of(text, old, old_len) : 0;
    if (count == 0)
        return err_set(err, ERR_INVALID, "old_string is not in the file");
    if (count > 1 && !all)
        return err_set(err, ERR_INVALID,
                       "old_string is in the file %zu times: add what stands around it to make it "
                       "unique, or set replace_all",
                       count);
    if (text->len - count * old_len > TEXT_EDIT_MAX ||
        (new_len > 0 && count > (TEXT_EDIT_MAX - (text->len - count * old_len)) / new_len))
        return err_set(err, ERR_TOO_BIG, "the edited file is larger than %s",
                       size_text(most, sizeof most, TEXT_EDIT_MAX));
    while ((hit = memmem(at, (size_t) (end - at), old, old_len))) {
        if (text_add(&edited, at, (size_t) (hit - at)) < 0 || text_add(&edited, new, new_len) < 0)
            goto no_memory;
        at = hit + old_len;
    }
    if (text_add(&edited, at, (size_t) (end - at)) < 0)
        goto no_memory;
    free(text->data);
    *text = edited;
    *ret_count = count;
    return 0;

no_memory:
    free(edited.data);
    return err_set(err, ERR_NO_MEMORY, "no memory for the edit");
}

/* ---- lines and characters ---- */

int text_add_numbered(struct text *text, const char *data, size_t len, uint64_t first)
{
    while (len > 0) {
        const char *newline = memchr(data, '\n', len);
        size_t line = newline ? (size_t) (newline - data) + 1 : len;

        if (text_addf(text, "%6llu\t", (unsigned long long) first++) < 0 ||
            text_add(text, data, line) < 0)
            return -1;
        data += line;
        len -= line;
    }
    return 0;
}

size_t text_cut(const char *data, size_t len, size_t most)
{
    size_t at = 0;

    while (at < len && most-- > 0) {
        int n = utf8_first(data + at, len - at);

        at += n > 0 ? (size_t) n : 1; /* a byte that is no UTF-8 counts as a character */
    }
    return at;
}

int text_add_utf8(struct text *text, const char *data, size_t len)
{
    size_t plain = 0; /* bytes before `at` that are fine and not yet added */

    for (size_t at = 0; at < len;) {
        int n = data[at] ? utf8_first(data + at, len - at) : 0;

        if (n > 0) {
            plain += (size_t) n;
            at += (size_t) n;
            continue;
        }
        if (text_add(text, data + at - plain, plain) < 0 || text_add(text, "\xef\xbf\xbd", 3) < 0)
            return -1;
        plain = 0;
        at++;
    }
    return text_add(text, data + len - plain, plain);
}

/* ---- base64 ---- */

int text_from_base64(struct text *text, const char *base64)
{
    size_t len = strlen(base64);
    auto_free uint8_t *bytes = malloc(len + 1);
    ssize_t n = bytes ? base64_get(base64, len, bytes) : -1;

    return n < 0 ? -1 : text_add(text, (const char *) bytes, (size_t) n);
}

/* ---- what kind of file ---- */

const char *text_image_type(const void *data, size_t len)
{
    /* clang-format off */
    static const struct {
        const char *magic;
        size_t len, at;
        const char *type;
    } kinds[] = {
        { "\x89PNG\r\n\x1a\n", 8, 0, "image/png" },
        { "\xff\xd8\xff",      3, 0, "image/jpeg" },
        { "GIF87a",            6, 0, "image/gif" },
        { "GIF89a",            6, 0, "image/gif" },
        { "WEBPVP8",           7, 8, "image/webp" },
        { "BM",                2, 0, "image/bmp" },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (len >= kinds[i].at + kinds[i].len &&
            memcmp((const char *) data + kinds[i].at, kinds[i].magic, kinds[i].len) == 0 &&
            (kinds[i].len > 2 || text_is_binary(data, len))) /* "BM" may begin a sentence */
            return kinds[i].type;
    return NULL;
}

bool text_is_binary(const char *data, size_t len)
{
    struct utf8 state = { 0 };

    return memchr(data, '\0', len) || !utf8_feed(&state, data, len);
}
