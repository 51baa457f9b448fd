#include "policy/code.h"

#include "base/own.h"
#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/judge.h"
#include "policy/lex.h"
#include "policy/paths.h"

#include <ctype.h>
#include <string.h>

#define STRINGS_MAX 16

struct scan {
    struct analysis *an;
    const char *language;
    const char *text;
    size_t len, at;
    const struct command *c;
    bool runs_commands, runs_code; /* names of such calls are in it */
};

enum call_kind { CALL_COMMAND, CALL_CODE, CALL_REMOVE, CALL_DECODE, CALL_OPEN };

static const struct {
    const char *name;
    enum call_kind kind;
} calls[] = {
    { "system", CALL_COMMAND },
    { "popen", CALL_COMMAND },
    { "Popen", CALL_COMMAND },
    { "run", CALL_COMMAND },
    { "call", CALL_COMMAND },
    { "check_output", CALL_COMMAND },
    { "check_call", CALL_COMMAND },
    { "getoutput", CALL_COMMAND },
    { "getstatusoutput", CALL_COMMAND },
    { "execSync", CALL_COMMAND },
    { "spawn", CALL_COMMAND },
    { "spawnSync", CALL_COMMAND },
    { "execFile", CALL_COMMAND },
    { "execFileSync", CALL_COMMAND },
    { "passthru", CALL_COMMAND },
    { "shell_exec", CALL_COMMAND },
    { "proc_open", CALL_COMMAND },
    { "execl", CALL_COMMAND },
    { "execlp", CALL_COMMAND },
    { "execv", CALL_COMMAND },
    { "execvp", CALL_COMMAND },
    { "execve", CALL_COMMAND },
    { "create_subprocess_shell", CALL_COMMAND },
    { "execute", CALL_COMMAND },
    { "exec", CALL_CODE },
    { "eval", CALL_CODE },
    { "compile", CALL_CODE },
    { "Function", CALL_CODE },
    { "rmtree", CALL_REMOVE },
    { "rmSync", CALL_REMOVE },
    { "rmdirSync", CALL_REMOVE },
    { "rm_rf", CALL_REMOVE },
    { "remove_entry_secure", CALL_REMOVE },
    { "b64decode", CALL_DECODE },
    { "base64_decode", CALL_DECODE },
    { "decode_base64", CALL_DECODE },
    { "decode64", CALL_DECODE },
    { "atob", CALL_DECODE },
    { "fromhex", CALL_DECODE },
    { "unhexlify", CALL_DECODE },
    { "from", CALL_DECODE },
    { "open", CALL_OPEN },
    { "writeFileSync", CALL_OPEN },
    { "readFileSync", CALL_OPEN },
};

static bool has(const struct scan *s, const char *word)
{
    return memmem(s->text, s->len, word, strlen(word)) != NULL;
}

/* Behind the string at `at`, whose plain text goes to *ret_text. False: no string starts here. */
static bool take_string(struct scan *s, struct field *ret)
{
    char quote = s->at < s->len ? s->text[s->at] : '\0';
    size_t from, to, wide;
    char *plain;

    if (quote != '\'' && quote != '"' && quote != '`')
        return false;
    wide = s->at + 2 < s->len && s->text[s->at + 1] == quote && s->text[s->at + 2] == quote ? 3 : 1;
    from = to = s->at + wide;
    while (to < s->len &&
           !(s->text[to] == quote && (wide == 1 || (to + 2 < s->len && s->text[to + 1] == quote &&
                                                    s->text[to + 2] == quote))))
        to += s->text[to] == '\\' ? 2 : 1;
    if (to > s->len)
        to = s->len;
    if (from > to)
        from = to;
    plain = arena_alloc(&s->an->arena, to - from + 1);
    spend(s->an, 1 + (to - from) / 4);
    ret->len = decode_escapes(s->text + from, to - from, plain);
    ret->text = plain;
    ret->at = s->c->at;
    s->at = to + wide < s->len ? to + wide : s->len;
    return true;
}

/* The strings of a call: f("a" + "b", ['c', "d"]). Anything else ends them. */
static void take_arguments(struct scan *s, struct fields *out)
{
    bool join = false;

    while (s->at < s->len && out->count < STRINGS_MAX) {
        char c = s->text[s->at];
        struct field field = { 0 };

        if (strchr(" \t\n([,", c) && c) {
            s->at++;
            join &= c == ' ';
        } else if (c == '+' || c == '.') {
            join = out->count > 0;
            s->at++;
        } else if (strchr("bfru", c) && s->at + 1 < s->len && strchr("'\"", s->text[s->at + 1])) {
            s->at++; /* b"..." and its kin */
        } else if (take_string(s, &field)) {
            if (join && out->count) {
                struct field *last = &out->at[out->count - 1];
                struct sink both = { 0 };

                sink_add(s->an, &both, last->text, last->len);
                sink_add(s->an, &both, field.text, field.len);
                last->text = sink_flow(s->an, &both).text;
                last->len = both.len;
            } else {
                fields_add(s->an, out, field);
            }
            join = false;
        } else {
            return;
        }
    }
}

static void run_command(struct scan *s, const struct fields *args)
{
    if (args->count == 1 || (args->count > 1 && strchr(args->at[0].text, ' ')))
        eval_text(s->an, args->at[0].text, args->at[0].len, s->c->at, NULL, NULL);
    else if (args->count > 1)
        command_run(s->an, args->at, args->count, s->c->at, NULL, NULL);
}

static void run_nested(struct scan *s, struct flow code)
{
    if (!enter(s->an, s->c->at))
        return;
    code_run(s->an, s->language, code, s->c);
    leave(s->an);
}

/* Decoded text is what the code around it does with it: code, a command, or both. */
static void run_decoded(struct scan *s, const struct field *arg)
{
    char *plain = arena_alloc(&s->an->arena, arg->len + 1);
    ssize_t n = decode_hex(arg->text, arg->len, plain);

    if (n < 0)
        n = decode_base64(arg->text, arg->len, plain);
    if (n <= 0 || memchr(plain, '\0', (size_t) n))
        return;
    plain[n] = '\0';
    if (s->runs_commands || s->runs_code)
        violate(s->an, RULE_ENCODED_RUN, s->c->at, s->c->shown);
    if (s->runs_commands)
        eval_text(s->an, plain, (size_t) n, s->c->at, NULL, NULL);
    if (s->runs_code)
        run_nested(s, (struct flow){ plain, (size_t) n, 0 });
}

static void run_remove(struct scan *s, const struct fields *args)
{
    struct field argv[3] = { { .text = "rm", .len = 2, .at = s->c->at },
                             { .text = "-rf", .len = 3, .at = s->c->at } };

    argv[2] = args->at[0];
    command_run(s->an, argv, 3, s->c->at, NULL, NULL);
}

static void run_call(struct scan *s, enum call_kind kind, const struct fields *args)
{
    const struct field *first = &args->at[0];
    bool writes;

    switch (kind) {
    case CALL_COMMAND:
        run_command(s, args);
        break;
    case CALL_CODE:
        /* In JavaScript, Perl, PHP and Ruby exec is a command, in Python it is code. */
        if (strcmp(s->language, "python") != 0)
            run_command(s, args);
        run_nested(s, (struct flow){ first->text, first->len, 0 });
        break;
    case CALL_REMOVE:
        run_remove(s, args);
        break;
    case CALL_DECODE:
        run_decoded(s, first);
        break;
    case CALL_OPEN:
        writes = args->count > 1 && strpbrk(args->at[1].text, "wa+>") && args->at[1].len < 8;
        if (path_like(first->text))
            judge_path(s->an, first, writes ? POLICY_WRITE : POLICY_READ, s->c->at, s->c->shown);
        break;
    }
}

/* At a name: whether it is a call that matters, with strings behind it. */
static void take_name(struct scan *s)
{
    size_t n = lex_name(s->text + s->at, s->len - s->at), name = s->at, after;
    struct fields args = { 0 };

    s->at += n;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (strlen(calls[i].name) != n || memcmp(calls[i].name, s->text + name, n) != 0)
            continue;
        while (s->at < s->len && s->text[s->at] == ' ')
            s->at++;
        if (s->at >= s->len || !strchr("('\"", s->text[s->at]))
            return;
        after = s->at;
        take_arguments(s, &args);
        if (args.count)
            run_call(s, calls[i].kind, &args);
        s->at = after + 1; /* calls inside its brackets count too */
        return;
    }
}

static void take_literal(struct scan *s)
{
    bool command = s->text[s->at] == '`' && strcmp(s->language, "javascript") != 0 &&
                   strcmp(s->language, "python") != 0;
    struct field field = { 0 };

    if (!take_string(s, &field))
        return;
    if (command)
        eval_text(s->an, field.text, field.len, field.at, NULL, NULL);
    else if ((*field.text == '/' || *field.text == '~') && path_like(field.text))
        judge_path(s->an, &field, POLICY_READ, s->c->at, s->c->shown);
}

/* Two lists of words, of which each must be met: what the code does as a whole. */
static const struct {
    enum rule rule;
    const char *one[10], *other[10];
} habits[] = {
    { RULE_REVERSE_SHELL,
      { "socket", "Socket", "fsockopen", "net.connect", "createConnection", "/inet/tcp" },
      { "/bin/sh", "/bin/bash", "pty.spawn", "dup2", "\"sh\"", "'sh'", "exec(\"sh", "cmd.exe" } },
    { RULE_FORK_BOMB,
      { "fork()", "fork while", "fork;", "{fork", "fork}" },
      { "while", "for(;;)", "loop" } },
    { RULE_DOWNLOAD_RUN,
      { "urlopen(", "requests.get(", "urllib", "http.get(", "fetch(", "LWP" },
      { "exec(", "eval(", "eval " } },
    { RULE_EXFILTRATION,
      { "os.environ", "process.env", "%ENV", "ENV.to_" },
      { "requests.post", "urlopen(", "http.request", "fetch(", "sendall(", "axios.post" } },
    { RULE_ROOT, { "setuid(0", "seteuid(0", "setresuid(0", "setreuid(0" }, { "(0" } },
    { RULE_KILL_ALL,
      { "os.kill(-1", "os.kill(1,", "process.kill(-1", "process.kill(1,", "kill 9, -1", "kill(-1",
        "kill 'KILL', -1" },
      { "kill" } },
    { RULE_CRED_METADATA, { "169.254.169.254", "metadata.google.internal" }, { "a", "6" } },
};

static bool has_one(const struct scan *s, const char *const words[10])
{
    for (size_t i = 0; i < 10 && words[i]; i++)
        if (has(s, words[i]))
            return true;
    return false;
}

static void judge_habits(struct scan *s)
{
    static const char *const network[10] = { "requests.", "urllib", "socket.", "http.client",
                                             "fetch(",    "axios",  "httpx",   "aiohttp",
                                             "Net::HTTP", "LWP" };

    spend(s->an, s->len / 2 + 1);
    for (size_t i = 0; i < ARRAY_LEN(habits); i++)
        if (has_one(s, habits[i].one) && has_one(s, habits[i].other))
            violate(s->an, habits[i].rule, s->c->at, s->c->shown);
    if (!s->an->policy->network && has_one(s, network))
        violate(s->an, RULE_NETWORK, s->c->at, s->c->shown);
    s->runs_commands = has(s, "system") || has(s, "popen") || has(s, "subprocess") ||
                       has(s, "child_process") || has(s, "exec(");
    s->runs_code = has(s, "exec(") || has(s, "eval(") || has(s, "eval ") || has(s, "compile(");
}

void code_run(struct analysis *an, const char *language, struct flow code, const struct command *c)
{
    struct scan s = { .an = an, .language = language, .text = code.text, .len = code.len, .c = c };

    judge_habits(&s);
    while (s.at < s.len) {
        char now = s.text[s.at];

        spend(an, 1);
        if (now == '#' && strcmp(language, "php") != 0 &&
            (s.at == 0 || isspace((unsigned char) s.text[s.at - 1]))) {
            while (s.at < s.len && s.text[s.at] != '\n')
                s.at++;
        } else if (now == '\'' || now == '"' || now == '`') {
            take_literal(&s);
        } else if (lex_name(s.text + s.at, 1)) {
            take_name(&s);
        } else {
            s.at++;
        }
    }
}
