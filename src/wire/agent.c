#include "wire/agent.h"

#include "base/own.h"

#include <string.h>

#define AT(field) offsetof(struct agent_request, field)

const struct field agent_request_fields[] = {
    { 1, "version", FIELD_U32, AT(version), 0 },
    { 2, "op", FIELD_U32, AT(op), 0 },
    { 3, "flags", FIELD_U32, AT(flags), AGENT_FLAG_ALL },
    { 4, "proc", FIELD_U32, AT(proc), 0 },
    { 5, "user", FIELD_TEXT, AT(user), 64 },
    { 6, "path", FIELD_TEXT, AT(path), AGENT_PATH_MAX },
    { 7, "to", FIELD_TEXT, AT(to), AGENT_PATH_MAX },
    { 8, "command", FIELD_TEXT, AT(command), AGENT_TEXT_MAX },
    { 9, "args", FIELD_LIST, AT(args), AGENT_TEXT_MAX },
    { 10, "env", FIELD_LIST, AT(env), AGENT_TEXT_MAX },
    { 11, "cwd", FIELD_TEXT, AT(cwd), AGENT_PATH_MAX },
    { 12, "tag", FIELD_TEXT, AT(tag), 256 },
    { 13, "rows", FIELD_U32, AT(rows), 65535 },
    { 14, "columns", FIELD_U32, AT(columns), 65535 },
    { 15, "timeout", FIELD_U64, AT(timeout_ms), 0 },
    { 16, "ring", FIELD_U64, AT(ring_bytes), 0 },
    { 17, "from_stdout", FIELD_U64, AT(from_stdout), 0 },
    { 18, "from_stderr", FIELD_U64, AT(from_stderr), 0 },
    { 19, "offset", FIELD_U64, AT(offset), 0 },
    { 20, "length", FIELD_U64, AT(length), 0 },
    { 21, "signal", FIELD_U32, AT(signal), 64 },
    { 22, "mode", FIELD_U32, AT(mode), AGENT_MODE_SET | 07777 },
    { 23, "depth", FIELD_U32, AT(depth), 1000 },
    { 24, "owner", FIELD_TEXT, AT(owner), 64 },
    { 25, "group", FIELD_TEXT, AT(group), 64 },
    { 26, "name", FIELD_TEXT, AT(name), 256 },
    { 27, "value", FIELD_BYTES, AT(value), 65536 },
    { 28, "pattern", FIELD_TEXT, AT(pattern), 4096 },
    { 29, "include", FIELD_TEXT, AT(include), 256 },
    { 30, "limit", FIELD_U64, AT(limit), 0 },
    { 31, "context_before", FIELD_U32, AT(context_before), 1000 },
    { 32, "context_after", FIELD_U32, AT(context_after), 1000 },
    { 33, "port", FIELD_U32, AT(port), 65535 },
    { 34, "attrs", FIELD_LIST, AT(attrs), AGENT_ATTRS_MAX },
    { 35, "pid", FIELD_U32, AT(pid), 0 },
    { 36, "peer", FIELD_TEXT, AT(peer), 64 },
    { 37, "peer_port", FIELD_U32, AT(peer_port), 65535 },
    { 38, "cpu_timeout", FIELD_U64, AT(cpu_timeout_ms), 0 },
};
const size_t agent_request_field_count = ARRAY_LEN(agent_request_fields);

#undef AT
#define AT(field) offsetof(struct agent_reply, field)

const struct field agent_reply_fields[] = {
    { 1, "kind", FIELD_U32, AT(kind), 0 },
    { 2, "message", FIELD_TEXT, AT(message), ERR_MSG_MAX },
    { 3, "version", FIELD_U32, AT(version), 0 },
    { 4, "flags", FIELD_U32, AT(flags), 0 },
    { 5, "proc", FIELD_U32, AT(proc), 0 },
    { 6, "pid", FIELD_U32, AT(pid), 0 },
    { 7, "path", FIELD_TEXT, AT(path), 2 * AGENT_PATH_MAX },
    { 8, "target", FIELD_TEXT, AT(target), 2 * AGENT_PATH_MAX },
    { 9, "type", FIELD_U32, AT(type), ENTRY_BLOCK },
    { 10, "mode", FIELD_U32, AT(mode), 07777 },
    { 11, "uid", FIELD_U32, AT(uid), 0 },
    { 12, "gid", FIELD_U32, AT(gid), 0 },
    { 13, "owner", FIELD_TEXT, AT(owner), 64 },
    { 14, "group", FIELD_TEXT, AT(group), 64 },
    { 15, "size", FIELD_U64, AT(size), 0 },
    { 16, "mtime", FIELD_I64, AT(mtime_ns), 0 },
    { 17, "event", FIELD_U32, AT(event), EVENT_OVERFLOW },
    { 18, "ended", FIELD_U32, AT(ended), EXIT_COUNT - 1 },
    { 19, "exit_code", FIELD_U32, AT(exit_code), 255 },
    { 20, "signal", FIELD_U32, AT(signal), 64 },
    { 21, "wall_ms", FIELD_U64, AT(wall_ms), 0 },
    { 22, "cpu_ms", FIELD_U64, AT(cpu_ms), 0 },
    { 23, "peak_bytes", FIELD_U64, AT(peak_bytes), 0 },
    { 24, "stdout_bytes", FIELD_U64, AT(stdout_bytes), 0 },
    { 25, "stderr_bytes", FIELD_U64, AT(stderr_bytes), 0 },
    { 26, "args", FIELD_LIST, AT(args), 4096 },
    { 27, "cwd", FIELD_TEXT, AT(cwd), AGENT_PATH_MAX },
    { 28, "tag", FIELD_TEXT, AT(tag), 256 },
    { 29, "user", FIELD_TEXT, AT(user), 64 },
    { 30, "started_ms", FIELD_I64, AT(started_ms), 0 },
    { 31, "uptime_ms", FIELD_U64, AT(uptime_ms), 0 },
    { 32, "count", FIELD_U64, AT(count), 0 },
    { 33, "total", FIELD_U64, AT(total), 0 },
    { 34, "line", FIELD_U64, AT(line), 0 },
    { 35, "column", FIELD_U64, AT(column), 0 },
    { 36, "data", FIELD_BYTES, AT(data), 32768 },
    { 37, "name", FIELD_TEXT, AT(name), 256 },
    { 38, "program", FIELD_TEXT, AT(program), 256 },
    { 39, "port", FIELD_U32, AT(port), 65535 },
    { 40, "address", FIELD_TEXT, AT(address), 64 },
    { 41, "target_type", FIELD_U32, AT(target_type), ENTRY_BLOCK },
    { 42, "target_mode", FIELD_U32, AT(target_mode), 07777 },
    { 43, "attrs", FIELD_LIST, AT(attrs), AGENT_ATTRS_MAX },
    { 44, "agent_cpu_ms", FIELD_U64, AT(agent_cpu_ms), 0 },
    { 45, "oom_kills", FIELD_U32, AT(oom_kills), 0 },
};
const size_t agent_reply_field_count = ARRAY_LEN(agent_reply_fields);

const struct agent_op_info agent_ops[AGENT_OP_COUNT] = {
    /*                       name       flags                                     path  as user */
    [AGENT_NONE] = { "none", 0, 0, 0 },
    [AGENT_INFO] = { "info", 0, 0, 0 },
    [AGENT_EXEC] = { "exec",
                     AGENT_PTY | AGENT_STDIN | AGENT_DETACH | AGENT_KILL_ON_CLOSE |
                         AGENT_INHERIT_FDS,
                     0, 0 },
    [AGENT_ATTACH] = { "attach", AGENT_NO_OUTPUT | AGENT_KILL_ON_CLOSE, 0, 0 },
    [AGENT_SIGNAL] = { "signal", AGENT_ALL, 0, 0 },
    [AGENT_PROCS] = { "procs", 0, 0, 0 },
    [AGENT_STAT] = { "stat", AGENT_NOFOLLOW | AGENT_RESOLVE | AGENT_AS_ROOT, 1, 1 },
    [AGENT_LIST] = { "list", AGENT_RESOLVE | AGENT_SORTED | AGENT_AS_ROOT, 1, 1 },
    [AGENT_READ] = { "read", AGENT_AS_ROOT, 1, 1 },
    [AGENT_WRITE] = { "write",
                      AGENT_ATOMIC | AGENT_PARENTS | AGENT_APPEND | AGENT_CREATE | AGENT_AS_ROOT, 1,
                      1 },
    [AGENT_MKDIR] = { "mkdir", AGENT_PARENTS | AGENT_AS_ROOT, 1, 1 },
    [AGENT_MOVE] = { "move", AGENT_PARENTS | AGENT_AS_ROOT, 1, 1 },
    [AGENT_REMOVE] = { "remove", AGENT_RECURSIVE | AGENT_AS_ROOT, 1, 1 },
    [AGENT_CHMOD] = { "chmod", AGENT_RECURSIVE | AGENT_AS_ROOT, 1, 1 },
    [AGENT_CHOWN] = { "chown", AGENT_RECURSIVE | AGENT_AS_ROOT, 1, 1 },
    [AGENT_XATTR_GET] = { "xattr-get", AGENT_AS_ROOT, 1, 1 },
    [AGENT_XATTR_SET] = { "xattr-set", AGENT_AS_ROOT, 1, 1 },
    [AGENT_XATTR_LIST] = { "xattr-list", AGENT_AS_ROOT, 1, 1 },
    [AGENT_XATTR_REMOVE] = { "xattr-remove", AGENT_AS_ROOT, 1, 1 },
    [AGENT_WATCH] = { "watch", AGENT_RECURSIVE | AGENT_RESOLVE | AGENT_AS_ROOT, 1, 1 },
    [AGENT_GLOB] = { "glob", AGENT_HIDDEN, 1, 1 },
    [AGENT_GREP] = { "grep", AGENT_IGNORE_CASE | AGENT_FIXED | AGENT_FILES_ONLY | AGENT_HIDDEN, 1,
                     1 },
    [AGENT_PORTS] = { "ports", 0, 0, 1 },
    [AGENT_DIAL] = { "dial", 0, 0, 1 },
    [AGENT_QUIESCE] = { "quiesce", 0, 0, 0 },
    [AGENT_REFUSALS] = { "refusals", 0, 0, 0 },
    [AGENT_PACK] = { "pack", AGENT_READABLE, 1, 1 },
    [AGENT_UNPACK] = { "unpack", AGENT_PARENTS | AGENT_THROUGH, 1, 1 },
    [AGENT_OWNER] = { "owner", AGENT_DATAGRAM, 0, 1 },
    [AGENT_RESUMED] = { "resumed", 0, 0, 0 },
};

ssize_t agent_request_encode(const struct agent_request *request, void *out, size_t size,
                             struct err *err)
{
    return record_encode(agent_request_fields, agent_request_field_count, request, out, size, err);
}

/* What an op cannot do without, beyond a path. */
static int check_needs(const struct agent_request *r, struct err *err)
{
    switch ((enum agent_op) r->op) {
    case AGENT_EXEC:
        if (!r->command == !r->args.len)
            return err_set(err, ERR_INVALID, "exec: takes a command or args, one of them");
        return 0;
    case AGENT_ATTACH:
    case AGENT_SIGNAL:
        if (!r->proc)
            return err_set(err, ERR_INVALID, "%s: proc is missing", agent_ops[r->op].name);
        return 0;
    case AGENT_MOVE:
        if (!r->to)
            return err_set(err, ERR_INVALID, "move: to is missing");
        return 0;
    case AGENT_CHMOD:
        if (!(r->mode & AGENT_MODE_SET))
            return err_set(err, ERR_INVALID, "chmod: mode is missing");
        return 0;
    case AGENT_CHOWN:
        if (!r->owner && !r->group)
            return err_set(err, ERR_INVALID, "chown: owner or group is missing");
        return 0;
    case AGENT_XATTR_GET:
    case AGENT_XATTR_SET:
    case AGENT_XATTR_REMOVE:
        if (!r->name)
            return err_set(err, ERR_INVALID, "%s: name is missing", agent_ops[r->op].name);
        return 0;
    case AGENT_GLOB:
    case AGENT_GREP:
        if (!r->pattern)
            return err_set(err, ERR_INVALID, "%s: pattern is missing", agent_ops[r->op].name);
        return 0;
    case AGENT_DIAL:
        if (!r->port)
            return err_set(err, ERR_INVALID, "dial: port is missing");
        return 0;
    case AGENT_OWNER:
        if (!r->port || !r->peer || !r->peer_port)
            return err_set(err, ERR_INVALID, "owner: an end of the connection is missing");
        return 0;
    case AGENT_RESUMED:
        if (!r->name)
            return err_set(err, ERR_INVALID, "resumed: the reason is missing");
        return 0;
    case AGENT_NONE:
    case AGENT_INFO:
    case AGENT_PROCS:
    case AGENT_STAT:
    case AGENT_LIST:
    case AGENT_READ:
    case AGENT_WRITE:
    case AGENT_MKDIR:
    case AGENT_REMOVE:
    case AGENT_XATTR_LIST:
    case AGENT_WATCH:
    case AGENT_PORTS:
    case AGENT_QUIESCE:
    case AGENT_REFUSALS:
    case AGENT_PACK:
    case AGENT_UNPACK:
    case AGENT_OP_COUNT:
        break;
    }
    return 0;
}

int agent_request_decode(struct agent_request *r, const void *data, size_t len, struct err *err)
{
    if (record_decode(agent_request_fields, agent_request_field_count, r, data, len, err) < 0)
        return -1;
    if (r->version != AGENT_VERSION)
        return err_set(err, ERR_PROTOCOL, "version %u, this agent speaks %u", r->version,
                       AGENT_VERSION);
    if (r->op == AGENT_NONE || r->op >= AGENT_OP_COUNT)
        return err_set(err, ERR_PROTOCOL, "unknown operation %u", r->op);
    if (r->flags & ~agent_ops[r->op].flags)
        return err_set(err, ERR_INVALID, "%s: unknown flags 0x%x", agent_ops[r->op].name,
                       r->flags & ~agent_ops[r->op].flags);
    if (agent_ops[r->op].needs_path && (!r->path || !r->path[0]))
        return err_set(err, ERR_INVALID, "%s: path is missing", agent_ops[r->op].name);
    return check_needs(r, err);
}

ssize_t agent_reply_encode(const struct agent_reply *reply, void *out, size_t size, struct err *err)
{
    return record_encode(agent_reply_fields, agent_reply_field_count, reply, out, size, err);
}

int agent_reply_decode(struct agent_reply *reply, const void *data, size_t len, struct err *err)
{
    return record_decode(agent_reply_fields, agent_reply_field_count, reply, data, len, err);
}

static const char *const entry_types[] = { "none", "file",   "directory", "symlink",
                                           "fifo", "socket", "char",      "block" };
static const char *const events[] = { "none",   "create", "write",   "remove",
                                      "rename", "chmod",  "overflow" };
static const char *const exits[] = { "none", "exit", "signal",     "timeout",
                                     "oom",  "lost", "cpu_timeout" };
_Static_assert(ARRAY_LEN(exits) == EXIT_COUNT, "every end has a name");

#define NAME_OF(table, i) ((i) < ARRAY_LEN(table) ? (table)[i] : "unknown")

const char *agent_entry_type_name(uint32_t type)
{
    return NAME_OF(entry_types, type);
}

const char *agent_event_name(uint32_t event)
{
    return NAME_OF(events, event);
}

const char *agent_exit_name(uint32_t ended)
{
    return NAME_OF(exits, ended);
}
