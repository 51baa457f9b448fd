/* exec.h - a process in a sandbox: started or attached to, its output, its end.
 *
 * Owns:    one agent stream. Closing it leaves the process running, unless it was started with
 *          AGENT_KILL_ON_CLOSE.
 * Callers: code that runs commands. Pull style, so that a caller can poll several things at once:
 *
 *   exec_start(&exec, link, "box", &request, &err);
 *   while ((r = exec_next(&exec, &event, &err)) == 1 && event.type != EXEC_END) ...
 *
 * Never:   buffers output: a caller that does not call exec_next stops the process, and nothing else. */
#ifndef COVE_CLIENT_EXEC_H
#define COVE_CLIENT_EXEC_H

#include "client/stream.h"

enum exec_event_type { EXEC_STDOUT, EXEC_STDERR, EXEC_END };

struct exec_result {
    enum agent_exit ended;
    uint32_t exit_code, signal;
    uint64_t wall_ms, cpu_ms, peak_bytes;
    uint64_t stdout_bytes, stderr_bytes;
    uint64_t refused_calls; /* system calls that the filter refused in the sandbox while it ran */
    /* With a CPU limit: whether another command ran meanwhile, and what the agent itself used. */
    bool beside;
    uint64_t agent_cpu_ms;
    uint64_t sandbox_peak_bytes; /* set by callers that ask the keeper; else 0 */
    bool with_sandbox;           /* set by the same callers: the whole sandbox ended */
};

struct exec_event {
    enum exec_event_type type;
    const uint8_t *data; /* borrowed, until the next call */
    uint32_t len;
    uint64_t offset;           /* of data's first byte in its stream */
    uint64_t missed;           /* bytes that were dropped before it */
    struct exec_result result; /* EXEC_END */
};

struct exec {
    struct stream stream; /* stream.fd is the one to poll */
    uint32_t proc;        /* handle, for attach and signal */
    uint32_t pid;         /* inside the sandbox */
    uint64_t next_offset[2];
    bool ended;
};

#define EXEC_NONE ((struct exec){ .stream = { .fd = -1 } })

/* `request` as for AGENT_EXEC; its op is filled in. */
int exec_start(struct exec *exec, struct link *link, const char *sandbox,
               const struct agent_request *request, struct err *err);
/* `request` has proc, from_stdout, from_stderr and flags. */
int exec_attach(struct exec *exec, struct link *link, const char *sandbox,
                const struct agent_request *request, struct err *err);
/* The same on a connection that is there already (link_connect_counted); the descriptor is taken, also on failure. */
int exec_start_on(struct exec *exec, int fd, int patience_ms, const struct agent_request *request,
                  struct err *err);
int exec_attach_on(struct exec *exec, int fd, int patience_ms, const struct agent_request *request,
                   struct err *err);
void exec_close(struct exec *exec);

/* 1 and an event, or -1; waits as long as it takes. Nothing follows EXEC_END. */
int exec_next(struct exec *exec, struct exec_event *ret, struct err *err);
/* Without waiting: 0 when there is none. */
int exec_poll(struct exec *exec, struct exec_event *ret, struct err *err);

/* Queued whole (1), or not at all (0: flush first). exec_flush never waits. */
int exec_stdin(struct exec *exec, const void *data, uint32_t len);
int exec_stdin_end(struct exec *exec);
int exec_resize(struct exec *exec, uint16_t rows, uint16_t columns);
int exec_signal(struct exec *exec, uint32_t number);
int exec_flush(struct exec *exec, struct err *err);

/* Of a process that another client started: reached processes are counted. `flags`: AGENT_ALL. */
int exec_kill(struct link *link, const char *sandbox, uint32_t proc, uint32_t number,
              uint32_t flags, uint64_t *ret_count, struct err *err);

/* Texts one behind the other, as args and env of a request want them. *ret_buffer is the caller's
 * to free, and what ret_texts points into. */
int exec_texts(const char *const *items, size_t count, struct texts *ret_texts, char **ret_buffer,
               struct err *err);

/* One call per item of PROCS, REFUSALS or PORTS; a callback that returns -1 ends it. */
typedef int (*exec_item_fn)(void *context, const struct agent_reply *item, struct err *err);
int exec_items(struct link *link, const char *sandbox, enum agent_op op, exec_item_fn each,
               void *context, struct err *err);
/* Of PROCS, only those with proc, pid and tag of `which` (0 and NULL: any). */
int exec_find(struct link *link, const char *sandbox, const struct agent_request *which,
              exec_item_fn each, void *context, struct err *err);
/* It is a copy, and was made long after its image: what its programs are told, and find in /run/cove/resumed. */
int exec_resumed(struct link *link, const char *sandbox, uint64_t slept_ms, struct err *err);
/* What the agent knows of its sandbox. */
struct exec_info {
    uint64_t uptime_ms, processes, refusals;
    uint64_t oom_kills; /* by a kernel of the sandbox's own: the host's does not know of them */
};
int exec_info(struct link *link, const char *sandbox, struct exec_info *ret, struct err *err);

/* Whose connection is that inside, from its own port to another end? *ret_uid: whose socket; pid 0: no process of
 * `user` (NULL: the template's) holds it. ERR_NO_PATH: unknown connection. What is told is the sandbox's word. */
struct exec_owner {
    uint32_t uid, pid;
    char program[64];
};
struct exec_ends {
    bool datagram; /* of UDP: a socket that is not connected counts as well */
    uint16_t port;
    const char *peer;
    uint16_t peer_port;
};
int exec_owner(struct link *link, const char *sandbox, const char *user,
               const struct exec_ends *ends, struct exec_owner *ret, struct err *err);

/* A raw byte stream to a TCP port inside. */
int exec_dial(struct link *link, const char *sandbox, uint16_t port, int *ret_fd, struct err *err);

#endif
