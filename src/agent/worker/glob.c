#include "agent/worker/glob.h"

#include "base/own.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum part_kind { PART_NAME, PART_ANY_DIRS, PART_END, PART_END_DIR };

struct part {
    enum part_kind kind;
    const char *text; /* PART_NAME: into one of glob.patterns */
    size_t len;
};

struct glob {
    bool hidden;
    char *patterns[GLOB_PATTERNS]; /* without braces */
    size_t pattern_count;
    size_t first[GLOB_PATTERNS]; /* state in which each begins */
    struct part parts[GLOB_STATES];
    size_t part_count;
};

/* One character of UTF-8, or a byte that is none: then above all characters. */
static size_t get_char(const char *text, size_t len, uint32_t *ret)
{
    static const struct {
        uint8_t mask, lead, more;
    } forms[] = { { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 1 }, { 0xf0, 0xe0, 2 }, { 0xf8, 0xf0, 3 } };
    uint8_t lead = (uint8_t) text[0];

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        uint32_t value = lead & (uint8_t) ~forms[i].mask;
        size_t k = 1;

        if ((lead & forms[i].mask) != forms[i].lead || forms[i].more >= len)
            continue;
        while (k <= forms[i].more && ((uint8_t) text[k] & 0xc0) == 0x80)
            value = value << 6 | ((uint8_t) text[k++] & 0x3f);
        if (k <= forms[i].more)
            break;
        *ret = value;
        return k;
    }
    *ret = 0x200000u + lead;
    return 1;
}

static const struct {
    const char *name;
    int (*is)(int);
} classes[] = {
    { "[:alnum:]", isalnum }, { "[:alpha:]", isalpha },   { "[:digit:]", isdigit },
    { "[:lower:]", islower }, { "[:punct:]", ispunct },   { "[:space:]", isspace },
    { "[:upper:]", isupper }, { "[:xdigit:]", isxdigit },
};

/* Length of a class such as [:digit:] at text, or 0; *hit is set when c is in it. */
static size_t class_match(const char *text, size_t len, uint32_t c, bool *hit)
{
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        size_t n = strlen(classes[i].name);

        if (len >= n && memcmp(text, classes[i].name, n) == 0) {
            *hit |= c < 128 && classes[i].is((int) c);
            return n;
        }
    }
    return 0;
}

/* A [set] at text against c. Returns its length, or 0 when it does not end: then "[" is itself. */
static size_t set_match(const char *text, size_t len, uint32_t c, bool *ret_hit)
{
    bool hit = false, negate = len > 1 && (text[1] == '!' || text[1] == '^');
    size_t at = negate ? 2 : 1;
    size_t begin = at;

    while (at < len && (text[at] != ']' || at == begin)) {
        uint32_t low, high;
        size_t n = text[at] == '[' ? class_match(text + at, len - at, c, &hit) : 0;

        if (n > 0) {
            at += n;
            continue;
        }
        at += text[at] == '\\' && at + 1 < len;
        at += get_char(text + at, len - at, &low);
        high = low;
        if (at + 1 < len && text[at] == '-' && text[at + 1] != ']') {
            at++;
            at += text[at] == '\\' && at + 1 < len;
            at += get_char(text + at, len - at, &high);
        }
        hit |= low <= c && c <= high;
    }
    if (at >= len)
        return 0;
    *ret_hit = hit != negate;
    return at + 1;
}

/* Everything but '*' at text against c. Returns its length, or 0 when it does not match. */
static size_t one_match(const char *text, size_t len, uint32_t c)
{
    uint32_t want;
    bool hit;
    size_t n;

    if (text[0] == '?')
        return 1;
    if (text[0] == '[') {
        n = set_match(text, len, c, &hit);
        if (n > 0)
            return hit ? n : 0;
    }
    n = text[0] == '\\' && len > 1;
    n += get_char(text + n, len - n, &want);
    return want == c ? n : 0;
}

/* One part against one name. Only the last star is ever taken back: what an earlier one could have
 * taken more, the last can take as well. */
static bool part_match(const struct part *part, const char *name)
{
    const char *p = part->text;
    size_t at = 0, star = SIZE_MAX, from = 0, i = 0, len = strlen(name);

    while (i < len) {
        uint32_t c;
        size_t taken = get_char(name + i, len - i, &c), n;

        if (at < part->len && p[at] == '*') {
            star = ++at;
            from = i;
            continue;
        }
        n = at < part->len ? one_match(p + at, part->len - at, c) : 0;
        if (n > 0) {
            at += n;
            i += taken;
        } else if (star != SIZE_MAX) {
            from += get_char(name + from, len - from, &c);
            i = from;
            at = star;
        } else {
            return false;
        }
    }
    while (at < part->len && p[at] == '*')
        at++;
    return at == part->len;
}

static bool names_dot(const struct part *part)
{
    return part->text[0] == '.' || (part->len > 1 && part->text[0] == '\\' && part->text[1] == '.');
}

/* The next '{' at or behind `at` that has its '}' and a comma between them; its alternatives are
 * counted. SIZE_MAX: none. */
static size_t find_brace(const char *text, size_t at, size_t *ret_end)
{
    for (; text[at]; at++) {
        size_t depth = 0, commas = 0;

        if (text[at] == '\\' && text[at + 1])
            at++;
        else if (text[at] == '{')
            for (size_t i = at; text[i]; i++) {
                if (text[i] == '\\' && text[i + 1]) {
                    i++;
                    continue;
                }
                depth += text[i] == '{';
                commas += text[i] == ',' && depth == 1;
                if (text[i] != '}' || --depth > 0)
                    continue;
                if (commas == 0)
                    break;
                *ret_end = i;
                return at;
            }
    }
    return SIZE_MAX;
}

/* One alternative, text[from..to), between what is before and behind the braces. */
static char *splice(const char *text, size_t open, size_t from, size_t to, size_t close)
{
    size_t tail = strlen(text + close + 1);
    char *out = malloc(open + (to - from) + tail + 1);

    if (!out)
        return NULL;
    memcpy(out, text, open);
    memcpy(out + open, text + from, to - from);
    memcpy(out + open + (to - from), text + close + 1, tail + 1);
    return out;
}

/* Replaces the last pattern by one for each alternative of its first braces. */
static int expand_last(struct glob *glob, size_t open, size_t close, struct err *err)
{
    auto_free char *text = glob->patterns[--glob->pattern_count];
    size_t depth = 0, from = open + 1;

    for (size_t i = open; i <= close; i++) {
        bool split = depth == 1 && (text[i] == ',' || text[i] == '}');

        if (text[i] == '\\' && i + 1 < close) {
            i++;
            continue;
        }
        depth += text[i] == '{';
        depth -= text[i] == '}';
        if (!split)
            continue;
        if (glob->pattern_count == GLOB_PATTERNS)
            return err_set(err, ERR_INVALID, "pattern: more than %d alternatives", GLOB_PATTERNS);
        glob->patterns[glob->pattern_count] = splice(text, open, from, i, close);
        if (!glob->patterns[glob->pattern_count])
            return err_sys(err, ENOMEM, "pattern");
        glob->pattern_count++;
        from = i + 1;
    }
    return 0;
}

static int add_part(struct glob *glob, struct part part, struct err *err)
{
    if (glob->part_count == GLOB_STATES)
        return err_set(err, ERR_INVALID, "pattern: more than %d parts", GLOB_STATES);
    glob->parts[glob->part_count++] = part;
    return 0;
}

/* The parts of one pattern without braces, and its end. */
static int add_parts(struct glob *glob, const char *text, struct err *err)
{
    static const struct part any_dirs = { .kind = PART_ANY_DIRS };
    size_t begin = glob->part_count, len = strlen(text);
    bool slash = len > 0 && text[len - 1] == '/';
    struct part end = { .kind = slash ? PART_END_DIR : PART_END };
    bool behind_any = false;

    for (; *text; text += *text == '/') {
        struct part part = { .kind = PART_NAME, .text = text, .len = strcspn(text, "/") };

        text += part.len;
        if (part.len == 0 || (part.len == 1 && part.text[0] == '.'))
            continue;
        if (part.len == 2 && memcmp(part.text, "..", 2) == 0)
            return err_set(err, ERR_INVALID, "pattern: '..' is not followed; search from a path");
        if (part.len == 2 && memcmp(part.text, "**", 2) == 0) {
            if (!behind_any && add_part(glob, any_dirs, err) < 0)
                return -1;
            behind_any = true;
            continue;
        }
        if (add_part(glob, part, err) < 0)
            return -1;
        behind_any = false;
    }
    /* "a/" followed by two stars is all that is in a, not a itself. */
    if (behind_any && add_part(glob, (struct part){ PART_NAME, "*", 1 }, err) < 0)
        return -1;
    if (glob->part_count == begin)
        return err_set(err, ERR_INVALID, "pattern: names nothing");
    return add_part(glob, end, err);
}

static int compile(struct glob *glob, const char *pattern, struct err *err)
{
    size_t done = 0, open, close;

    glob->patterns[0] = strdup(pattern);
    if (!glob->patterns[0])
        return err_sys(err, ENOMEM, "pattern");
    glob->pattern_count = 1;
    /* Those before `done` have no braces any more. */
    while (done < glob->pattern_count) {
        open = find_brace(glob->patterns[glob->pattern_count - 1], 0, &close);
        if (open != SIZE_MAX) {
            if (expand_last(glob, open, close, err) < 0)
                return -1;
            continue;
        }
        /* The last is finished: it changes places with the first that is not. */
        char *last = glob->patterns[glob->pattern_count - 1];

        glob->patterns[glob->pattern_count - 1] = glob->patterns[done];
        glob->patterns[done++] = last;
    }
    for (size_t i = 0; i < glob->pattern_count; i++) {
        glob->first[i] = glob->part_count;
        if (add_parts(glob, glob->patterns[i], err) < 0)
            return -1;
    }
    return 0;
}

int glob_new(const char *pattern, bool hidden, struct glob **ret, struct err *err)
{
    struct glob *glob = calloc(1, sizeof *glob);

    if (!glob)
        return err_sys(err, ENOMEM, "pattern");
    glob->hidden = hidden;
    if (compile(glob, pattern, err) < 0) {
        glob_free(glob);
        return -1;
    }
    *ret = glob;
    return 0;
}

void glob_free(struct glob *glob)
{
    if (!glob)
        return;
    for (size_t i = 0; i < glob->pattern_count; i++)
        free(glob->patterns[i]);
    free(glob);
}

size_t glob_words(const struct glob *glob)
{
    return (glob->part_count + 63) / 64;
}

/* A state, and with "**" also the one behind it: it may stand for no directory at all. */
static unsigned add_state(const struct glob *glob, struct glob_set *set, size_t state)
{
    unsigned flags = 0;

    for (;; state++) {
        set->bits[state / 64] |= 1ull << (state % 64);
        switch (glob->parts[state].kind) {
        case PART_ANY_DIRS:
            flags |= GLOB_MORE;
            continue;
        case PART_NAME:
            return flags | GLOB_MORE;
        case PART_END:
            return flags | GLOB_MATCH;
        case PART_END_DIR:
            return flags | GLOB_MATCH_DIR;
        }
    }
}

void glob_start(const struct glob *glob, struct glob_set *ret)
{
    memset(ret, 0, glob_words(glob) * sizeof ret->bits[0]);
    for (size_t i = 0; i < glob->pattern_count; i++)
        (void) add_state(glob, ret, glob->first[i]);
}

unsigned glob_step(const struct glob *glob, const uint64_t *from, const char *name, bool link,
                   struct glob_set *ret)
{
    bool dot = name[0] == '.' && !glob->hidden;
    unsigned flags = 0;

    memset(ret, 0, glob_words(glob) * sizeof ret->bits[0]);
    for (size_t word = 0; word < glob_words(glob); word++)
        for (uint64_t left = from[word]; left; left &= left - 1) {
            size_t state = word * 64 + (size_t) __builtin_ctzll(left);
            const struct part *part = &glob->parts[state];

            if (part->kind == PART_ANY_DIRS && !dot && !link)
                flags |= add_state(glob, ret, state);
            else if (part->kind == PART_NAME && (!dot || names_dot(part)) && part_match(part, name))
                flags |= add_state(glob, ret, state + 1);
        }
    return flags;
}

bool glob_match(const struct glob *glob, const char *path)
{
    struct glob_set sets[2];
    unsigned flags = 0, now = 0;

    glob_start(glob, &sets[0]);
    while (*path) {
        char name[256];
        size_t len = strcspn(path, "/");

        if (len >= sizeof name)
            return false;
        memcpy(name, path, len);
        name[len] = '\0';
        path += len + (path[len] == '/');
        if (len == 0)
            continue;
        flags = glob_step(glob, sets[now].bits, name, false, &sets[!now]);
        now = !now;
    }
    return flags & GLOB_MATCH;
}
