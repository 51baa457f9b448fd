/* needle.c - what grep looks for. */
#include "agent/grep.h"
#include "base/own.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

struct needle {
    char *plain; /* AGENT_FIXED with its case; else regex */
    size_t plain_len;
    regex_t regex;
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

int needle_new(const char *pattern, bool fixed, bool ignore_case, struct needle **ret,
               struct err *err)
{
    struct needle *needle = calloc(1, sizeof *needle);
    auto_free char *escaped = NULL;

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
        escaped = escape(pattern);
    if (fixed && !escaped)
        (void) err_sys(err, ENOMEM, "pattern");
    else if (compile(needle, fixed ? escaped : pattern, ignore_case ? REG_ICASE : 0, err) == 0) {
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
    if (regexec(&needle->regex, text, 1, &match,
                (begins ? 0 : REG_NOTBOL) | (ends ? 0 : REG_NOTEOL)))
        return false;
    *ret_at = (size_t) match.rm_so;
    *ret_len = (size_t) (match.rm_eo - match.rm_so);
    return true;
}
