#include "oci/finish.h"

#include "base/own.h"
#include "base/parse.h"
#include "oci/passwd.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define USER_FIRST 1000u
#define USER_LAST  1999u
#define SKEL_MAX   65536u /* a file of /etc/skel that is longer stays there alone */

/* ---- the tree ---- */

/* What is there: a node, or NULL. The last part is not followed. */
static struct tree_node *look(struct merge *m, const char *path)
{
    struct tree_node *dir;
    const char *name;
    struct err ignored;

    if (tree_walk(&m->tree, path, false, m->layer, &dir, &name, &ignored) < 0 || !dir)
        return NULL;
    return tree_child(&m->tree, dir, name, strlen(name));
}

/* A file in the place of whatever is there. */
static int put_file(struct merge *m, const char *path, const void *data, size_t len, uint16_t mode,
                    uint16_t id, struct err *err)
{
    struct tree_inode *inode = tree_inode_new(S_IFREG | mode, id, id, 0);
    struct tree_node *dir, *old;
    const char *name;

    if (!inode)
        return err_set(err, ERR_NO_MEMORY, "no memory for the tree");
    if (tree_walk(&m->tree, path, true, m->layer, &dir, &name, err) < 0 ||
        erofs_begin(&m->writer, inode, len, err) < 0) {
        tree_inode_free(&m->tree, inode);
        return err_wrap(err, "/%s of the image", path);
    }
    if (erofs_add(&m->writer, data, len, err) < 0 || erofs_end(&m->writer, err) < 0) {
        tree_inode_free(&m->tree, inode);
        return err_wrap(err, "/%s of the image", path);
    }
    old = tree_child(&m->tree, dir, name, strlen(name));
    if (old)
        tree_remove(&m->tree, old);
    return tree_put(&m->tree, dir, name, strlen(name), inode, m->layer, NULL, err) < 0
               ? err_wrap(err, "/%s of the image", path)
               : 0;
}

/* A directory, if there is nothing; `real`: in the place of whatever is there. */
static int put_dir(struct merge *m, const char *path, uint16_t mode, uint16_t id, bool real,
                   struct err *err)
{
    struct tree_node *dir, *old;
    const char *name;

    if (tree_walk(&m->tree, path, true, m->layer, &dir, &name, err) < 0)
        return err_wrap(err, "/%s of the image", path);
    old = tree_child(&m->tree, dir, name, strlen(name));
    if (old && (tree_is_dir(old) || !real))
        return 0;
    if (old)
        tree_remove(&m->tree, old);
    return tree_put(&m->tree, dir, name, strlen(name), tree_inode_new(S_IFDIR | mode, id, id, 0),
                    m->layer, NULL, err);
}

/* A text file, or "" if there is none. For the caller to free. */
static char *read_text(struct merge *m, const char *path, struct err *err)
{
    struct tree_node *node = look(m, path);
    char *text = calloc(1, PASSWD_MAX + 1);
    size_t len = 0;

    if (!text) {
        err_set(err, ERR_NO_MEMORY, "no memory for a file of the image");
        return NULL;
    }
    if (node && S_ISREG(node->inode->mode) &&
        merge_read(m, node->inode, text, PASSWD_MAX, &len, err) < 0) {
        err_wrap(err, "/%s of the image", path);
        free(text);
        return NULL;
    }
    text[strnlen(text, len)] = '\0';
    return text;
}

/* ---- users ---- */

struct users {
    char *passwd, *group;
    struct passwd_user user;
    bool made; /* the user is ours */
};

/* Adds a line; the text has room for a few. */
static int append(char **text, const char *line, struct err *err)
{
    size_t len = strlen(*text), more = strlen(line);
    bool ends = len == 0 || (*text)[len - 1] == '\n';
    char *longer = realloc(*text, len + more + 3);

    if (!longer)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file of the image");
    *text = longer;
    (void) sprintf(longer + len, "%s%s\n", ends ? "" : "\n", line);
    return 0;
}

static const char *shell_of(struct merge *m)
{
    static const char *const shells[] = { "bin/bash", "usr/bin/bash", "bin/sh", "usr/bin/sh" };
    static const char *const names[] = { "/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh" };

    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (look(m, shells[i]))
            return names[i];
    return "/bin/sh";
}

static int make_user(struct merge *m, struct users *u, uint32_t wanted, struct err *err)
{
    struct passwd_user taken;
    char line[128];
    uint32_t id = wanted;

    (void) snprintf(u->user.name, sizeof u->user.name, "user");
    if (wanted == 0)
        for (id = USER_FIRST; id <= USER_LAST && !passwd_id_free(u->passwd, u->group, id);)
            id++;
    if (wanted == 0 && id > USER_LAST)
        return err_set(err, ERR_UNSUPPORTED, "the image has no free user id from %u to %u",
                       USER_FIRST, USER_LAST);
    if (passwd_by_name(u->passwd, "user", &taken)) /* the image wants another id, by number */
        (void) snprintf(u->user.name, sizeof u->user.name, "user%u", id);
    u->user.uid = u->user.gid = id;
    (void) snprintf(u->user.home, sizeof u->user.home, "/home/%s", u->user.name);
    (void) snprintf(line, sizeof line, "%s:x:%u:%u::%s:%s", u->user.name, id, id, u->user.home,
                    shell_of(m));
    if (append(&u->passwd, line, err) < 0)
        return -1;
    (void) snprintf(line, sizeof line, "%s:x:%u:", u->user.name, id);
    u->made = true;
    return passwd_has_group(u->group, u->user.name, id) ? 0 : append(&u->group, line, err);
}

static bool name_fits(const char *name)
{
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
               strlen(name) &&
           !strchr("0123456789-.", name[0]);
}

/* "", "root", "1000", "node", "node:group": the group is the user's own one. */
static int find_user(struct merge *m, struct users *u, const char *wanted, struct err *err)
{
    char name[128];
    uint64_t uid = 0;
    struct err ignored;
    bool number;

    (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(wanted, ":"), wanted);
    number = name[0] && parse_u64(name, &uid, &ignored) == 0;
    if (number && uid > MERGE_ID_MAX)
        return err_set(err, ERR_UNSUPPORTED,
                       "the image's user is %s: a sandbox has the ids 0 to %u", name, MERGE_ID_MAX);
    if (number ? uid > 0 && passwd_by_id(u->passwd, (uint32_t) uid, &u->user)
               : name[0] && passwd_by_name(u->passwd, name, &u->user) && u->user.uid > 0)
        return name_fits(u->user.name) ? 0
                                       : err_set(err, ERR_UNSUPPORTED,
                                                 "the image's user '%.32s' has a name that is not "
                                                 "supported",
                                                 u->user.name);
    if (number && uid > 0)
        return make_user(m, u, (uint32_t) uid, err);
    if (!number && name[0] && strcmp(name, "root") != 0 &&
        !passwd_by_name(u->passwd, name, &u->user))
        return err_set(err, ERR_UNSUPPORTED, "the image's user '%.60s' is not in its /etc/passwd",
                       name);
    if (passwd_by_name(u->passwd, "user", &u->user) && u->user.uid > 0)
        return 0;
    return make_user(m, u, 0, err);
}

static int put_skel(struct merge *m, const struct users *u, struct err *err)
{
    struct tree_node *skel = look(m, "etc/skel");
    char path[600];
    auto_free char *data = NULL;

    if (!skel || !tree_is_dir(skel))
        return 0;
    data = malloc(SKEL_MAX);
    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file of the image");
    for (const struct tree_node *child = skel->children; child; child = child->next) {
        size_t len;

        if (!S_ISREG(child->inode->mode) || child->inode->size > SKEL_MAX)
            continue;
        (void) snprintf(path, sizeof path, "%s/%s", u->user.home + 1, child->name);
        /* Nothing is replaced: what is there may be /etc/skel itself, if /etc is a link to the home. */
        if (look(m, path))
            continue;
        if (merge_read(m, child->inode, data, SKEL_MAX, &len, err) < 0 ||
            put_file(m, path, data, len, child->inode->mode & 0777, (uint16_t) u->user.uid, err) <
                0)
            return -1;
    }
    return 0;
}

static int put_users(struct merge *m, struct users *u, const char *wanted, struct err *err)
{
    struct passwd_user root;

    u->passwd = read_text(m, "etc/passwd", err);
    u->group = u->passwd ? read_text(m, "etc/group", err) : NULL;
    if (!u->group)
        return -1;
    if (!passwd_by_id(u->passwd, 0, &root) &&
        append(&u->passwd, "root:x:0:0:root:/root:/bin/sh", err) < 0)
        return -1;
    if (!passwd_has_group(u->group, "root", 0) && append(&u->group, "root:x:0:", err) < 0)
        return -1;
    if (find_user(m, u, wanted, err) < 0 ||
        put_file(m, "etc/passwd", u->passwd, strlen(u->passwd), 0644, 0, err) < 0 ||
        put_file(m, "etc/group", u->group, strlen(u->group), 0644, 0, err) < 0)
        return -1;
    if (!u->made)
        return 0;
    /* A real directory: /etc/skel, which is read meanwhile, must not be written to by a link. */
    return put_dir(m, u->user.home + 1, 0755, (uint16_t) u->user.uid, true, err) < 0
               ? -1
               : put_skel(m, u, err);
}

/* ---- the whole ---- */

static int put_dirs(struct merge *m, uint16_t uid, struct err *err)
{
    static const struct {
        const char *path;
        uint16_t mode;
        bool real; /* mounted on */
        bool users;
    } dirs[] = {
        { "dev", 0755, true, false },   { "proc", 0555, true, false },
        { "sys", 0555, true, false },   { "tmp", 01777, false, false },
        { "run", 0755, false, false },  { "home", 0755, false, false },
        { "root", 0700, false, false }, { "workspace", 0755, false, true },
    };

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (put_dir(m, dirs[i].path, dirs[i].mode, dirs[i].users ? uid : 0, dirs[i].real, err) < 0)
            return -1;
    return 0;
}

static int put_command(struct merge *m, const struct oci_config *config, struct err *err)
{
    size_t len = config->entrypoint.len + config->cmd.len;
    auto_free char *text = malloc(len + 1);

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for a file of the image");
    memcpy(text, config->entrypoint.text, config->entrypoint.len);
    memcpy(text + config->entrypoint.len, config->cmd.text, config->cmd.len);
    if (len == 0)
        return 0;
    /* Both by themselves, too: a build on the image may replace one of them. */
    if (put_file(m, "opt/cove/entrypoint.words", config->entrypoint.text, config->entrypoint.len,
                 0644, 0, err) < 0 ||
        put_file(m, "opt/cove/cmd.words", config->cmd.text, config->cmd.len, 0644, 0, err) < 0)
        return -1;
    return put_file(m, "opt/cove/entrypoint", text, len, 0644, 0, err);
}

/* Absolute, without parts that are empty, "." or "..": each part may become the name of a directory. */
static bool path_fits(const char *path)
{
    for (const char *c = path; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            return false;
    for (const char *at = path; *at == '/' && at[1];) {
        size_t len = strcspn(++at, "/");

        if (len == 0 || (len <= 2 && strspn(at, ".") == len))
            return false;
        at += len;
    }
    return path[0] == '/' && strlen(path) < 256;
}

/* The image's directory, which is made, or the user's home. */
static int find_workdir(struct merge *m, const char *wanted, const struct passwd_user *user,
                        struct finish *ret, struct err *err)
{
    const char *path = wanted[0] ? wanted : path_fits(user->home) ? user->home : "/";

    if (!path_fits(path))
        return err_set(err, ERR_UNSUPPORTED,
                       "the image's working directory '%.60s' is not supported", path);
    (void) snprintf(ret->workdir, sizeof ret->workdir, "%s", path);
    for (size_t len = strlen(ret->workdir); len > 1 && ret->workdir[len - 1] == '/'; len--)
        ret->workdir[len - 1] = '\0';
    return ret->workdir[1] ? put_dir(m, ret->workdir + 1, 0755,
                                     wanted[0] ? 0 : (uint16_t) user->uid, false, err)
                           : 0;
}

int finish_image(struct merge *m, const struct oci_config *config, struct finish *ret,
                 struct err *err)
{
    struct users u = { 0 };
    int rc = 0;

    merge_layer(m);
    if (put_users(m, &u, config->user, err) < 0 || put_dirs(m, (uint16_t) u.user.uid, err) < 0 ||
        put_command(m, config, err) < 0 || find_workdir(m, config->workdir, &u.user, ret, err) < 0)
        rc = -1;
    (void) snprintf(ret->user, sizeof ret->user, "%s", u.user.name);
    free(u.passwd);
    free(u.group);
    return rc;
}
