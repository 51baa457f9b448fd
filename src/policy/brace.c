/* Brace expansion on the text as written. A stack of texts is worked off from its top; the first
 * brace of each is replaced by its alternatives, so nested ones need no recursion. */
#include "policy/expand.h"
#include "policy/lex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESULTS_MAX  512
#define SEQUENCE_MAX 64

struct texts {
    struct word *at; /* RESULTS_MAX of them, one array for all words of an analysis */
    size_t count;
};

/* Behind the quote, escape or expansion at `at`; at itself when there is none. */
static size_t skip_quoted(const char *text, size_t len, size_t at)
{
    bool open;
    size_t end;

    switch (text[at]) {
    case '\\':
        return at + 2 < len ? at + 2 : len;
    case '\'': {
        const char *close = memchr(text + at + 1, '\'', len - at - 1);

        return close ? (size_t) (close - text) + 1 : len;
    }
    case '"':
    case '`':
        end = lex_close(text, len, at + 1, text[at], &open);
        return end < len ? end + 1 : len;
    case '$':
        if (at + 1 < len && (text[at + 1] == '{' || text[at + 1] == '(')) {
            end = lex_close(text, len, at + 2, text[at + 1] == '{' ? '}' : ')', &open);
            return end < len ? end + 1 : len;
        }
        return at;
    }
    return at;
}

/* The place of the closing brace of the one at `at`, and whether a comma of its own is inside. */
static size_t closing(const char *text, size_t len, size_t at, bool *ret_comma)
{
    unsigned depth = 0;

    *ret_comma = false;
    for (size_t i = at + 1; i < len;) {
        size_t behind = skip_quoted(text, len, i);

        if (behind != i) {
            i = behind;
            continue;
        }
        if (text[i] == '{')
            depth++;
        else if (text[i] == '}' && depth-- == 0)
            return i;
        else if (text[i] == ',' && depth == 0)
            *ret_comma = true;
        i++;
    }
    return len;
}

static void push(struct analysis *an, struct texts *stack, struct word whole, size_t open,
                 size_t close, const char *text, size_t len)
{
    size_t rest = whole.len - close - 1;
    char *joined;

    if (stack->count == RESULTS_MAX)
        longjmp(an->out, 1);
    spend(an, 4 + whole.len / 4);
    joined = arena_alloc(&an->arena, open + len + rest + 1);
    memcpy(joined, whole.text, open);
    memcpy(joined + open, text, len);
    memcpy(joined + open + len, whole.text + close + 1, rest);
    stack->at[stack->count++] = (struct word){ .text = joined, .len = open + len + rest };
}

/* {a,b,c}: pushed from the last to the first, so that the first comes off first. */
static void alternatives(struct analysis *an, struct texts *stack, struct word whole, size_t open,
                         size_t close)
{
    size_t starts[RESULTS_MAX], count = 0, i = open + 1;
    unsigned depth = 0;

    starts[count++] = i;
    while (i < close) {
        size_t behind = skip_quoted(whole.text, close, i);

        if (behind != i) {
            i = behind;
            continue;
        }
        if (whole.text[i] == '{')
            depth++;
        else if (whole.text[i] == '}')
            depth--;
        else if (whole.text[i] == ',' && depth == 0) {
            if (count == RESULTS_MAX)
                longjmp(an->out, 1);
            starts[count++] = i + 1;
        }
        i++;
    }
    while (count-- > 0) {
        size_t end = i < close ? i : close;

        push(an, stack, whole, open, close, whole.text + starts[count], end - starts[count]);
        i = starts[count] - 1;
    }
}

/* {1..5}, {a..e}, {10..1}. False: not a sequence. */
static bool sequence(struct analysis *an, struct texts *stack, struct word whole, size_t open,
                     size_t close)
{
    char text[64], *dots, *end;
    long from, to, count;
    bool letters;

    if (close - open - 1 >= sizeof text)
        return false;
    memcpy(text, whole.text + open + 1, close - open - 1);
    text[close - open - 1] = '\0';
    dots = strstr(text, "..");
    if (!dots || dots == text || !dots[2])
        return false;
    letters = dots == text + 1 && !dots[3] && strspn(text, "0123456789") == 0;
    from = letters ? text[0] : strtol(text, &end, 10);
    if (!letters && end != dots)
        return false;
    to = letters ? dots[2] : strtol(dots + 2, &end, 10);
    if (!letters && (end == dots + 2 || (*end && *end != '.')))
        return false;
    if (labs(from) > 1000000000 || labs(to) > 1000000000)
        return false;
    count = labs(to - from) + 1;
    if (count > SEQUENCE_MAX) {
        text[0] = UNKNOWN;
        push(an, stack, whole, open, close, text, 1);
        return true;
    }
    for (long i = 0; i < count; i++) {
        long value = to > from ? to - i : to + i;
        int len = letters ? snprintf(text, sizeof text, "%c", (char) value)
                          : snprintf(text, sizeof text, "%ld", value);

        push(an, stack, whole, open, close, text, (size_t) len);
    }
    return true;
}

/* Replaces the first brace of a text. False: it has none. */
static bool replace_first(struct analysis *an, struct texts *stack, struct word word)
{
    for (size_t i = 0; i < word.len;) {
        size_t behind = skip_quoted(word.text, word.len, i), close;
        bool comma;

        if (behind != i) {
            i = behind;
            continue;
        }
        if (word.text[i] == '{') {
            spend(an, 1 + word.len / 16);
            close = closing(word.text, word.len, i, &comma);
            if (close < word.len && comma) {
                alternatives(an, stack, word, i, close);
                return true;
            }
            if (close < word.len && sequence(an, stack, word, i, close))
                return true;
        }
        i++;
    }
    return false;
}

void brace_expand(struct analysis *an, struct word word, struct words *out)
{
    struct texts texts = { an->braces, 0 }, *stack = &texts;

    if (!memchr(word.text, '{', word.len)) {
        struct word *only = arena_alloc(&an->arena, sizeof *only);

        *only = (struct word){ .text = word.text, .len = word.len };
        out->first = out->last = only;
        return;
    }
    if (!stack->at)
        stack->at = an->braces = arena_alloc(&an->arena, RESULTS_MAX * sizeof *stack->at);
    stack->at[stack->count++] = word;
    while (stack->count) {
        struct word top = stack->at[--stack->count];
        struct word *done;

        spend(an, 4 + top.len / 4);
        if (replace_first(an, stack, top))
            continue;
        done = arena_alloc(&an->arena, sizeof *done);
        *done = (struct word){ .text = top.text, .len = top.len };
        if (out->last)
            out->last->next = done;
        else
            out->first = done;
        out->last = done;
    }
}
