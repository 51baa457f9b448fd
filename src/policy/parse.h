/* parse.h - inside the parser: the text, the place in it, and its small parts. */
#ifndef COVE_POLICY_PARSE_H
#define COVE_POLICY_PARSE_H

#include "policy/ast.h"

struct parser {
    struct analysis *an;
    const struct source *src;
    const char *text;
    size_t len, at;
    struct redir *docs; /* here-documents of this line, newest first */
};

static inline char parse_peek(const struct parser *p, size_t ahead)
{
    return p->at + ahead < p->len ? p->text[p->at + ahead] : '\0';
}

/* Notes that the text cannot be parsed here. */
void parse_bad(struct parser *p, const char *what, size_t at);
struct node *parse_node_new(struct parser *p, enum node_kind kind);
void parse_node_end(struct parser *p, struct node *node);
void parse_skip_blank(struct parser *p);
void parse_skip_lines(struct parser *p);
struct word parse_take_word(struct parser *p);
struct word parse_peek_word(struct parser *p);
bool parse_word_is(struct word word, const char *text);
bool parse_take_reserved(struct parser *p, const char *text);
void parse_expect(struct parser *p, const char *text);
void parse_add_word(struct parser *p, struct words *list, struct word word);
bool parse_take_redir(struct parser *p, struct node *node);
void parse_take_redirs(struct parser *p, struct node *node);

#endif
