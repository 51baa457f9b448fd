/* A restore reads, in this order: the manifest; the keys, from a passphrase, from --keys or from the state that is there; with them the
 * manifest's code. Only then is anything unpacked, beside the state (restore_state.h), and each file compared with its digest. Trees of
 * templates get other inodes than they had, so images are told, and signed again. Then all of it takes its place at once. */
#include "backup/keys.h"
#include "backup/sink.h"
#include "backup/source.h"
#include "base/io.h"
#include "base/own.h"
#include "cli/common.h"
#include "cli/copy/restore_disk.h"
#include "cli/copy/restore_state.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/users.h"
#include "image/image.h"
#include "store/store.h"
#include "template/child.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define MARGIN    (64u << 20) /* that stays free */

struct restore_options {
    const char *passphrase_file, *keys;
    bool force, check;
};

#define AT(field) offsetof(struct restore_options, field)

/* clang-format off */
static const struct option restore_options[] = {
    { 0, "passphrase-file", OPTION_TEXT, AT(passphrase_file), "FILE", COMPLETE_FILE,
      "the first line of FILE opens the keys in the backup" },
    { 0, "keys", OPTION_TEXT, AT(keys), "DIR", COMPLETE_DIR,
      "image.key and secrets.key are here, for a backup without keys" },
    { 0, "force", OPTION_FLAG, AT(force), NULL, COMPLETE_NONE,
      "replace a state that is not empty; what was in it is removed" },
    { 0, "check", OPTION_FLAG, AT(check), NULL, COMPLETE_NONE,
      "only verify the backup, all of it, and change nothing" },
};

const struct verb restore_verb = {
    .name = "restore",
    .synopsis = "[OPTION…] DIR|FILE" SINK_ENDING,
    .summary = "bring back what 'cove backup' saved",
    .details =
        "cove must not run on the state directory meanwhile (systemctl stop cove). Everything is\n"
        "unpacked and verified first, beside the old state, and then takes its place at one moment:\n"
        "an error, Ctrl-C or a crash before it leaves the old state. Sandboxes that ran when the\n"
        "backup was made are reported lost when the server starts; paused ones resume.\n"
        "Needs root, and room for both states. See docs/operations.md.",
    .options = restore_options,
    .option_count = ARRAY_LEN(restore_options),
    .operands = COMPLETE_FILE,
    .run = verb_restore,
};
/* clang-format on */

struct restore {
    const struct restore_options *options;
    int state_fd, new_fd;
    int keeper_lock, server_lock, new_lock, backup_lock;
    struct source *source;
    struct backup_manifest manifest;
    char *text; /* of the manifest */
    size_t text_len;
    struct keys keys;
    uid_t uid; /* of the server */
    gid_t gid;
    uint64_t total, size; /* bytes that it takes, and with zeros */
    struct progress progress;
};

static bool interrupted(void)
{
    return child_interrupted() != 0;
}

/* ---- keys and manifest ---- */

static int open_sealed(struct restore *r, struct err *err)
{
    char passphrase[PASSPHRASE_MAX];
    int rc = passphrase_read(r->options->passphrase_file, passphrase, err);

    if (rc == 0)
        rc = keys_open(&r->manifest, passphrase, &r->keys, err);
    explicit_bzero(passphrase, sizeof passphrase);
    return rc;
}

/* Keys of a directory, if they are the backup's. 1: they are not. */
static int try_keys(struct restore *r, int dir_fd, struct err *err)
{
    char name[BACKUP_KEYS_HEX];

    if (keys_read(dir_fd, &r->keys, err) < 0)
        return 1;
    keys_name(&r->keys, name);
    return strcmp(name, r->manifest.keys) != 0;
}

static int find_keys(struct restore *r, struct err *err)
{
    auto_close int dir = -1;

    if (r->options->passphrase_file && r->manifest.sealed_cost)
        return open_sealed(r, err);
    if (r->options->passphrase_file)
        return err_set(err, ERR_INVALID,
                       "this backup was made without --passphrase-file: the keys "
                       "are not in it. Give --keys DIR with copies of them");
    if (r->options->keys) {
        dir = open(r->options->keys, DIR_FLAGS);
        if (dir < 0)
            return err_sys(err, errno, "open %s", r->options->keys);
        return try_keys(r, dir, err) == 0
                   ? 0
                   : err_set(err, ERR_DENIED, "%s does not have the keys of this backup",
                             r->options->keys);
    }
    if (r->state_fd >= 0 && try_keys(r, r->state_fd, err) == 0)
        return 0;
    return err_set(err, ERR_DENIED, "%s",
                   r->manifest.sealed_cost
                       ? "the keys of this backup are sealed: give --passphrase-file FILE"
                       : "the keys of this backup are neither in it nor in the state directory: "
                         "give --keys DIR with copies of image.key and secrets.key");
}

static int read_manifest(struct restore *r, const char *path, struct err *err)
{
    unsigned char key[SHA256_LEN];

    if (source_open(path, &r->source, err) < 0 ||
        source_manifest(r->source, &r->text, &r->text_len, err) < 0 ||
        backup_manifest_parse(r->text, r->text_len, &r->manifest, err) < 0 || find_keys(r, err) < 0)
        return -1;
    keys_sign(&r->keys, key);
    if (backup_manifest_check(r->text, r->text_len, key, err) < 0)
        return -1;
    if (r->manifest.store > store_version())
        return err_set(err, ERR_UNSUPPORTED, "this backup was made by a later cove (%s)",
                       r->manifest.version);
    return 0;
}

/* ---- the state that is there ---- */

/* Held until the end: no keeper starts meanwhile, and no backup is made. */
static int lock_one(struct restore *r, const char *name, const char *who, int *ret_fd,
                    struct err *err)
{
    *ret_fd = openat(r->state_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*ret_fd < 0)
        return err_sys(err, errno, "open %s", name);
    if (flock(*ret_fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_STATE, "%s %s: stop it first", who, report_state());
    return 0;
}

/* coved's own lock. It is in a directory that the restore replaces: it is held there, and on what takes its place. */
static int lock_server(const char *state, int *ret_fd, struct err *err)
{
    if (store_lock(state, ret_fd, err) == 0)
        return 0;
    return err->kind == ERR_STATE
               ? err_set(err, ERR_STATE, "coved runs on %s: stop it first", report_state())
               : -1;
}

static int prepare_state(struct restore *r, struct err *err)
{
    if (mkdir(report_state(), 0700) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", report_state());
    if (r->state_fd < 0)
        r->state_fd = open(report_state(), DIR_FLAGS);
    if (r->state_fd < 0)
        return err_sys(err, errno, "open %s", report_state());
    if (lock_one(r, "keeper.lock", "cove runs on", &r->keeper_lock, err) < 0 ||
        lock_server(report_state(), &r->server_lock, err) < 0 ||
        lock_one(r, "backup.lock", "a backup or another restore works on", &r->backup_lock, err) <
            0 ||
        restore_finish(r->state_fd, err) < 0)
        return -1;
    /* An earlier restore that was finished just now has put another server/ in its place. */
    own_close(&r->server_lock);
    if (lock_server(report_state(), &r->server_lock, err) < 0)
        return -1;
    if (restore_has_sandboxes(r->state_fd))
        return err_set(err, ERR_STATE,
                       "sandboxes still run on %s: start cove, end them with "
                       "'cove kill --all', and stop it again",
                       report_state());
    if (!r->options->force && !restore_is_empty(r->state_fd))
        return err_set(err, ERR_NOT_EMPTY,
                       "%s is not empty; --force replaces it, and removes what is in it",
                       report_state());
    return 0;
}

static int check_space(const struct restore *r, struct err *err)
{
    uint64_t need = r->total + MARGIN, have;
    char a[32], b[32];
    struct statvfs fs;

    if (fstatvfs(r->state_fd, &fs) < 0)
        return err_sys(err, errno, "look at %s", report_state());
    /* The tree of a template is there twice for a moment: as an archive, and unpacked. */
    for (size_t i = 0; i < r->manifest.file_count; i++)
        if (strncmp(r->manifest.files[i].path, "templates/", 10) == 0)
            need += r->manifest.files[i].stored;
    have = (uint64_t) fs.f_bavail * fs.f_frsize;
    return have > need ? 0
                       : err_set(err, ERR_DISK_FULL, "the restore needs %s, and %s has %s free",
                                 report_size(a, sizeof a, need), report_state(),
                                 report_size(b, sizeof b, have));
}

/* ---- unpacking ---- */

static void show(void *arg, uint64_t bytes)
{
    struct restore *r = arg;

    progress_show(&r->progress, (unsigned) (bytes / 1024 * 90 / (r->size / 1024 + 1)), "unpacking",
                  NULL);
}

static int unpack(struct restore *r, struct err *err)
{
    struct unpack unpack = { .manifest = &r->manifest,
                             .dir_fd = r->new_fd,
                             .stop = interrupted,
                             .progress = show,
                             .arg = r };

    return source_unpack(r->source, &unpack, err);
}

static int unpack_tree(struct restore *r, const struct backup_tree *tree, struct err *err)
{
    char dir[PATH_MAX], file[PATH_MAX + 80], name[BACKUP_PATH_MAX];
    const char *argv[] = { "tar",      "--numeric-owner",
                           "--xattrs", "--xattrs-include=*",
                           "--acls",   "-C",
                           dir,        "-xpf",
                           file,       NULL };
    struct child child = { .argv = argv, .log_fd = -1 };
    char whole[PATH_MAX];

    if (!realpath(report_state(), whole))
        return err_sys(err, errno, "find %s", report_state());
    (void) snprintf(dir, sizeof dir, "%s/" RESTORE_NEW "/templates/%s", whole, tree->template);
    (void) snprintf(file, sizeof file, "%s/%s.tar", dir, tree->root);
    (void) snprintf(name, sizeof name, "templates/%s/%s.tar", tree->template, tree->root);
    if (!backup_manifest_find(&r->manifest, name))
        return err_set(err, ERR_INVALID, "the backup has no files of template '%s'",
                       tree->template);
    progress_show(&r->progress, 92, "unpacking template", tree->template);
    if (child_run(&child, err) < 0)
        return err_wrap(err, "unpack template '%s'", tree->template);
    return unlinkat(r->new_fd, name, 0) < 0 ? err_sys(err, errno, "remove %s", name) : 0;
}

/* ---- images on other trees ---- */

static const struct backup_tree *tree_of(const struct restore *r, const struct image_meta *meta)
{
    for (size_t i = 0; i < r->manifest.tree_count; i++)
        if (r->manifest.trees[i].inode == meta->template_inode &&
            strcmp(r->manifest.trees[i].template, meta->image.sandbox.template) == 0)
            return &r->manifest.trees[i];
    return NULL;
}

/* Its own disk, if the tree is right below it. */
static int move_disk(struct restore *r, const struct image_meta *meta, struct err *err)
{
    auto_close int fd = -1;
    char path[64];

    if (!(meta->image.flags & KEEPER_IMAGE_PAUSED) || meta->layers.count != 1)
        return 0;
    (void) snprintf(path, sizeof path, "disks/d%016" PRIx64, meta->layers.number[0]);
    fd = openat(r->new_fd, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, errno, "open %s", path) : restore_disk(fd, err);
}

static int move_image(struct restore *r, const struct images *images, const char *id,
                      struct err *err)
{
    const struct backup_tree *tree;
    char path[BACKUP_PATH_MAX];
    struct image_meta meta;
    struct stat st;

    if (image_read(images, id, &meta, err) < 0)
        return -1;
    tree = tree_of(r, &meta);
    if (!tree)
        return 0; /* without its tree it is kept, and refused when it is asked for */
    (void) snprintf(path, sizeof path, "templates/%s/%s", tree->template, tree->root);
    if (fstatat(r->new_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
        return err_set(err, ERR_INVALID, "the backup has no files of template '%s'",
                       tree->template);
    meta.template_inode = (uint64_t) st.st_ino;
    if (move_disk(r, &meta, err) < 0)
        return err_wrap(err, "sandbox %s", id);
    return image_prepare(images, id, &meta, err) < 0 ? -1 : image_swap(images, id, err);
}

static int move_images(struct restore *r, struct err *err)
{
    struct images images = { .dir_fd = openat(r->new_fd, "images", DIR_FLAGS) };
    int fd = images.dir_fd < 0 ? -1 : openat(images.dir_fd, ".", DIR_FLAGS), rc = 0;
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    memcpy(images.key, r->keys.image, sizeof images.key);
    while (dir && rc == 0 && (entry = readdir(dir)))
        if (id_ok(entry->d_name))
            rc = move_image(r, &images, entry->d_name, err);
    explicit_bzero(images.key, sizeof images.key);
    own_close(&images.dir_fd);
    return rc;
}

/* ---- owners and modes ---- */

static int set_mode(int at, const char *path, mode_t mode, struct err *err)
{
    return fchmodat(at, path, mode, 0) < 0 ? err_sys(err, errno, "%s", path) : 0;
}

/* Directories were made for root alone. A sandbox's root reads its memory by descriptor (image_begin), and each
 * template is one that everybody may pass. */
static int open_inner(struct restore *r, struct err *err)
{
    char path[BACKUP_PATH_MAX];

    for (size_t i = 0; i < r->manifest.file_count; i++) {
        char *slash;

        (void) snprintf(path, sizeof path, "%s", r->manifest.files[i].path);
        slash = strrchr(path, '/');
        *slash = '\0';
        slash = strrchr(path, '/');
        if (slash && (strcmp(slash, "/memory") == 0 || strncmp(path, "templates/", 10) == 0) &&
            set_mode(r->new_fd, path, 0755, err) < 0)
            return -1;
    }
    return 0;
}

static int settle_server(struct restore *r, struct err *err)
{
    auto_close int fd = openat(r->new_fd, "server", DIR_FLAGS | O_NOFOLLOW);
    char path[PATH_MAX];

    if (fd < 0 || fchown(fd, r->uid, r->gid) < 0 ||
        (fchownat(fd, "cove.db", r->uid, r->gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT))
        return err_sys(err, errno, "give the store to the server's user");
    (void) snprintf(path, sizeof path, "%s/" RESTORE_NEW, report_state());
    return lock_server(path, &r->new_lock, err);
}

static int settle(struct restore *r, struct err *err)
{
    static const char *const parts[] = { "server",  "images", "disks",
                                         "volumes", "agents", "templates" };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (mkdirat(r->new_fd, parts[i], 0700) < 0 && errno != EEXIST)
            return err_sys(err, errno, "make %s", parts[i]);
    if (keys_write(&r->keys, r->new_fd, r->uid, r->gid, err) < 0)
        return -1;
    for (size_t i = 0; i < r->manifest.tree_count; i++)
        if (unpack_tree(r, &r->manifest.trees[i], err) < 0)
            return -1;
    if (open_inner(r, err) < 0 || move_images(r, err) < 0)
        return -1;
    return settle_server(r, err);
}

/* ---- the verb ---- */

static void print_done(struct restore *r, const char *path)
{
    char when[32], size[32];
    time_t made = (time_t) (r->manifest.made_ms / 1000);
    struct tm tm;

    progress_done(&r->progress, NULL);
    (void) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", gmtime_r(&made, &tm));
    printf("%s: made %s UTC by cove %s, %zu files, %s: %s\n", path, when, r->manifest.version,
           r->manifest.file_count, report_size(size, sizeof size, r->total),
           r->options->check ? "whole" : "restored");
}

static int restore_all(struct restore *r, struct err *err)
{
    if (restore_begin(r->state_fd, &r->new_fd, err) < 0)
        return -1;
    if (unpack(r, err) < 0 || settle(r, err) < 0)
        return -1;
    if (interrupted())
        return err_set(err, ERR_STATE, "interrupted");
    progress_show(&r->progress, 98, "putting it in place", NULL);
    return restore_commit(r->state_fd, err) < 0 ? -1 : restore_finish(r->state_fd, err);
}

static int restore(struct restore *r, const char *path, struct err *err)
{
    r->state_fd = open(report_state(), DIR_FLAGS);
    if (r->state_fd < 0 && errno != ENOENT)
        return err_sys(err, errno, "open %s", report_state());
    if (read_manifest(r, path, err) < 0)
        return -1;
    r->total = backup_manifest_stored(&r->manifest);
    r->size = backup_manifest_size(&r->manifest);
    if (r->options->check)
        return unpack(r, err) < 0 ? -1 : (print_done(r, path), 0);
    if (prepare_state(r, err) < 0 || check_space(r, err) < 0 ||
        user_ensure("cove", &r->uid, &r->gid, err) < 0)
        return -1;
    if (restore_all(r, err) < 0) {
        restore_abort(r->state_fd);
        return -1;
    }
    print_done(r, path);
    return 0;
}

static void done(struct restore *r)
{
    keys_wipe(&r->keys);
    source_close(r->source);
    backup_manifest_done(&r->manifest);
    free(r->text);
    own_close(&r->new_fd);
    own_close(&r->keeper_lock);
    own_close(&r->server_lock);
    own_close(&r->new_lock);
    own_close(&r->backup_lock);
    own_close(&r->state_fd);
}

int verb_restore(int argc, char **argv)
{
    struct restore_options options = { .force = false };
    struct restore r = { .options = &options,
                         .state_fd = -1,
                         .new_fd = -1,
                         .keeper_lock = -1,
                         .server_lock = -1,
                         .new_lock = -1,
                         .backup_lock = -1 };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&restore_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count < 1)
        return common_missing(&restore_verb, "DIR or FILE");
    if (count > 1)
        return common_excess(&restore_verb, operands[1]);
    progress_init(&r.progress, "restore");
    if (geteuid() != 0)
        code = err_set(&err, ERR_DENIED, "restore: needs root");
    else
        code = child_signals_init(&err) < 0 ? -1 : restore(&r, operands[0], &err);
    if (code < 0)
        progress_done(&r.progress, NULL);
    done(&r);
    if (code < 0)
        code = child_interrupted() ? 128 + child_interrupted() : report_error(&err);
    child_signals_done();
    return code == 0 ? report_end(0) : code;
}
