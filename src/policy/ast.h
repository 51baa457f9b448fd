/* ast.h - shell text as a tree. Words stay as they were written; expand.c makes values of them. */
#ifndef COVE_POLICY_AST_H
#define COVE_POLICY_AST_H

#include "policy/analysis.h"

enum node_kind {
    NODE_SIMPLE,   /* words, assigns */
    NODE_WORDS,    /* [[ ]] and (( )): words are expanded, nothing is run */
    NODE_PIPE,     /* children are stages */
    NODE_LIST,     /* children one after the other; all branches of if and case */
    NODE_SUBSHELL, /* one child; its changes do not get out */
    NODE_LOOP,     /* while, until, select, for ((;;)): children condition and body */
    NODE_FOR,      /* name, words, one child */
    NODE_FUNCTION, /* name, one child */
};

struct word {
    const char *text; /* in the source */
    size_t len;
    struct word *next;
};

struct words {
    struct word *first, *last;
};

enum redir_op { REDIR_IN, REDIR_OUT, REDIR_APPEND, REDIR_BOTH, REDIR_DUP, REDIR_DOC, REDIR_STRING };

struct redir {
    enum redir_op op;
    int fd; /* -1: both 1 and 2 */
    struct word target;
    bool literal; /* here-document whose delimiter was quoted */
    bool tabs;    /* <<- */
    const char *body;
    size_t body_len;
    struct redir *next;
    struct redir *next_doc; /* waiting for its body */
};

struct node {
    enum node_kind kind;
    const struct source *src;
    const char *text; /* all of it, in the source */
    size_t len;
    struct words words, assigns;
    struct redir *redirs, *last_redir;
    struct word name;
    struct node *child, *last_child, *next;
    bool background;
    bool endless; /* a loop whose condition always holds */
};

/* Parses all of the source; the source must outlive the tree. What cannot be parsed is noted in the
 * report and left out. */
struct node *parse_shell(struct analysis *an, const struct source *src);

#endif
