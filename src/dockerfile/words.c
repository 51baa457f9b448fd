#include "dockerfile/words.h"

#include "base/own.h"
#include "dockerfile/dockerfile.h"

#include <ctype.h>
#include <string.h>

#define DEPTH_MAX 16 /* of ${a:-${b:-…}} */
#define NAME_LEN  256

struct expansion {
    const char *at;
    char escape;
    bool raw; /* quotes are letters */
    words_get *get;
    void *arg;
    unsigned depth;
    size_t made;
};

static int put_text(struct expansion *x, FILE *out, const char *text, size_t len, struct err *err)
{
    x->made += len;
    if (x->made > DOCKERFILE_TEXT_MAX)
        return err_set(err, ERR_TOO_BIG, "a value longer than %d bytes", DOCKERFILE_TEXT_MAX);
    (void) fwrite(text, 1, len, out);
    return 0;
}

static int expand(struct expansion *x, char until, FILE *out, struct err *err);

/* The text of ${x:-text} up to its bracket, in memory of its own. */
static int read_other(struct expansion *x, char **ret, struct err *err)
{
    size_t size = 0, made = x->made;
    FILE *out = open_memstream(ret, &size);
    int r;

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for a value");
    r = x->depth++ < DEPTH_MAX
            ? expand(x, '}', out, err)
            : err_set(err, ERR_INVALID, "variables in one another, more than %d levels", DEPTH_MAX);
    x->depth--;
    x->made = made; /* it counts where it is used */
    if (fclose(out) != 0 && r == 0)
        r = err_set(err, ERR_NO_MEMORY, "no memory for a value");
    if (r == 0 && *x->at != '}')
        r = err_set(err, ERR_INVALID, "'${' without '}'");
    return r;
}

/* Behind ${name; x->at is at what follows the name. */
static int put_braced(struct expansion *x, const char *name, FILE *out, struct err *err)
{
    const char *value = x->get(x->arg, name);
    auto_free char *other = NULL;
    bool colon = *x->at == ':';
    char op = x->at[colon];
    bool set;

    if (*x->at == '}') {
        x->at++;
        return value ? put_text(x, out, value, strlen(value), err) : 0;
    }
    if (!op || !strchr("-+?", op))
        return err_set(err, ERR_INVALID,
                       op ? "${%.40s…: '%c' is not supported there" : "'${%.40s' without '}'", name,
                       op);
    x->at += 1 + colon;
    if (read_other(x, &other, err) < 0)
        return -1;
    x->at++;
    set = value && (!colon || value[0]);
    if (op == '?' && !set)
        return err_set(err, ERR_INVALID, "%.60s: %.100s", name,
                       other[0] ? other : "the variable has no value");
    if (op == '+')
        return set ? put_text(x, out, other, strlen(other), err) : 0;
    if (!set)
        value = op == '-' ? other : "";
    return put_text(x, out, value, strlen(value), err);
}

static int put_variable(struct expansion *x, FILE *out, struct err *err)
{
    bool braced = x->at[1] == '{';
    const char *begin = x->at + 1 + braced, *value;
    char name[NAME_LEN];
    size_t len = 0;

    while (isalnum((unsigned char) begin[len]) || begin[len] == '_')
        len++;
    if (len >= sizeof name)
        return err_set(err, ERR_INVALID, "a variable's name is longer than %d bytes", NAME_LEN - 1);
    if (len == 0 && braced)
        return err_set(err, ERR_INVALID, "'${' without a variable's name");
    if (len == 0) {
        x->at++;
        return put_text(x, out, "$", 1, err);
    }
    memcpy(name, begin, len);
    name[len] = '\0';
    x->at = begin + len;
    if (braced)
        return put_braced(x, name, out, err);
    value = x->get(x->arg, name);
    return value ? put_text(x, out, value, strlen(value), err) : 0;
}

static int put_single(struct expansion *x, FILE *out, struct err *err)
{
    const char *end = strchr(x->at + 1, '\'');
    int r;

    if (!end)
        return err_set(err, ERR_INVALID, "a quote ' without its end");
    r = put_text(x, out, x->at + 1, (size_t) (end - x->at - 1), err);
    x->at = end + 1;
    return r;
}

static int put_double(struct expansion *x, FILE *out, struct err *err)
{
    int r = 0;

    for (x->at++; r == 0 && *x->at != '"';) {
        if (!*x->at)
            return err_set(err, ERR_INVALID, "a quote \" without its end");
        if (*x->at == '$') {
            r = put_variable(x, out, err);
            continue;
        }
        if (*x->at == x->escape && x->at[1] && strchr("\"$", x->at[1]))
            x->at++;
        else if (*x->at == x->escape && x->at[1] == x->escape)
            x->at++;
        r = put_text(x, out, x->at++, 1, err);
    }
    x->at += r == 0;
    return r;
}

/* Up to the letter `until`, or the end. */
static int expand(struct expansion *x, char until, FILE *out, struct err *err)
{
    int r = 0;

    while (r == 0 && *x->at && *x->at != until) {
        if (*x->at == '$') {
            r = put_variable(x, out, err);
        } else if (*x->at == '\'' && !x->raw) {
            r = put_single(x, out, err);
        } else if (*x->at == '"' && !x->raw) {
            r = put_double(x, out, err);
        } else if (*x->at == x->escape && x->at[1] && (!x->raw || x->at[1] == '$')) {
            r = put_text(x, out, x->at + 1, 1, err);
            x->at += 2;
        } else {
            r = put_text(x, out, x->at++, 1, err);
        }
    }
    return r;
}

static int run(struct expansion *x, char **ret, struct err *err)
{
    auto_free char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int r;

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for a value");
    r = expand(x, '\0', out, err);
    if (fclose(out) != 0 && r == 0)
        r = err_set(err, ERR_NO_MEMORY, "no memory for a value");
    if (r == 0)
        *ret = take_ptr(&text);
    return r;
}

int words_expand(const char *text, char escape, words_get *get, void *arg, char **ret,
                 struct err *err)
{
    struct expansion x = { .at = text, .escape = escape, .get = get, .arg = arg };

    return run(&x, ret, err);
}

int words_expand_text(const char *text, char escape, words_get *get, void *arg, char **ret,
                      struct err *err)
{
    struct expansion x = { .at = text, .escape = escape, .raw = true, .get = get, .arg = arg };

    return run(&x, ret, err);
}

int words_split(const char *text, char escape, json_t **ret, struct err *err)
{
    json_t *array = json_array();

    text += strspn(text, " \t");
    while (*text) {
        const char *word = text;
        char quote = '\0';

        for (; *text && (quote || (*text != ' ' && *text != '\t')); text++) {
            if (quote ? *text == quote : *text == '"' || *text == '\'')
                quote = quote ? '\0' : *text;
            else if (*text == escape && text[1] && quote != '\'')
                text++;
        }
        if (quote) {
            json_decref(array);
            return err_set(err, ERR_INVALID, "a quote %c without its end", quote);
        }
        (void) json_array_append_new(array, json_stringn(word, (size_t) (text - word)));
        text += strspn(text, " \t");
    }
    *ret = array;
    return 0;
}
