/* The scanner keeps one closing character per open bracket:
 *   0 the word itself   ')' commands   'a' arithmetic   '}' parameter   '"' quotes   '`' backticks
 * Inside commands it also steps over comments and here-documents, because "$(cat <<'EOF' ...)" with
 * an apostrophe in its body is what agents write all day. */
#include "policy/lex.h"

#include <string.h>

#define DOCS_MAX 4

struct doc {
    size_t at, len; /* its delimiter, quotes included */
    bool tabs;
};

struct scan {
    const char *text;
    size_t len, at, start;
    char stack[LEX_DEPTH_MAX];
    unsigned depth;
    struct doc docs[DOCS_MAX];
    unsigned doc_count;
    bool open;
};

bool lex_is_meta(char c)
{
    return c && strchr(" \t\n\r;&|<>()", c);
}

size_t lex_name(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len &&
           (text[n] == '_' || (text[n] >= 'a' && text[n] <= 'z') ||
            (text[n] >= 'A' && text[n] <= 'Z') || (n > 0 && text[n] >= '0' && text[n] <= '9')))
        n++;
    return n;
}

static char peek(const struct scan *s, size_t ahead)
{
    return s->at + ahead < s->len ? s->text[s->at + ahead] : '\0';
}

static void push(struct scan *s, char closer)
{
    if (s->depth == LEX_DEPTH_MAX) {
        s->open = true;
        s->at = s->len;
        return;
    }
    s->stack[s->depth++] = closer;
}

/* To behind the quote; escapes only in $'...'. */
static void skip_single(struct scan *s, bool escapes)
{
    while (s->at < s->len && s->text[s->at] != '\'')
        s->at += escapes && s->text[s->at] == '\\' ? 2 : 1;
    if (s->at >= s->len) {
        s->at = s->len;
        s->open = true;
    } else {
        s->at++;
    }
}

/* At a '$' that is not single-quoted. */
static void dollar(struct scan *s, bool quoted)
{
    char next = peek(s, 1);

    if (next == '(' && peek(s, 2) == '(') {
        s->at += 3;
        push(s, 'a');
        push(s, 'a');
    } else if (next == '(') {
        s->at += 2;
        push(s, ')');
    } else if (next == '{') {
        s->at += 2;
        push(s, '}');
    } else if (next == '\'' && !quoted) {
        s->at += 2;
        skip_single(s, true);
    } else {
        s->at++;
    }
}

/* "<<WORD" or "<<-WORD" inside commands: remembered until the line ends. */
static void note_doc(struct scan *s)
{
    struct doc doc = { 0 };
    size_t end;

    s->at += 2;
    if (peek(s, 0) == '-') {
        doc.tabs = true;
        s->at++;
    }
    while (peek(s, 0) == ' ' || peek(s, 0) == '\t')
        s->at++;
    end = s->at;
    while (end < s->len && !lex_is_meta(s->text[end]) && s->text[end] != '`')
        end++;
    doc.at = s->at;
    doc.len = end - s->at;
    s->at = end;
    if (doc.len && s->doc_count < DOCS_MAX)
        s->docs[s->doc_count++] = doc;
}

/* Whether the line is the delimiter, whose own quotes do not count. */
static bool is_delimiter(const struct scan *s, const struct doc *doc, size_t at, size_t end)
{
    size_t d = doc->at, d_end = doc->at + doc->len;

    if (doc->tabs)
        while (at < end && s->text[at] == '\t')
            at++;
    while (d < d_end) {
        if (strchr("'\"\\", s->text[d])) {
            d++;
            continue;
        }
        if (at == end || s->text[at] != s->text[d])
            return false;
        at++;
        d++;
    }
    return at == end;
}

/* At the newline that ends a line with "<<": the bodies follow. */
static void skip_docs(struct scan *s)
{
    s->at++;
    for (unsigned i = 0; i < s->doc_count; i++) {
        bool found = false;

        while (s->at < s->len && !found) {
            const char *nl = memchr(s->text + s->at, '\n', s->len - s->at);
            size_t end = nl ? (size_t) (nl - s->text) : s->len;

            found = is_delimiter(s, &s->docs[i], s->at, end);
            s->at = nl ? end + 1 : end;
        }
    }
    s->doc_count = 0;
}

/* Quotes and expansions mean the same in words, commands, arithmetic and parameters. */
static bool common(struct scan *s, char top)
{
    char c = s->text[s->at];

    switch (c) {
    case '\\':
        s->at += 2;
        return true;
    case '\'':
        if (top == 'a' || (top == '}' && s->depth > 1 && s->stack[s->depth - 2] == '"'))
            return false;
        s->at++;
        skip_single(s, false);
        return true;
    case '"':
    case '`':
        s->at++;
        push(s, c);
        return true;
    case '$':
        dollar(s, false);
        return true;
    }
    return false;
}

static void in_commands(struct scan *s)
{
    char c = s->text[s->at];

    if (c == ')') {
        s->depth--;
        s->at++;
    } else if (c == '(') {
        s->at++;
        push(s, ')');
    } else if (c == '#' && (s->at == s->start || lex_is_meta(s->text[s->at - 1]))) {
        while (s->at < s->len && s->text[s->at] != '\n')
            s->at++;
    } else if (c == '<' && peek(s, 1) == '<' && peek(s, 2) == '<') {
        s->at += 3;
    } else if (c == '<' && peek(s, 1) == '<') {
        note_doc(s);
    } else if (c == '\n' && s->doc_count) {
        skip_docs(s);
    } else {
        s->at++;
    }
}

static void in_brackets(struct scan *s, char top)
{
    char c = s->text[s->at];
    char closer = top == 'a' ? ')' : top;

    s->at++;
    if (c == closer)
        s->depth--;
    else if (top == 'a' && c == '(')
        push(s, 'a');
}

static void in_quotes(struct scan *s, char top)
{
    char c = s->text[s->at];

    if (c == '\\') {
        s->at += 2;
    } else if (c == top) {
        s->depth--;
        s->at++;
    } else if (top == '"' && c == '$') {
        dollar(s, true);
    } else if (top == '"' && c == '`') {
        s->at++;
        push(s, '`');
    } else {
        s->at++;
    }
}

/* Brackets that belong to a word: <(...), extended globs, a=(...). */
static bool opens_in_word(const struct scan *s)
{
    char c = s->text[s->at], before = s->at > s->start ? s->text[s->at - 1] : '\0';
    size_t name;

    if ((c == '<' || c == '>') && s->at == s->start)
        return peek(s, 1) == '(';
    if (c != '(' || !before)
        return false;
    if (strchr("?*+@", before) || (before == '!' && s->at > s->start + 1))
        return true;
    name = lex_name(s->text + s->start, s->at - s->start);
    return before == '=' && name &&
           (name + 1 == s->at - s->start ||
            (name + 2 == s->at - s->start && s->text[s->start + name] == '+'));
}

static void run(struct scan *s, bool whole_word)
{
    while (s->at < s->len && (whole_word || s->depth > 0)) {
        char top = s->depth ? s->stack[s->depth - 1] : '\0';

        if (top == '"' || top == '`') {
            in_quotes(s, top);
        } else if (common(s, top)) {
            continue;
        } else if (top == ')') {
            in_commands(s);
        } else if (top) {
            in_brackets(s, top);
        } else if (opens_in_word(s)) {
            s->at += s->text[s->at] == '(' ? 1 : 2;
            push(s, ')');
        } else if (lex_is_meta(s->text[s->at])) {
            break;
        } else {
            s->at++;
        }
    }
    if (s->depth > 0)
        s->open = true;
    if (s->at > s->len)
        s->at = s->len;
}

size_t lex_word_end(const char *text, size_t len, size_t at, bool *ret_open)
{
    struct scan s = { .text = text, .len = len, .at = at, .start = at };

    run(&s, true);
    *ret_open = s.open;
    return s.at;
}

size_t lex_close(const char *text, size_t len, size_t at, char closer, bool *ret_open)
{
    struct scan s = { .text = text, .len = len, .at = at, .start = at };

    push(&s, closer);
    run(&s, false);
    *ret_open = s.open;
    return s.open ? len : s.at - 1;
}
