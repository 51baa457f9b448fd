#include "policy/param.h"

#include "policy/expand.h"
#include "policy/lex.h"
#include "policy/paths.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIM_MAX 512 /* longer values are not trimmed by patterns: quadratic */

static struct flow expand_text(struct analysis *an, const struct source *src, const char *text,
                               size_t len)
{
    struct field field = expand_one(an, src, (struct word){ .text = text, .len = len });

    return (struct flow){ field.text, field.len, field.taint };
}

static struct flow part(struct analysis *an, struct flow value, size_t from, size_t len)
{
    return (struct flow){ arena_text(&an->arena, value.text + from, len), len, value.taint };
}

/* ${x:1}, ${x:1:2}, ${x: -1} */
static struct flow substring(struct analysis *an, const struct source *src, struct flow value,
                             const char *op, size_t len)
{
    const char *text = expand_doc(an, src, op, len).text;
    long size = (long) value.len, from, count = size;
    char *end;

    if (is_unknown(value.text) || is_unknown(text))
        return flow_unknown(value.taint);
    from = strtol(text, &end, 10);
    if (*end == ':')
        count = strtol(end + 1, &end, 10);
    if (*end)
        return flow_unknown(value.taint);
    if (from < 0)
        from = from < -size ? 0 : size + from;
    if (from > size)
        from = size;
    if (count < 0)
        count = count < -(size - from) ? 0 : size - from + count;
    if (count > size - from)
        count = size - from;
    return part(an, value, (size_t) from, (size_t) count);
}

/* ${x#p} ${x##p} ${x%p} ${x%%p} */
static struct flow trim(struct analysis *an, const struct source *src, struct flow value,
                        const char *op, size_t len)
{
    bool front = *op == '#', longest = len > 1 && op[1] == *op;
    const char *pattern = expand_text(an, src, op + 1 + longest, len - 1 - longest).text;

    if (is_unknown(value.text) || value.len > TRIM_MAX)
        return flow_unknown(value.taint);
    spend(an, value.len * 8 + value.len * strlen(pattern) / 8);
    if (strchr(pattern, '*')) /* each of the tries may look at all that is left, again and again */
        spend(an, value.len * value.len * strlen(pattern) / 64);
    for (size_t i = 0; i <= value.len; i++) {
        size_t n = longest ? value.len - i : i; /* how much goes */
        struct flow gone = front ? part(an, value, 0, n) : part(an, value, value.len - n, n);

        if (glob_match(pattern, gone.text))
            return front ? part(an, value, n, value.len - n) : part(an, value, 0, value.len - n);
    }
    return value;
}

/* ${x/a/b} ${x//a/b}, of plain texts */
static struct flow replace(struct analysis *an, const struct source *src, struct flow value,
                           const char *op, size_t len)
{
    bool all = len > 1 && op[1] == '/';
    const char *from = op + 1 + all;
    const char *slash = memchr(from, '/', len - 1 - all);
    size_t from_len = slash ? (size_t) (slash - from) : len - 1 - all;
    struct flow pattern = expand_text(an, src, from, from_len);
    struct flow with = { "", 0, 0 };
    struct sink out = { .taint = value.taint };

    if (slash)
        with = expand_text(an, src, slash + 1, len - (size_t) (slash + 1 - op));
    if (is_unknown(value.text) || !pattern.len || strpbrk(pattern.text, "*?[") ||
        is_unknown(pattern.text))
        return flow_unknown(value.taint);
    for (const char *at = value.text;;) {
        const char *hit = strstr(at, pattern.text);

        if (!hit) {
            sink_add(an, &out, at, strlen(at));
            break;
        }
        sink_add(an, &out, at, (size_t) (hit - at));
        sink_add(an, &out, with.text, with.len);
        at = hit + pattern.len;
        if (!all) {
            sink_add(an, &out, at, strlen(at));
            break;
        }
    }
    return sink_flow(an, &out);
}

/* ${x^^} ${x,,} ${x^} ${x,} */
static struct flow change_case(struct analysis *an, struct flow value, const char *op, size_t len)
{
    char *copy = arena_text(&an->arena, value.text, value.len);
    bool all = len > 1 && op[1] == *op;

    for (size_t i = 0; i < value.len && (all || i == 0); i++)
        copy[i] = (char) (*op == '^' ? toupper((unsigned char) copy[i])
                                     : tolower((unsigned char) copy[i]));
    return (struct flow){ copy, value.len, value.taint };
}

/* ${x:-w} and its kin; `op` stands behind the colon. */
static struct flow fallback(struct analysis *an, const struct source *src, const char *name,
                            struct flow value, bool use_value, const char *op, size_t len)
{
    struct flow word;

    if (*op == '+')
        return use_value ? expand_text(an, src, op + 1, len - 1) : flow_of("");
    /* The word may hold commands: it is expanded even where the value is taken. */
    word = expand_text(an, src, op + 1, len - 1);
    if (use_value || *op == '?')
        return value;
    if (*op == '=')
        var_set(an, name, word);
    return word;
}

static struct flow apply(struct analysis *an, const struct source *src, const char *name,
                         struct flow value, bool set, const char *op, size_t len)
{
    bool colon = *op == ':';

    if (len > (size_t) colon && strchr("-=?+", op[colon]))
        return fallback(an, src, name, value, set && (!colon || value.len), op + colon,
                        len - colon);
    switch (*op) {
    case ':':
        return substring(an, src, value, op + 1, len - 1);
    case '#':
    case '%':
        return trim(an, src, value, op, len);
    case '/':
        return replace(an, src, value, op, len);
    case '^':
    case ',':
        return change_case(an, value, op, len);
    }
    return flow_unknown(value.taint);
}

/* ${a[1]}: the n-th of the words that an array is kept as. */
static struct flow element(struct analysis *an, struct flow value, const char *index)
{
    char *end;
    long n = strtol(index, &end, 10);
    const char *at = value.text;

    if (end == index || n < 0)
        return flow_unknown(value.taint);
    for (; n > 0 && *at; n--) {
        at = strchrnul(at, ' ');
        at += *at == ' ';
    }
    return part(an, value, (size_t) (at - value.text), strcspn(at, " "));
}

struct flow param_value(struct analysis *an, const struct source *src, const char *text, size_t len,
                        bool *ret_array)
{
    bool indirect = len > 1 && *text == '!', length = len > 1 && *text == '#', set;
    size_t skip = indirect || length, n = lex_name(text + skip, len - skip);
    struct flow value;
    char *name;

    *ret_array = false;
    while (!n && skip < len && isdigit((unsigned char) text[skip + n]) && skip + n + 1 < len &&
           isdigit((unsigned char) text[skip + n + 1]))
        n++;
    if (!n && skip < len)
        n = 1;
    name = arena_text(&an->arena, text + skip, n);
    value = expand_var(an, name, &set);
    spend(an, 1 + value.len / 8); /* what is done with it looks at all of it, at least once */
    if (indirect && value.len && !is_unknown(value.text))
        value = expand_var(an, value.text, &set);
    text += skip + n;
    len -= skip + n;
    if (len && *text == '[') {
        const char *close = memchr(text, ']', len);
        size_t index_len = close ? (size_t) (close - text) - 1 : len - 1;
        const char *index = expand_text(an, src, text + 1, index_len).text;

        if (*index == '@' || *index == '*')
            *ret_array = *index == '@';
        else
            value = element(an, value, index);
        text += index_len + (close ? 2 : 1);
        len -= index_len + (close ? 2 : 1);
    }
    if (length) {
        char digits[24];
        int size = snprintf(digits, sizeof digits, "%zu", value.len);

        return is_unknown(value.text)
                   ? flow_unknown(0)
                   : (struct flow){ arena_text(&an->arena, digits, (size_t) size), (size_t) size,
                                    0 };
    }
    return len ? apply(an, src, name, value, set, text, len) : value;
}
