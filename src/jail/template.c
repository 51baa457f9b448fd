#include "jail/template.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MAX 32768

static int set_text(char *field, size_t size, const char *key, const char *value, struct err *err)
{
    if (strlen(value) >= size)
        return err_set(err, ERR_INVALID, "%s is too long", key);
    (void) snprintf(field, size, "%s", value);
    return 0;
}

static int add_env(struct template *t, const char *value, struct err *err)
{
    size_t len = strlen(value) + 1;

    if (!strchr(value, '=') || value[0] == '=')
        return err_set(err, ERR_INVALID, "env is not K=V");
    if (t->env_count == TEMPLATE_ENV_COUNT || len > sizeof t->env - t->env_used)
        return err_set(err, ERR_INVALID, "too much env");
    memcpy(t->env + t->env_used, value, len);
    t->env_used += len;
    t->env_count++;
    return 0;
}

/* A name may be anything, also that of a file. */
static void set_named(struct template *t, const char *value)
{
    const char *at = strrchr(value, '@');

    if (at && strlen(at + 1) < sizeof t->named)
        (void) snprintf(t->named, sizeof t->named, "%s", at + 1);
}

static int set_kind(struct template *t, const char *value, struct err *err)
{
    if (strcmp(value, "host") != 0 && strcmp(value, "tree") != 0 && strcmp(value, "image") != 0)
        return err_set(err, ERR_INVALID, "kind is neither host, tree nor image");
    t->host_usr = value[0] == 'h';
    t->image = value[0] == 'i';
    return 0;
}

/* How many the manifest says. */
static size_t count_keys(const char *value)
{
    size_t count = value[0] != '\0';

    for (; *value; value++)
        count += *value == ',';
    return count;
}

int template_parse(struct template *t, char *text, const char **ret_root, struct err *err)
{
    const char *root = NULL;
    bool has_kind = false;

    for (char *line = text, *next; line; line = next) {
        char *end = strchr(line, '\n'), *value;
        int rc = 0;

        next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = '\0';
        if (strcmp(line, "kind") == 0) {
            rc = set_kind(t, value, err);
            has_kind = true;
        } else if (strcmp(line, "root") == 0) {
            root = value;
        } else if (strcmp(line, "user") == 0) {
            rc = set_text(t->user, sizeof t->user, line, value, err);
        } else if (strcmp(line, "workdir") == 0) {
            rc = set_text(t->workdir, sizeof t->workdir, line, value, err);
        } else if (strcmp(line, "layer") == 0) {
            rc = set_text(t->layer, sizeof t->layer, line, value, err);
        } else if (strcmp(line, "below") == 0) {
            t->below_said = count_keys(value);
        } else if (strcmp(line, "digest") == 0) {
            rc = set_text(t->digest, sizeof t->digest, line, value, err);
        } else if (strcmp(line, "image") == 0) {
            set_named(t, value);
        } else if (strcmp(line, "env") == 0) {
            rc = add_env(t, value, err);
        }
        if (rc < 0)
            return -1;
    }
    if (!has_kind || !root || !name_ok(root) || !t->user[0])
        return err_set(err, ERR_INVALID, "kind, root or user is missing");
    *ret_root = root;
    return 0;
}

/* A tree's directory, or an image's file. */
static int open_root(int dir, const char *root, bool image, struct stat *ret)
{
    auto_close int fd =
        openat(dir, root, (image ? O_RDONLY : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || fstat(fd, ret) < 0)
        return -1;
    if (image && !S_ISREG(ret->st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return take_fd(&fd);
}

/* "<root>.1" and so on, for as long as there are any. */
static int open_below(struct template *t, int dir, const char *root)
{
    while (t->below_count < LAYERS_BELOW_MAX) {
        char name[80];
        struct stat st;
        int fd;

        (void) snprintf(name, sizeof name, "%.64s.%zu", root, t->below_count + 1);
        fd = open_root(dir, name, true, &st);
        if (fd < 0)
            return errno == ENOENT ? 0 : -1;
        t->below_fd[t->below_count++] = fd;
    }
    return 0;
}

int template_open(struct template *t, int templates_fd, const char *name, struct err *err)
{
    auto_close int dir = -1;
    char text[MANIFEST_MAX];
    const char *root;
    struct stat st;
    uint64_t build;

    memset(t, 0, sizeof *t);
    t->root_fd = -1;
    dir = openat(templates_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || io_read_text(dir, "manifest", text, sizeof text) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
                   ? err_set(err, ERR_NO_TEMPLATE, "there is no template '%s'", name)
                   : err_sys(err, errno, "template '%s': read its manifest", name);
    build = hash_text(HASH_START, text);
    if (template_parse(t, text, &root, err) < 0)
        return err_wrap(err, "template '%s': its manifest", name);
    t->root_fd = open_root(dir, root, t->image, &st);
    if (t->root_fd < 0 || (t->image && open_below(t, dir, root) < 0)) {
        err_sys(err, errno, "template '%s': open its tree", name);
        template_close(t);
        return -1;
    }
    if (t->below_count != t->below_said) {
        template_close(t);
        return err_set(err, ERR_STATE, "template '%s': a file of its image is missing", name);
    }
    t->inode = (uint64_t) st.st_ino;
    /* The number of a tree that a sandbox still uses is not given to another. */
    t->build = build ^ (uint64_t) st.st_ino ^ (uint64_t) st.st_dev << 48;
    return 0;
}

/* A tree or a file beside the one of now: -1: there is none. */
static int find_tree(struct template *t, int templates_fd, const char *name, uint64_t inode)
{
    int fd = openat(templates_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir && fd >= 0)
        (void) close(fd);
    while (dir && (entry = readdir(dir))) {
        auto_close int tree = -1;
        struct stat st;

        if ((uint64_t) entry->d_ino != inode || !name_ok(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        t->image = S_ISREG(st.st_mode);
        tree = open_root(dirfd(dir), entry->d_name, t->image, &st);
        if (tree < 0 || (uint64_t) st.st_ino != inode)
            continue;
        t->root_fd = take_fd(&tree);
        return t->image ? open_below(t, dirfd(dir), entry->d_name) : 0;
    }
    return -1;
}

int template_open_tree(struct template *t, int templates_fd, const char *name, uint64_t inode,
                       struct err *err)
{
    if (template_open(t, templates_fd, name, err) < 0)
        return -1;
    if (inode == 0 || t->inode == inode)
        return 0;
    template_close(t);
    if (find_tree(t, templates_fd, name, inode) < 0) {
        template_close(t);
        return err_set(err, ERR_STATE,
                       "template '%s' was rebuilt, and the tree that this stands on is gone", name);
    }
    t->inode = inode;
    t->build = inode; /* of no pool */
    return 0;
}

void template_close(struct template *t)
{
    own_close(&t->root_fd);
    while (t->below_count > 0)
        own_close(&t->below_fd[--t->below_count]);
}

bool template_exists(int templates_fd, const char *name)
{
    struct template t;
    struct err ignored;
    bool there = template_open(&t, templates_fd, name, &ignored) == 0;

    template_close(&t);
    return there;
}
