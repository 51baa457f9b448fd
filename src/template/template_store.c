#include "template/template_store.h"

#include "base/own.h"
#include "base/parse.h"
#include "client/image.h"
#include "client/sandbox.h"
#include "client/warm.h"
#include "template/template_java.h"
#include "template/template_kernels.h"
#include "template/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define DIR_FLAGS       (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define AGENT_BYTES_MAX (16u << 20)

static int make_and_open(int dir_fd, const char *path, mode_t mode, int *ret_fd, struct err *err)
{
    if (mkdirat(dir_fd, path, mode) < 0 && errno != EEXIST)
        return err_sys(err, errno, "make %s", path);
    *ret_fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0)
        return err_sys(err, errno, "open %s", path);
    return 0;
}

int template_store_open(const char *state, int *ret_fd, struct err *err)
{
    auto_close int state_fd = -1;

    if (make_and_open(AT_FDCWD, state, 0700, &state_fd, err) < 0)
        return err_wrap(err, "state directory");
    return make_and_open(state_fd, "templates", 0755, ret_fd, err);
}

int template_store_look(const char *state, int *ret_fd, struct err *err)
{
    auto_close int state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = state_fd < 0 ? -1 : openat(state_fd, "templates", DIR_FLAGS);

    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NO_TEMPLATE, "there are no templates in %s", state);
    if (fd < 0)
        return err_sys(err, errno, "open templates in %s", state);
    *ret_fd = fd;
    return 0;
}

int template_find(int store_fd, const char *name, struct manifest *ret, int *ret_fd,
                  struct err *err)
{
    auto_close int fd = -1;

    if (!name_ok(name))
        return err_set(err, ERR_NO_TEMPLATE, "'%.60s' is not a template name", name);
    fd = openat(store_fd, name, DIR_FLAGS);
    if (fd < 0 || faccessat(fd, "manifest", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%s'", name);
    if (manifest_read(fd, ret, err) < 0)
        return err_wrap(err, "template '%s'", name);
    if (ret_fd)
        *ret_fd = take_fd(&fd);
    return 0;
}

const char *template_default(int store_fd)
{
    static const char *const order[] = { "base", "host" };

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        char path[80];

        (void) snprintf(path, sizeof path, "%s/manifest", order[i]);
        if (faccessat(store_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return order[i];
    }
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct template_entry *) a)->name,
                  ((const struct template_entry *) b)->name);
}

int template_list(int store_fd, struct template_entry **ret, size_t *ret_count, struct err *err)
{
    auto_free struct template_entry *list = NULL;
    auto_dir DIR *dir = NULL;
    struct dirent *entry;
    size_t count = 0, room = 0;
    int fd = openat(store_fd, ".", DIR_FLAGS);

    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return err_sys(err, errno, "list templates");
    while ((entry = readdir(dir))) {
        struct template_entry *item;

        if (!name_ok(entry->d_name))
            continue; /* being made, or a lock */
        if (count == room) {
            struct template_entry *more = reallocarray(list, room ? room * 2 : 8, sizeof *list);

            if (!more)
                return err_set(err, ERR_NO_MEMORY, "no memory for a list of templates");
            list = more;
            room = room ? room * 2 : 8;
        }
        item = &list[count];
        memset(item, 0, sizeof *item);
        (void) snprintf(item->name, sizeof item->name, "%.63s", entry->d_name);
        if (template_find(store_fd, item->name, &item->manifest, NULL, &item->problem) < 0 &&
            item->problem.kind == ERR_NO_TEMPLATE)
            continue; /* no manifest: not finished, or being removed */
        count++;
    }
    if (count)
        qsort(list, count, sizeof *list, by_name);
    *ret = take_ptr(&list);
    *ret_count = count;
    return 0;
}

/* Sandboxes outlive their keeper, and each has a directory while it lives; so has every image. */
static bool any_in(const char *state, const char *name)
{
    auto_dir DIR *dir = NULL;
    char path[PATH_MAX];
    struct dirent *entry;

    (void) snprintf(path, sizeof path, "%s/%s", state, name);
    dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            return true;
    return false;
}

static bool any_sandboxes(const char *state)
{
    return any_in(state, "sandboxes") || any_in(state, "images");
}

/* What is saved stands on its template, too: sandboxes that sleep on disk, and snapshots; not the template's own image,
 * which goes with it. */
static int add_saved(struct link *link, const char *name, size_t *users, struct err *err)
{
    auto_free struct keeper_image *list = NULL;
    size_t count = 0;

    if (image_list(link, &list, &count, err) < 0)
        return err->kind == ERR_UNSUPPORTED ? 0 : -1;
    for (size_t i = 0; i < count; i++)
        *users +=
            strcmp(list[i].owner, WARM_OWNER) != 0 && strcmp(list[i].sandbox.template, name) == 0;
    return 0;
}

int template_users(const char *state, const char *name, size_t *ret_count, struct err *err)
{
    auto_free struct keeper_sandbox *list = NULL;
    struct link link;
    size_t count = 0, users = 0;
    int r;

    if (link_open(&link, state, err) < 0) {
        if (any_sandboxes(state))
            return err_set(err, ERR_UNAVAILABLE,
                           "there are sandboxes in %s, but no keeper to ask for their templates",
                           state);
        *ret_count = 0;
        return 0;
    }
    r = sandbox_list(&link, &list, &count, err);
    if (r == 0)
        r = add_saved(&link, name, &users, err);
    link_close(&link);
    if (r < 0)
        return err_wrap(err, "ask the keeper for sandboxes");
    for (size_t i = 0; i < count; i++)
        users += strcmp(list[i].template, name) == 0;
    *ret_count = users;
    return 0;
}

int template_lock(const struct template_maker *maker, int store_fd, const char *name, int *ret_fd,
                  struct err *err)
{
    char file[80];
    auto_close int fd = -1;

    (void) snprintf(file, sizeof file, ".lock-%s", name);
    fd = openat(store_fd, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "open %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK)
            return err_sys(err, errno, "lock template '%s'", name);
        template_note(maker, "template '%s' is being made by another cove; waiting for it", name);
        if (flock(fd, LOCK_EX) < 0)
            return err_sys(err, errno, "wait for template '%s'", name);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int template_build_dir(int store_fd, const char *name, char *ret_name, size_t size, int *ret_fd,
                       struct err *err)
{
    auto_dir DIR *dir = NULL;
    struct dirent *entry;
    char prefix[80];
    int fd = openat(store_fd, ".", DIR_FLAGS);

    (void) snprintf(prefix, sizeof prefix, ".build-%s.", name);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return err_sys(err, errno, "list templates");
    /* The maker of these held the lock that we hold now. */
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            tree_remove(store_fd, entry->d_name, err) < 0)
            return err_wrap(err, "remove an unfinished build");
    (void) snprintf(ret_name, size, "%s%d", prefix, (int) getpid());
    if (mkdirat(store_fd, ret_name, 0700) < 0)
        return err_sys(err, errno, "make %s", ret_name);
    *ret_fd = openat(store_fd, ret_name, DIR_FLAGS);
    if (*ret_fd < 0)
        return err_sys(err, errno, "open %s", ret_name);
    return 0;
}

void template_below_name(char ret[TEMPLATE_BELOW_NAME], const char *root, size_t i)
{
    (void) snprintf(ret, TEMPLATE_BELOW_NAME, "%.64s.%zu", root, i + 1);
}

/* The tree of that name, or a file below it. */
static bool is_of(const char *name, const char *root)
{
    size_t len = strlen(root);

    return strncmp(name, root, len) == 0 && (name[len] == '\0' || name[len] == '.');
}

/* Before its own file, which makes nothing exist either. */
static int place_below(int store_fd, const char *build, int fd, const struct manifest *manifest,
                       struct err *err)
{
    char from[192], old[TEMPLATE_BELOW_NAME], name[TEMPLATE_BELOW_NAME];

    for (size_t i = 0; i < manifest_below_count(manifest); i++) {
        template_below_name(old, "root", i);
        template_below_name(name, manifest->root, i);
        (void) snprintf(from, sizeof from, "%.95s/%s", build, old);
        if (renameat(store_fd, from, fd, name) < 0)
            return err_sys(err, errno, "put a file below the image in place");
    }
    return 0;
}

/* Trees that the manifest no longer names. One that cannot be removed now waits for the
 * next time: the new version is in place already, so this is no failure. */
static void sweep(const struct template_maker *maker, const char *state, const char *name,
                  int template_fd, const char *keep)
{
    auto_dir DIR *dir = NULL;
    struct dirent *entry;
    struct err err;
    size_t users = 0;
    bool asked = false;
    int fd = openat(template_fd, ".", DIR_FLAGS);

    dir = fd < 0 ? NULL : fdopendir(fd);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || is_of(entry->d_name, keep) ||
            strcmp(entry->d_name, "manifest") == 0)
            continue;
        if (!asked && template_users(state, name, &users, &err) < 0)
            return;
        asked = true;
        if (users > 0)
            return;
        if (tree_remove(template_fd, entry->d_name, &err) < 0)
            template_note(maker, "an old tree of template '%s' stays: %s", name, err.msg);
    }
}

int template_publish(const struct template_maker *maker, const char *state, int store_fd,
                     const char *name, const char *build, struct manifest *manifest,
                     struct err *err)
{
    auto_close int fd = -1;
    struct timespec now;
    char from[160];

    (void) clock_gettime(CLOCK_REALTIME, &now);
    manifest->created = (uint64_t) now.tv_sec;
    (void) snprintf(manifest->root, sizeof manifest->root, "root-%llx%05lx",
                    (unsigned long long) now.tv_sec, (unsigned long) now.tv_nsec / 1000);
    if (make_and_open(store_fd, name, 0755, &fd, err) < 0)
        return -1;
    if (place_below(store_fd, build, fd, manifest, err) < 0)
        return err_wrap(err, "template '%s'", name);
    (void) snprintf(from, sizeof from, "%s/root", build);
    if (renameat(store_fd, from, fd, manifest->root) < 0)
        return err_sys(err, errno, "put the tree of '%s' in place", name);
    if (manifest_write(fd, manifest, err) < 0) {
        struct err ignored;
        char below[TEMPLATE_BELOW_NAME];

        (void) tree_remove(fd, manifest->root, &ignored);
        for (size_t i = 0; i < manifest_below_count(manifest); i++) {
            template_below_name(below, manifest->root, i);
            (void) tree_remove(fd, below, &ignored);
        }
        return err_wrap(err, "template '%s'", name);
    }
    template_changed(maker, name);
    sweep(maker, state, name, fd, manifest->root);
    return 0;
}

int template_remove(const char *state, int store_fd, const char *name, struct err *err)
{
    auto_close int fd = openat(store_fd, name, DIR_FLAGS);
    size_t users = 0;

    if (fd < 0)
        return err_set(err, ERR_NO_TEMPLATE, "there is no template '%s'", name);
    /* Without its manifest no new sandbox can start from it; then no create can come in between. */
    if (template_users(state, name, &users, err) < 0)
        return err_wrap(err, "template '%s' stays", name);
    if (users > 0)
        return err_set(err, ERR_STATE, "template '%s' is in use by %zu sandbox%s or snapshot%s",
                       name, users, users == 1 ? "" : "es", users == 1 ? "" : "s");
    if (unlinkat(fd, "manifest", 0) < 0 && errno != ENOENT)
        return err_sys(err, errno, "remove manifest of '%s'", name);
    if (template_users(state, name, &users, err) < 0 || users > 0)
        return err_set(err, ERR_STATE,
                       "template '%s' was taken by a sandbox just now; its tree stays until "
                       "'cove template rm %s' is called again",
                       name, name);
    if (tree_remove(store_fd, name, err) < 0)
        return err_wrap(err, "remove template '%s'", name);
    return 0;
}

int template_check_tree(int root_fd, uint32_t kind, struct err *err)
{
    static const char *const dirs[] = { "dev", "proc", "sys", "tmp", "run", "home", "etc", "usr" };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        struct stat st;

        if (fstatat(root_fd, dirs[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
            return err_set(err, ERR_INVALID, "/%s of the tree is not a directory", dirs[i]);
    }
    /* In a host template /usr is the host's own, bound over it later. */
    if (kind == MANIFEST_TREE && faccessat(root_fd, "usr/bin/env", X_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(err, ERR_INVALID, "/usr/bin/env is missing in the tree");
    return 0;
}

static bool same_content(int a_fd, int b_fd)
{
    char a[16384], b[16384];

    for (off_t at = 0;;) {
        ssize_t n = pread(a_fd, a, sizeof a, at);

        if (n < 0 || pread(b_fd, b, sizeof b, at) != n || memcmp(a, b, (size_t) n) != 0)
            return false;
        if (n == 0)
            return true;
        at += n;
    }
}

int template_put_sudo(const struct template_maker *maker, int root_fd, struct err *err)
{
    static const char *const dirs[] = { "opt", "opt/cove", "opt/cove/bin" };
    static const char file[] = "opt/cove/bin/sudo", fresh[] = "opt/cove/bin/.sudo-new";
    auto_close int from = -1, there = -1;

    if (!maker->agent)
        return err_set(err, ERR_UNAVAILABLE, "sudo for the template: there is no cove-agent");
    from = open(maker->agent, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return err_sys(err, errno, "open %s", maker->agent);
    there = openat(root_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (there >= 0 && same_content(from, there))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (tree_mkdir(root_fd, dirs[i], 0755, 0, err) < 0)
            return -1;
    if (tree_remove(root_fd, fresh, err) < 0 ||
        tree_copy(from, root_fd, fresh, 0755, AGENT_BYTES_MAX, err) < 0)
        return -1;
    if (renameat(root_fd, fresh, root_fd, file) < 0)
        return err_sys(err, errno, "put %s in place", file);
    return 0;
}

/* Both are replaced by renaming, or removed and made: another number says so. */
static ino_t ours_in(int root_fd)
{
    static const char *const ours[] = { "opt/cove/bin/sudo", "opt/cove/kernels" };
    ino_t sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        struct stat st;

        if (fstatat(root_fd, ours[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            sum = sum * 31 + st.st_ino + (ino_t) st.st_ctim.tv_nsec + (ino_t) st.st_ctim.tv_sec;
    }
    return sum;
}

int template_refresh_sudo(const struct template_maker *maker, const char *state, int store_fd,
                          struct err *err)
{
    auto_free struct template_entry *list = NULL;
    size_t count = 0, users = 0;

    if (template_list(store_fd, &list, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        auto_close int template_fd = -1, root_fd = -1;
        struct err ignored;
        ino_t before;

        if (list[i].problem.kind != ERR_NONE || list[i].manifest.kind != MANIFEST_TREE)
            continue;
        /* A layer under a mounted overlay is left alone. */
        if (template_users(state, list[i].name, &users, &ignored) < 0 || users > 0)
            continue;
        template_fd = openat(store_fd, list[i].name, DIR_FLAGS);
        if (template_fd >= 0)
            root_fd = openat(template_fd, list[i].manifest.root, DIR_FLAGS);
        if (root_fd < 0)
            continue;
        before = ours_in(root_fd);
        if (template_put_kernels(root_fd, err) < 0 || template_put_sudo(maker, root_fd, err) < 0 ||
            (template_has_java(root_fd) && template_put_java(root_fd, err) < 0))
            return err_wrap(err, "template '%s'", list[i].name);
        if (ours_in(root_fd) != before) /* what runs in its memory image is of the version before */
            template_changed(maker, list[i].name);
    }
    return 0;
}
