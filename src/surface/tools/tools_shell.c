#include "surface/tools/tools_shell.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

#define SHELL        "/bin/bash"
#define SHELL_ARGS   10 /* before the variables */
#define SESSION_MAIN "main"

/* $1: the command. $2: the session. $3: "given" if the directory that it runs in was given for this call alone, or nothing.
 * $4: "restart" or nothing. $5: "keep" or nothing. $6: where a new session begins; nothing: at home. Then NAME=VALUE, for this
 * call alone. Functions and variables of its own begin with __cove.
 *
 * The state is read at the top, not in a function: there `declare` would make locals. Readonly variables of bash itself
 * cannot be set again: these errors are dropped. Options come last, so that errexit does not end the reading. A trace
 * (set -x) shows the command and nothing of this. The file is made beside and renamed: a call that is killed while it
 * writes leaves the old one. What stands in the place of either file and is no file (a FIFO, a directory) is not opened:
 * the call would wait for another end of the FIFO until its timeout. */
/* clang-format off */
static const char script[] =
    "builtin set -- \"$1\" \"${HOME:-/tmp}/.cache/cove/shell-$2\" \"$3\" \"$4\" \"$5\" \"${6:-${HOME:-/}}\" \"${@:7}\"\n"
    "__cove_pwd= __cove_old= __cove_here=$PWD __cove_given=\n"
    "if [ \"$4\" ]; then command rm -rf -- \"$2\"; fi\n"
    "if [ -f \"$2\" ] && [ -r \"$2\" ]; then . \"$2\" >/dev/null 2>&1; fi\n"
    "{ __cove_flags=$-; builtin set +x; } 2>/dev/null\n"
    "__cove_file=$2 __cove_pwd=${__cove_pwd:-$6}\n"
    "if [ \"$3\" ]; then\n"
    "  builtin cd -- \"$__cove_here\" && __cove_given=$PWD\n"
    "else\n"
    "  builtin cd -- \"$__cove_pwd\" 2>/dev/null || {\n"
    "    builtin cd -- \"$__cove_here\"\n"
    "    builtin echo \"cove: the shell's directory $__cove_pwd is gone: back in $PWD\" >&2; }\n"
    "  OLDPWD=$__cove_old\n"
    "fi\n"
    "__cove_save() {\n"
    "  builtin trap - EXIT\n"
    "  builtin set +t\n"
    "  builtin unset __cove_command __cove_set __cove_here BASH_EXECUTION_STRING\n"
    "  [ \"$PWD\" = \"$__cove_given\" ] || __cove_pwd=$PWD __cove_old=${OLDPWD:-}\n"
    "  [ -d \"${__cove_file%/*}\" ] || command mkdir -p -m 0700 -- \"${__cove_file%/*}\" 2>/dev/null\n"
    "  if [ -e \"$__cove_file.$$\" ] || [ -h \"$__cove_file.$$\" ]; then command rm -rf -- \"$__cove_file.$$\"; fi\n"
    "  { builtin declare -p && builtin declare -f && builtin declare -F && builtin alias -p && builtin trap -p &&\n"
    "    builtin umask -p && builtin printf '__cove_pwd=%q __cove_old=%q\\n' \"$__cove_pwd\" \"$__cove_old\" &&\n"
    "    builtin printf '%s' \"$__cove_undo\" && builtin printf '__cove_last() { return %d; }\\n' \"$__cove_status\" &&\n"
    "    builtin shopt -p && builtin set +o && { [[ $__cove_flags != *x* ]] || builtin echo 'set -x'; }\n"
    "  } 2>/dev/null >\"$__cove_file.$$\" && [ ! -d \"$__cove_file\" ] && command mv -f -- \"$__cove_file.$$\" \"$__cove_file\" 2>/dev/null || {\n"
    "    command rm -f -- \"$__cove_file.$$\"\n"
    "    builtin echo \"cove: the shell's state cannot be kept in $__cove_file: the next call begins with the one before\" >&2; }\n"
    "  builtin return \"$__cove_status\"\n"
    "}\n"
    "if [ \"$5\" ]; then\n"
    "  builtin trap '{ __cove_status=$? __cove_flags=$-; builtin set +x; } 2>/dev/null; __cove_save' EXIT\n"
    "else\n"
    "  __cove_save() { builtin return \"$__cove_status\"; }\n"
    "fi\n"
    "__cove_command=$1 __cove_undo=\n"
    "builtin shift 6\n"
    "for __cove_set; do\n"
    "  __cove_name=${__cove_set%%=*}\n"
    "  if [[ -v $__cove_name ]]; then __cove_undo+=${!__cove_name@A}$'\\n'; else __cove_undo+=\"unset -v $__cove_name\"$'\\n'; fi\n"
    "  builtin export \"$__cove_set\"\n"
    "done\n"
    "builtin set --\n"
    "[[ $__cove_flags != *x* ]] || __cove_command='builtin set -x'$'\\n'$__cove_command\n"
    "[[ $- == *e* ]] || __cove_last 2>/dev/null\n"
    "builtin eval \"$__cove_command\"\n"
    "{ __cove_status=$? __cove_flags=$-; builtin set +x; } 2>/dev/null\n"
    "__cove_save\n";
/* clang-format on */

bool shell_name_ok(const char *name)
{
    size_t len = name ? strlen(name) : 1;

    return len > 0 && len <= SHELL_NAME_MAX &&
           (!name ||
            strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
                len);
}

/* What stands before the "=". */
static bool is_variable(const char *assignment)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strspn(assignment, letters);

    return len > 0 && assignment[len] == '=' && !(assignment[0] >= '0' && assignment[0] <= '9');
}

int shell_wrap(struct shell_call *call, struct ops_command *command, const struct shell_ask *ask,
               struct err *err)
{
    const char *const fixed[SHELL_ARGS] = { SHELL,
                                            "-lc",
                                            script,
                                            "bash", /* $0, in its messages */
                                            ask->command[0] ? ask->command : ":",
                                            ask->name ? ask->name : SESSION_MAIN,
                                            ask->given ? "given" : "",
                                            ask->restart ? "restart" : "",
                                            ask->keeps ? "keep" : "",
                                            ask->home };

    call->args = calloc(SHELL_ARGS + command->env_count, sizeof *call->args);
    if (!call->args)
        return err_set(err, ERR_NO_MEMORY, "no memory for the command");
    memcpy(call->args, fixed, sizeof fixed);
    for (size_t i = 0; i < command->env_count; i++) {
        if (!is_variable(command->env[i])) {
            free(take_ptr(&call->args));
            return err_set(err, ERR_INVALID,
                           "env: a variable has a name that no shell takes: use one_shot");
        }
        call->args[SHELL_ARGS + i] = command->env[i];
    }
    command->arg_count = SHELL_ARGS + command->env_count;
    command->env = NULL; /* the shell sets them itself: the session's own would come over them */
    command->env_count = 0;
    command->args = call->args;
    command->shown = fixed[4];
    return 0;
}

void shell_done(struct shell_call *call)
{
    free(call->args);
}

json_t *shell_kept(const json_t *why)
{
    return json_sprintf("%s; the shell keeps the state from before this call",
                        json_string_value(why));
}
