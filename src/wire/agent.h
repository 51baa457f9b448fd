/* agent.h - what can be asked of the agent in a sandbox, and what it answers.
 *
 * One operation is one connection: the caller sends one FRAME_REQUEST, the agent answers as the
 * table agent_ops says, and the connection ends. Closing early is always allowed. The whole
 * protocol is described in docs/agent-protocol.md.
 *
 * Both sides check: a caller takes nothing in a reply for granted, the agent nothing in a request. */
#ifndef COVE_WIRE_AGENT_H
#define COVE_WIRE_AGENT_H

#include "wire/record.h"

#define AGENT_VERSION   1u
#define AGENT_PATH_MAX  4096u
#define AGENT_TEXT_MAX  (512u * 1024u)
#define AGENT_ATTRS_MAX 8192u

enum agent_op {
    AGENT_NONE,
    AGENT_INFO,         /* REPLY: version, uptime_ms, count (processes), total (refusals) … */
    AGENT_EXEC,         /* REPLY: proc, pid; then as ATTACH */
    AGENT_ATTACH,       /* STDOUT/STDERR ..., EXIT; STDIN, STDIN_END, RESIZE, SIGNAL are taken */
    AGENT_SIGNAL,       /* REPLY: count (processes reached) */
    AGENT_PROCS,        /* ITEM per process started by EXEC, END */
    AGENT_STAT,         /* REPLY: one entry */
    AGENT_LIST,         /* ITEM per entry, END */
    AGENT_READ,         /* REPLY: entry; DATA ..., DATA_END */
    AGENT_WRITE,        /* REPLY (ready); DATA ..., DATA_END are taken; END: entry */
    AGENT_MKDIR,        /* REPLY: entry; flag EXISTED if it was there */
    AGENT_MOVE,         /* REPLY: entry */
    AGENT_REMOVE,       /* REPLY: count */
    AGENT_CHMOD,        /* REPLY: entry */
    AGENT_CHOWN,        /* REPLY: entry */
    AGENT_XATTR_GET,    /* REPLY: data */
    AGENT_XATTR_SET,    /* REPLY */
    AGENT_XATTR_LIST,   /* ITEM: name; END */
    AGENT_XATTR_REMOVE, /* REPLY */
    AGENT_WATCH,        /* REPLY (watching); ITEM per event until the caller closes */
    AGENT_GLOB,         /* ITEM per entry, END (flag TRUNCATED) */
    AGENT_GREP,         /* ITEM per match, END (flag TRUNCATED) */
    AGENT_PORTS,        /* ITEM per listening TCP port, END */
    AGENT_DIAL,         /* REPLY; from then on raw bytes both ways */
    AGENT_QUIESCE,      /* REPLY; then the agent closes every connection but its listener */
    AGENT_REFUSALS,     /* ITEM per refused system call and program, END */
    AGENT_PACK, /* REPLY: entry; ITEM per entry below it, of a file with DATA ..., DATA_END; END */
    AGENT_UNPACK, /* REPLY (ready); ITEM as of PACK and END are taken; END: count, total */
    AGENT_OWNER,  /* REPLY: count 1 if there is such a connection, uid, pid, program */
    AGENT_RESUMED, /* REPLY; of the keeper, after a sandbox was saved: why in `name`, ms away in `limit` */
    AGENT_OP_COUNT
};

/* Flags of a request. */
#define AGENT_PTY           1u  /* EXEC: a terminal instead of pipes */
#define AGENT_STDIN         2u  /* EXEC: stdin stays open for STDIN frames; otherwise it is empty */
#define AGENT_DETACH        4u  /* EXEC: the connection ends after REPLY, the process continues */
#define AGENT_KILL_ON_CLOSE 8u  /* EXEC: the process ends when this connection does */
#define AGENT_NO_OUTPUT     16u /* ATTACH: only EXIT */
#define AGENT_ALL           32u /* SIGNAL: every descendant, not just the process group */
#define AGENT_RECURSIVE     64u /* REMOVE, WATCH, CHMOD, CHOWN */
#define AGENT_ATOMIC        128u    /* WRITE: the old content stays until the new is whole */
#define AGENT_PARENTS       256u    /* WRITE, MKDIR, MOVE, UNPACK: missing parents are made */
#define AGENT_NOFOLLOW      512u    /* STAT: of the link itself */
#define AGENT_APPEND        1024u   /* WRITE */
#define AGENT_CREATE        2048u   /* WRITE: refuse if it exists */
#define AGENT_IGNORE_CASE   4096u   /* GREP */
#define AGENT_FIXED         8192u   /* GREP: pattern is a plain text */
#define AGENT_FILES_ONLY    16384u  /* GREP: one item per file with a match */
#define AGENT_HIDDEN        32768u  /* GLOB, GREP: names with a leading dot too */
#define AGENT_INHERIT_FDS   65536u  /* EXEC by sudo: stdio comes as descriptors with the request */
#define AGENT_RESOLVE       131072u /* STAT, LIST, WATCH: links with what they lead to in the end */
#define AGENT_SORTED        262144u /* LIST: each directory in the order of its names */
#define AGENT_AS_ROOT       524288u /* files: root's power in a sandbox with root, in the user's name */
#define AGENT_READABLE      1048576u /* PACK: what may not be read is left out */
#define AGENT_DATAGRAM      2097152u /* OWNER: of UDP, which need not be connected */
#define AGENT_THROUGH       4194304u /* UNPACK: a link to a directory may stand for the directory */
#define AGENT_FLAG_ALL      8388607u

struct agent_request {
    uint32_t version; /* AGENT_VERSION */
    uint32_t op;
    uint32_t flags;
    uint32_t proc;       /* ATTACH, SIGNAL: the handle of EXEC's reply; PROCS: of this one alone */
    const char *user;    /* whose rights; NULL: the template's user */
    const char *path;    /* absolute, or relative to the user's home */
    const char *to;      /* MOVE: the new path */
    const char *command; /* EXEC: run by a login shell; or args */
    struct texts args;   /* EXEC: argv */
    struct texts env;    /* EXEC: K=V, on top of the user's own environment */
    const char *cwd;     /* EXEC: NULL: home */
    const char *tag;     /* EXEC: a name for PROCS; PROCS: those with this one alone */
    uint32_t rows, columns;
    uint64_t timeout_ms;               /* EXEC: 0: none */
    uint64_t ring_bytes;               /* EXEC: output kept per stream; 0: 256 KiB */
    uint64_t from_stdout, from_stderr; /* ATTACH: first byte wanted */
    uint64_t offset, length;           /* READ: length 0: to the end */
    uint32_t signal;
    uint32_t mode;             /* WRITE, MKDIR, CHMOD: permission bits + AGENT_MODE_SET */
    uint32_t depth;            /* LIST: levels, 0: 1 */
    const char *owner, *group; /* CHOWN; UNPACK: of all that it makes, NULL: the user's */
    const char *name;   /* XATTR_*; STAT, LIST, WATCH, WRITE: the beginning of the names in attrs */
    struct bytes value; /* XATTR_SET */
    const char *pattern; /* GLOB, GREP */
    const char *include; /* GREP: glob that file names must match */
    uint64_t limit;      /* LIST, GLOB, GREP: items at most; 0: the agent's own limit */
    uint32_t context_before, context_after; /* GREP: lines */
    uint32_t port;                          /* DIAL; OWNER: the connection's own end */
    /* WRITE, with name: rest of a name, value, …: all there are of these names */
    struct texts attrs;
    /* PROCS: of this one alone; 0: of any. EXEC by sudo: the asker, where the kernel does not tell it */
    uint32_t pid;
    const char *peer;        /* OWNER: the connection's other end: an address … */
    uint32_t peer_port;      /* … and its port */
    uint64_t cpu_timeout_ms; /* EXEC: processor time of all its processes together; 0: no limit */
};

#define AGENT_MODE_SET 0x10000u /* tells mode 0 from no mode */

enum agent_entry_type {
    ENTRY_NONE,
    ENTRY_FILE,
    ENTRY_DIR,
    ENTRY_LINK,
    ENTRY_FIFO,
    ENTRY_SOCKET,
    ENTRY_CHAR,
    ENTRY_BLOCK
};

enum agent_event {
    EVENT_NONE,
    EVENT_CREATE,
    EVENT_WRITE,
    EVENT_REMOVE,
    EVENT_RENAME, /* path is the old name, target the new one; either may be outside (NULL) */
    EVENT_CHMOD,
    EVENT_OVERFLOW /* events were lost: look again */
};

/* How a process ended. */
enum agent_exit {
    EXIT_NONE,
    EXIT_CODE,
    EXIT_SIGNAL,
    EXIT_TIMEOUT,
    EXIT_OOM,
    EXIT_LOST,
    EXIT_CPU, /* it used more processor time than EXEC allowed */
    EXIT_COUNT
};

/* Flags of a reply. */
#define AGENT_TRUNCATED   1u   /* END: a limit cut the items */
#define AGENT_EXISTED     2u   /* MKDIR */
#define AGENT_RUNNING     4u   /* PROCS: has not ended */
#define AGENT_BINARY      8u   /* GREP: a match in a file that is no text */
#define AGENT_CONTEXT     16u  /* GREP: a neighbour, not a match */
#define AGENT_IS_PTY      32u  /* PROCS */
#define AGENT_ENTRY       64u  /* WATCH: the item has the entry in it */
#define AGENT_TAKES_STDIN 128u /* PROCS: its stdin is open */
#define AGENT_BESIDE      256u /* PROCS, EXIT, with a CPU limit: another command ran while it did */

struct agent_reply {
    uint32_t kind;       /* ERROR: enum err_kind */
    const char *message; /* ERROR */
    uint32_t version;
    uint32_t flags;
    uint32_t proc; /* handle: 1, 2, 3 ... in this sandbox, never reused */
    uint32_t pid;  /* inside the sandbox */
    /* entries */
    const char *path;   /* absolute in LIST, GLOB, GREP, WATCH */
    const char *target; /* of a link; new name of a rename */
    uint32_t type;      /* enum agent_entry_type */
    uint32_t mode;
    uint32_t uid, gid;
    const char *owner, *group; /* names, where /etc/passwd and /etc/group have them */
    uint64_t size;
    int64_t mtime_ns;
    uint32_t event; /* enum agent_event */
    /* processes */
    uint32_t ended; /* enum agent_exit */
    uint32_t exit_code;
    uint32_t signal;
    uint64_t wall_ms, cpu_ms, peak_bytes;
    uint64_t stdout_bytes, stderr_bytes; /* written so far */
    struct texts args;
    const char *cwd, *tag, *user;
    int64_t started_ms; /* real time */
    /* others */
    uint64_t uptime_ms;
    uint64_t count, total; /* total: EXIT: system calls refused in the sandbox meanwhile */
    uint64_t line, column;
    struct bytes data;   /* XATTR_GET value, GREP line */
    const char *name;    /* XATTR_LIST; REFUSALS: system call */
    const char *program; /* REFUSALS, PORTS, OWNER: the process's name */
    uint32_t port;
    const char *address;               /* PORTS */
    uint32_t target_type, target_mode; /* RESOLVE: of what a link leads to; NONE: to nothing */
    struct texts attrs;                /* rest of a name, value, … */
    uint64_t agent_cpu_ms; /* PROCS, EXIT, with a CPU limit: what the agent itself used meanwhile */
    /* INFO, of a virtual machine: processes that its own kernel killed for want of memory. So short that no guest's word makes the sum
     * with the host's count overflow. */
    uint32_t oom_kills;
};

extern const struct field agent_request_fields[];
extern const size_t agent_request_field_count;
extern const struct field agent_reply_fields[];
extern const size_t agent_reply_field_count;

struct agent_op_info {
    const char *name;
    uint32_t flags; /* those that mean something here; others are refused */
    uint8_t needs_path;
    uint8_t as_user; /* done in a child with the user's rights */
};
extern const struct agent_op_info agent_ops[AGENT_OP_COUNT];

ssize_t agent_request_encode(const struct agent_request *request, void *out, size_t size,
                             struct err *err);
/* Fields, version, op, its flags and whether it has what it needs. */
int agent_request_decode(struct agent_request *request, const void *data, size_t len,
                         struct err *err);

ssize_t agent_reply_encode(const struct agent_reply *reply, void *out, size_t size,
                           struct err *err);
int agent_reply_decode(struct agent_reply *reply, const void *data, size_t len, struct err *err);

const char *agent_entry_type_name(uint32_t type);
const char *agent_event_name(uint32_t event);
const char *agent_exit_name(uint32_t ended);

#endif
