/* A tree goes into the backup as one tar file, written by the tar program as the cache of built templates is. Its size must be known before its first byte,
 * so tar runs twice. Images know their tree by its inode, which a restore changes: the manifest keeps the old one. */
#include "base/own.h"
#include "base/parse.h"
#include "cli/copy/backup_own.h"
#include "template/child.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PIECE     (1u << 20)

static bool is_needed(const struct backup *b, const char *template, uint64_t inode)
{
    for (size_t i = 0; i < b->taken_count; i++)
        if (b->taken[i].template_inode == inode && strcmp(b->taken[i].template, template) == 0)
            return true;
    return b->all_trees;
}

/* ---- tar ---- */

__attribute__((noreturn)) static void be_tar(int dir_fd, const char *root, int out_fd)
{
    const char *argv[] = { "tar",      "--numeric-owner",
                           "--xattrs", "--xattrs-include=*",
                           "--acls",   "--sort=name",
                           "--sparse", "-cf",
                           "-",        "--",
                           root,       NULL };
    sigset_t none;

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) setsid(); /* Ctrl-C is for us to handle */
    if (fchdir(dir_fd) == 0 && dup2(out_fd, STDOUT_FILENO) >= 0)
        (void) execvp(argv[0], (char *const *) (uintptr_t) argv);
    _exit(127);
}

static int start_tar(int dir_fd, const char *root, int *ret_fd, pid_t *ret_pid, struct err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, errno, "pipe");
    *ret_pid = fork();
    if (*ret_pid == 0)
        be_tar(dir_fd, root, ends[1]);
    (void) close(ends[1]);
    *ret_fd = ends[0];
    if (*ret_pid < 0)
        own_close(ret_fd);
    return *ret_pid < 0 ? err_sys(err, errno, "start tar") : 0;
}

/* All of tar's output, to the sink, or counted if there is none. */
static int follow_tar(struct sink *sink, int fd, char *piece, uint64_t *ret_size, struct err *err)
{
    ssize_t n;

    *ret_size = 0;
    while ((n = read(fd, piece, PIECE)) != 0) {
        if (child_interrupted())
            return err_set(err, ERR_STATE, "interrupted");
        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "read from tar");
        if (n > 0 && sink && sink_write(sink, piece, (size_t) n, err) < 0)
            return -1;
        *ret_size += n > 0 ? (uint64_t) n : 0;
    }
    return 0;
}

static int run_tar(struct sink *sink, int dir_fd, const char *root, uint64_t *ret_size,
                   struct err *err)
{
    auto_free char *piece = malloc(PIECE);
    auto_close int fd = -1;
    int status = 0, r;
    pid_t pid = -1;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory to copy");
    if (start_tar(dir_fd, root, &fd, &pid, err) < 0)
        return -1;
    r = follow_tar(sink, fd, piece, ret_size, err);
    own_close(&fd);
    if (r < 0)
        (void) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        return err_set(err, ERR_INTERNAL, "tar failed on a template's tree");
    return r;
}

/* ---- templates ---- */

static int take_tree(struct backup *b, int dir_fd, const char *template, const char *root,
                     uint64_t inode, struct err *err)
{
    struct backup_tree tree = { .inode = inode };
    struct backup_file file;
    char path[BACKUP_PATH_MAX];
    uint64_t size, again;

    (void) snprintf(tree.template, sizeof tree.template, "%s", template);
    (void) snprintf(tree.root, sizeof tree.root, "%s", root);
    (void) snprintf(path, sizeof path, "templates/%s/%s.tar", template, root);
    backup_show(b, "template");
    if (run_tar(NULL, dir_fd, root, &size, err) < 0 ||
        sink_begin(b->sink, path, 0600, size, err) < 0 ||
        run_tar(b->sink, dir_fd, root, &again, err) < 0 || sink_end(b->sink, &file, err) < 0)
        return err_wrap(err, "template '%s'", template);
    return backup_manifest_add_file(&b->manifest, &file, err) < 0
               ? -1
               : backup_manifest_add_tree(&b->manifest, &tree, err);
}

/* Of a file below an image's own, "<root>.<i>": the inode of that one. Of all else, its own. */
static uint64_t inode_of_root(int dir_fd, const char *name, const struct stat *st)
{
    char root[80];
    struct stat above;

    (void) snprintf(root, sizeof root, "%.*s", (int) strcspn(name, "."), name);
    return S_ISREG(st->st_mode) && fstatat(dir_fd, root, &above, AT_SYMLINK_NOFOLLOW) == 0
               ? (uint64_t) above.st_ino
               : (uint64_t) st->st_ino;
}

/* fn for each tree of a template that is needed. */
typedef int each_tree(struct backup *b, int dir_fd, const char *template, const char *root,
                      uint64_t inode, struct err *err);

static int walk_trees(struct backup *b, int dir_fd, const char *template, each_tree *fn,
                      struct err *err)
{
    int fd = openat(dir_fd, ".", DIR_FLAGS);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct stat st;

        if (!name_ok(entry->d_name) || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(S_ISDIR(st.st_mode) ||
              (S_ISREG(st.st_mode) && strncmp(entry->d_name, "root-", 5) == 0)) ||
            !is_needed(b, template, inode_of_root(fd, entry->d_name, &st)))
            continue;
        if (fn(b, fd, template, entry->d_name, (uint64_t) st.st_ino, err) < 0)
            return -1;
    }
    return 0;
}

static DIR *open_templates(const struct backup *b)
{
    int fd = openat(b->state_fd, "templates", DIR_FLAGS);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void) close(fd);
    return dir;
}

int backup_templates(struct backup *b, struct err *err)
{
    auto_dir DIR *dir = open_templates(b);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        auto_close int fd = -1;
        char path[BACKUP_PATH_MAX];
        int r;

        if (!name_ok(entry->d_name))
            continue; /* being made, or a lock */
        fd = openat(dirfd(dir), entry->d_name, DIR_FLAGS);
        (void) snprintf(path, sizeof path, "templates/%.63s/manifest", entry->d_name);
        r = fd < 0 ? 1 : backup_take(b, fd, "manifest", path, err);
        if (r == 1)
            continue; /* not finished, or being removed */
        if (r < 0 || walk_trees(b, fd, entry->d_name, take_tree, err) < 0)
            return -1;
    }
    return 0;
}

static int add_size(struct backup *b, int dir_fd, const char *template, const char *root,
                    uint64_t inode, struct err *err)
{
    struct tree_size size;

    (void) template, (void) inode;
    if (tree_measure(dir_fd, root, &size, err) == 0)
        b->total += size.bytes;
    return 0;
}

/* Trees of every template that some image names: which of its trees is not known before images are read. */
uint64_t backup_templates_bytes(struct backup *b)
{
    auto_dir DIR *dir = open_templates(b);
    const struct dirent *entry;
    uint64_t before = b->total, sum;
    struct err ignored;

    while (dir && (entry = readdir(dir))) {
        auto_close int fd = -1;

        if (!name_ok(entry->d_name))
            continue;
        fd = openat(dirfd(dir), entry->d_name, DIR_FLAGS);
        (void) walk_trees(b, fd, entry->d_name, add_size, &ignored);
    }
    sum = b->total - before;
    b->total = before;
    return sum;
}
