/* verbs.h - what `cove` can do: one struct verb each, one file each.
 *
 * <verb>.c defines `const struct verb <verb>_verb` and its run function `verb_<verb>`, which gets
 * argv from its own name on and returns the exit code. verbs.c lists them. */
#ifndef COVE_CLI_VERBS_H
#define COVE_CLI_VERBS_H

#include "cli/options.h"

struct verb {
    const char *name;
    const char *synopsis; /* behind "cove NAME ": "[OPTION…] SANDBOX…" */
    const char *summary;  /* one line, lower case, no full stop */
    const char *details;  /* paragraphs for --help, or NULL */
    const struct option *options;
    size_t option_count;
    bool takes_limits;    /* every row of limit_table is an option, too … */
    size_t limits_offset; /* … into the struct limits there */
    unsigned command_at;  /* options end at the n-th operand, where a command begins; 0: anywhere */
    enum complete operands;
    int (*run)(int argc, char **argv);
    const struct verb *subs; /* `cove template build`: for help and completion */
    size_t sub_count;
};

extern const struct verb run_verb, shell_verb, exec_verb, create_verb, ps_verb, kill_verb,
    pause_verb, resume_verb, snapshot_verb, fork_verb, gc_verb, cp_verb, logs_verb, stats_verb,
    up_verb, version_verb, help_verb, completion_verb;
extern const struct verb info_verb, login_verb, context_verb, mcp_verb;
extern const struct verb template_verb, doctor_verb, tenant_verb, key_verb, secret_verb,
    network_verb, audit_verb, cert_verb, port_forward_verb, preview_verb, volume_verb, pool_verb,
    backup_verb, restore_verb;

extern const struct verb *const verbs[];
extern const size_t verb_count;

/* NULL: there is none of that name. */
const struct verb *verb_find(const char *name);

int verb_info(int argc, char **argv);
int verb_login(int argc, char **argv);
int verb_context(int argc, char **argv);
int verb_mcp(int argc, char **argv);
int verb_pool(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_shell(int argc, char **argv);
int verb_exec(int argc, char **argv);
int verb_create(int argc, char **argv);
int verb_ps(int argc, char **argv);
int verb_kill(int argc, char **argv);
int verb_pause(int argc, char **argv);
int verb_resume(int argc, char **argv);
int verb_snapshot(int argc, char **argv);
int verb_fork(int argc, char **argv);
int verb_gc(int argc, char **argv);
int verb_cp(int argc, char **argv);
int verb_logs(int argc, char **argv);
int verb_stats(int argc, char **argv);
int verb_up(int argc, char **argv);
int verb_version(int argc, char **argv);
int verb_help(int argc, char **argv);
int verb_completion(int argc, char **argv);
int verb_template(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_tenant(int argc, char **argv);
int verb_network(int argc, char **argv);
int verb_key(int argc, char **argv);
int verb_secret(int argc, char **argv);
int verb_audit(int argc, char **argv);
int verb_cert(int argc, char **argv);
int verb_port_forward(int argc, char **argv);
int verb_preview(int argc, char **argv);
int verb_volume(int argc, char **argv);
int verb_backup(int argc, char **argv);
int verb_restore(int argc, char **argv);

#endif
