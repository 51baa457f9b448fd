/* command.h - how a command runs and how it is connected to the caller: options of run, shell and exec, and the process that they
 * mean in an order of a session. */
#ifndef COVE_CLI_API_COMMAND_H
#define COVE_CLI_API_COMMAND_H

#include "cli/options.h"
#include "cli/verbs.h"

#include <jansson.h>
#include <stddef.h>

struct command_options {
    struct option_list env;
    const char *user, *workdir, *tag;
    uint64_t timeout_ms, cpu_timeout_ms;
    bool interactive, tty, quiet, stats;
};

/* clang-format off */
#define COMMAND_OPTIONS(type, member) \
    { 'e', "env", OPTION_LIST, offsetof(type, member.env), "KEY=VAL", COMPLETE_NONE, \
      "environment; KEY alone takes yours (repeatable)" }, \
    { 'u', "user", OPTION_TEXT, offsetof(type, member.user), "NAME", COMPLETE_NONE, \
      "run as this user of the sandbox" }, \
    { 'w', "workdir", OPTION_TEXT, offsetof(type, member.workdir), "DIR", COMPLETE_NONE, \
      "directory to start in" }, \
    { 0, "timeout", OPTION_DURATION, offsetof(type, member.timeout_ms), "TIME", COMPLETE_NONE, \
      "end it, and all it started, after 60s, 5m …" }, \
    { 0, "cpu-timeout", OPTION_DURATION, offsetof(type, member.cpu_timeout_ms), "TIME", COMPLETE_NONE, \
      "end it after that much CPU time, of all it started" }, \
    { 'i', "interactive", OPTION_FLAG, offsetof(type, member.interactive), NULL, COMPLETE_NONE, \
      "forward stdin to the command" }, \
    { 't', "tty", OPTION_FLAG, offsetof(type, member.tty), NULL, COMPLETE_NONE, \
      "give it a terminal (and stdin)" }, \
    { 'q', "quiet", OPTION_FLAG, offsetof(type, member.quiet), NULL, COMPLETE_NONE, \
      "say nothing about how a command ended by a signal" }, \
    { 0, "stats", OPTION_FLAG, offsetof(type, member.stats), NULL, COMPLETE_NONE, \
      "one line of accounting on stderr" }
/* clang-format on */

/* The "process" of an order. words: argv; or NULL, and `shell` is a command for a login shell. */
int command_body(const struct verb *verb, const struct command_options *options, char *const *words,
                 size_t count, const char *shell, json_t **ret, struct err *err);
/* Whether stdin is forwarded. */
bool command_reads(const struct command_options *options);

#endif
