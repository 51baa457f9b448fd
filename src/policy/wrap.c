/* Programs that run other programs. A row says how to find the inner command: which options take a
 * value, how many operands stand before it, and what form it has. */
#include "policy/command.h"

#include "base/own.h"
#include "policy/eval.h"
#include "policy/judge.h"
#include "policy/lex.h"
#include "policy/paths.h"

#include <string.h>

enum form {
    FORM_ARGV,  /* the rest is the command */
    FORM_TEXT,  /* the rest, joined, is shell text */
    FORM_XARGS, /* the rest, and what is read, is the command */
};

static const struct wrapper {
    const char *name;
    const char *valued; /* short options that take a value */
    const char *words;  /* long ones, blanks between */
    unsigned operands;  /* before the command */
    enum form form;
    char text_option; /* whose value is shell text, such as -c; 0: none */
    bool assignments; /* NAME=value before the command */
} wrappers[] = {
    /* clang-format off */
    { "env",         "auCS",           " argv0 unset chdir split-string ", 0, FORM_ARGV, 'S', true },
    { "sudo",        "acughpCDRTrtU",  " user group prompt chdir host chroot close-from role type command-timeout other-user "
                                       "login-class auth-type ",       0, FORM_ARGV,  0,   true },
    { "doas",        "auC",            "",                             0, FORM_ARGV,  0,   false },
    { "su",          "cgGsw",          " command shell group ",        1, FORM_ARGV,  'c', false },
    { "runuser",     "cugGs",          " command user shell group ",   0, FORM_ARGV,  'c', false },
    { "pkexec",      "u",              " user ",                       0, FORM_ARGV,  0,   false },
    { "xargs",       "ILnPsdEa",       " max-args max-procs max-chars arg-file delimiter process-slot-var ", 0, FORM_XARGS, 0, false },
    { "parallel",    "jaIN",           " jobs arg-file ",              0, FORM_XARGS, 0,   false },
    { "nohup",       "",               "",                             0, FORM_ARGV,  0,   false },
    { "time",        "fo",             " format output ",              0, FORM_ARGV,  0,   false },
    { "nice",        "n",              " adjustment ",                 0, FORM_ARGV,  0,   false },
    { "ionice",      "cnpPu",          " class classdata pid pgid uid ", 0, FORM_ARGV,  0,   false },
    { "chrt",        "TPD",            "",                             1, FORM_ARGV,  0,   false },
    { "taskset",     "",               "",                             1, FORM_ARGV,  0,   false },
    { "numactl",     "imNCpPwW",       " interleave membind cpunodebind physcpubind preferred preferred-many ", 0, FORM_ARGV,  0,   false },
    { "timeout",     "ks",             " kill-after signal ",          1, FORM_ARGV,  0,   false },
    { "stdbuf",      "ioe",            " input output error ",         0, FORM_ARGV,  0,   false },
    { "setsid",      "",               "",                             0, FORM_ARGV,  0,   false },
    { "setpriv",     "",               " ruid euid reuid rgid egid regid groups bounding-set inh-caps ambient-caps securebits pdeathsig "
                                       "selinux-label apparmor-profile ", 0, FORM_ARGV, 0, false },
    { "busybox",     "",               "",                             0, FORM_ARGV,  0,   false },
    { "toybox",      "",               "",                             0, FORM_ARGV,  0,   false },
    { "exec",        "a",              "",                             0, FORM_ARGV,  0,   false },
    { "builtin",     "",               "",                             0, FORM_ARGV,  0,   false },
    { "flock",       "wE",             " timeout wait conflict-exit-code ", 1, FORM_ARGV,  'c', false },
    { "strace",      "abeEIoOpPsSuUX", "",                             0, FORM_ARGV,  0,   false },
    { "ltrace",      "aeFlnopsuwx",    "",                             0, FORM_ARGV,  0,   false },
    { "watch",       "nq",             " interval ",                   0, FORM_TEXT,  0,   false },
    { "unshare",     "SGRw",           " root wd setuid setgid ",      0, FORM_ARGV,  0,   false },
    { "nsenter",     "tSGrw",          " target setuid setgid root wd ", 0, FORM_ARGV, 0,  false },
    { "chroot",      "",               " userspec groups ",            1, FORM_ARGV,  0,   false },
    { "proot",       "rbwq",           "",                             0, FORM_ARGV,  0,   false },
    { "fakeroot",    "lsbi",           "",                             0, FORM_ARGV,  0,   false },
    { "script",      "cEIOTBm",        " command ",                    9, FORM_ARGV,  'c', false },
    { "unbuffer",    "",               "",                             0, FORM_ARGV,  0,   false },
    { "sshpass",     "pfde",           "",                             0, FORM_ARGV,  0,   false },
    { "ssh",         "bBcDEeFIiJLlmOopQRSWw", "",                      1, FORM_TEXT,  0,   false },
    { "systemd-run", "pMGut",          " unit property on-calendar on-active uid ", 0, FORM_ARGV, 0, false },
    { "daemonize",   "eolpu",          "",                             0, FORM_ARGV,  0,   false },
    { "dbus-launch", "",               "",                             0, FORM_ARGV,  0,   false },
    { "xvfb-run",    "efnps",          "",                             0, FORM_ARGV,  0,   false },
    { "catchsegv",   "",               "",                             0, FORM_ARGV,  0,   false },
    { "entr",        "",               "",                             0, FORM_ARGV,  0,   false },
    /* clang-format on */
};

/* Long options may be cut short: --chd is --chdir. */
static bool begins_word_in(const char *list, const char *word, size_t len)
{
    for (const char *at = list; (at = strchr(at, ' ')) && at[1]; at++)
        if (strncmp(at + 1, word, len) == 0)
            return true;
    return false;
}

/* How many arguments an option takes: itself, and its value when that stands apart. */
static size_t option_size(const struct wrapper *w, const char *arg)
{
    size_t len;

    if (arg[1] == '-') {
        len = strcspn(arg + 2, "=");
        return !arg[2 + len] && begins_word_in(w->words, arg + 2, len) ? 2 : 1;
    }
    for (const char *c = arg + 1; *c; c++)
        if (strchr(w->valued, *c))
            return c[1] ? 1 : 2;
    return 1;
}

/* The index of the inner command in argv; argc when there is none. */
static size_t inner_at(const struct wrapper *w, const struct command *c)
{
    unsigned operands = w->operands;
    size_t i = 1;
    bool options = true;

    while (i < c->argc) {
        const char *arg = c->argv[i].text;
        size_t name = lex_name(arg, c->argv[i].len);

        if (options && strcmp(arg, "--") == 0) {
            options = false;
            i++;
        } else if (options && arg[0] == '-' && arg[1]) {
            i += option_size(w, arg);
        } else if (options && strcmp(arg, "-") == 0) {
            i++;
        } else if (w->assignments && name && arg[name] == '=') {
            i++;
        } else if (operands) {
            operands--;
            i++;
        } else {
            break;
        }
    }
    return i < c->argc ? i : c->argc;
}

static void judge_env(struct analysis *an, const struct command *c, size_t until)
{
    for (size_t i = 1; i < until; i++) {
        struct field value = c->argv[i];
        size_t n = lex_name(value.text, value.len);
        const char *name;

        if (!n || value.text[n] != '=')
            continue;
        name = arena_text(&an->arena, value.text, n);
        value.text += n + 1;
        value.len -= n + 1;
        judge_assign(an, name, &value);
        var_set(an, name, (struct flow){ value.text, value.len, value.taint });
    }
}

static void replace_mark(struct analysis *an, struct field *field, const char *mark,
                         struct flow with)
{
    struct sink out = { .taint = field->taint | with.taint };

    for (const char *at = field->text;;) {
        const char *hit = strstr(at, mark);

        if (!hit) {
            sink_add(an, &out, at, strlen(at));
            break;
        }
        sink_add(an, &out, at, (size_t) (hit - at));
        sink_add(an, &out, with.text, with.len);
        at = hit + strlen(mark);
    }
    field->text = sink_flow(an, &out).text;
    field->len = out.len;
    field->taint = out.taint;
}

/* The mark of -I, in own options; of -i and --replace, whose value stands in the same argument, it is {} without one. */
static const struct field *xargs_mark(struct analysis *an, const struct command *own)
{
    const struct field *mark = command_value(an, own, 'I', NULL);
    bool braces = strcmp(own->name, "parallel") == 0;
    struct field *made;

    for (size_t i = 1; !mark && i < own->argc; i++) {
        const char *arg = own->argv[i].text;

        if (strncmp(arg, "--replace=", 10) == 0 || (strncmp(arg, "-i", 2) == 0 && arg[2])) {
            made = arena_alloc(&an->arena, sizeof *made);
            *made = own->argv[i];
            made->text += arg[1] == '-' ? 10 : 2;
            made->len = strlen(made->text);
            return made;
        }
        braces |= strcmp(arg, "--replace") == 0 || strcmp(arg, "-i") == 0;
    }
    if (mark || !braces)
        return mark;
    made = arena_alloc(&an->arena, sizeof *made);
    *made = (struct field){ .text = "{}", .len = 2, .at = own->at };
    return made;
}

/* What xargs reads becomes arguments: behind the others, or in place of the mark. */
static void xargs(struct analysis *an, const struct command *c, size_t from, struct command *inner)
{
    struct command own = *c;
    const struct field *mark;
    struct flow in = c->in ? *c->in : flow_unknown(0);
    struct fields all = { 0 };

    own.argc = from;
    mark = xargs_mark(an, &own);
    for (size_t i = from; i < c->argc; i++) {
        struct field field = c->argv[i];

        if (strcmp(field.text, ":::") == 0)
            continue;
        if (mark && *mark->text && strstr(field.text, mark->text)) {
            size_t len = strcspn(in.text, "\n");

            replace_mark(an, &field, mark->text,
                         (struct flow){ arena_text(&an->arena, in.text, len), len, in.taint });
        }
        fields_add(an, &all, field);
    }
    for (const char *at = in.text; !mark && *at;) {
        size_t len;

        at += strspn(at, " \t\n");
        len = strcspn(at, " \t\n");
        if (!len)
            break;
        fields_add(an, &all,
                   (struct field){ arena_text(&an->arena, at, len), len, false, in.taint, c->at });
        at += len;
    }
    inner->argv = all.at;
    inner->argc = all.count;
    inner->in = NULL;
}

/* find: -exec, -execdir, -ok, -okdir with {} as the places that are searched. */
static bool find_exec(struct analysis *an, const struct command *c)
{
    bool named = c->argc > 1 && *c->argv[1].text && c->argv[1].text[0] != '-';
    const char *place = named ? c->argv[1].text : ".";

    for (size_t i = 1; i < c->argc; i++) {
        struct fields inner = { 0 };
        size_t end = i + 1;

        if (strncmp(c->argv[i].text, "-exec", 5) != 0 && strncmp(c->argv[i].text, "-ok", 3) != 0)
            continue;
        for (; end < c->argc; end++) {
            struct field field = c->argv[end];
            struct sink found = { 0 };

            if (strcmp(field.text, ";") == 0 || strcmp(field.text, "+") == 0)
                break;
            if (strstr(field.text, "{}")) {
                sink_add(an, &found, place, strlen(place));
                if (place[strlen(place) - 1] != '/')
                    sink_char(an, &found, '/');
                sink_char(an, &found, UNKNOWN);
                replace_mark(an, &field, "{}", sink_flow(an, &found));
            }
            fields_add(an, &inner, field);
        }
        command_run(an, inner.at, inner.count, c->at, NULL, NULL);
        i = end;
    }
    return false;
}

/* tar --checkpoint-action=exec=..., --to-command=..., git -c core.pager=...: shell text in an
 * option of a program that is no wrapper otherwise. */
static void hidden_text(struct analysis *an, const struct command *c)
{
    static const struct {
        const char *program, *prefix;
    } rows[] = {
        { "tar", "--checkpoint-action=exec=" },
        { "tar", "--to-command=" },
        { "tar", "--use-compress-program=" },
        { "tar", "--rsh-command=" },
        { "git", "core.pager=!" },
        { "git", "core.sshCommand=" },
        { "git", "core.fsmonitor=" },
        { "rsync", "--rsh=" },
        { "ssh", "ProxyCommand=" },
        { "zip", "--unzip-command=" },
        { "ssh", "-oProxyCommand=" },
        { "vim", ":!" },
        { "vi", ":!" },
        { "gdb", "shell " },
        { "man", "--pager=" },
        { "sort", "--compress-program=" },
    };

    for (size_t i = 1; i < c->argc; i++)
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            size_t len = strlen(rows[k].prefix);

            if (strcmp(c->name, rows[k].program) == 0 &&
                strncmp(c->argv[i].text, rows[k].prefix, len) == 0)
                eval_text(an, c->argv[i].text + len, c->argv[i].len - len, c->argv[i].at, NULL,
                          NULL);
        }
}

static void run_text(struct analysis *an, const struct command *c, struct flow text,
                     const struct flow *in)
{
    struct command as = *c;

    as.in = in;
    shell_run_flow(an, &as, "sh", text);
}

static bool open_row(struct analysis *an, const struct wrapper *w, const struct command *c,
                     struct command *inner)
{
    const struct field *text =
        w->text_option ? command_value(an, c, w->text_option,
                                       w->text_option == 'c' ? "command" : "split-string")
                       : NULL;
    size_t from = inner_at(w, c);

    if (w->assignments)
        judge_env(an, c, from);
    if (text)
        run_text(an, c, (struct flow){ text->text, text->len, text->taint }, c->in);
    inner->argv = c->argv + from;
    inner->argc = c->argc - from;
    if (w->form == FORM_TEXT && inner->argc) {
        run_text(an, c, command_join(an, c, from), c->in);
        inner->argc = 0;
    } else if (w->form == FORM_XARGS && inner->argc) {
        xargs(an, c, from, inner);
    }
    return true;
}

/* docker exec NAME sh -c ..., kubectl exec POD -- bash ...: their options are too many to know, but a
 * shell among the arguments is one. */
static bool container(const struct command *c, struct command *inner)
{
    static const char *const engines[] = { "docker", "podman", "nerdctl", "kubectl", "lxc" };
    bool known = false;

    for (size_t i = 0; i < ARRAY_LEN(engines); i++)
        known |= strcmp(c->name, engines[i]) == 0;
    for (size_t i = 2; known && i < c->argc; i++) {
        const char *slash = strrchr(c->argv[i].text, '/');

        if (shell_is(slash ? slash + 1 : c->argv[i].text)) {
            inner->argv = c->argv + i;
            inner->argc = c->argc - i;
            return true;
        }
    }
    return false;
}

bool wrap_open(struct analysis *an, const struct command *c, struct command *ret_inner)
{
    hidden_text(an, c);
    if (strcmp(c->name, "find") == 0 || strcmp(c->name, "fd") == 0)
        return find_exec(an, c);
    if (strcmp(c->name, "command") == 0) { /* -v and -V only look */
        size_t from = 1;

        if (command_flag(c, 'v', NULL) || command_flag(c, 'V', NULL))
            return false;
        while (from < c->argc && c->argv[from].text[0] == '-')
            from++;
        ret_inner->argv = c->argv + from;
        ret_inner->argc = c->argc - from;
        return true;
    }
    if (container(c, ret_inner))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
        if (strcmp(c->name, wrappers[i].name) == 0) {
            bool got = open_row(an, &wrappers[i], c, ret_inner);

            /* "env" alone prints its variables, "sudo -l" its rights: nothing to open. */
            if (!ret_inner->argc && strcmp(c->name, "env") == 0)
                return false;
            return got;
        }
    return false;
}
