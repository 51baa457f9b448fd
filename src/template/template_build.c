#include "template/template_build.h"

#include "base/io.h"
#include "base/own.h"
#include "template/build_apt.h"
#include "template/child.h"
#include "template/template_files.h"
#include "template/template_java.h"
#include "template/template_kernels.h"
#include "template/template_store.h"
#include "template/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Theory: a tree comes from an archive in the cache, or else from mmdebstrap, and is then archived.
 * What cove itself puts into a tree (etc files, sudo) comes afterwards in both cases, so that an
 * archive stays good when only those change. Everything happens in a build directory beside the
 * templates; publishing is a rename. The template's lock is taken first, then the cache's. */

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

struct building {
    const struct recipe *recipe;
    const struct template_build_options *options;
    const struct template_maker *maker;
    int store_fd, build_fd, cache_lock_fd;
    char build_name[96];
    char build[PATH_MAX];   /* absolute */
    char debs[PATH_MAX];    /* absolute */
    char archive[PATH_MAX]; /* absolute; "" with no_cache */
    bool from_cache;
};

/* Where a path is really: mmdebstrap and hooks run in "/". */
static int absolute(int fd, char *out, size_t size, struct err *err)
{
    char link[64];
    ssize_t n;

    (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, out, size - 1);
    if (n < 0)
        return err_sys(err, errno, "find the path of a directory");
    out[n] = '\0';
    if (strchr(out, '\''))
        return err_set(err, ERR_INVALID, "a path with a quote in it cannot be built in: %.100s",
                       out);
    return 0;
}

static int make_dirs(char *path, struct err *err)
{
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_sys(err, errno, "make %s", path);
        if (!slash)
            return 0;
        *slash = '/';
    }
}

/* The cache is trusted as the packages are: only root may have written there. */
static int open_cache(struct building *b, struct err *err)
{
    const char *set = getenv("COVE_CACHE");
    char path[PATH_MAX / 2], key[RECIPE_HASH_MAX];
    auto_close int fd = -1;
    struct stat st;

    (void) snprintf(path, sizeof path, "%s", set && set[0] ? set : TEMPLATE_CACHE_DEFAULT);
    if (make_dirs(path, err) < 0)
        return -1;
    fd = open(path, DIR_FLAGS);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "open %s", path);
    if (st.st_uid != 0 || (st.st_mode & 022))
        return err_set(err, ERR_DENIED, "%s must belong to root, and only root may write to it",
                       path);
    if (absolute(fd, path, sizeof path, err) < 0 || tree_mkdir(fd, "debs", 0755, 0, err) < 0 ||
        tree_mkdir(fd, "trees", 0700, 0, err) < 0)
        return err_wrap(err, "cache");
    (void) snprintf(b->debs, sizeof b->debs, "%s/debs", path);
    recipe_cache_key(b->recipe, key);
    (void) snprintf(b->archive, sizeof b->archive, "%s/trees/%s-%s.tar.zst", path, b->recipe->name,
                    key);
    b->cache_lock_fd = openat(fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (b->cache_lock_fd < 0)
        return err_sys(err, errno, "open %s/lock", path);
    if (flock(b->cache_lock_fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    template_note(b->maker, "another build uses %s; waiting for it", path);
    /* Signals are held back here (child.h), so that a blocking flock could not be interrupted. */
    while (flock(b->cache_lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_sys(err, errno, "lock %s", path);
        if (child_interrupted())
            return err_set(err, ERR_STATE, "interrupted");
        (void) usleep(100000);
    }
    return 0;
}

static int check_space(struct building *b, struct err *err)
{
    struct statvfs fs;
    uint64_t need = (uint64_t) b->recipe->free_mib << 20;

    if (fstatvfs(b->store_fd, &fs) == 0 && (uint64_t) fs.f_bavail * fs.f_frsize < need)
        return err_set(err, ERR_DISK_FULL,
                       "building '%s' needs %u MiB of disk space, there are %llu", b->recipe->name,
                       b->recipe->free_mib,
                       (unsigned long long) ((uint64_t) fs.f_bavail * fs.f_frsize >> 20));
    return 0;
}

/* 0: unpacked. 1: there is none that is any good. */
static int unpack_archive(struct building *b, struct err *err)
{
    char root[PATH_MAX];
    const char *argv[] = { "tar",      "--numeric-owner",
                           "--xattrs", "--xattrs-include=*",
                           "--acls",   "-I",
                           "zstd",     "-C",
                           root,       "-xpf",
                           b->archive, NULL };
    struct child child = { .argv = argv, .log_fd = -1 };

    if (!b->archive[0] || b->options->rebuild || access(b->archive, R_OK) < 0)
        return 1;
    (void) snprintf(root, sizeof root, "%s/root", b->build);
    template_step(b->maker, 5, "unpacking from the cache", NULL);
    if (tree_mkdir(b->build_fd, "root", 0755, 0, err) < 0)
        return -1;
    if (child_run(&child, err) == 0) {
        b->from_cache = true;
        return 0;
    }
    if (child_interrupted())
        return -1;
    template_note(b->maker, "%s is damaged (%s); building from packages", b->archive, err->msg);
    (void) unlink(b->archive);
    return tree_remove(b->build_fd, "root", err) < 0 ? -1 : 1;
}

static int pack_archive(struct building *b, struct err *err)
{
    char root[PATH_MAX], part[PATH_MAX + 8];
    const char *argv[] = { "tar",         "--numeric-owner",
                           "--xattrs",    "--acls",
                           "--sort=name", "-I",
                           "zstd -3 -T0", "-C",
                           root,          "-cf",
                           part,          ".",
                           NULL };
    struct child child = { .argv = argv, .log_fd = -1 };

    if (!b->archive[0])
        return 0;
    (void) snprintf(root, sizeof root, "%s/root", b->build);
    (void) snprintf(part, sizeof part, "%s.part", b->archive);
    template_step(b->maker, 98, "saving to the cache", NULL);
    (void) unlink(part);
    if (child_run(&child, err) == 0 && rename(part, b->archive) == 0)
        return 0;
    (void) unlink(part);
    if (child_interrupted())
        return -1;
    /* The template itself is fine without. */
    template_note(b->maker, "not saved to the cache: %s", err->msg);
    return 0;
}

/* The keeper makes every sandbox's /dev itself; nodes of a tree are never used. */
static int empty_dev(int root_fd, struct err *err)
{
    return tree_remove(root_fd, "dev", err) < 0 ? -1 : tree_mkdir(root_fd, "dev", 0755, 0, err);
}

static int finish_tree(struct building *b, struct manifest *manifest, struct err *err)
{
    auto_close int root_fd = openat(b->build_fd, "root", DIR_FLAGS | O_NOFOLLOW);
    struct tree_size size;

    if (root_fd < 0)
        return err_sys(err, errno, "open the tree");
    if (empty_dev(root_fd, err) < 0 || template_files_put(root_fd, FILES_TREE, err) < 0 ||
        tree_mkdir(root_fd, "workspace", 0755, TEMPLATE_UID, err) < 0 ||
        template_put_kernels(root_fd, err) < 0 || template_put_sudo(b->maker, root_fd, err) < 0 ||
        (template_has_java(root_fd) && template_put_java(root_fd, err) < 0) ||
        template_check_tree(root_fd, MANIFEST_TREE, err) < 0 ||
        tree_measure(b->build_fd, "root", &size, err) < 0)
        return -1;
    manifest->bytes = size.bytes;
    manifest->files = size.files;
    /* Power may fail right after the rename that makes it a template. */
    if (syncfs(root_fd) < 0)
        return err_sys(err, errno, "write the tree to disk");
    return 0;
}

static int make_manifest(const struct recipe *recipe, struct manifest *manifest, struct err *err)
{
    const char *user = recipe->user ? recipe->user : "user";

    memset(manifest, 0, sizeof *manifest);
    manifest->kind = MANIFEST_TREE;
    (void) snprintf(manifest->root, sizeof manifest->root, "root");
    (void) snprintf(manifest->user, sizeof manifest->user, "%s", user);
    (void) snprintf(manifest->workdir, sizeof manifest->workdir, "/home/%s", user);
    (void) snprintf(manifest->description, sizeof manifest->description, "%s", recipe->description);
    recipe_hash(recipe, manifest->recipe);
    for (size_t i = 0; i < RECIPE_ENV_MAX && recipe->env[i]; i++)
        if (manifest_env(manifest, recipe->env[i], err) < 0)
            return -1;
    return 0;
}

static int make_tree(struct building *b, struct err *err)
{
    int r;

    if (b->options->no_cache) {
        if (tree_mkdir(b->build_fd, "debs", 0755, 0, err) < 0)
            return -1;
        (void) snprintf(b->debs, sizeof b->debs, "%.4000s/debs", b->build);
    } else if (open_cache(b, err) < 0) {
        return -1;
    }
    r = unpack_archive(b, err);
    if (r <= 0)
        return r;
    if (check_space(b, err) < 0)
        return -1;
    if (build_apt(b->recipe, b->build, b->debs, b->maker, err) < 0)
        return -1;
    return pack_archive(b, err);
}

static int build_locked(const char *state, struct building *b, struct manifest *manifest,
                        struct err *err)
{
    struct err ignored;
    int r;

    if (template_build_dir(b->store_fd, b->recipe->name, b->build_name, sizeof b->build_name,
                           &b->build_fd, err) < 0)
        return -1;
    r = absolute(b->build_fd, b->build, sizeof b->build, err);
    if (r == 0)
        r = child_signals_init(err);
    if (r == 0)
        r = make_tree(b, err);
    if (r == 0) {
        template_step(b->maker, 99, "finishing", NULL);
        r = finish_tree(b, manifest, err);
    }
    if (r == 0)
        r = template_publish(b->maker, state, b->store_fd, b->recipe->name, b->build_name, manifest,
                             err);
    (void) tree_remove(b->store_fd, b->build_name, &ignored);
    return r;
}

int template_build(const struct template_maker *maker, const char *state,
                   const struct recipe *recipe, const struct template_build_options *options,
                   struct template_build_result *ret, struct err *err)
{
    struct building b = { .maker = maker,
                          .recipe = recipe,
                          .options = options,
                          .store_fd = -1,
                          .build_fd = -1,
                          .cache_lock_fd = -1 };
    auto_close int lock_fd = -1;
    auto_free struct manifest *manifest = malloc(2 * sizeof *manifest);
    uint64_t started = io_now_ms();
    struct err ignored;
    int r = -1;

    memset(ret, 0, sizeof *ret);
    if (!manifest)
        return err_set(err, ERR_NO_MEMORY, "no memory for a manifest");
    if (geteuid() != 0)
        return err_set(err, ERR_DENIED, "building a template needs root");
    if (make_manifest(recipe, manifest, err) < 0 ||
        template_store_open(state, &b.store_fd, err) < 0)
        goto out;
    if (template_lock(maker, b.store_fd, recipe->name, &lock_fd, err) < 0)
        goto out;
    if (!options->rebuild &&
        template_find(b.store_fd, recipe->name, &manifest[1], NULL, &ignored) == 0 &&
        strcmp(manifest[1].recipe, manifest[0].recipe) == 0) {
        manifest[0] = manifest[1];
        ret->was_there = true;
        r = 0;
        goto out;
    }
    r = build_locked(state, &b, manifest, err);
    ret->signal = child_interrupted();
    child_signals_done();
out:
    own_close(&b.store_fd);
    own_close(&b.build_fd);
    own_close(&b.cache_lock_fd);
    ret->from_cache = b.from_cache;
    ret->bytes = manifest->bytes;
    ret->files = manifest->files;
    ret->wall_ms = io_now_ms() - started;
    return r < 0 ? err_wrap(err, "template '%s'", recipe->name) : 0;
}
