/* Recursive descent over shell text, as deep as enter() allows. The parser always moves on: what it
 * does not understand it notes, skips, and parses what comes behind. */
#include "policy/parse.h"

#include "base/own.h"
#include "policy/lex.h"

#include <string.h>

/* Words that end a list, each only where a list waits for it. */
enum stop {
    STOP_PAREN = 1,
    STOP_BRACE = 2,
    STOP_THEN = 4,
    STOP_ELSE = 8, /* elif, else, fi */
    STOP_DO = 16,
    STOP_DONE = 32,
    STOP_CASE = 64, /* ;; and esac */
};

static struct node *parse_list(struct parser *p, unsigned stop);
static struct node *parse_pipe(struct parser *p);

static void add_child(struct node *node, struct node *child)
{
    if (node->last_child)
        node->last_child->next = child;
    else
        node->child = child;
    node->last_child = child;
}

/* Commands. */

static bool is_assignment(struct word word)
{
    size_t n = lex_name(word.text, word.len);

    if (!n || n == word.len)
        return false;
    if (word.text[n] == '[') {
        const char *close = memchr(word.text + n, ']', word.len - n);

        if (!close)
            return false;
        n = (size_t) (close - word.text) + 1;
    }
    if (n < word.len && word.text[n] == '+')
        n++;
    return n < word.len && word.text[n] == '=';
}

static bool at_function(const struct parser *p, size_t end)
{
    while (end < p->len && (p->text[end] == ' ' || p->text[end] == '\t'))
        end++;
    if (end >= p->len || p->text[end] != '(')
        return false;
    do
        end++;
    while (end < p->len && (p->text[end] == ' ' || p->text[end] == '\t'));
    return end < p->len && p->text[end] == ')';
}

static struct node *parse_function(struct parser *p, struct node *node, struct word name)
{
    node->kind = NODE_FUNCTION;
    node->name = name;
    parse_skip_blank(p);
    if (parse_peek(p, 0) == '(') {
        p->at++;
        parse_skip_blank(p);
        if (parse_peek(p, 0) == ')')
            p->at++;
    }
    parse_skip_lines(p);
    if (!enter(p->an, source_span(p->src, node->text, 1))) {
        p->at = p->len;
        return node;
    }
    node->child = parse_pipe(p);
    leave(p->an);
    return node;
}

static struct node *parse_simple(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_SIMPLE);

    for (;;) {
        struct word word;

        parse_skip_blank(p);
        if (parse_take_redir(p, node))
            continue;
        word = parse_take_word(p);
        if (word.len == 0)
            break;
        if (!node->words.first && is_assignment(word))
            parse_add_word(p, &node->assigns, word);
        else if (!node->words.first && !node->assigns.first && !node->redirs &&
                 at_function(p, p->at))
            return parse_function(p, node, word);
        else
            parse_add_word(p, &node->words, word);
    }
    return node;
}

/* [[ ... ]]: operators are no words, and nothing in it runs but substitutions. */
static struct node *parse_test(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_WORDS);

    p->at += 2;
    while (p->at < p->len) {
        struct word word;

        parse_skip_lines(p);
        word = parse_take_word(p);
        if (parse_word_is(word, "]]"))
            return node;
        if (word.len)
            parse_add_word(p, &node->words, word);
        else if (p->at < p->len)
            p->at++;
    }
    parse_bad(p, "[[ without ]]", p->at);
    return node;
}

/* (( ... )) and the head of for (( ... )). */
static void take_arithmetic(struct parser *p, struct node *node)
{
    bool open;
    size_t end = lex_close(p->text, p->len, p->at + 1, 'a', &open);

    if (open)
        parse_bad(p, "(( without ))", p->at);
    parse_add_word(p, &node->words, (struct word){ .text = p->text + p->at, .len = end - p->at });
    p->at = end < p->len ? end + 1 : end;
}

static struct node *parse_if(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_LIST);

    p->at += 2;
    for (;;) {
        add_child(node, parse_list(p, STOP_THEN));
        parse_expect(p, "then");
        add_child(node, parse_list(p, STOP_ELSE));
        if (parse_take_reserved(p, "elif"))
            continue;
        if (parse_take_reserved(p, "else"))
            add_child(node, parse_list(p, STOP_ELSE));
        parse_expect(p, "fi");
        return node;
    }
}

static void parse_body(struct parser *p, struct node *node)
{
    if (parse_take_reserved(p, "{")) { /* for (( ... )) { ... } */
        add_child(node, parse_list(p, STOP_BRACE));
        parse_expect(p, "}");
        return;
    }
    parse_expect(p, "do");
    add_child(node, parse_list(p, STOP_DONE));
    parse_expect(p, "done");
}

static bool always_true(const struct node *list)
{
    const struct node *pipe = list->child, *only;

    if (!pipe || pipe->next || !pipe->child || pipe->child->next)
        return false;
    only = pipe->child;
    if (only->kind == NODE_SIMPLE && only->words.first)
        return parse_word_is(*only->words.first, "true") || parse_word_is(*only->words.first, ":");
    return only->kind == NODE_WORDS && only->words.first &&
           (parse_word_is(*only->words.first, "((1)") || parse_word_is(*only->words.first, "1"));
}

static struct node *parse_while(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_LOOP), *condition;

    (void) parse_take_word(p);
    condition = parse_list(p, STOP_DO);
    node->endless = always_true(condition);
    add_child(node, condition);
    parse_body(p, node);
    return node;
}

static struct node *parse_for(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_FOR);

    (void) parse_take_word(p);
    parse_skip_blank(p);
    if (parse_peek(p, 0) == '(' && parse_peek(p, 1) == '(') {
        node->kind = NODE_LOOP;
        take_arithmetic(p, node);
        /* "for ((;;))", whatever stands left of the first ';' */
        for (size_t i = 0; i + 1 < node->words.first->len; i++)
            if (node->words.first->text[i] == ';') {
                do
                    i++;
                while (i < node->words.first->len && node->words.first->text[i] == ' ');
                node->endless = i < node->words.first->len && node->words.first->text[i] == ';';
                break;
            }
        parse_body(p, node);
        return node;
    }
    node->name = parse_take_word(p);
    parse_skip_lines(p);
    if (parse_take_reserved(p, "in"))
        for (;;) {
            struct word word;

            parse_skip_blank(p);
            word = parse_take_word(p);
            if (word.len == 0)
                break;
            parse_add_word(p, &node->words, word);
        }
    parse_body(p, node);
    return node;
}

static struct node *parse_case(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_LIST);
    struct node *subject = parse_node_new(p, NODE_WORDS);
    size_t before = (size_t) -1;

    p->at += 4;
    parse_skip_blank(p);
    parse_add_word(p, &subject->words, parse_take_word(p));
    add_child(node, subject);
    parse_expect(p, "in");
    while (p->at < p->len && !parse_take_reserved(p, "esac")) {
        if (p->at == before) {
            parse_bad(p, "case without esac", p->at);
            break;
        }
        before = p->at;
        /* The patterns, up to their bracket. */
        while (p->at < p->len && parse_peek(p, 0) != ')') {
            parse_skip_blank(p);
            if (parse_take_word(p).len == 0 && parse_peek(p, 0) != ')')
                p->at++;
        }
        if (p->at < p->len)
            p->at++;
        add_child(node, parse_list(p, STOP_CASE));
        parse_skip_blank(p);
        if (parse_peek(p, 0) == ';')
            p->at += 2;
        if (parse_peek(p, 0) == '&')
            p->at++;
        if (p->at > p->len)
            p->at = p->len;
    }
    return node;
}

static struct node *parse_brackets(struct parser *p, enum node_kind kind, unsigned stop)
{
    struct node *node = parse_node_new(p, kind);

    p->at++;
    add_child(node, parse_list(p, stop));
    if (stop == STOP_BRACE) {
        parse_expect(p, "}");
    } else if (parse_peek(p, 0) == ')') {
        p->at++;
    } else {
        parse_bad(p, "( without )", p->at);
    }
    return node;
}

static struct node *parse_keyword(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_SIMPLE);

    (void) parse_take_word(p);
    parse_skip_blank(p);
    return parse_function(p, node, parse_take_word(p));
}

static struct node *parse_group(struct parser *p)
{
    return parse_brackets(p, NODE_LIST, STOP_BRACE);
}

static const struct {
    const char *word;
    struct node *(*parse)(struct parser *p);
} compounds[] = {
    { "if", parse_if },   { "while", parse_while }, { "until", parse_while },
    { "for", parse_for }, { "select", parse_for },  { "case", parse_case },
    { "{", parse_group }, { "[[", parse_test },     { "function", parse_keyword },
};

static struct node *parse_parens(struct parser *p)
{
    struct node *node;
    bool open;
    size_t end;

    if (parse_peek(p, 1) == '(') {
        end = lex_close(p->text, p->len, p->at + 2, 'a', &open);
        if (!open && end + 1 < p->len && p->text[end + 1] == ')') {
            node = parse_node_new(p, NODE_WORDS);
            take_arithmetic(p, node);
            return node;
        }
    }
    return parse_brackets(p, NODE_SUBSHELL, STOP_PAREN);
}

static struct node *parse_compound(struct parser *p)
{
    struct word word = parse_peek_word(p);

    if (parse_peek(p, 0) == '(')
        return parse_parens(p);
    for (size_t i = 0; i < ARRAY_LEN(compounds); i++)
        if (parse_word_is(word, compounds[i].word))
            return compounds[i].parse(p);
    return NULL;
}

static struct node *parse_command(struct parser *p)
{
    size_t before = p->at;
    struct node *node;

    if (!enter(p->an, source_span(p->src, p->text + p->at, 1))) {
        p->at = p->len;
        return NULL;
    }
    node = parse_compound(p);
    if (node) {
        if (node->kind != NODE_FUNCTION)
            parse_take_redirs(p, node);
    } else {
        node = parse_simple(p);
    }
    parse_node_end(p, node);
    leave(p->an);
    if (p->at == before && p->at < p->len) {
        parse_bad(p, "unexpected character", p->at);
        p->at++;
        return NULL;
    }
    return node;
}

static struct node *parse_pipe(struct parser *p)
{
    struct node *node = parse_node_new(p, NODE_PIPE);

    for (;;) {
        struct node *stage;

        parse_skip_lines(p);
        while (parse_word_is(parse_peek_word(p), "!") ||
               parse_word_is(parse_peek_word(p), "coproc")) {
            (void) parse_take_word(p);
            parse_skip_blank(p);
        }
        stage = parse_command(p);
        if (stage)
            add_child(node, stage);
        parse_skip_blank(p);
        if (parse_peek(p, 0) != '|' || parse_peek(p, 1) == '|')
            break;
        p->at += parse_peek(p, 1) == '&' ? 2 : 1;
    }
    parse_node_end(p, node);
    return node;
}

static const struct {
    const char *word;
    enum stop stop;
} stop_words[] = {
    { "}", STOP_BRACE }, { "then", STOP_THEN }, { "elif", STOP_ELSE }, { "else", STOP_ELSE },
    { "fi", STOP_ELSE }, { "do", STOP_DO },     { "done", STOP_DONE }, { "esac", STOP_CASE },
};

/* Whether a list ends here. What no list waits for is noted and skipped. */
static bool at_stop(struct parser *p, unsigned stop)
{
    struct word word;

    if (parse_peek(p, 0) == ')' || (parse_peek(p, 0) == ';' && parse_peek(p, 1) == ';')) {
        if (stop & (parse_peek(p, 0) == ')' ? STOP_PAREN : STOP_CASE))
            return true;
        parse_bad(p, "unexpected character", p->at);
        p->at++;
        return false;
    }
    word = parse_peek_word(p);
    for (size_t i = 0; i < ARRAY_LEN(stop_words); i++) {
        if (!parse_word_is(word, stop_words[i].word))
            continue;
        if (stop & stop_words[i].stop)
            return true;
        parse_bad(p, "unexpected word", p->at);
        p->at += word.len;
        return false;
    }
    return false;
}

static struct node *parse_list(struct parser *p, unsigned stop)
{
    struct node *node = parse_node_new(p, NODE_LIST);

    for (;;) {
        size_t before;
        struct node *pipe;

        parse_skip_lines(p);
        while ((parse_peek(p, 0) == ';' && parse_peek(p, 1) != ';') || parse_peek(p, 0) == '&') {
            if (parse_peek(p, 0) == '&' && parse_peek(p, 1) == '>')
                break;
            p->at++;
            parse_skip_lines(p);
        }
        before = p->at;
        if (p->at >= p->len || at_stop(p, stop))
            break;
        if (p->at != before)
            continue;
        pipe = parse_pipe(p);
        add_child(node, pipe);
        if (parse_peek(p, 0) == '&' && parse_peek(p, 1) != '&')
            pipe->background = true;
        if ((parse_peek(p, 0) == '&' || parse_peek(p, 0) == '|') &&
            parse_peek(p, 1) == parse_peek(p, 0))
            p->at += 2;
        if (p->at == before)
            p->at++;
    }
    parse_node_end(p, node);
    return node;
}

struct node *parse_shell(struct analysis *an, const struct source *src)
{
    struct parser p = { .an = an, .src = src, .text = src->text, .len = src->len };
    struct node *node;

    spend(an, 1 + src->len / 2);
    node = parse_list(&p, 0);
    while (p.docs) { /* the text ended on the line of the operator */
        p.docs->body = p.text + p.len;
        p.docs = p.docs->next_doc;
    }
    return node;
}
