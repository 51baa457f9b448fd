#include "wire/runsc.h"

#include <stdio.h>
#include <string.h>

#define DATE_LEN   8
#define DATE_FIRST 20000101u

uint32_t runsc_parse_version(const char *text)
{
    while (*text) {
        size_t len = strspn(text, "0123456789");
        uint32_t date = 0;

        for (size_t i = 0; len == DATE_LEN && i < len; i++)
            date = date * 10 + (uint32_t) (text[i] - '0');
        if (date >= DATE_FIRST)
            return date;
        text += len > 0 ? len : 1;
    }
    return 0;
}

bool runsc_take(struct runsc_answer *a, char c)
{
    if (a->len < sizeof a->text - 1)
        a->text[a->len++] = c;
    if (a->escaped) {
        a->escaped = false;
    } else if (a->quoted) {
        a->escaped = c == '\\';
        a->quoted = c != '"';
    } else if (c == '"') {
        a->quoted = true;
    } else if (c == '{') {
        a->depth += a->depth < UINT32_MAX;
    } else if (c == '}') {
        a->depth -= a->depth > 0;
        return a->depth == 0;
    }
    return false;
}

/* Up to the end of a text's first line; of escaped signs, those that stand for themselves. */
static void copy_line(const char *from, char *to, size_t size)
{
    size_t len = 0;

    for (; *from && *from != '"' && len + 1 < size; from++) {
        char c = *from;

        if (c == '\\') {
            c = *++from;
            if (c != '"' && c != '\\' && c != '/')
                break;
        }
        to[len++] = c >= ' ' && c <= '~' ? c : '?';
    }
    to[len] = '\0';
}

/* The one thing that is usual enough to be told in other words than a stack of calls. */
#define DELETED "deleted and invalidated dentries can't be restored"

bool runsc_read_answer(const struct runsc_answer *a, char *why, size_t size)
{
    static const char yes[] = "{\"success\":true", err[] = "\"err\":\"";
    const char *at;

    if (strncmp(a->text, yes, sizeof yes - 1) == 0)
        return true;
    at = strstr(a->text, err);
    copy_line(at ? at + sizeof err - 1 : "", why, size);
    if (strstr(why, DELETED))
        (void) snprintf(why, size, "a file that was deleted is still open");
    if (!why[0])
        (void) snprintf(why, size, "no reason is told");
    return false;
}
