/* tools.h - the tools surface: what coding agents call, each by name and with arguments as they know them.
 *
 * POST /execute takes any tool of the table; /bash, /file/read, /file/write and /search are four of them with the
 * arguments at the top. Without a sandbox_id a call goes to the caller's default sandbox (tools_session.h).
 *
 * Callers: routes.c, by tools_routes.h.
 * Never:   talks to a sandbox by itself: everything goes through ops.h. */
#ifndef COVE_SURFACE_TOOLS_TOOLS_H
#define COVE_SURFACE_TOOLS_TOOLS_H

#include "server/form/form.h"
#include "server/serve/exchange.h"
#include "surface/tools/tools_session.h"

#define TOOLS_BODY (16ull << 20)

/* One call of a tool. */
struct tool_call {
    struct ops *ops;
    const struct session *session; /* the sandbox, and what it was made with */
    json_t *arguments;             /* borrowed from the request */
    json_t *answer;                /* an object: the tool adds to it */
    ops_watch_fn *watch;           /* sees the output of a command as it comes; NULL: no watcher */
    void *watch_context;
};

/* What a tool does to a sandbox. */
enum tool_effect {
    TOOL_READS,  /* changes nothing */
    TOOL_WRITES, /* changes files; the same call again changes nothing more */
    TOOL_RUNS    /* runs programs: may do whatever the sandbox may */
};

struct tool {
    const char *name;  /* as coding agents call it */
    const char *plain; /* the same for MCP: lower case, with underscores */
    const char *help;  /* one line, for people */
    const char *brief; /* for a model: when and how to use it */
    enum tool_effect effect;
    int (*run)(struct tool_call *call, struct err *err);
    const struct form *form; /* of its arguments */
};
extern const struct tool tools_table[];
extern const size_t tools_count;

/* The names of its arguments, "file_path, offset, limit"; cut if they do not fit. */
void tool_arguments(const struct tool *tool, char *out, size_t size);

/* A call in the named sandbox, or in the caller's default one (NULL), which is made if need be. */
struct tools_order {
    const struct tool *tool;
    const char *sandbox;
    json_t *arguments;   /* borrowed: an object */
    ops_watch_fn *watch; /* as in struct tool_call */
    void *watch_context;
};
int tools_call(struct ops *ops, const struct tools_order *order, json_t **ret, struct err *err);

/* sandbox_id: every tool that works in a sandbox can be told in which. Tools do not read it. */
extern const struct form tool_where_form;
/* The bodies of routes: sandbox_id and the arguments of one tool; any tool. */
extern const struct form tool_bash_body_form, tool_read_body_form, tool_write_body_form,
    tool_search_body_form, tools_execute_form;

extern const struct form tool_bash_form, tool_bash_output_form, tool_kill_form, tool_read_form,
    tool_write_form, tool_edit_form, tool_multi_edit_form, tool_glob_form, tool_grep_form,
    tool_ls_form;

int tool_bash(struct tool_call *call, struct err *err);
int tool_bash_output(struct tool_call *call, struct err *err);
int tool_kill(struct tool_call *call, struct err *err);
int tool_read(struct tool_call *call, struct err *err);
int tool_write(struct tool_call *call, struct err *err);
int tool_edit(struct tool_call *call, struct err *err);
int tool_multi_edit(struct tool_call *call, struct err *err);
int tool_glob(struct tool_call *call, struct err *err);
int tool_grep(struct tool_call *call, struct err *err);
int tool_ls(struct tool_call *call, struct err *err);

int tools_route_execute(struct exchange *x, struct err *err);
int tools_route_bash(struct exchange *x, struct err *err);
int tools_route_read(struct exchange *x, struct err *err);
int tools_route_write(struct exchange *x, struct err *err);
int tools_route_search(struct exchange *x, struct err *err);
int tools_route_list(struct exchange *x, struct err *err);
int tools_route_sandbox_make(struct exchange *x, struct err *err);
int tools_route_sandbox_get(struct exchange *x, struct err *err);
int tools_route_sandbox_end(struct exchange *x, struct err *err);
int tools_route_presets(struct exchange *x, struct err *err);
int tools_route_audit(struct exchange *x, struct err *err);
int tools_route_stats(struct exchange *x, struct err *err);

#endif
