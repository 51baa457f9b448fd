/* cove-import: turns an image's layers into one EROFS file, for 'cove template import' and 'pull'. It reads hostile files, and has nothing
 * to lose: a user of its own, no files but the descriptors it was started with and those that its parent hands it, no
 * network, no process, limited memory and time. message.h has what it says. */
#include "base/lockdown.h"
#include "base/log.h"
#include "base/own.h"
#include "base/parse.h"
#include "erofs/write.h"
#include "importer/import.h"
#include "importer/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define MEMORY_MAX  (1024ull << 20)
#define CPU_SECONDS 1800

/* clang-format off */
static const struct lockdown_call file_calls[] = {
    CALL(read), CALL(pread64), CALL(write), CALL(pwrite64), CALL(lseek), CALL(close), CALL(fstat), CALL(newfstatat),
    CALL(ftruncate), CALL(fallocate), CALL(fsync), CALL(sendmsg), CALL(recvmsg), CALL(fcntl),
};
/* clang-format on */
static const struct lockdown_rows file_rows = { "descriptors that are open", file_calls,
                                                ARRAY_LEN(file_calls) };

static const struct lockdown importer = {
    .program = "cove-import",
    .no_tcp = true,
    .alone = true,
    .rows = { &lockdown_runtime, &lockdown_data_only, &file_rows },
};

static int limit_self(uint64_t bytes_max, struct err *err)
{
    const struct {
        int what;
        rlim_t most;
    } rows[] = {
        { RLIMIT_AS,
          lockdown_filters() ? MEMORY_MAX : RLIM_INFINITY }, /* sanitizers map terabytes */
        { RLIMIT_CPU, CPU_SECONDS },
        { RLIMIT_CORE, 0 },
        { RLIMIT_NOFILE, 16 },
        { RLIMIT_FSIZE, bytes_max + bytes_max / 2 + (256u << 20) },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rlimit limit = { rows[i].most, rows[i].most };

        if (setrlimit((__rlimit_resource_t) rows[i].what, &limit) < 0)
            return err_sys(err, errno, "limit %d", rows[i].what);
    }
    return 0;
}

struct number {
    const char *name;
    uint64_t value;
};

static int parse(struct import_options *o, int argc, char **argv, struct err *err)
{
    struct number numbers[] = { { "--max-entries", o->limits.entries },
                                { "--max-directory", o->limits.directory },
                                { "--max-depth", o->limits.depth },
                                { "--max-bytes", o->bytes_max } };

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool taken = true;

        if (strcmp(argv[i], "--archive") == 0) {
            o->archive = true;
            continue;
        }
        if (strcmp(argv[i], "--squash-ids") == 0) {
            o->squash_ids = true;
            continue;
        }
        if (value && strcmp(argv[i], "--tag") == 0)
            o->tag = value;
        else if (value && strcmp(argv[i], "--manifest") == 0 && oci_digest_ok(value))
            o->manifest = value;
        else
            taken = false;
        for (size_t n = 0; value && !taken && n < ARRAY_LEN(numbers); n++)
            if (strcmp(argv[i], numbers[n].name) == 0)
                taken = parse_u64(value, &numbers[n].value, err) == 0;
        if (!taken)
            return err_set(err, ERR_USAGE, "%.40s: unknown option, or its value is invalid",
                           argv[i]);
        i++;
    }
    o->limits.entries = numbers[0].value;
    o->limits.directory = (uint32_t) numbers[1].value;
    o->limits.depth = (uint32_t) (numbers[2].value < 1000 ? numbers[2].value : 1000);
    o->bytes_max = numbers[3].value;
    return 0;
}

int main(int argc, char **argv)
{
    struct import_options options = { .limits = tree_limits_default, .bytes_max = EROFS_BYTES_MAX };
    struct err err;

    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        (void) puts(
            "usage: cove-import [--archive] [--tag TAG] [--manifest DIGEST] [--squash-ids]\n"
            "       [--max-entries N] [--max-directory N] [--max-depth N] [--max-bytes N]\n\n"
            "Started by 'cove template import' and 'cove template pull'.");
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void) puts("cove-import " COVE_VERSION);
        return 0;
    }
    log_init("cove-import", LOG_INFO);
    (void) prctl(PR_SET_NAME, "cove-import");
    (void) prctl(PR_SET_DUMPABLE, 0);
    if (geteuid() == 0)
        err_set(&err, ERR_DENIED, "cove-import must not run as root");
    else if (parse(&options, argc, argv, &err) == 0 && limit_self(options.bytes_max, &err) == 0 &&
             lockdown_enter(&importer, NULL, 0, &err) == 0)
        return import_run(&options, &err) == 0 ? 0 : 1;
    log_line(LOG_ERROR, "%s", err.msg);
    return 1;
}
