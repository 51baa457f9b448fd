/* ops.h - every operation that a surface can ask for, once: tenant, quota, policy, audit, then the work.
 *
 * A surface (v1, tools, …) translates a dialect into these calls and their results back; it never talks to
 * the keeper, an agent or the store by itself. A sandbox of another tenant and one that never was answer alike:
 * ERR_NO_SANDBOX. A refusal that concerns a field or a rule says so by caller_blame on ops->caller.
 *
 * Owns:    nothing between calls, but for struct ops_run and struct stream, until they are closed.
 * Callers: surfaces, and whatever else has a struct caller; one thread for each.
 * Never:   sees HTTP: who asks, what is to blame and whether the caller is gone are in struct caller. */
#ifndef COVE_SERVER_OPS_OPS_H
#define COVE_SERVER_OPS_OPS_H

#include "client/exec.h"
#include "client/files.h"
#include "client/sandbox.h"
#include "egress/reach.h"
#include "server/app/app.h"
#include "server/guard/caller.h"
#include "server/life/history.h"
#include "server/net/secrets.h"

struct preview_rules;
struct audit_filter; /* store/store.h */
struct audit_record;
struct private_member; /* store/private.h */
struct private_network;

struct ops {
    struct app *app;
    struct caller *caller;
};

struct ops ops_of(struct caller *caller);

/* ---- sandboxes ---- */

/* A lifetime without an end. */
#define OPS_NEVER_MS ((uint64_t) INT64_MAX)

enum on_timeout { ON_TIMEOUT_KILL, ON_TIMEOUT_PAUSE };

#define OPS_NAME_MAX     64     /* with the NUL, as all of these */
#define OPS_KEY_MAX      128    /* of an idempotency key */
#define OPS_METADATA_MAX 4096   /* of its JSON text */
#define OPS_NOTES_MAX    2048   /* of its JSON text */
#define OPS_ENV_MAX      131072 /* of all environment variables, as JSON */

/* A volume in a sandbox. */
struct ops_mount {
    char name[OPS_NAME_MAX];
    char path[VOLUME_PATH_MAX];
    bool read_only;
};

extern const struct form ops_mount_form; /* {name, path, read_only} */
/* A list of these. Blames the field. */
int ops_mounts_read(struct caller *caller, const char *field, json_t *list,
                    struct ops_mount mounts[VOLUMES_MAX], size_t *ret_count, struct err *err);

struct ops_sandbox {
    char id[ID_LEN + 1];
    char name[OPS_NAME_MAX];          /* "" without one; unique in its tenant */
    char template[KEEPER_NAME_MAX];   /* what it is made of */
    char asked[KEEPER_NAME_MAX];      /* the template that the create named; "": none */
    char metadata[OPS_METADATA_MAX];  /* a JSON object of texts; never "" */
    char notes[OPS_NOTES_MAX];        /* what a dialect kept at the create; "" without */
    uint64_t created_ms, deadline_ms; /* real time; deadline 0: none */
    uint64_t held_ms;                 /* paused without a deadline since then; else 0 */
    enum on_timeout on_timeout;
    bool root;
    const char *isolation;           /* a name of wire/isolation.h; NULL: not known, it is lost */
    uint32_t life;                   /* enum keeper_life; LIFE_GONE: lost */
    int tier;                        /* enum store_tier, of a paused one; 0: it is not */
    bool idle_paused;                /* paused for idleness: a request wakes it */
    uint64_t paused_ms, image_bytes; /* since when; what it takes on disk */
    uint64_t idle_pause_ms, idle_disk_ms; /* 0: never */
    bool auto_resume;
    struct limits limits;
    struct ops_mount volumes[VOLUMES_MAX];
    size_t volume_count;
    bool replayed; /* the answer to an idempotency key that was used before */
};

struct ops_create {
    const char *id;       /* from sandbox_new_id; NULL: a new one */
    const char *template; /* NAME or NAME:TAG (ops_template.h); NULL: the keeper's default */
    bool or_default;      /* the keeper's default also if there is no such template */
    /* that it is; set by the operation itself. NULL: one was named, or there is none */
    const char *default_template;
    const char *name;            /* NULL: none */
    const char *metadata;        /* JSON text of an object; NULL: {} */
    const char *notes;           /* of a dialect's own, never shown as metadata; NULL: none */
    const char *idempotency_key; /* NULL: none */
    /* 0: the configured default; OPS_NEVER_MS: no deadline, for the operator */
    uint64_t timeout_ms;
    const char *timeout_field; /* what the caller calls it, for refusals; NULL: "timeout" */
    enum on_timeout on_timeout;
    bool root;
    bool once;     /* for one command, never paused: its disk may be in memory */
    bool any_disk; /* of once: the caller said no size, so that of a disk in memory will do */
    const char *isolation; /* by name; NULL: the default, or with a snapshot the snapshot's */
    /* of a template that was built, by its label; NULL: none. Set by the operation */
    const char *wish;
    uint32_t chosen;        /* enum isolation. Likewise */
    bool fixed;             /* it is that of the processes in `image`. Likewise */
    bool e2b;               /* the setting e2b_policy counts for it */
    struct limits limits;   /* begin with limits_default(); with a snapshot 0 is what that has */
    bool files_only;        /* of a snapshot: not its processes */
    const char *const *env; /* K=V for every command in it; NULL: none */
    size_t env_count;
    /* what it may reach; NULL: what its template or tenant say, or nothing */
    const struct reach *network;
    /* the surface chose `network`, not the request: what template or tenant say comes before it */
    bool network_implied;
    /* who may reach its ports (preview.h); NULL: nothing said */
    const struct preview_rules *preview;
    const struct private_member *joins; /* private networks that it is in from the start */
    size_t join_count;
    const struct ops_mount *volumes; /* at most VOLUMES_MAX */
    size_t volume_count;
    struct secrets_want secrets;
    const struct secrets_plan *plan; /* ops.c's own: what becomes of them; NULL: there are none */
    const char *snapshot; /* id or name: what it is made of, in the template's place; NULL: none */
    const char *image;    /* that it is; set by the operation itself, as the volumes that it has */
    const char *image_owner; /* whose image; NULL: the caller's. Likewise */
    const char *base;        /* what a template that was built stands on. Likewise */
    /* {"user", "workdir"} of commands that say none; NULL: the template's own. Likewise */
    json_t *defaults;
    /* of server/build: a snapshot of a build, in the template's place; NULL: none */
    const char *build_image;
    bool pulled; /* of server/build: the template is an image that was pulled for this build */
    const struct store_volume_use *kept_volumes;
    size_t kept_volume_count;
    bool auto_resume;                             /* a request to it wakes it when it is paused */
    bool forgets;                                 /* a pause at its deadline keeps its files only */
    const uint64_t *idle_pause_ms, *idle_disk_ms; /* NULL: the configured default; 0: never */
};

int ops_sandbox_create(struct ops *ops, const struct ops_create *create, struct ops_sandbox *ret,
                       struct err *err);
int ops_sandbox_get(struct ops *ops, const char *sandbox, struct ops_sandbox *ret, struct err *err);
/* By its record alone, for an operation that asks the keeper next: life, isolation and some limits are not known. */
int ops_sandbox_recorded(struct ops *ops, const char *sandbox, struct ops_sandbox *ret,
                         struct err *err);

#define OPS_FILTER_META 16
struct ops_filter {
    const char *name;  /* NULL: any */
    const char *asked; /* the template that the create named; NULL: any */
    uint32_t lives;    /* bit n: enum keeper_life n is wanted; 0: any */
    const char *meta_keys[OPS_FILTER_META], *meta_values[OPS_FILTER_META];
    size_t meta_count;
    uint64_t since_ms; /* made then or later */
    bool oldest_first;
    uint64_t after; /* the cursor that the page before gave; 0: from the start */
    size_t limit;   /* 1 to OPS_PAGE_MAX */
};
#define OPS_PAGE_MAX 200

struct ops_page {
    struct ops_sandbox *list; /* the caller's to free */
    size_t count;
    uint64_t next;    /* cursor of the next page, 0 at the end */
    uint64_t running; /* of all that the filter lets through, on whatever page */
};
/* Newest first, if not said otherwise. */
int ops_sandbox_list(struct ops *ops, const struct ops_filter *filter, struct ops_page *ret,
                     struct err *err);
/* The deadline becomes now + timeout_ms. */
int ops_sandbox_extend(struct ops *ops, const char *sandbox, uint64_t timeout_ms,
                       struct ops_sandbox *ret, struct err *err);
int ops_sandbox_kill(struct ops *ops, const char *sandbox, struct err *err);
/* Its deadline stands still until it is resumed. One that is paused already stays as it is, or goes further down. */
struct ops_pause {
    int tier;        /* enum store_tier; 0: chosen by its size and the settings */
    bool files_only; /* its processes end: a resume starts it again, with its files */
};
struct ops_paused {
    int tier;
    bool already;
    char fallback[ERR_MSG_MAX]; /* why it is not the tier that was asked for; "": it is */
};
int ops_sandbox_pause(struct ops *ops, const char *sandbox, const struct ops_pause *how,
                      struct ops_paused *ret, struct err *err);
/* For whatever is about to be asked of a sandbox by another way than the operations below, which do it themselves: if it
 * sleeps, it is woken, provided that it fell asleep by itself or was made with auto_resume (else ERR_STATE). Many who
 * ask at once wait for one resume. */
int ops_wake(struct ops *ops, const char *sandbox, struct err *err);
/* timeout_ms 0: the deadline stays if it is still to come, else it has the time that the create asked for. One that runs
 * is no error. */
int ops_sandbox_resume(struct ops *ops, const char *sandbox, uint64_t timeout_ms, struct err *err);
/* Running afterwards, with at least that time left: resumed if it was paused, its deadline never earlier than it was. */
int ops_sandbox_connect(struct ops *ops, const char *sandbox, uint64_t timeout_ms,
                        bool *ret_resumed, struct ops_sandbox *ret, struct err *err);

struct ops_stats {
    struct keeper_stats keeper;
    struct limits limits;
    uint64_t uptime_ms, refusals; /* of system calls; 0 while paused */
};
int ops_sandbox_stats(struct ops *ops, const char *sandbox, struct ops_stats *ret, struct err *err);

/* The environment of every command in it, as an object; the caller's to json_decref. */
int ops_sandbox_env(struct ops *ops, const char *sandbox, json_t **ret, struct err *err);
/* The points of history.h, and records of the audit: of this sandbox, the filter's tenant and sandbox_id are set here.
 * Records are there also when the sandbox is not any more. */
int ops_sandbox_history(struct ops *ops, const char *sandbox, uint64_t from_ms, uint64_t until_ms,
                        struct history_point **ret, size_t *ret_count, struct err *err);
int ops_sandbox_records(struct ops *ops, const char *sandbox, const struct audit_filter *filter,
                        int (*each)(void *, const struct audit_record *, struct err *), void *arg,
                        struct err *err);
/* In the place of those that the create gave. */
int ops_sandbox_set_notes(struct ops *ops, const char *sandbox, const char *notes, struct err *err);

/* ---- snapshots: saved sandboxes ---- */

struct ops_snapshot {
    char id[ID_LEN + 1];
    char name[OPS_NAME_MAX]; /* "" without one */
    char sandbox[ID_LEN + 1];
    char template[KEEPER_NAME_MAX];
    uint64_t created_ms, bytes;
    bool memory;
    uint64_t frozen_us; /* how long the sandbox stood still for it; only when it is made */
};

struct ops_save {
    const char *name; /* NULL: none */
    bool files_only;
    bool replace; /* the name is taken from a snapshot that has it, which is then deleted */
};
/* The sandbox continues running. ERR_STATE for one that is paused; ERR_UNSUPPORTED if its processes cannot be saved. */
int ops_snapshot_create(struct ops *ops, const char *sandbox, const struct ops_save *save,
                        struct ops_snapshot *ret, struct err *err);
/* By id or name. A foreign one and one that never was answer alike: ERR_NO_IMAGE. */
int ops_snapshot_get(struct ops *ops, const char *snapshot, struct ops_snapshot *ret,
                     struct err *err);
/* Sandboxes that were made of it continue. */
int ops_snapshot_delete(struct ops *ops, const char *snapshot, struct err *err);

struct ops_snapshots {
    struct ops_snapshot *list; /* the caller's to free; newest first */
    size_t count;
    uint64_t next; /* cursor of the next page, 0 at the end */
};
/* Of one sandbox, or of one name; NULL: any. limit: 1 to OPS_PAGE_MAX. */
int ops_snapshot_list(struct ops *ops, const char *sandbox, const char *name, uint64_t after,
                      size_t limit, struct ops_snapshots *ret, struct err *err);

/* Copies of a running sandbox, each with its processes. One that fails does not hinder the others. */
#define OPS_FORK_MOST 100
struct ops_fork {
    struct ops_sandbox sandbox;
    struct err err; /* kind ERR_NONE: there it is */
};
int ops_sandbox_fork(struct ops *ops, const char *sandbox, size_t count, uint64_t timeout_ms,
                     struct ops_fork *ret, struct err *err);

/* The id of what a caller calls `sandbox`: an id, a name, or the beginning of an id (OPS_PREFIX_LEAST or more) that one
 * of the caller's sandboxes has. ERR_NO_SANDBOX: none has; ERR_INVALID: several have. */
#define OPS_PREFIX_LEAST 5
int ops_sandbox_resolve(struct ops *ops, const char *sandbox, char ret[ID_LEN + 1],
                        struct err *err);
/* Whether the caller may use it at all: cheap, for surfaces that check before they read a body. */
int ops_sandbox_check(struct ops *ops, const char *sandbox, struct err *err);

/* ---- pools: of the whole server, so for the tenant `local` alone ---- */

struct pool_report; /* server/life/pool.h */
struct store_pool_rule;

int ops_pool_look(struct ops *ops, struct pool_report *ret, struct err *err);
/* Rules that were set, as store_pool_rules. */
int ops_pool_rules(struct ops *ops,
                   int (*each)(void *, const struct store_pool_rule *, struct err *), void *arg,
                   struct err *err);
int ops_pool_set(struct ops *ops, const struct store_pool_rule *rule, struct err *err);
int ops_pool_unset(struct ops *ops, const char *template, struct err *err);
/* Ends all that wait; *ret_count: how many. The server makes others as its rules say. */
int ops_pool_drain(struct ops *ops, uint64_t *ret_count, struct err *err);

/* ---- processes ---- */

/* Output as it comes, or NULL when OPS_TICK_MS passed without any. -1 ends the command. */
typedef int ops_watch_fn(void *context, const struct exec_event *event, struct err *err);

struct ops_command {
    const char *command;     /* by a login shell; or args */
    const char *const *args; /* NULL with command */
    size_t arg_count;
    /* with args: the shell command that they run, for policy and audit; NULL: args themselves */
    const char *shown;
    const char *const *env; /* K=V */
    size_t env_count;
    const char *cwd, *user, *tag; /* NULL: the template's, the template's, none */
    uint64_t timeout_ms;          /* 0: none */
    uint64_t cpu_timeout_ms;      /* processor time of all its processes; 0: no limit */
    bool measure;                 /* the result has the sandbox's own peak of memory */
    uint64_t ring_bytes;          /* output kept for those who attach; 0: the agent's default */
    uint32_t flags;               /* AGENT_PTY, STDIN, DETACH, KILL_ON_CLOSE */
    uint32_t rows, columns;
    const void *input; /* all of stdin, which then ends; sets AGENT_STDIN. NULL: none */
    size_t input_len;
    ops_watch_fn *watch; /* of ops_run_collect: sees its events; NULL: no watcher */
    void *watch_context;
};

/* What the verdict on an end is made of: figures of the sandbox when the command began (ops_verdict.c). */
struct ops_verdict {
    uint64_t oom_before, cpu_before_us;
    uint64_t cpu_limit_ms; /* 0: none */
    uint64_t look_ms;      /* monotonic: when the figures are looked at next */
    uint64_t begun_ms;     /* monotonic */
    bool guest;            /* a kernel of its own is between the command and the host */
    bool cpu_exceeded, measure;
};

/* A process being followed. Closing it ends the process only with AGENT_KILL_ON_CLOSE. */
struct ops_run {
    struct exec exec; /* exec.proc, exec.pid; exec.stream.fd to poll */
    char sandbox[ID_LEN + 1];
    struct ops_verdict verdict;
    /* what became of the sandbox that the connection ended with; kind 0: unknown */
    struct err lost;
    const char *input; /* borrowed from ops_command */
    size_t input_len, input_done;
    bool feeding;
    /* For the audit: noted once, at the end or when it is closed before. */
    struct caller *caller;
    char *code; /* NULL: nothing to note */
    uint64_t begun_ms;
};
#define OPS_RUN_NONE ((struct ops_run){ .exec = { .stream = { .fd = -1 } } })

/* Policy, then the start. With AGENT_DETACH nothing follows but ops_run_close. */
int ops_run_start(struct ops *ops, const char *sandbox, const struct ops_command *command,
                  struct ops_run *ret, struct err *err);
/* `flags`: AGENT_NO_OUTPUT, AGENT_KILL_ON_CLOSE */
int ops_run_attach(struct ops *ops, const char *sandbox, uint32_t proc, uint64_t from_stdout,
                   uint64_t from_stderr, uint32_t flags, struct ops_run *ret, struct err *err);
/* 1 with an event (nothing follows EXEC_END); 0: OPS_TICK_MS passed without one; -1: failed, or the
 * caller went away. EXEC_END has the verdict on running out of memory in it, also when the whole sandbox ended by that; another
 * end of the sandbox is an error. */
#define OPS_TICK_MS 15000
int ops_run_next(struct ops *ops, struct ops_run *run, struct exec_event *ret, struct err *err);
/* The same without waiting, for callers that poll run->exec.stream.fd themselves: 0 when there is no event yet. All surfaces have
 * their ends from here: one verdict, and one record in the audit. */
int ops_run_poll(struct ops *ops, struct ops_run *run, struct exec_event *ret, struct err *err);
/* How long such a caller may wait for an event: less than `most` while a limit of processor time is looked after. */
int ops_run_wait(const struct ops_run *run, int most);
/* Behind a -1: if the whole sandbox ended, err says that. */
void ops_run_explain(const struct ops_run *run, struct err *err);
void ops_run_close(struct ops_run *run);

/* Start, follow, collect: for callers that want the whole answer. The process is killed when the client goes. */
struct ops_output {
    char *data[2]; /* EXEC_STDOUT, EXEC_STDERR; NUL-terminated behind len */
    size_t len[2];
    bool truncated[2]; /* there was more: the first bytes are here, result says how many in all */
    uint32_t proc;
    struct exec_result result;
};
int ops_run_collect(struct ops *ops, const char *sandbox, const struct ops_command *command,
                    size_t output_max, struct ops_output *ret, struct err *err);
void ops_output_done(struct ops_output *output);

/* ---- a sandbox for one command ---- */

struct ops_once_file {
    const char *path;
    const void *data;
    size_t len;
    uint32_t mode; /* UINT32_MAX: the default */
};

struct ops_once {
    struct ops_create create; /* its timeout is set here */
    const char *user;         /* whose files; NULL: the template's */
    const struct ops_once_file *files;
    size_t file_count;
    uint64_t timeout_ms; /* of the command */
};
/* A sandbox with its files, for ops_run_* and ops_file_*; then ops_once_end, also when those fail. -1: there is none. */
int ops_once_begin(struct ops *ops, const struct ops_once *once, char ret_sandbox[ID_LEN + 1],
                   struct err *err);
/* Removes it, behind the caller's back: at once as a rule, at its deadline if the keeper is away. */
void ops_once_end(struct ops *ops, const char *sandbox);

/* "exit", "signal", "timeout", "cpu_timeout", "oom", "lost" */
const char *ops_exit_reason(const struct exec_result *result);
/* As a shell would say it: 124 for either timeout, 137 out of memory, 128+n for a signal. */
uint32_t ops_exit_code(const struct exec_result *result);

int ops_process_list(struct ops *ops, const char *sandbox, exec_item_fn each, void *context,
                     struct err *err);
/* One that the agent started, by its pid or its tag: the one that runs, else the last that had it. */
struct ops_process {
    uint32_t proc, pid;
    bool running, pty, takes_stdin;
};
int ops_process_find(struct ops *ops, const char *sandbox, uint32_t pid, const char *tag,
                     struct ops_process *ret, struct err *err);
/* `all`: every descendant. */
int ops_process_signal(struct ops *ops, const char *sandbox, uint32_t proc, uint32_t number,
                       bool all, uint64_t *ret_count, struct err *err);
/* Bytes for the stdin of a process started with AGENT_STDIN or a terminal; `end` closes it behind them. */
int ops_process_stdin(struct ops *ops, const char *sandbox, uint32_t proc, const void *data,
                      size_t len, bool end, struct err *err);
/* Of a process with a terminal. */
int ops_process_resize(struct ops *ops, const char *sandbox, uint32_t proc, uint16_t rows,
                       uint16_t columns, struct err *err);
/* System calls that the filter refused, by program: call, program, pid, count. */
int ops_refusal_list(struct ops *ops, const char *sandbox, exec_item_fn each, void *context,
                     struct err *err);
int ops_port_list(struct ops *ops, const char *sandbox, exec_item_fn each, void *context,
                  struct err *err);

/* ---- cells: code for an interpreter that runs already, started with AGENT_STDIN and AGENT_DETACH ---- */

struct ops_cell {
    const char *program, *option; /* what would run such code: "python3", "-c"; NULL: a shell */
    const char *code;             /* for policy and audit */
    uint32_t proc;                /* the interpreter */
    uint64_t from_stdout, from_stderr;
    const char *line; /* for its stdin, which stays open; borrowed until the end */
    size_t line_len;
};

/* Policy and audit: once per cell, before it is started. */
int ops_cell_judge(struct ops *ops, const char *sandbox, const struct ops_cell *cell,
                   struct err *err);
/* Then ops_cell_next, and ops_run_close, which leaves the interpreter running. */
int ops_cell_start(struct ops *ops, const char *sandbox, const struct ops_cell *cell,
                   struct ops_run *ret, struct err *err);
/* 1 with an event; 0: wait_ms passed, or the client went away just now, which *ret_gone then says (and the caller
 * may continue without it); -1. */
int ops_cell_next(struct ops *ops, struct ops_run *run, int wait_ms, bool *ret_gone,
                  struct exec_event *ret, struct err *err);

/* ---- files ---- */

/* Which sandbox, whose rights (NULL: the template's user), and which path. */
struct ops_file {
    const char *sandbox, *user, *path;
    bool as_root; /* root's rights where the sandbox has root, in the user's name: AGENT_AS_ROOT */
    const char *attr_prefix; /* as in struct files_at, and those below */
    struct texts attrs;
    const char *owner, *group;
};

/* flags as in client/files.h */
int ops_file_stat(struct ops *ops, const struct ops_file *file, uint32_t flags,
                  struct file_info *ret, struct err *err);
int ops_file_list(struct ops *ops, const struct ops_file *file, uint32_t depth, uint64_t limit,
                  exec_item_fn each, void *context, bool *ret_truncated, struct err *err);
/* Entries as the agent tells them: op AGENT_STAT or AGENT_LIST, depth, limit and flags of `request`. ret_truncated
 * may be NULL. */
int ops_file_entries(struct ops *ops, const struct ops_file *file,
                     const struct agent_request *request, exec_item_fn each, void *context,
                     bool *ret_truncated, struct err *err);
/* op AGENT_GLOB or AGENT_GREP, pattern, include, flags, limit and context of `request`. */
int ops_file_search(struct ops *ops, const struct ops_file *file,
                    const struct agent_request *request, exec_item_fn each, void *context,
                    bool *ret_truncated, struct err *err);
/* Then files_read_next until 0, and stream_close. */
int ops_file_read(struct ops *ops, const struct ops_file *file, uint64_t offset, uint64_t length,
                  struct stream *ret, struct file_info *ret_info, struct err *err);
/* Then files_write_next, ops_file_write_end, and stream_close. mode UINT32_MAX: the default. */
int ops_file_write(struct ops *ops, const struct ops_file *file, uint32_t mode, uint32_t flags,
                   struct stream *ret, struct err *err);
int ops_file_write_end(struct ops *ops, const struct ops_file *file, struct stream *stream,
                       struct file_info *ret_info, struct err *err);
int ops_file_mkdir(struct ops *ops, const struct ops_file *file, uint32_t mode, uint32_t flags,
                   bool *ret_existed, struct err *err);
int ops_file_move(struct ops *ops, const struct ops_file *file, const char *to, uint32_t flags,
                  struct err *err);
int ops_file_remove(struct ops *ops, const struct ops_file *file, uint32_t flags,
                    uint64_t *ret_count, struct err *err);
int ops_file_chmod(struct ops *ops, const struct ops_file *file, uint32_t mode, uint32_t flags,
                   struct err *err);
/* Whole trees. Then as client/files.h says, and stream_close; each entry is asked of ops_file_pack_may or _unpack_may
 * before it continues: 0 it may, -1 it may not. */
int ops_file_pack(struct ops *ops, const struct ops_file *file, uint32_t flags, struct stream *ret,
                  struct file_info *ret_info, struct err *err);
int ops_file_pack_may(struct ops *ops, const struct ops_file *file, const char *entry,
                      struct err *err);
int ops_file_unpack(struct ops *ops, const struct ops_file *file, uint32_t flags,
                    struct stream *ret, struct err *err);
int ops_file_unpack_may(struct ops *ops, const struct ops_file *file, const char *entry,
                        struct err *err);
/* failed: NULL, and it is ended here; or why no more entries come. Either way it is noted. */
int ops_file_unpack_end(struct ops *ops, const struct ops_file *file, struct stream *stream,
                        const struct err *failed, uint64_t *ret_entries, uint64_t *ret_bytes,
                        struct err *err);
/* Then files_watch_poll, and stream_close. */
int ops_file_watch(struct ops *ops, const struct ops_file *file, uint32_t flags, struct stream *ret,
                   struct err *err);

/* ---- volumes ---- */

struct ops_volume {
    char tenant[OPS_NAME_MAX];
    char id[VOLUME_ID_MAX];
    char name[OPS_NAME_MAX];
    uint64_t bytes, inodes, created_ms;
    uint64_t stored; /* what the host's disk holds of it */
    uint32_t readers, writers;
};
/* inodes 0: by its size. ERR_EXISTS, ERR_TOO_MANY for the quota of stored bytes. */
int ops_volume_create(struct ops *ops, const char *name, uint64_t bytes, uint64_t inodes,
                      struct ops_volume *ret, struct err *err);
/* By name; the list is the caller's to free. */
int ops_volume_list(struct ops *ops, struct ops_volume **ret, size_t *ret_count, struct err *err);
/* By name or id, as the next; with the sandboxes that have it, for the caller to free. */
int ops_volume_get(struct ops *ops, const char *name, struct ops_volume *ret,
                   struct volume_user **ret_users, size_t *ret_count, struct err *err);
/* ERR_VOLUME_BUSY while a sandbox has it. */
int ops_volume_remove(struct ops *ops, const char *name, struct err *err);
json_t *ops_volumes_json(const struct ops_mount *mounts, size_t count);

/* ---- egress (network.h) ---- */

struct network_event;

int ops_network_get(struct ops *ops, const char *sandbox, struct reach *ret, struct err *err);
/* Counts at once, also for connections that are open. Without a proxy they get what their template or tenant has. */
int ops_network_set(struct ops *ops, const char *sandbox, struct reach *rules, struct err *err);
/* Of the caller's tenant: what sandboxes get whose create says nothing. */
int ops_network_default_get(struct ops *ops, struct reach *ret, bool *ret_found, struct err *err);
/* NULL: none any more. */
int ops_network_default_set(struct ops *ops, const struct reach *rules, struct err *err);
/* One rule more; ret: what there is then. */
int ops_network_allow(struct ops *ops, const char *sandbox, const char *rule, struct reach *ret,
                      struct err *err);
int ops_network_events(struct ops *ops, const char *sandbox, uint64_t after,
                       struct network_event *out, size_t most, size_t *ret_count, struct err *err);
/* Names of its secrets, and headers that are set for it; NULL: none. The caller's to json_decref. */
json_t *ops_network_secrets(struct ops *ops, const char *sandbox);
json_t *ops_network_rules(struct ops *ops, const char *sandbox);
/* Headers in the place of those; NULL: none. */
int ops_network_set_rules(struct ops *ops, const char *sandbox, const json_t *rules,
                          struct err *err);

/* ---- secrets of the tenant ---- */

struct ops_secret {
    const char *value;
    size_t len;
    const json_t *hosts; /* an array of texts: base/host.h */
};
int ops_secret_set(struct ops *ops, const char *name, const struct ops_secret *secret,
                   struct err *err);
int ops_secret_remove(struct ops *ops, const char *name, struct err *err);
/* An array; values are not in it. */
int ops_secret_list(struct ops *ops, json_t **ret, struct err *err);

/* ---- the way in (preview.h) ---- */

int ops_preview_get(struct ops *ops, const char *sandbox, struct preview_rules *ret,
                    struct err *err);
/* Counts for the next request. */
int ops_preview_set(struct ops *ops, const char *sandbox, const struct preview_rules *rules,
                    struct err *err);
/* The token that opens all ports; it is shown to who may run things in it. */
int ops_preview_token(struct ops *ops, const char *sandbox, char *out, size_t size,
                      struct err *err);
/* Takes back every token and link that there is of it, and the cookies made of them. */
int ops_preview_roll(struct ops *ops, const char *sandbox, struct err *err);
#define OPS_LINK_SECONDS_MOST (7u * 24 * 3600)
/* A link to one port, in the caller's name: it goes with the caller's key. ret_expires: seconds since 1970. */
int ops_preview_link(struct ops *ops, const char *sandbox, uint16_t port, uint64_t seconds,
                     char *out, size_t size, uint64_t *ret_expires, struct err *err);
/* ---- private networks (private.h, store/private.h): changes count at once, also for connections that are open ---- */

/* *ret_made: not there before. */
int ops_private_make(struct ops *ops, const char *name, struct private_network *ret, bool *ret_made,
                     struct err *err);
int ops_private_remove(struct ops *ops, const char *name, struct err *err);
int ops_private_get(struct ops *ops, const char *name, struct private_network *ret,
                    struct err *err);
int ops_private_list(struct ops *ops,
                     int (*each)(void *, const struct private_network *, struct err *), void *arg,
                     struct err *err);
/* name NULL: of all the tenant's networks. */
int ops_private_members(struct ops *ops, const char *name,
                        int (*each)(void *, const struct private_member *, struct err *), void *arg,
                        struct err *err);
int ops_private_join(struct ops *ops, const struct private_member *join, struct private_member *ret,
                     struct err *err);
int ops_private_leave(struct ops *ops, const char *network, const char *sandbox, struct err *err);

/* A raw byte stream to a TCP port inside. */
int ops_port_dial(struct ops *ops, const char *sandbox, uint16_t port, int *ret_fd,
                  struct err *err);

#endif
