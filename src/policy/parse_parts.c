/* The small parts of shell text: blanks, comments, words, here-documents, redirections. */
#include "policy/parse.h"

#include "base/own.h"
#include "policy/lex.h"

#include <string.h>

void parse_bad(struct parser *p, const char *what, size_t at)
{
    unparsed(p->an, what, source_span(p->src, p->text + at, at < p->len ? 1 : 0));
}

struct node *parse_node_new(struct parser *p, enum node_kind kind)
{
    struct node *node = arena_alloc(&p->an->arena, sizeof *node);

    spend(p->an, 8);
    node->kind = kind;
    node->src = p->src;
    node->text = p->text + p->at;
    return node;
}

void parse_node_end(struct parser *p, struct node *node)
{
    const char *end = p->text + p->at;

    while (end > node->text && strchr(" \t\r\n", end[-1]))
        end--;
    node->len = (size_t) (end - node->text);
}

/* Blanks, joined lines and comments; every caller is between words. */
void parse_skip_blank(struct parser *p)
{
    for (; p->at < p->len; p->at++) {
        char c = p->text[p->at];

        if (c == '\\' && (parse_peek(p, 1) == '\n')) {
            p->at++;
        } else if (c == '#') {
            while (p->at < p->len && p->text[p->at] != '\n')
                p->at++;
            return;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

static bool line_is(const struct redir *doc, const char *line, size_t len)
{
    const char *d = doc->target.text, *end = d + doc->target.len;

    while (doc->tabs && len && *line == '\t') {
        line++;
        len--;
    }
    for (; d < end; d++) {
        if (strchr("'\"\\", *d))
            continue;
        if (!len || *line != *d)
            return false;
        line++;
        len--;
    }
    return len == 0;
}

static void read_doc(struct parser *p, struct redir *doc)
{
    doc->body = p->text + p->at;
    while (p->at < p->len) {
        const char *line = p->text + p->at;
        const char *nl = memchr(line, '\n', p->len - p->at);
        size_t len = nl ? (size_t) (nl - line) : p->len - p->at;

        if (line_is(doc, line, len)) {
            doc->body_len = (size_t) (line - doc->body);
            p->at += len + (nl ? 1 : 0);
            return;
        }
        p->at += len + (nl ? 1 : 0);
    }
    doc->body_len = (size_t) (p->text + p->len - doc->body);
    parse_bad(p, "here-document without end", (size_t) (doc->body - p->text));
}

/* At a newline: the bodies of this line's here-documents follow, in their order. */
static void end_line(struct parser *p)
{
    struct redir *first = NULL;

    p->at++;
    while (p->docs) {
        struct redir *doc = p->docs;

        p->docs = doc->next_doc;
        doc->next_doc = first;
        first = doc;
    }
    for (; first; first = first->next_doc)
        read_doc(p, first);
}

void parse_skip_lines(struct parser *p)
{
    for (;;) {
        parse_skip_blank(p);
        if (p->at >= p->len || p->text[p->at] != '\n')
            return;
        end_line(p);
    }
}

/* The word at this place; length 0 when none starts here. */
struct word parse_take_word(struct parser *p)
{
    struct word word = { .text = p->text + p->at };
    bool open;
    size_t end = lex_word_end(p->text, p->len, p->at, &open);

    if (open)
        parse_bad(p, "quote or bracket without end", p->at);
    word.len = end - p->at;
    spend(p->an, 1 + word.len / 4);
    p->at = end;
    return word;
}

struct word parse_peek_word(struct parser *p)
{
    size_t end = p->at;

    /* Reserved words are plain: stopping at the first quote keeps this linear. */
    while (end < p->len && !lex_is_meta(p->text[end]) && end - p->at < 16)
        end++;
    return (struct word){ .text = p->text + p->at, .len = end - p->at };
}

static bool starts(const struct parser *p, const char *text)
{
    size_t len = strlen(text);

    return p->len - p->at >= len && memcmp(p->text + p->at, text, len) == 0;
}

bool parse_word_is(struct word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.text, text, word.len) == 0;
}

bool parse_take_reserved(struct parser *p, const char *text)
{
    parse_skip_lines(p);
    while (parse_peek(p, 0) == ';' && parse_peek(p, 1) != ';') {
        p->at++;
        parse_skip_lines(p);
    }
    if (!parse_word_is(parse_peek_word(p), text))
        return false;
    p->at += strlen(text);
    return true;
}

void parse_expect(struct parser *p, const char *text)
{
    if (!parse_take_reserved(p, text)) {
        char what[64] = "missing '";

        strncat(what, text, 16);
        strcat(what, "'");
        parse_bad(p, what, p->at);
    }
}

void parse_add_word(struct parser *p, struct words *list, struct word word)
{
    struct word *copy = arena_alloc(&p->an->arena, sizeof *copy);

    *copy = word;
    copy->next = NULL;
    if (list->last)
        list->last->next = copy;
    else
        list->first = copy;
    list->last = copy;
}

/* Redirections. */

static const struct {
    const char *text;
    enum redir_op op;
    int fd;
} redir_ops[] = {
    /* Longer ones first: the first that fits is taken. */
    { "<<<", REDIR_STRING, 0 }, { "<<-", REDIR_DOC, 0 }, { "&>>", REDIR_APPEND, -1 },
    { "<<", REDIR_DOC, 0 },     { "<>", REDIR_BOTH, 0 }, { "<&", REDIR_DUP, 0 },
    { ">>", REDIR_APPEND, 1 },  { ">&", REDIR_DUP, 1 },  { ">|", REDIR_OUT, 1 },
    { "&>", REDIR_OUT, -1 },    { "<", REDIR_IN, 0 },    { ">", REDIR_OUT, 1 },
};

/* The number or {name} right before the operator, and the operator. */
static bool redir_starts(const struct parser *p, size_t *ret_skip, int *ret_fd)
{
    size_t n = 0, name;

    *ret_fd = -2;
    if (parse_peek(p, 0) == '{') {
        name = lex_name(p->text + p->at + 1, p->len - p->at - 1);
        if (name && parse_peek(p, name + 1) == '}')
            n = name + 2;
        *ret_fd = 9;
    } else {
        while (n < 3 && parse_peek(p, n) >= '0' && parse_peek(p, n) <= '9')
            n++;
        if (n)
            *ret_fd = p->text[p->at + n - 1] - '0' + (n > 1 ? 10 : 0);
    }
    if (n == 0)
        *ret_fd = -2;
    *ret_skip = n;
    if (parse_peek(p, n) == '&')
        return n == 0 && parse_peek(p, 1) == '>';
    return (parse_peek(p, n) == '<' || parse_peek(p, n) == '>') && parse_peek(p, n + 1) != '(';
}

bool parse_take_redir(struct parser *p, struct node *node)
{
    struct redir *redir;
    size_t skip, i;
    int fd;

    if (!redir_starts(p, &skip, &fd))
        return false;
    redir = arena_alloc(&p->an->arena, sizeof *redir);
    p->at += skip;
    for (i = 0; i < ARRAY_LEN(redir_ops) - 1; i++)
        if (starts(p, redir_ops[i].text))
            break;
    redir->op = redir_ops[i].op;
    redir->fd = fd == -2 ? redir_ops[i].fd : fd;
    redir->tabs = strcmp(redir_ops[i].text, "<<-") == 0;
    p->at += strlen(redir_ops[i].text);
    parse_skip_blank(p);
    redir->target = parse_take_word(p);
    if (redir->target.len == 0)
        parse_bad(p, "redirection without a target", p->at);
    if (redir->op == REDIR_DOC && redir->target.len) {
        for (size_t k = 0; k < redir->target.len; k++)
            redir->literal |= strchr("'\"\\", redir->target.text[k]) != NULL;
        redir->next_doc = p->docs;
        p->docs = redir;
    }
    if (node->last_redir)
        node->last_redir->next = redir;
    else
        node->redirs = redir;
    node->last_redir = redir;
    return true;
}

void parse_take_redirs(struct parser *p, struct node *node)
{
    do
        parse_skip_blank(p);
    while (parse_take_redir(p, node));
}
