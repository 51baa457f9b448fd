/* direct/common.h - options that the verbs of the direct command line share. It asks the keeper and agents themselves, as
 * tests of these need it; the product's own verbs ask the server. */
#ifndef COVE_TESTS_DIRECT_COMMON_H
#define COVE_TESTS_DIRECT_COMMON_H

#include "cli/common.h"
#include "client/exec.h"
#include "client/sandbox.h"

/* What a new sandbox is like: run, shell, create. */
struct sandbox_options {
    const char *template, *name, *snapshot, *isolation;
    bool root, no_memory;
    struct option_list volumes;
    struct limits limits; /* 0: not said */
};

/* clang-format off */
#define SANDBOX_OPTIONS(type, member) \
    { 0, "template", OPTION_TEXT, offsetof(type, member.template), "NAME", COMPLETE_TEMPLATE, \
      "what it starts from ('base' if built, else 'host')" }, \
    { 0, "snapshot", OPTION_TEXT, offsetof(type, member.snapshot), "SNAPSHOT", COMPLETE_NONE, \
      "what it is made of: files, processes, limits where none are given" }, \
    { 0, "no-memory", OPTION_FLAG, offsetof(type, member.no_memory), NULL, COMPLETE_NONE, \
      "of a snapshot only the files; it starts again" }, \
    { 0, "name", OPTION_TEXT, offsetof(type, member.name), "NAME", COMPLETE_NONE, \
      "a name for it, beside its id" }, \
    { 0, "root", OPTION_FLAG, offsetof(type, member.root), NULL, COMPLETE_NONE, \
      "allow the sandbox's own root inside (sudo, apt)" }, \
    { 0, "isolation", OPTION_TEXT, offsetof(type, member.isolation), "NAME", COMPLETE_NONE, \
      "what isolates it from the host (default: jail)" }, \
    { 'v', "volume", OPTION_LIST, offsetof(type, member.volumes), "NAME:DIR", COMPLETE_NONE, \
      "mount a volume there; NAME:DIR:ro to read only (repeatable)" }
/* clang-format on */

/* How a command runs: run, shell, exec. */
struct command_options {
    struct option_list env;
    const char *user, *workdir;
    uint64_t timeout_ms, cpu_timeout_ms;
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
      "end it when all its processes together used so much CPU time" }
/* clang-format on */

/* How a command is connected to the caller: run, shell, exec. */
struct attach_options {
    bool interactive, tty, quiet, stats;
};

/* clang-format off */
#define ATTACH_OPTIONS(type, member) \
    { 'i', "interactive", OPTION_FLAG, offsetof(type, member.interactive), NULL, COMPLETE_NONE, \
      "forward stdin to the command" }, \
    { 't', "tty", OPTION_FLAG, offsetof(type, member.tty), NULL, COMPLETE_NONE, \
      "give it a terminal (and stdin)" }, \
    { 'q', "quiet", OPTION_FLAG, offsetof(type, member.quiet), NULL, COMPLETE_NONE, \
      "say nothing about how a command ended by a signal" }, \
    { 0, "stats", OPTION_FLAG, offsetof(type, member.stats), NULL, COMPLETE_NONE, \
      "one line of accounting on stderr" }
/* clang-format on */

/* A sandbox as the options say, of its template's memory image where that fits. `flags` are added to those that follow from them. */
int common_create(struct link *link, const struct sandbox_options *options, uint32_t flags,
                  struct keeper_sandbox *ret, struct err *err);

/* The request of a command. What it points to lives as long as `held`, freed by common_release.
 * words: argv of the command, or NULL when the caller sets `command` itself. */
struct common_held {
    char *args, *env;
};
int common_request(const struct command_options *options, char *const *words, size_t word_count,
                   bool terminal, struct agent_request *ret, struct common_held *held,
                   struct err *err);
void common_release(struct common_held *held);
/* Refuses a terminal that would be typed into, where there is none to type in. */
int common_check_attach(const struct verb *verb, const struct attach_options *options,
                        struct err *err);
/* Standard input and a terminal, as the options say. */
void common_attach(const struct attach_options *options, struct agent_request *request);

#endif
