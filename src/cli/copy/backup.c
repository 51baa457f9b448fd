#include "backup/sink.h"
#include "base/io.h"
#include "base/own.h"
#include "cli/common.h"
#include "cli/copy/backup_own.h"
#include "cli/records.h"
#include "cli/report.h"
#include "store/store.h"
#include "template/child.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define HOLD_MS   30000
#define ROUNDS    3 /* for what is paused while others are copied */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

struct backup_options {
    const char *passphrase_file;
    uint64_t hold_ms;
    bool all_trees;
};

#define AT(field) offsetof(struct backup_options, field)

/* clang-format off */
static const struct option backup_options[] = {
    { 0, "passphrase-file", OPTION_TEXT, AT(passphrase_file), "FILE", COMPLETE_FILE,
      "put the keys into the backup, sealed with the first line of FILE" },
    { 0, "hold", OPTION_DURATION, AT(hold_ms), "TIME", COMPLETE_NONE,
      "how long writes to a volume may wait while it is copied (30s)" },
    { 0, "templates", OPTION_FLAG, AT(all_trees), NULL, COMPLETE_NONE,
      "also the files of templates that no paused sandbox or snapshot needs" },
};

const struct verb backup_verb = {
    .name = "backup",
    .synopsis = "[OPTION…] DIR|FILE" SINK_ENDING,
    .summary = "save tenants, keys, secrets, audit, paused sandboxes, snapshots and volumes",
    .details =
        "A name that ends in " SINK_ENDING " is one compressed file, any other a new directory. The server may\n"
        "run meanwhile; the backup is the state at its end. Running sandboxes, and those paused in\n"
        "memory, are not in it. Secrets and images are useless without the keys of this state\n"
        "directory (image.key, server/secrets.key). With --passphrase-file the keys are in the\n"
        "backup, sealed; without, keep a copy of them elsewhere: 'cove restore' needs them. What\n"
        "could not be saved is said, and the exit code is 102 then. Needs root. See docs/operations.md.",
    .options = backup_options,
    .option_count = ARRAY_LEN(backup_options),
    .operands = COMPLETE_FILE,
    .run = verb_backup,
};
/* clang-format on */

static bool interrupted(void)
{
    return child_interrupted() != 0;
}

/* ---- for the modules ---- */

void backup_left_out(struct backup *b, const char *what, const char *why)
{
    report_note("%s is not in the backup: %s", what, why);
    b->left_out++;
}

void backup_show(struct backup *b, const char *step)
{
    uint64_t done = backup_manifest_stored(&b->manifest);

    progress_show(&b->progress, b->total ? (unsigned) (done * 99 / (b->total + done / 8 + 1)) : 0,
                  step, NULL);
}

int backup_take_fd(struct backup *b, int fd, const char *path, uint32_t mode, struct err *err)
{
    struct backup_file file;
    struct err why;

    if (sink_copy(b->sink, fd, path, mode, &file, err) == 0)
        return backup_manifest_add_file(&b->manifest, &file, err);
    if (err->kind != ERR_STATE || interrupted())
        return -1;
    return sink_give_up(b->sink, &why) < 0 ? (*err = why, -1) : 1;
}

int backup_take(struct backup *b, int at, const char *name, const char *path, struct err *err)
{
    auto_close int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 1;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "open %s", path);
    return backup_take_fd(b, fd, path, st.st_mode & 0777, err);
}

/* ---- steps ---- */

/* One backup at a time, and none while a restore works. */
static int lock_state(int state_fd, int *ret_fd, struct err *err)
{
    auto_close int fd =
        openat(state_fd, "backup.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(err, errno, "open backup.lock");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_STATE, "another backup or a restore works on %s", report_state());
    *ret_fd = take_fd(&fd);
    return 0;
}

static int open_state(struct backup *b, const struct backup_options *options, struct err *err)
{
    char passphrase[PASSPHRASE_MAX] = "";
    int r = 0;

    b->state_fd = open(report_state(), DIR_FLAGS);
    if (b->state_fd < 0)
        return err_sys(err, errno, "open %s", report_state());
    if (keys_read(b->state_fd, &b->keys, err) < 0)
        return err_wrap(err, "%s has nothing to save", report_state());
    memcpy(b->images.key, b->keys.image, sizeof b->images.key);
    b->images.dir_fd = openat(b->state_fd, "images", DIR_FLAGS | O_NOFOLLOW);
    if (b->images.dir_fd < 0)
        return err_sys(err, errno, "open images");
    keys_name(&b->keys, b->manifest.keys);
    if (options->passphrase_file) {
        r = passphrase_read(options->passphrase_file, passphrase, err);
        if (r == 0)
            r = keys_seal(&b->keys, passphrase, &b->manifest, err);
        explicit_bzero(passphrase, sizeof passphrase);
    }
    return r;
}

/* What an earlier one left that was killed, or this one. */
static int clear_part(const char *path, struct err *err)
{
    size_t len = strlen(path);
    char part[PATH_MAX];

    while (len > 1 && path[len - 1] == '/')
        len--;
    (void) snprintf(part, sizeof part, "%.*s" SINK_PART, (int) len, path);
    return tree_remove(AT_FDCWD, part, err);
}

/* The worst case: nothing can be compressed. */
static int check_space(struct backup *b, struct err *err)
{
    char need[32], have[32];
    struct statvfs fs;
    struct stat st;
    uint64_t free_bytes;

    b->total = backup_images_bytes(b) + backup_volumes_bytes(b) + backup_templates_bytes(b);
    if (fstatat(b->state_fd, "server/cove.db", &st, AT_SYMLINK_NOFOLLOW) == 0)
        b->total += (uint64_t) st.st_size;
    if (statvfs(sink_place(b->sink), &fs) < 0)
        return err_sys(err, errno, "look at %s", sink_place(b->sink));
    free_bytes = (uint64_t) fs.f_bavail * fs.f_frsize;
    if (free_bytes > b->total)
        return 0;
    return err_set(err, ERR_DISK_FULL, "the backup may need %s, and %s has %s free",
                   report_size(need, sizeof need, b->total), sink_place(b->sink),
                   report_size(have, sizeof have, free_bytes));
}

/* Programs of restored processes: every version that ever ran. */
static int take_agents(struct backup *b, struct err *err)
{
    int fd = openat(b->state_fd, "agents", DIR_FLAGS | O_NOFOLLOW), r = 0;
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && r >= 0 && (entry = readdir(dir))) {
        char path[BACKUP_PATH_MAX];

        (void) snprintf(path, sizeof path, "agents/%.100s", entry->d_name);
        if (backup_manifest_path_ok(path))
            r = backup_take(b, fd, entry->d_name, path, err);
    }
    return r < 0 ? -1 : 0;
}

static int take_store(struct backup *b, struct err *err)
{
    auto_close int fd = -1;

    if (records_copy(b->state_fd, &fd, err) < 0)
        return -1;
    return fd < 0 ? 0 /* a keeper without a server */
                  : backup_take_fd(b, fd, "server/cove.db", 0600, err);
}

/* In an order that backup_own.h explains. */
static int take_all(struct backup *b, struct err *err)
{
    size_t before;

    backup_show(b, "paused sandboxes and snapshots");
    if (take_agents(b, err) < 0)
        return -1;
    for (int i = 0; i < ROUNDS; i++) {
        before = b->taken_count;
        if (backup_images(b, false, err) < 0)
            return -1;
        if (b->taken_count == before)
            break;
    }
    backup_show(b, "volumes");
    if (backup_volumes(b, err) < 0)
        return -1;
    backup_show(b, "store");
    if (take_store(b, err) < 0 || backup_images_check(b, err) < 0 ||
        backup_images(b, true, err) < 0)
        return -1;
    backup_show(b, "templates");
    return backup_templates(b, err) < 0 ? -1 : backup_images_check(b, err);
}

static int finish(struct backup *b, struct err *err)
{
    unsigned char key[SHA256_LEN];
    auto_free char *text = NULL;
    size_t len;

    b->manifest.made_ms = store_now_ms();
    b->manifest.store = store_version();
    (void) snprintf(b->manifest.version, sizeof b->manifest.version, COVE_VERSION);
    keys_sign(&b->keys, key);
    if (backup_manifest_sort(&b->manifest, err) < 0 ||
        backup_manifest_write(&b->manifest, key, &text, &len, err) < 0)
        return -1;
    return sink_finish(b->sink, text, len, err);
}

/* Counts what has a line of its own in the manifest. */
static size_t count_of(const struct backup *b, const char *prefix)
{
    size_t count = 0;

    for (size_t i = 0; i < b->manifest.file_count; i++)
        count += strncmp(b->manifest.files[i].path, prefix, strlen(prefix)) == 0;
    return count;
}

static void print_done(struct backup *b, const char *path)
{
    char size[32];

    progress_done(&b->progress, NULL);
    printf("%s: %zu paused sandboxes and snapshots, %zu volumes, %zu templates' files, %s\n", path,
           b->taken_count, count_of(b, "volumes/"), b->manifest.tree_count,
           report_size(size, sizeof size, sink_bytes(b->sink)));
    if (!b->manifest.sealed_cost)
        report_note("the keys are not in this backup: keep copies of %s/image.key and "
                    "%s/server/secrets.key elsewhere, or use --passphrase-file",
                    report_state(), report_state());
}

static void ignore_node(void *node)
{
    (void) node;
}

static int make(struct backup *b, const struct backup_options *options, const char *path,
                struct err *err)
{
    auto_close int lock = -1;
    bool made = false;
    struct err ignored;
    int r;

    if (open_state(b, options, err) < 0 || lock_state(b->state_fd, &lock, err) < 0 ||
        clear_part(path, err) < 0 || sink_open(path, interrupted, &b->sink, err) < 0)
        return -1;
    r = check_space(b, err);
    if (r == 0)
        r = take_all(b, err);
    if (r == 0)
        r = finish(b, err);
    made = r == 0;
    if (made)
        print_done(b, path);
    sink_close(b->sink);
    if (!made)
        (void) clear_part(path, &ignored);
    return r;
}

int verb_backup(int argc, char **argv)
{
    struct backup_options options = { .hold_ms = HOLD_MS };
    struct backup b = { .state_fd = -1, .images.dir_fd = -1 };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&backup_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count < 1)
        return common_missing(&backup_verb, "DIR or FILE");
    if (count > 1)
        return common_excess(&backup_verb, operands[1]);
    b.hold_ms = options.hold_ms;
    b.all_trees = options.all_trees;
    progress_init(&b.progress, "backup");
    if (geteuid() != 0)
        code = err_set(&err, ERR_DENIED, "backup: needs root");
    else if (child_signals_init(&err) < 0 || make(&b, &options, operands[0], &err) < 0)
        code = -1;
    else
        code = 0;
    if (code < 0)
        progress_done(&b.progress, NULL);
    keys_wipe(&b.keys);
    own_close(&b.images.dir_fd);
    own_close(&b.state_fd);
    backup_manifest_done(&b.manifest);
    free(b.taken);
    tdestroy(b.disks, ignore_node);
    if (code < 0)
        code = child_interrupted() ? 128 + child_interrupted() : report_error(&err);
    else if (b.left_out > 0)
        code = err_kind_info(ERR_VOLUME_BUSY)->exit_code;
    child_signals_done();
    return code == 0 ? report_end(0) : code;
}
