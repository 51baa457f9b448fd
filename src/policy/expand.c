#include "policy/expand.h"

#include "base/own.h"
#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/lex.h"
#include "policy/param.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct expander {
    struct analysis *an;
    const struct source *src; /* that `text` lies in */
    const char *text;
    size_t len, at;
    struct span span;
    struct fields *out; /* NULL: one value, no splitting */
    struct sink now;    /* the field that is being made */
    bool started;       /* it exists even when empty */
    bool glob;
};

static const struct {
    const char *name, *value;
} usual_vars[] = {
    { "IFS", " \t\n" },
    { "PATH", "/opt/cove/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
    { "SHELL", "/bin/bash" },
    { "BASH", "/bin/bash" },
    { "#", "0" },
    { "?", "0" },
    { "0", "bash" },
    { "@", "" },
    { "*", "" },
    { "-", "hB" },
};

struct flow expand_var(struct analysis *an, const char *name, bool *ret_set)
{
    const struct var *var = var_find(an, name);

    *ret_set = true;
    if (var)
        return var->value;
    if (strcmp(name, "HOME") == 0)
        return flow_of(an->policy->home);
    if (strcmp(name, "PWD") == 0 && *an->cwd)
        return flow_of(an->cwd);
    for (size_t i = 0; i < ARRAY_LEN(usual_vars); i++)
        if (strcmp(name, usual_vars[i].name) == 0)
            return flow_of(usual_vars[i].value);
    *ret_set = false;
    for (const char *c = name; *c; c++)
        if (islower((unsigned char) *c))
            return flow_of("");
    return isdigit((unsigned char) *name) ? flow_of("") : flow_unknown(0);
}

static void finish_field(struct expander *e)
{
    struct flow flow = sink_flow(e->an, &e->now);

    if (e->started || flow.len)
        fields_add(e->an, e->out,
                   (struct field){ flow.text, flow.len, e->glob, flow.taint, e->span });
    e->now = (struct sink){ 0 };
    e->started = e->glob = false;
}

static void add_value(struct expander *e, struct flow value, bool quoted)
{
    const char *ifs;
    bool set;

    e->now.taint |= value.taint;
    if (quoted || !e->out) {
        e->started |= quoted;
        sink_add(e->an, &e->now, value.text, value.len);
        return;
    }
    ifs = expand_var(e->an, "IFS", &set).text;
    spend(e->an, value.len / 2);
    for (size_t i = 0; i < value.len; i++) {
        if (strchr(ifs, value.text[i])) {
            finish_field(e);
            e->now.taint = value.taint;
            continue;
        }
        e->glob |= strchr("*?[", value.text[i]) != NULL;
        sink_char(e->an, &e->now, value.text[i]);
    }
}

static struct source slice(const struct expander *e, size_t from, size_t to)
{
    return (struct source){
        .text = e->text + from,
        .len = to - from,
        .at = source_span(e->src, e->text + from, to - from),
        .exact = e->src->exact,
    };
}

/* What a command prints, without the newlines at its end. Its changes stay inside. */
static struct flow substitute(struct analysis *an, const struct source *src)
{
    struct source *kept = arena_alloc(&an->arena, sizeof *kept);
    const char *cwd = an->cwd;
    struct var *vars = an->vars;
    struct sink out = { 0 };
    struct flow value;

    *kept = *src;
    eval_source(an, kept, NULL, &out);
    an->vars = vars;
    an->cwd = cwd;
    while (out.len && out.text[out.len - 1] == '\n')
        out.text[--out.len] = '\0';
    value = sink_flow(an, &out);
    return value;
}

static void backticks(struct expander *e, bool quoted)
{
    bool open;
    size_t end = lex_close(e->text, e->len, e->at + 1, '`', &open);
    struct source src = slice(e, e->at + 1, end);

    if (memchr(src.text, '\\', src.len)) {
        char *plain = arena_text(&e->an->arena, src.text, src.len);
        size_t n = 0;

        for (size_t i = 0; i < src.len; i++) {
            if (plain[i] == '\\' && i + 1 < src.len && strchr("\\`$", plain[i + 1]))
                i++;
            plain[n++] = plain[i];
        }
        plain[n] = '\0';
        src.text = plain;
        src.len = n;
        src.exact = false;
    }
    e->at = end < e->len ? end + 1 : end;
    add_value(e, substitute(e->an, &src), quoted);
}

/* <(...) is a file with what the command prints; >(...) is run for its own sake. */
static void process(struct expander *e)
{
    bool open, reads = e->text[e->at] == '<';
    size_t end = lex_close(e->text, e->len, e->at + 2, ')', &open);
    struct source src = slice(e, e->at + 2, end);
    struct flow content;
    char path[32];
    char *kept;
    int len;

    e->an->parallel++; /* unlike $(...), the shell does not wait for it */
    content = substitute(e->an, &src);
    e->an->parallel--;
    len = snprintf(path, sizeof path, "/dev/fd/%u", 63 + e->an->fd_count++);
    kept = arena_text(&e->an->arena, path, (size_t) len);
    if (reads)
        file_set(e->an, kept, content);
    e->at = end < e->len ? end + 1 : end;
    add_value(e, (struct flow){ kept, (size_t) len, 0 }, true);
}

/* $((...)): a number when it is one, else unknown; substitutions in it are run. */
static bool arithmetic(struct expander *e)
{
    bool open;
    size_t inner = lex_close(e->text, e->len, e->at + 3, 'a', &open);
    struct flow value;

    if (open || inner + 1 >= e->len || e->text[inner + 1] != ')')
        return false;
    value = expand_doc(e->an, e->src, e->text + e->at + 3, inner - e->at - 3);
    if (value.len && strspn(value.text, "0123456789") == value.len)
        sink_add(e->an, &e->now, value.text, value.len);
    else
        sink_char(e->an, &e->now, UNKNOWN);
    e->at = inner + 2;
    return true;
}

static void parameter(struct expander *e, bool quoted)
{
    bool open, array = false;
    size_t end = lex_close(e->text, e->len, e->at + 2, '}', &open);
    struct flow value = { "", 0, 0 };

    if (enter(e->an, e->span)) {
        value = param_value(e->an, e->src, e->text + e->at + 2, end - e->at - 2, &array);
        leave(e->an);
    }
    e->at = end < e->len ? end + 1 : end;
    add_value(e, value, quoted && !array);
}

static void dollar(struct expander *e, bool quoted)
{
    char next = e->at + 1 < e->len ? e->text[e->at + 1] : '\0';
    size_t n = lex_name(e->text + e->at + 1, e->len - e->at - 1);
    bool open, set;

    if (!n && (isdigit((unsigned char) next) || (next && strchr("@*#?$!-", next))))
        n = 1;
    if (n) {
        char *name = arena_text(&e->an->arena, e->text + e->at + 1, n);

        e->at += 1 + n;
        add_value(e, expand_var(e->an, name, &set), quoted && next != '@');
    } else if (next == '{') {
        parameter(e, quoted);
    } else if (next == '(') {
        size_t end;
        struct source src;

        if (e->at + 2 < e->len && e->text[e->at + 2] == '(' && arithmetic(e))
            return;
        end = lex_close(e->text, e->len, e->at + 2, ')', &open);
        src = slice(e, e->at + 2, end);
        e->at = end < e->len ? end + 1 : end;
        add_value(e, substitute(e->an, &src), quoted);
    } else if (next == '\'' && !quoted) {
        size_t from = e->at + 2, to = from;
        char *plain;

        while (to < e->len && e->text[to] != '\'')
            to += e->text[to] == '\\' ? 2 : 1;
        if (to > e->len)
            to = e->len;
        plain = arena_alloc(&e->an->arena, to - from + 1);
        e->started = true;
        sink_add(e->an, &e->now, plain, decode_escapes(e->text + from, to - from, plain));
        e->at = to < e->len ? to + 1 : to;
    } else {
        if (next != '"' || quoted)
            sink_char(e->an, &e->now, '$');
        e->at++;
    }
}

static void double_quotes(struct expander *e)
{
    e->started = true;
    e->at++;
    while (e->at < e->len && e->text[e->at] != '"') {
        char c = e->text[e->at];

        if (c == '\\' && e->at + 1 < e->len) {
            if (!strchr("$`\"\\\n", e->text[e->at + 1]))
                sink_char(e->an, &e->now, '\\');
            if (e->text[e->at + 1] != '\n')
                sink_char(e->an, &e->now, e->text[e->at + 1]);
            e->at += 2;
        } else if (c == '$') {
            dollar(e, true);
        } else if (c == '`') {
            backticks(e, true);
        } else {
            size_t n = strcspn(e->text + e->at, "\\$`\"");

            if (n == 0 || n > e->len - e->at)
                n = n ? e->len - e->at : 1;
            sink_add(e->an, &e->now, e->text + e->at, n);
            e->at += n;
        }
    }
    if (e->at < e->len)
        e->at++;
}

static void single_quotes(struct expander *e)
{
    const char *from = e->text + e->at + 1;
    size_t left = e->len - e->at - 1;
    const char *close = memchr(from, '\'', left);
    size_t n = close ? (size_t) (close - from) : left;

    e->started = true;
    sink_add(e->an, &e->now, from, n);
    e->at += 1 + n + (close ? 1 : 0);
}

/* ~ and ~name at the start of a word. */
static void tilde(struct expander *e)
{
    size_t n = 0;
    const char *name = e->text + e->at + 1;

    while (e->at + 1 + n < e->len && (isalnum((unsigned char) name[n]) || strchr("_-", name[n])))
        n++;
    if (e->at + 1 + n < e->len && name[n] != '/' && name[n] != ':') {
        sink_char(e->an, &e->now, '~');
        e->at++;
        return;
    }
    if (n == 0) {
        sink_add(e->an, &e->now, e->an->policy->home, strlen(e->an->policy->home));
    } else if (n == 4 && memcmp(name, "root", 4) == 0) {
        sink_add(e->an, &e->now, "/root", 5);
    } else {
        sink_add(e->an, &e->now, "/home/", 6);
        sink_add(e->an, &e->now, name, n);
    }
    e->at += 1 + n;
}

static void expand_rest(struct expander *e)
{
    while (e->at < e->len) {
        char c = e->text[e->at];
        bool first = e->at == 0;

        if (c == '\'') {
            single_quotes(e);
        } else if (c == '"') {
            double_quotes(e);
        } else if (c == '$') {
            dollar(e, false);
        } else if (c == '`') {
            backticks(e, false);
        } else if (c == '\\') {
            if (e->at + 1 < e->len && e->text[e->at + 1] != '\n') {
                e->started = true;
                sink_char(e->an, &e->now, e->text[e->at + 1]);
            }
            e->at += 2;
        } else if (c == '~' && (first || e->text[e->at - 1] == '=')) {
            tilde(e);
        } else if (first && (c == '<' || c == '>') && e->len > 1 && e->text[1] == '(') {
            process(e);
        } else {
            e->glob |= strchr("*?[", c) != NULL;
            sink_char(e->an, &e->now, c);
            e->at++;
        }
    }
}

void expand_words(struct analysis *an, const struct source *src, const struct words *words,
                  struct fields *out)
{
    for (const struct word *word = words->first; word; word = word->next) {
        struct span span = source_span(src, word->text, word->len);
        struct words texts = { 0 };
        struct source *made;

        brace_expand(an, *word, &texts);
        for (const struct word *it = texts.first; it; it = it->next) {
            struct expander e = {
                .an = an, .src = src, .text = it->text, .len = it->len, .span = span, .out = out
            };

            if (it->text != word->text) {
                made = arena_alloc(&an->arena, sizeof *made);
                *made = (struct source){ it->text, it->len, span, false };
                e.src = made;
            }
            expand_rest(&e);
            finish_field(&e);
        }
    }
}

struct field expand_one(struct analysis *an, const struct source *src, struct word word)
{
    struct expander e = { .an = an,
                          .src = src,
                          .text = word.text,
                          .len = word.len,
                          .span = source_span(src, word.text, word.len) };
    struct flow flow;

    expand_rest(&e);
    flow = sink_flow(an, &e.now);
    return (struct field){ flow.text, flow.len, e.glob, flow.taint, e.span };
}

struct flow expand_doc(struct analysis *an, const struct source *src, const char *text, size_t len)
{
    struct expander e = {
        .an = an, .src = src, .text = text, .len = len, .span = source_span(src, text, len)
    };

    while (e.at < e.len) {
        char c = text[e.at];

        if (c == '\\' && e.at + 1 < len && strchr("$`\\\n", text[e.at + 1])) {
            if (text[e.at + 1] != '\n')
                sink_char(an, &e.now, text[e.at + 1]);
            e.at += 2;
        } else if (c == '$') {
            dollar(&e, true);
        } else if (c == '`') {
            backticks(&e, true);
        } else {
            sink_char(an, &e.now, c);
            e.at++;
        }
    }
    return sink_flow(an, &e.now);
}

/* "(a b c)": kept as its words with blanks between. */
static struct flow array_value(struct analysis *an, const struct source *src, struct word word)
{
    struct fields fields = { 0 };
    struct sink all = { 0 };
    size_t at = 1;

    while (at < word.len) {
        struct words one = { 0 };
        struct word item = { .text = word.text + at };
        bool open;

        item.len = lex_word_end(word.text, word.len, at, &open) - at;
        if (item.len == 0) {
            at++;
            continue;
        }
        one.first = one.last = &item;
        expand_words(an, src, &one, &fields);
        at += item.len;
    }
    for (size_t i = 0; i < fields.count; i++) {
        if (i)
            sink_char(an, &all, ' ');
        sink_add(an, &all, fields.at[i].text, fields.at[i].len);
        all.taint |= fields.at[i].taint;
    }
    return sink_flow(an, &all);
}

const char *expand_assign(struct analysis *an, const struct source *src, struct word word,
                          struct field *ret_value)
{
    size_t n = lex_name(word.text, word.len);
    const char *equals = memchr(word.text, '=', word.len);
    struct word value;
    struct flow flow;
    char *name;
    bool set;

    if (!n || !equals)
        return NULL;
    name = arena_text(&an->arena, word.text, n);
    value.text = equals + 1;
    value.len = word.len - (size_t) (value.text - word.text);
    if (value.len && *value.text == '(') {
        flow = array_value(an, src, value);
        *ret_value = (struct field){ flow.text, flow.len, false, flow.taint, { 0, 0 } };
    } else {
        *ret_value = expand_one(an, src, value);
    }
    ret_value->at = source_span(src, word.text, word.len);
    flow = (struct flow){ ret_value->text, ret_value->len, ret_value->taint };
    if (equals[-1] == '+') {
        struct flow before = expand_var(an, name, &set);
        struct sink both = { .taint = flow.taint | before.taint };

        sink_add(an, &both, before.text, before.len);
        if (value.len && *value.text == '(')
            sink_char(an, &both, ' ');
        sink_add(an, &both, flow.text, flow.len);
        flow = sink_flow(an, &both);
    }
    var_set(an, name, flow);
    return name;
}
