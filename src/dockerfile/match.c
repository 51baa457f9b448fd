#include "dockerfile/match.h"

#include "base/own.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

/* A pattern is a list of parts; a set of places in that list is where a path may have come to. */
enum part_type { PART_LETTER, PART_ONE, PART_SET, PART_MANY, PART_ALL, PART_MAYBE, PART_DIRS };

struct part {
    enum part_type type;
    uint16_t from, to; /* of PART_SET: in the pattern */
    char letter;
};

struct pattern {
    const char *text;
    struct part parts[2 * MATCH_PATTERN_MAX];
    size_t count;
};

bool match_is_pattern(const char *text)
{
    return text[strcspn(text, "*?[\\")] != '\0';
}

/* *at is behind '['; afterwards behind ']'. */
static bool skip_set(const char *text, size_t *at)
{
    size_t i = *at;

    i += text[i] == '^' || text[i] == '!';
    for (bool first = true; text[i] && (first || text[i] != ']'); first = false, i++)
        if (text[i] == '\\' && text[i + 1])
            i++;
    *at = i + 1;
    return text[i] == ']';
}

static bool set_has(const char *text, size_t at, size_t to, char c)
{
    bool not = text[at] == '^' || text[at] == '!', has = false;

    for (at += not ; at < to;) {
        unsigned char low, high;

        at += text[at] == '\\' && at + 1 < to;
        low = high = (unsigned char) text[at++];
        if (at + 1 < to && text[at] == '-') {
            at++;
            at += text[at] == '\\' && at + 1 < to;
            high = (unsigned char) text[at++];
        }
        has = has || ((unsigned char) c >= low && (unsigned char) c <= high);
    }
    return has != not &&c != '/';
}

static void add(struct pattern *p, enum part_type type, char letter)
{
    p->parts[p->count++] = (struct part){ .type = type, .letter = letter };
}

/* "**" at *at. */
static void add_deep(struct pattern *p, size_t *at)
{
    while (p->text[*at] == '*')
        (*at)++;
    if (p->text[*at] != '/') {
        add(p, PART_ALL, 0);
        return;
    }
    (*at)++;
    add(p, PART_MAYBE, 0);
    add(p, PART_DIRS, 0);
}

static int compile(struct pattern *p, const char *text, bool deep, struct err *err)
{
    p->text = text;
    p->count = 0;
    if (strlen(text) >= MATCH_PATTERN_MAX)
        return err_set(err, ERR_INVALID, "a pattern is longer than %d bytes",
                       MATCH_PATTERN_MAX - 1);
    for (size_t at = 0; text[at];) {
        char c = text[at];

        if (c == '*' && text[at + 1] == '*' && deep) {
            add_deep(p, &at);
        } else if (c == '*' || c == '?') {
            add(p, c == '*' ? PART_MANY : PART_ONE, 0);
            at++;
        } else if (c == '[') {
            size_t from = ++at;

            if (!skip_set(text, &at))
                return err_set(err, ERR_INVALID, "'[' without ']' in the pattern '%.60s'", text);
            p->parts[p->count++] = (struct part){ .type = PART_SET,
                                                  .from = (uint16_t) from,
                                                  .to = (uint16_t) (at - 1) };
        } else {
            at += c == '\\' && text[at + 1];
            add(p, PART_LETTER, text[at++]);
        }
    }
    return 0;
}

/* Places that are reached without a letter more. */
static void reach(const struct pattern *p, bool *places)
{
    for (size_t i = 0; i < p->count; i++) {
        if (!places[i])
            continue;
        if (p->parts[i].type == PART_MANY || p->parts[i].type == PART_ALL)
            places[i + 1] = true;
        if (p->parts[i].type == PART_MAYBE)
            places[i + 1] = places[i + 2] = true;
    }
}

static void step(const struct pattern *p, const bool *places, bool *next, char c)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct part *part = &p->parts[i];

        if (!places[i])
            continue;
        switch (part->type) {
        case PART_LETTER:
            next[i + 1] |= c == part->letter;
            break;
        case PART_ONE:
            next[i + 1] |= c != '/';
            break;
        case PART_SET:
            next[i + 1] |= set_has(p->text, part->from, part->to, c);
            break;
        case PART_MANY:
            next[i] |= c != '/';
            break;
        case PART_ALL:
            next[i] = true;
            break;
        case PART_MAYBE:
            break;
        case PART_DIRS:
            next[i] = true;
            next[i + 1] |= c == '/';
            break;
        }
    }
}

static bool compiled_match(const struct pattern *p, const char *path, size_t len)
{
    bool places[2][2 * MATCH_PATTERN_MAX + 2] = { { true } };
    int now = 0;

    reach(p, places[now]);
    for (size_t i = 0; i < len; i++) {
        memset(places[!now], 0, p->count + 1);
        step(p, places[now], places[!now], path[i]);
        now = !now;
        reach(p, places[now]);
    }
    return places[now][p->count];
}

int match_path(const char *pattern, const char *path, bool deep, bool *ret, struct err *err)
{
    auto_free struct pattern *p = malloc(sizeof *p);

    if (!p)
        return err_set(err, ERR_NO_MEMORY, "no memory for a pattern");
    if (compile(p, pattern, deep, err) < 0)
        return -1;
    *ret = compiled_match(p, path, strlen(path));
    return 0;
}

int match_clean(const char *path, char *out, size_t size)
{
    size_t have = 0;

    while (*path) {
        size_t len = strcspn(path, "/");

        if (len == 2 && strncmp(path, "..", 2) == 0) {
            if (have == 0)
                return -1;
            while (have > 0 && out[have - 1] != '/')
                have--;
            have -= have > 0;
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            if (have + len + 2 > size)
                return -1;
            if (have > 0)
                out[have++] = '/';
            memcpy(out + have, path, len);
            have += len;
        }
        path += len;
        path += strspn(path, "/");
    }
    out[have] = '\0';
    return 0;
}

/* ---- .dockerignore ---- */

static int add_row(struct ignore *ignore, const char *text, size_t len, unsigned line,
                   struct err *err)
{
    auto_free char *copy = strndup(text, len);
    auto_free struct pattern *p = malloc(sizeof *p);
    char clean[MATCH_PATTERN_MAX];
    struct ignore_row *rows;
    bool except = len > 0 && text[0] == '!';

    rows = realloc(ignore->rows, (ignore->count + 1) * sizeof *rows);
    if (rows)
        ignore->rows = rows;
    if (!copy || !rows || !p)
        return err_set(err, ERR_NO_MEMORY, "no memory for .dockerignore");
    if (ignore->count == IGNORE_ROWS_MAX)
        return err_set(err, ERR_TOO_BIG, "line %u: more than %d patterns", line, IGNORE_ROWS_MAX);
    if (match_clean(copy + except + strspn(copy + except, " \t"), clean, sizeof clean) < 0)
        return err_set(err, ERR_INVALID,
                       "line %u: the pattern leads out of the directory, or is "
                       "too long",
                       line);
    if (compile(p, clean, true, err) < 0)
        return err_wrap(err, "line %u", line);
    if (!clean[0])
        return 0; /* "/" and "." mean nothing, as in Docker */
    ignore->rows[ignore->count] = (struct ignore_row){ .pattern = strdup(clean), .except = except };
    if (!ignore->rows[ignore->count].pattern)
        return err_set(err, ERR_NO_MEMORY, "no memory for .dockerignore");
    ignore->count++;
    ignore->excepts |= except;
    return 0;
}

int ignore_parse(const char *text, size_t len, struct ignore *ret, struct err *err)
{
    struct ignore ignore = { .rows = NULL };
    unsigned line = 0;

    if (memchr(text, '\0', len))
        return err_set(err, ERR_INVALID, "line 1: .dockerignore is not a text");
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    while (len > 0) {
        const char *newline = memchr(text, '\n', len);
        size_t whole = newline ? (size_t) (newline - text) : len, at = 0, end = whole;

        line++;
        while (end > 0 && strchr(" \t\r", text[end - 1]))
            end--;
        while (at < end && strchr(" \t", text[at]))
            at++;
        if (at < end && text[0] != '#' && add_row(&ignore, text + at, end - at, line, err) < 0) {
            ignore_done(&ignore);
            return -1;
        }
        text += whole + (newline ? 1 : 0);
        len -= whole + (newline ? 1 : 0);
    }
    *ret = ignore;
    return 0;
}

void ignore_done(struct ignore *ignore)
{
    for (size_t i = 0; i < ignore->count; i++)
        free(ignore->rows[i].pattern);
    free(ignore->rows);
    *ignore = (struct ignore){ .rows = NULL };
}

/* The path, or a directory that it is in. */
static bool row_has(const char *pattern, const char *path, struct pattern *p)
{
    struct err ignored;

    if (compile(p, pattern, true, &ignored) < 0)
        return false;
    for (size_t len = strcspn(path, "/");; len += 1 + strcspn(path + len + 1, "/")) {
        if (compiled_match(p, path, len))
            return true;
        if (!path[len])
            return false;
    }
}

bool ignore_has(const struct ignore *ignore, const char *path)
{
    auto_free struct pattern *p = malloc(sizeof *p);

    for (size_t i = ignore->count; p && i > 0; i--)
        if (row_has(ignore->rows[i - 1].pattern, path, p))
            return !ignore->rows[i - 1].except;
    return false;
}
