/* sudo.h - elevation without a setuid bit: a client that asks the agent to run the command as root.
 *
 * no_new_privs stays on for everybody; the command is a child of the agent, not of the client,
 * which hands over its stdio and waits. Only in sandboxes with root.
 *
 * Callers: main.c, when the program is called `sudo`. The other side is ops.c. */
#ifndef COVE_AGENT_SUDO_H
#define COVE_AGENT_SUDO_H

#include "base/err.h"

#include <stdbool.h>

struct sudo_options {
    const char *user; /* NULL: root */
    bool preserve_env, login, shell, set_home;
    bool validate, list, forget, help, version;
    char **assignments; /* VAR=value, before the command */
    int assignment_count;
    char **command;
    int command_count;
};

/* Pure: 0, or -1 with a sentence. */
int sudo_parse(int argc, char **argv, struct sudo_options *ret, struct err *err);

int sudo_main(int argc, char **argv, char **envp);

#endif
