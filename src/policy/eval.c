#include "policy/eval.h"

#include "base/own.h"
#include "policy/command.h"
#include "policy/expand.h"
#include "policy/judge.h"
#include "policy/paths.h"

#include <stdio.h>
#include <string.h>

#define FOR_VALUES_MAX 32 /* a loop over more runs once more, with an unknown value */

static const char *const arguments[] = { "1", "2", "3", "4", "5", "6", "7", "8", "9", "@", "*" };

/* Levels nest: what one kind of node needs on the stack must not be paid by all of them. */
#define OWN_FRAME __attribute__((noinline))

/* Where a node reads and writes after its redirections. */
struct io {
    const struct flow *in;
    struct sink *out;
    struct sink to_file;
    const char *path; /* that to_file is for; NULL: not redirected */
    bool append;
    bool socket; /* /dev/tcp is among them */
};

static const struct flow *keep_flow(struct analysis *an, struct flow flow)
{
    struct flow *kept = arena_alloc(&an->arena, sizeof *kept);

    *kept = flow;
    return kept;
}

static void redirect_in(struct analysis *an, struct io *io, const struct field *target,
                        const char *path)
{
    const struct file *file = file_find(an, path);
    enum rule rule = path_rule(an, path, target->glob, POLICY_READ);

    if (file)
        io->in = &file->content;
    else if (rule == RULE_DEV_TCP)
        io->in = keep_flow(an, flow_unknown(TAINT_NET));
    else
        io->in = keep_flow(an, flow_unknown(judge_is_secret(rule) ? TAINT_SECRET : 0));
}

static void redirect(struct analysis *an, const struct node *node, const struct redir *redir,
                     struct io *io)
{
    struct field target;
    const char *path;
    enum redir_op op = redir->op;
    int fd = redir->fd;

    if (op == REDIR_DOC) {
        io->in =
            keep_flow(an, redir->literal
                              ? (struct flow){ arena_text(&an->arena, redir->body, redir->body_len),
                                               redir->body_len, 0 }
                              : expand_doc(an, node->src, redir->body, redir->body_len));
        return;
    }
    target = expand_one(an, node->src, redir->target);
    if (op == REDIR_STRING) {
        io->in = keep_flow(an, (struct flow){ target.text, target.len, target.taint });
        return;
    }
    if (op == REDIR_DUP) {
        if (target.len == 0 || strspn(target.text, "0123456789-") == target.len)
            return;
        op = fd == 0 ? REDIR_IN : REDIR_OUT;
    }
    path = path_resolve(an, target.text);
    judge_path(an, &target, op == REDIR_IN ? POLICY_READ : POLICY_WRITE, target.at,
               text_shown(an, node->text, node->len));
    io->socket |= path_rule(an, path, false, POLICY_READ) == RULE_DEV_TCP;
    if ((op == REDIR_IN || op == REDIR_BOTH) && fd == 0)
        redirect_in(an, io, &target, path);
    if ((op == REDIR_OUT || op == REDIR_APPEND) && (fd == 1 || fd == -1)) {
        io->path = path;
        io->append = op == REDIR_APPEND;
    }
}

static void finish_io(struct analysis *an, struct io *io)
{
    const struct file *before;
    struct sink both = { 0 };

    if (!io->path)
        return;
    if (io->append && (before = file_find(an, io->path))) {
        both.taint = before->content.taint | io->to_file.taint;
        sink_add(an, &both, before->content.text, before->content.len);
        sink_add(an, &both, io->to_file.text ? io->to_file.text : "", io->to_file.len);
        file_set(an, io->path, sink_flow(an, &both));
        return;
    }
    file_set(an, io->path, sink_flow(an, &io->to_file));
}

static OWN_FRAME void eval_simple(struct analysis *an, const struct node *node,
                                  const struct flow *in, struct sink *out)
{
    struct span at = source_span(node->src, node->text, node->len);
    struct fields fields = { 0 };
    struct var *vars = an->vars;

    expand_words(an, node->src, &node->words, &fields);
    vars = an->vars;
    for (const struct word *word = node->assigns.first; word; word = word->next) {
        struct field value;
        const char *name = expand_assign(an, node->src, *word, &value);

        if (name)
            judge_assign(an, name, &value);
    }
    if (!fields.count)
        return;
    command_run(an, fields.at, fields.count, at, in, out);
    if (node->assigns.first)
        an->vars = vars;
}

/* Kinds of stages are counted per pipe: a shell next to a netcat is a shell for the network. */
static OWN_FRAME void eval_pipe(struct analysis *an, const struct node *node, const struct flow *in,
                                struct sink *out)
{
    bool piped = node->child && node->child->next;
    unsigned shells = an->pipe_shell, netcats = an->pipe_netcat;
    struct var *vars = an->vars;
    const struct flow *from = in;

    if (piped || node->background)
        an->parallel++;
    if (node->background && an->endless)
        an->loop_background = true;
    if (piped)
        an->pipe_shell = an->pipe_netcat = 0;
    for (const struct node *stage = node->child; stage; stage = stage->next) {
        struct sink *pipe;

        if (!stage->next) {
            eval_node(an, stage, from, out);
            break;
        }
        pipe = arena_alloc(&an->arena, sizeof *pipe);
        eval_node(an, stage, from, pipe);
        from = keep_flow(an, sink_flow(an, pipe));
    }
    if (piped) {
        if (an->pipe_shell && an->pipe_netcat)
            violate(an, RULE_REVERSE_SHELL, source_span(node->src, node->text, node->len),
                    text_shown(an, node->text, node->len));
        an->pipe_shell = shells;
        an->pipe_netcat = netcats;
        an->vars = vars;
    }
    if (piped || node->background)
        an->parallel--;
}

static OWN_FRAME void eval_for(struct analysis *an, const struct node *node, const struct flow *in,
                               struct sink *out)
{
    const char *name = arena_text(&an->arena, node->name.text, node->name.len);
    struct fields values = { 0 };
    size_t count;

    expand_words(an, node->src, &node->words, &values);
    count = values.count < FOR_VALUES_MAX ? values.count : FOR_VALUES_MAX;
    for (size_t i = 0; i < count; i++) {
        var_set(an, name, (struct flow){ values.at[i].text, values.at[i].len, values.at[i].taint });
        eval_node(an, node->child, in, out);
    }
    if (values.count == count && count)
        return;
    var_set(an, name, flow_unknown(0));
    eval_node(an, node->child, in, out);
}

static OWN_FRAME void eval_expansions(struct analysis *an, const struct node *node)
{
    struct fields ignored = { 0 };

    expand_words(an, node->src, &node->words, &ignored);
}

static OWN_FRAME void eval_loop(struct analysis *an, const struct node *node, const struct flow *in,
                                struct sink *out)
{
    bool background = an->loop_background, waits = an->loop_waits;

    eval_expansions(an, node);
    if (node->endless) {
        an->endless++;
        an->loop_background = an->loop_waits = false;
    }
    for (const struct node *child = node->child; child; child = child->next)
        eval_node(an, child, in, out);
    if (node->endless) {
        if (an->loop_background && !an->loop_waits)
            violate(an, RULE_FORK_BOMB, source_span(node->src, node->text, node->len),
                    text_shown(an, node->text, node->len));
        an->endless--;
        an->loop_background = background;
        an->loop_waits = waits;
    }
}

static void eval_body(struct analysis *an, const struct func *func, const struct flow *in,
                      struct sink *out)
{
    struct call call = { func->name, an->parallel, an->calls };

    an->calls = &call;
    eval_node(an, func->body, in, out);
    an->calls = call.outer;
}

/* A body is judged where it is defined, with unknown arguments, in case that no call names it by
 * its name; and again wherever it is called. */
static OWN_FRAME void eval_define(struct analysis *an, const struct node *node)
{
    struct func *func;
    struct word name_word = node->name;
    struct var *vars = an->vars;

    if (!node->child)
        return;
    func = arena_alloc(&an->arena, sizeof *func);
    func->name = expand_one(an, node->src, name_word).text;
    func->body = node->child;
    func->next = an->funcs;
    an->funcs = func;
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        var_set(an, arguments[i], flow_unknown(0));
    eval_body(an, func, NULL, NULL);
    an->vars = vars;
}

void eval_arguments(struct analysis *an, const struct field *argv, size_t argc)
{
    struct sink all = { 0 };
    char count[24];
    int len;

    for (size_t i = 1; i < argc; i++) {
        struct flow value = { argv[i].text, argv[i].len, argv[i].taint };

        if (i < 10) {
            char name = (char) ('0' + i);

            var_set(an, arena_text(&an->arena, &name, 1), value);
        }
        if (i > 1)
            sink_char(an, &all, ' ');
        sink_add(an, &all, value.text, value.len);
        all.taint |= value.taint;
    }
    for (size_t i = argc ? argc : 1; i < 10; i++) {
        char name = (char) ('0' + i);

        var_set(an, arena_text(&an->arena, &name, 1), flow_of(""));
    }
    var_set(an, "@", sink_flow(an, &all));
    var_set(an, "*", sink_flow(an, &all));
    len = snprintf(count, sizeof count, "%zu", argc ? argc - 1 : 0);
    var_set(an, "#", (struct flow){ arena_text(&an->arena, count, (size_t) len), (size_t) len, 0 });
}

bool eval_function(struct analysis *an, const struct field *argv, size_t argc,
                   const struct flow *in, struct sink *out)
{
    const struct func *func = an->funcs;
    struct flow before[ARRAY_LEN(arguments)];
    bool set;

    while (func && strcmp(func->name, argv[0].text) != 0) {
        spend(an, 1);
        func = func->next;
    }
    if (!func)
        return false;
    for (const struct call *call = an->calls; call; call = call->outer)
        if (strcmp(call->name, func->name) == 0) {
            /* Calls itself: each copy beside the other is what makes it a bomb. */
            if (an->parallel > call->parallel)
                violate(an, RULE_FORK_BOMB, argv[0].at, func->name);
            return true;
        }
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        before[i] = expand_var(an, arguments[i], &set);
    eval_arguments(an, argv, argc);
    eval_body(an, func, in, out);
    /* Variables that it set stay, its arguments do not. */
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        var_set(an, arguments[i], before[i]);
    return true;
}

static void eval_kind(struct analysis *an, const struct node *node, const struct flow *in,
                      struct sink *out)
{
    struct var *vars = an->vars;
    const char *cwd = an->cwd;

    switch (node->kind) {
    case NODE_SIMPLE:
        eval_simple(an, node, in, out);
        break;
    case NODE_WORDS:
        eval_expansions(an, node);
        break;
    case NODE_PIPE:
        eval_pipe(an, node, in, out);
        break;
    case NODE_LIST:
        for (const struct node *child = node->child; child; child = child->next)
            eval_node(an, child, in, out);
        break;
    case NODE_SUBSHELL:
        for (const struct node *child = node->child; child; child = child->next)
            eval_node(an, child, in, out);
        an->vars = vars;
        an->cwd = cwd;
        break;
    case NODE_LOOP:
        eval_loop(an, node, in, out);
        break;
    case NODE_FOR:
        eval_for(an, node, in, out);
        break;
    case NODE_FUNCTION:
        eval_define(an, node);
        break;
    }
}

/* "exec 3<>/dev/tcp/..." keeps the connection for everything that follows. */
static bool keeps_redirections(const struct node *node)
{
    const struct word *only = node->words.first;

    return node->kind == NODE_SIMPLE && only && !only->next && only->len == 4 &&
           memcmp(only->text, "exec", 4) == 0;
}

static OWN_FRAME void eval_redirected(struct analysis *an, const struct node *node,
                                      const struct flow *in, struct sink *out)
{
    struct io io = { .in = in, .out = out };

    for (const struct redir *redir = node->redirs; redir; redir = redir->next)
        redirect(an, node, redir, &io);
    if (io.path)
        io.out = &io.to_file;
    an->sockets += io.socket;
    eval_kind(an, node, io.in, io.out);
    if (io.socket && !keeps_redirections(node))
        an->sockets--;
    finish_io(an, &io);
}

void eval_node(struct analysis *an, const struct node *node, const struct flow *in,
               struct sink *out)
{
    /* Lists and pipes come between all others: they are not what nests. */
    bool counts = node->redirs || (node->kind != NODE_LIST && node->kind != NODE_PIPE);

    spend(an, 16);
    if (counts && !enter(an, source_span(node->src, node->text, node->len)))
        return;
    if (node->redirs)
        eval_redirected(an, node, in, out);
    else
        eval_kind(an, node, in, out);
    if (counts)
        leave(an);
}

void eval_source(struct analysis *an, const struct source *src, const struct flow *in,
                 struct sink *out)
{
    const struct node *tree;

    if (!enter(an, src->at))
        return;
    tree = parse_shell(an, src);
    eval_node(an, tree, in, out);
    leave(an);
}

void eval_text(struct analysis *an, const char *text, size_t len, struct span at,
               const struct flow *in, struct sink *out)
{
    struct source *src = arena_alloc(&an->arena, sizeof *src);

    *src = (struct source){ text, len, at, false };
    eval_source(an, src, in, out);
}
