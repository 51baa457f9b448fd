/* What programs print, as far as it can be known without running them. */
#include "policy/command.h"

#include "base/own.h"
#include "policy/decode.h"
#include "policy/judge.h"
#include "policy/paths.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The contents of the files that are named, or what is read. */
static struct flow input(struct analysis *an, const struct command *c, size_t from)
{
    struct sink all = { 0 };
    const struct field *operand;

    if (!command_operand(c, from))
        return c->in ? *c->in : flow_unknown(0);
    for (size_t i = from; (operand = command_operand(c, i)); i++) {
        const char *path = path_resolve(an, operand->text);
        const struct file *file = file_find(an, path);

        if (file) {
            sink_add(an, &all, file->content.text, file->content.len);
            all.taint |= file->content.taint;
        } else if (strcmp(operand->text, "-") == 0 && c->in) {
            sink_add(an, &all, c->in->text, c->in->len);
            all.taint |= c->in->taint;
        } else {
            sink_char(an, &all, UNKNOWN);
            if (judge_is_secret(path_rule(an, path, operand->glob, POLICY_READ)))
                all.taint |= TAINT_SECRET;
        }
    }
    return sink_flow(an, &all);
}

static void print(struct analysis *an, const struct command *c, struct flow flow)
{
    sink_add(an, c->out, flow.text, flow.len);
    c->out->taint |= flow.taint;
}

static void echo(struct analysis *an, const struct command *c)
{
    size_t from = 1;
    bool newline = true, escapes = false;
    struct flow text;
    char *plain;

    for (; from < c->argc; from++) {
        const char *arg = c->argv[from].text;

        if (arg[0] != '-' || !arg[1] || strspn(arg + 1, "neE") != strlen(arg + 1))
            break;
        newline &= !strchr(arg, 'n');
        escapes |= strchr(arg, 'e') != NULL;
    }
    text = command_join(an, c, from);
    if (escapes) {
        plain = arena_alloc(&an->arena, text.len + 1);
        text.len = decode_escapes(text.text, text.len, plain);
        text.text = plain;
    }
    print(an, c, text);
    if (newline)
        sink_char(an, c->out, '\n');
}

/* %s, %b, %c, %d, %%, %x and the escapes of the format; used again while arguments are left. */
static size_t printf_once(struct analysis *an, const struct command *c, const char *format,
                          size_t arg)
{
    for (const char *at = format; *at; at++) {
        struct field value = { .text = "" };
        char *plain;
        char kind;

        if (*at != '%') {
            sink_char(an, c->out, *at);
            continue;
        }
        at++;
        at += strspn(at, "-+ #0123456789.");
        kind = *at;
        if (!kind)
            break;
        if (kind == '%') {
            sink_char(an, c->out, '%');
            continue;
        }
        if (arg < c->argc)
            value = c->argv[arg++];
        c->out->taint |= value.taint;
        if (kind == 'b') {
            plain = arena_alloc(&an->arena, value.len + 1);
            sink_add(an, c->out, plain, decode_escapes(value.text, value.len, plain));
        } else if (kind == 'c') {
            sink_add(an, c->out, value.text, value.len ? 1 : 0);
        } else if (strchr("xXo", kind)) {
            char digits[24];

            (void) snprintf(digits, sizeof digits, kind == 'o' ? "%lo" : "%lx",
                            strtoul(value.text, NULL, 0));
            sink_add(an, c->out, digits, strlen(digits));
        } else {
            sink_add(an, c->out, value.text, value.len);
        }
    }
    return arg;
}

static void print_format(struct analysis *an, const struct command *c)
{
    size_t arg = 1, before;
    char *format;

    if (arg < c->argc && strcmp(c->argv[arg].text, "--") == 0)
        arg++;
    if (arg >= c->argc)
        return;
    format = arena_alloc(&an->arena, c->argv[arg].len + 1);
    format[decode_escapes(c->argv[arg].text, c->argv[arg].len, format)] = '\0';
    c->out->taint |= c->argv[arg].taint;
    /* Hidden on purpose: people do not write letters as numbers otherwise. */
    if (strstr(c->argv[arg].text, "\\x") || strstr(c->argv[arg].text, "\\1"))
        c->out->taint |= TAINT_DECODED;
    arg++;
    do {
        before = arg;
        spend(an, 8);
        arg = printf_once(an, c, format, arg);
    } while (arg < c->argc && arg > before);
}

/* printf -v NAME FORMAT ... */
static void set_format(struct analysis *an, const struct command *c)
{
    struct sink text = { 0 };
    struct command rest = *c;

    rest.argv += 2;
    rest.argc -= 2;
    rest.out = &text;
    print_format(an, &rest);
    var_set(an, c->argv[2].text, sink_flow(an, &text));
}

static void cat(struct analysis *an, const struct command *c)
{
    print(an, c, input(an, c, 0));
}

static void decoded(struct analysis *an, const struct command *c, struct flow in,
                    ssize_t (*decode)(const char *in, size_t len, char *out))
{
    char *plain = arena_alloc(&an->arena, in.len + 1);
    ssize_t n = is_unknown(in.text) ? -1 : decode(in.text, in.len, plain);

    c->out->taint |= in.taint | TAINT_DECODED;
    if (n < 0) {
        sink_char(an, c->out, UNKNOWN);
        return;
    }
    for (ssize_t i = 0; i < n; i++) /* a shell skips NULs too */
        if (plain[i])
            sink_char(an, c->out, plain[i]);
}

static void base64(struct analysis *an, const struct command *c)
{
    if (command_flag(c, 'd', "decode") || command_flag(c, 'D', NULL))
        decoded(an, c, input(an, c, 0), decode_base64);
    else
        print(an, c, flow_unknown(input(an, c, 0).taint));
}

static void openssl(struct analysis *an, const struct command *c)
{
    bool decodes = command_has(c, "-d") &&
                   (command_has(c, "base64") || command_has(c, "-base64") || command_has(c, "-a"));
    struct flow in = c->in ? *c->in : flow_unknown(0);

    if (decodes)
        decoded(an, c, in, decode_base64);
    else
        print(an, c, flow_unknown(in.taint | (command_has(c, "-d") ? TAINT_DECODED : 0)));
}

static void xxd(struct analysis *an, const struct command *c)
{
    if (command_flag(c, 'r', "revert"))
        decoded(an, c, input(an, c, 0), decode_hex);
    else
        print(an, c, flow_unknown(input(an, c, 0).taint));
}

static void unpack(struct analysis *an, const struct command *c)
{
    print(an, c, flow_unknown(input(an, c, 0).taint | TAINT_DECODED));
}

static void rev(struct analysis *an, const struct command *c)
{
    struct flow in = input(an, c, 0);
    char *turned = arena_text(&an->arena, in.text, in.len);

    for (size_t from = 0; from < in.len;) {
        size_t end = from + strcspn(turned + from, "\n");

        for (size_t a = from, b = end; a + 1 < b; a++, b--) {
            char kept = turned[a];

            turned[a] = turned[b - 1];
            turned[b - 1] = kept;
        }
        from = end + 1;
    }
    print(an, c, (struct flow){ turned, in.len, in.taint | TAINT_DECODED });
}

/* "a-z" and "A-Za-z" of tr, at most 256 characters. */
static size_t tr_set(const char *set, char out[256])
{
    size_t n = 0;

    for (; *set && n < 256; set++) {
        if (set[1] == '-' && set[2]) {
            for (int ch = (unsigned char) set[0]; ch <= (unsigned char) set[2] && n < 256; ch++)
                out[n++] = (char) ch;
            set += 2;
        } else {
            out[n++] = *set;
        }
    }
    return n;
}

static void tr(struct analysis *an, const struct command *c)
{
    const struct field *from = command_operand(c, 0), *to = command_operand(c, 1);
    struct flow in = c->in ? *c->in : flow_unknown(0);
    char a[256], b[256];
    size_t a_len, b_len;

    if (!from || is_unknown(in.text) || (!to && !command_flag(c, 'd', NULL)) ||
        strchr(from->text, '[')) {
        print(an, c, flow_unknown(in.taint));
        return;
    }
    a_len = tr_set(from->text, a);
    b_len = to ? tr_set(to->text, b) : 0;
    c->out->taint |= in.taint | (to && a_len > 2 ? TAINT_DECODED : 0);
    for (size_t i = 0; i < in.len; i++) {
        const char *hit = a_len ? memchr(a, in.text[i], a_len) : NULL;
        size_t at = hit ? (size_t) (hit - a) : 0;

        if (!hit)
            sink_char(an, c->out, in.text[i]);
        else if (b_len && b[at < b_len ? at : b_len - 1])
            sink_char(an, c->out, b[at < b_len ? at : b_len - 1]);
    }
}

/* s/a/b/ and s/a/b/g of plain texts; anything else is unknown. */
static void sed(struct analysis *an, const struct command *c)
{
    const struct field *script = command_operand(c, 0);
    struct flow in = input(an, c, 1);
    const char *from, *to, *end;
    struct sink out = { .taint = in.taint };

    if (!script || script->text[0] != 's' || !script->text[1] || is_unknown(in.text)) {
        print(an, c, flow_unknown(in.taint));
        return;
    }
    from = script->text + 2;
    to = strchr(from, script->text[1]);
    end = to ? strchr(to + 1, script->text[1]) : NULL;
    if (!end || to == from || memchr(from, '\\', (size_t) (end - from)) ||
        strcspn(from, ".*[^$&") < (size_t) (end - from)) {
        print(an, c, flow_unknown(in.taint));
        return;
    }
    for (const char *at = in.text; *at;) {
        const char *hit = memmem(at, strlen(at), from, (size_t) (to - from));

        spend(an, 4 + strlen(at) / 64);
        sink_add(an, &out, at, hit ? (size_t) (hit - at) : strlen(at));
        if (!hit)
            break;
        sink_add(an, &out, to + 1, (size_t) (end - to - 1));
        at = hit + (to - from);
    }
    print(an, c, sink_flow(an, &out));
}

/* Places below where it looks: "find /tmp | xargs rm" is about /tmp. */
static void find(struct analysis *an, const struct command *c)
{
    size_t i = 1;

    do {
        bool place = i < c->argc && c->argv[i].text[0] != '-';
        const char *text = place ? c->argv[i].text : ".";

        sink_add(an, c->out, text, strlen(text));
        if (text[0] && text[strlen(text) - 1] != '/')
            sink_char(an, c->out, '/');
        sink_char(an, c->out, UNKNOWN);
        sink_char(an, c->out, '\n');
        i++;
    } while (i < c->argc && c->argv[i].text[0] != '-');
}

static void which(struct analysis *an, const struct command *c)
{
    const struct field *name = command_operand(c, 0);

    if (name)
        print(an, c, (struct flow){ name->text, name->len, name->taint });
}

static void pwd(struct analysis *an, const struct command *c)
{
    print(an, c, *an->cwd ? flow_of(an->cwd) : flow_unknown(0));
}

static void environment(struct analysis *an, const struct command *c)
{
    print(an, c, flow_unknown(TAINT_SECRET));
}

static void download(struct analysis *an, const struct command *c)
{
    print(an, c, flow_unknown(TAINT_NET));
}

/* -o FILE, -O of curl and wget: the file is known to be downloaded from now on. */
static void note_download(struct analysis *an, const struct command *c)
{
    bool curl = strcmp(c->name, "curl") == 0;
    const struct field *to =
        curl ? command_value(an, c, 'o', "output") : command_value(an, c, 'O', "output-document");
    bool names_itself = curl ? command_flag(c, 'O', "remote-name") : !to;

    if (to && strcmp(to->text, "-") != 0)
        file_set(an, path_resolve(an, to->text), flow_unknown(TAINT_NET));
    if (!names_itself)
        return;
    for (size_t i = 1; i < c->argc; i++) {
        const char *slash = strstr(c->argv[i].text, "//") ? strrchr(c->argv[i].text, '/') : NULL;

        if (slash && slash[1])
            file_set(an, path_resolve(an, slash + 1), flow_unknown(TAINT_NET));
    }
}

/* The file that a copy ends up in: inside of its target where that is a directory. */
static const char *copied_to(struct analysis *an, const struct field *from, const struct field *to)
{
    const char *slash = strrchr(from->text, '/');
    struct sink path = { 0 };

    sink_add(an, &path, to->text, to->len);
    if (!strcmp(to->text, ".") || (to->len && to->text[to->len - 1] == '/')) {
        sink_char(an, &path, '/');
        sink_add(an, &path, slash ? slash + 1 : from->text, strlen(slash ? slash + 1 : from->text));
    }
    return path_resolve(an, sink_flow(an, &path).text);
}

/* cp, mv, tee: contents move on. */
static void note_copy(struct analysis *an, const struct command *c)
{
    const struct field *from = command_operand(c, 0), *to = command_operand(c, 1);
    const struct file *file;
    const char *path;

    if (strcmp(c->name, "tee") == 0) {
        if (from && c->in)
            file_set(an, path_resolve(an, from->text), *c->in);
        return;
    }
    if (!from || !to)
        return;
    path = path_resolve(an, from->text);
    file = file_find(an, path);
    if (file)
        file_set(an, copied_to(an, from, to), file->content);
    else if (judge_is_secret(path_rule(an, path, from->glob, POLICY_READ)))
        file_set(an, copied_to(an, from, to), flow_unknown(TAINT_SECRET));
}

static const struct {
    const char *name;
    void (*print)(struct analysis *an, const struct command *c);
} printers[] = {
    { "echo", echo },
    { "printf", print_format },
    { "cat", cat },
    { "tac", cat },
    { "head", cat },
    { "tail", cat },
    { "tee", cat },
    { "base64", base64 },
    { "openssl", openssl },
    { "xxd", xxd },
    { "rev", rev },
    { "tr", tr },
    { "sed", sed },
    { "find", find },
    { "which", which },
    { "command", which },
    { "pwd", pwd },
    { "env", environment },
    { "printenv", environment },
    { "history", environment },
    { "gunzip", unpack },
    { "zcat", unpack },
    { "gzip", unpack },
    { "uudecode", unpack },
    { "base32", unpack },
    { "bzcat", unpack },
    { "xzcat", unpack },
    { "curl", download },
    { "wget", download },
    { "fetch", download },
    { "aria2c", download },
    { "http", download },
    { "lynx", download },
    { "nc", download },
    { "ncat", download },
    { "netcat", download },
    { "telnet", download },
    { "socat", download },
    { "ftp", download },
    { "dig", download },
    { "nslookup", download },
};

void flow_run(struct analysis *an, const struct command *c)
{
    static const char *const silent[] = { "true",  "false", ":",      "test",  "[",
                                          "mkdir", "rm",    "touch",  "chmod", "chown",
                                          "sleep", "exit",  "return", "cp",    "mv" };
    struct flow in = c->in ? *c->in : flow_of("");

    if (strcmp(c->name, "curl") == 0 || strcmp(c->name, "wget") == 0)
        note_download(an, c);
    if (strcmp(c->name, "cp") == 0 || strcmp(c->name, "mv") == 0 || strcmp(c->name, "tee") == 0)
        note_copy(an, c);
    if (c->argc > 3 && strcmp(c->name, "printf") == 0 && strcmp(c->argv[1].text, "-v") == 0)
        set_format(an, c);
    if (!c->out)
        return;
    for (size_t i = 0; i < ARRAY_LEN(silent); i++)
        if (strcmp(c->name, silent[i]) == 0)
            return;
    for (size_t i = 0; i < ARRAY_LEN(printers); i++)
        if (strcmp(c->name, printers[i].name) == 0) {
            printers[i].print(an, c);
            return;
        }
    /* Filters pass on what taints, and so do files that they read. */
    print(an, c, flow_unknown(in.taint | (input(an, c, 0).taint & TAINT_SECRET)));
}
