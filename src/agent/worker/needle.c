/* needle.c - what grep looks for.
 *
 * Most lines do not match, and regexec takes long to say so. So an expression is also read for a text
 * that every match must contain (`must`); a line without it is not looked at any further. */
#include "agent/worker/grep.h"
#include "base/own.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

struct needle {
    char *plain; /* AGENT_FIXED with its case; else regex */
    size_t plain_len;
    regex_t regex;
    char *must; /* NULL: nothing is known */
    size_t must_len;
};

/* A plain text as a regular expression: for the cases that only those can ignore. */
static char *escape(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *at = out;

    if (!out)
        return NULL;
    for (; *text; text++) {
        if (strchr("\\^$.[]|()?*+{}", *text))
            *at++ = '\\';
        *at++ = *text;
    }
    *at = '\0';
    return out;
}

static int compile(struct needle *needle, const char *pattern, int flags, struct err *err)
{
    int why = regcomp(&needle->regex, pattern, REG_EXTENDED | flags);
    char text[120];

    if (why == 0)
        return 0;
    (void) regerror(why, &needle->regex, text, sizeof text);
    return err_set(err, ERR_INVALID, "pattern: %s", text);
}

/* Behind a [set] or a (group) that begins at p. */
static const char *skip_set(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    p += *p == ']';
    while (*p && *p != ']') {
        if (p[0] == '[' && p[1] && strchr(":.=", p[1])) { /* [:class:] */
            char close[3] = { p[1], ']', '\0' };
            const char *end = strstr(p + 2, close);

            p = end ? end + 2 : p + strlen(p);
        } else {
            p++;
        }
    }
    return p + (*p != '\0');
}

static const char *skip_group(const char *p)
{
    size_t depth = 0;

    while (*p) {
        if (*p == '[') {
            p = skip_set(p);
            continue;
        }
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '(')
            depth++;
        else if (*p == ')' && --depth == 0)
            return p + 1;
        p++;
    }
    return p;
}

/* The longest run of plain characters outside of groups and sets that no operator makes optional. With
 * a '|' anywhere nothing is sure. Leaving out is always right, so what is unclear ends a run. */
static size_t find_must(const char *p, char *best)
{
    size_t best_len = 0, len = 0;
    auto_free char *run = malloc(strlen(p) + 1);

    while (run && *p && !strchr(p, '|')) {
        /* Of the escapes only those that every library takes as the character itself. */
        bool literal = !strchr("\\^$.[]()?*+{}", *p) ||
                       (*p == '\\' && p[1] && strchr("\\^$.[]()?*+{}/-", p[1]));

        if (literal) {
            p += *p == '\\';
            run[len++] = *p++;
        }
        /* What follows may take the last character back. */
        if (literal && *p && strchr("?*{", *p))
            len--;
        if (len > best_len) {
            memcpy(best, run, len);
            best_len = len;
        }
        if (literal && !(*p && strchr("?*+{", *p)))
            continue;
        len = 0;
        if (literal)
            continue;
        if (*p == '[')
            p = skip_set(p);
        else if (*p == '(')
            p = skip_group(p);
        else if (*p == '{')
            p += strcspn(p, "}");
        else
            p += *p == '\\' && p[1] ? 2 : 1;
    }
    return best_len;
}

int needle_new(const char *pattern, bool fixed, bool ignore_case, struct needle **ret,
               struct err *err)
{
    struct needle *needle = calloc(1, sizeof *needle);
    auto_free char *escaped = NULL;
    const char *expression = pattern;

    if (!needle)
        return err_sys(err, ENOMEM, "pattern");
    if (fixed && !ignore_case) {
        needle->plain = strdup(pattern);
        needle->plain_len = strlen(pattern);
        if (needle->plain) {
            *ret = needle;
            return 0;
        }
    }
    if (fixed)
        expression = escaped = escape(pattern);
    if (!expression)
        (void) err_sys(err, ENOMEM, "pattern");
    else if (compile(needle, expression, ignore_case ? REG_ICASE : 0, err) == 0) {
        needle->must = ignore_case ? NULL : malloc(strlen(expression) + 1);
        needle->must_len = needle->must ? find_must(expression, needle->must) : 0;
        *ret = needle;
        return 0;
    }
    free(needle);
    return -1;
}

void needle_free(struct needle *needle)
{
    if (!needle)
        return;
    if (!needle->plain)
        regfree(&needle->regex);
    free(needle->must);
    free(needle->plain);
    free(needle);
}

bool needle_find(const struct needle *needle, const char *text, size_t len, bool begins, bool ends,
                 size_t *ret_at, size_t *ret_len)
{
    regmatch_t match;

    if (needle->plain) {
        const char *at = memmem(text, len, needle->plain, needle->plain_len);

        if (!at)
            return false;
        *ret_at = (size_t) (at - text);
        *ret_len = needle->plain_len;
        return true;
    }
    if (needle->must_len && !memmem(text, len, needle->must, needle->must_len))
        return false;
    if (regexec(&needle->regex, text, 1, &match,
                (begins ? 0 : REG_NOTBOL) | (ends ? 0 : REG_NOTEOL)))
        return false;
    *ret_at = (size_t) match.rm_so;
    *ret_len = (size_t) (match.rm_eo - match.rm_so);
    return true;
}
