#include "base/err.h"

#include "base/own.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_kind_info kinds[] = {
    [ERR_NONE] = { "none", 200, 0, "success" },
    [ERR_INTERNAL] = { "internal", 500, 70, "a fault in cove or the host; the log says more" },
    [ERR_USAGE] = { "usage", 400, 64, "the command line makes no sense" },
    [ERR_INVALID] = { "invalid", 400, 65, "invalid value" },
    [ERR_LIMIT] = { "limit_invalid", 400, 82, "a limit that does not parse or is out of bounds" },
    [ERR_LIMIT_HOST] = { "limit_beyond_host", 422, 83, "a limit beyond what this host has" },
    [ERR_NO_TEMPLATE] = { "template_not_found", 404, 80, "no such template" },
    [ERR_NO_USER] = { "user_not_found", 400, 81, "no such user in the sandbox" },
    [ERR_NAME_TAKEN] = { "name_taken", 409, 84, "another sandbox has that name" },
    [ERR_NO_SANDBOX] = { "sandbox_not_found", 404, 85, "no such sandbox, or it is gone" },
    [ERR_NO_PROCESS] = { "process_not_found", 404, 86, "no such process in the sandbox" },
    [ERR_NO_PATH] = { "path_not_found", 404, 87, "no such file or directory" },
    [ERR_EXISTS] = { "already_exists", 409, 88, "it exists already" },
    [ERR_NOT_DIR] = { "not_a_directory", 400, 89, "a directory was needed" },
    [ERR_IS_DIR] = { "is_a_directory", 400, 90, "a directory was not wanted" },
    [ERR_NOT_FILE] = { "not_a_regular_file", 400, 91, "a regular file was needed" },
    [ERR_NOT_EMPTY] = { "not_empty", 409, 92, "the directory has entries" },
    [ERR_DENIED] = { "permission_denied", 403, 77, "permission denied" },
    [ERR_NO_ROOT] = { "root_not_allowed", 403, 93, "the sandbox was made without root" },
    [ERR_DISK_FULL] = { "disk_full", 507, 94, "no bytes or inodes left on the disk" },
    [ERR_NO_MEMORY] = { "no_memory", 503, 95, "not enough memory" },
    [ERR_NO_IDS] = { "no_free_ids", 503, 96, "every user id range is in use" },
    [ERR_TOO_MANY] = { "too_many", 429, 97, "the limit is reached" },
    [ERR_TOO_BIG] = { "too_big", 413, 98, "larger than its limit" },
    [ERR_STATE] = { "wrong_state", 409, 99, "not possible in the state it is in" },
    [ERR_TIMEOUT] = { "timeout", 504, 124, "it took longer than allowed" },
    [ERR_OOM] = { "out_of_memory", 507, 137, "the sandbox ran out of memory" },
    [ERR_UNAVAILABLE] = { "unavailable", 503, 69, "the keeper or the sandbox does not answer" },
    [ERR_PROTOCOL] = { "protocol", 502, 76, "a peer broke the protocol" },
    [ERR_UNSUPPORTED] = { "unsupported", 501, 78, "not possible on this host or template" },
    [ERR_NO_PORT] = { "port_closed", 502, 79, "nothing listens on that port of the sandbox" },
    [ERR_NO_IMAGE] = { "snapshot_not_found", 404, 100, "no such snapshot or saved sandbox" },
    [ERR_NO_VOLUME] = { "volume_not_found", 404, 101, "no such volume" },
    [ERR_VOLUME_BUSY] = { "volume_in_use", 409, 102, "a sandbox has the volume" },
};
_Static_assert(ARRAY_LEN(kinds) == ERR_KIND_COUNT, "every kind has a row");

static const struct {
    int errnum;
    enum err_kind kind;
} by_errno[] = {
    { ENOENT, ERR_NO_PATH },
    { EEXIST, ERR_EXISTS },
    { ENOTDIR, ERR_NOT_DIR },
    { EISDIR, ERR_IS_DIR },
    { ENOTEMPTY, ERR_NOT_EMPTY },
    { EACCES, ERR_DENIED },
    { EPERM, ERR_DENIED },
    { EROFS, ERR_DENIED },
    { ENOSPC, ERR_DISK_FULL },
    { EDQUOT, ERR_DISK_FULL },
    { ENOMEM, ERR_NO_MEMORY },
    { ELOOP, ERR_INVALID },
    { ENAMETOOLONG, ERR_INVALID },
    { EINVAL, ERR_INVALID },
    { EFBIG, ERR_TOO_BIG },
    { ETIMEDOUT, ERR_TIMEOUT },
    { ESRCH, ERR_NO_PROCESS },
    { EMFILE, ERR_TOO_MANY },
    { ENFILE, ERR_TOO_MANY },
    { EAGAIN, ERR_TOO_MANY },
    { ENOTSUP, ERR_UNSUPPORTED },
    { ENOSYS, ERR_UNSUPPORTED },
    { ENXIO, ERR_NOT_FILE },
    { E2BIG, ERR_TOO_BIG },
    { EXDEV, ERR_INVALID },
    { ETXTBSY, ERR_STATE },
    { EBUSY, ERR_STATE },
    { EPIPE, ERR_UNAVAILABLE },
    { ECONNRESET, ERR_UNAVAILABLE },
    { ECONNREFUSED, ERR_UNAVAILABLE },
};

const struct err_kind_info *err_kind_info(uint32_t kind)
{
    return kind < ERR_KIND_COUNT ? &kinds[kind] : &kinds[ERR_INTERNAL];
}

enum err_kind err_kind_of_errno(int errnum)
{
    for (size_t i = 0; i < ARRAY_LEN(by_errno); i++)
        if (by_errno[i].errnum == errnum)
            return by_errno[i].kind;
    return ERR_INTERNAL;
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    va_list args;

    err->kind = kind;
    va_start(args, fmt);
    (void) vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    return -1;
}

int err_sys(struct err *err, int errnum, const char *fmt, ...)
{
    va_list args;
    int n;

    err->kind = err_kind_of_errno(errnum);
    va_start(args, fmt);
    n = vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t) n < sizeof err->msg)
        (void) snprintf(err->msg + n, sizeof err->msg - (size_t) n, ": %s", strerror(errnum));
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char inner[ERR_MSG_MAX];
    va_list args;
    int n;

    memcpy(inner, err->msg, sizeof inner);
    va_start(args, fmt);
    n = vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t) n < sizeof err->msg)
        (void) snprintf(err->msg + n, sizeof err->msg - (size_t) n, ": %s", inner);
    return -1;
}
