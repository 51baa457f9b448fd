#include "template/template_host.h"

#include "base/hash.h"
#include "base/own.h"
#include "template/template_files.h"
#include "template/template_java.h"
#include "template/template_kernels.h"
#include "template/template_store.h"
#include "template/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Theory: the list below is what may come over from /etc, by name. Of what it names, only regular
 * files and directories that are root's and that everybody may read are copied, and symlinks that
 * stay inside /etc and /usr; everything is bounded, and a file with a private key in it is left out
 * wherever it stands. A stamp over the times of the sources says when to do it again. */

#define RECIPE_VERSION "host 2"
#define FILE_BYTES_MAX (4u << 20)
#define ALL_BYTES_MAX  (64u << 20)
#define ALL_FILES_MAX  20000u
#define DEPTH_MAX      8u

/* Relative to /etc; the last part may be a pattern. */
static const struct source {
    const char *path;
    const char *why;
} sources[] = {
    /* clang-format off */
    { "alternatives",            "half of /usr/bin are links into it" },
    { "R",                       "R does not start without it" },
    { "ld.so.cache",             "where libraries are" },
    { "ld.so.conf",              "the same, for ldconfig" },
    { "ld.so.conf.d",            "the same, for ldconfig" },
    { "ld-musl-*.path",          "where musl's libraries are" },
    { "ssl/certs",               "certificate authorities" },
    { "ssl/openssl.cnf",         "OpenSSL does not start without it" },
    { "ca-certificates",         "update-ca-certificates" },
    { "ca-certificates.conf",    "update-ca-certificates" },
    { "pki/tls/certs",           "certificate authorities, Fedora's place" },
    { "pki/ca-trust/extracted",  "certificate authorities, Fedora's place" },
    { "crypto-policies",         "OpenSSL's settings, Fedora's place" },
    { "mime.types",              "python's mimetypes and others" },
    { "magic",                   "file" },
    { "magic.mime",              "file" },
    { "services",                "getservbyname" },
    { "protocols",               "getprotobyname" },
    { "rpc",                     "getrpcbyname" },
    { "ethertypes",              "getethertypes" },
    { "host.conf",               "resolver" },
    { "gai.conf",                "getaddrinfo's order" },
    { "localtime",               "time zone" },
    { "timezone",                "time zone" },
    { "locale.alias",            "locales" },
    { "locale.conf",             "locales" },
    { "os-release",              "which Linux this is" },
    { "debian_version",          "which Debian this is" },
    { "lsb-release",             "which Ubuntu this is" },
    { "bash.bashrc",             "interactive shells" },
    { "bashrc",                  "interactive shells, Fedora's place" },
    { "inputrc",                 "line editing" },
    { "nanorc",                  "nano" },
    { "vim",                     "vim" },
    { "terminfo",                "terminals that are not in /usr" },
    { "login.defs",              "useradd" },
    { "adduser.conf",            "adduser" },
    { "deluser.conf",            "deluser" },
    { "xattr.conf",              "which attributes cp and tar keep" },
    { "mke2fs.conf",             "mkfs" },
    { "manpath.config",          "man" },
    { "groff",                   "man" },
    { "python3*",                "site settings of python" },
    { "matplotlibrc",            "matplotlib does not start without it" },
    { "perl",                    "site settings of perl" },
    { "java-*",                  "java's own settings, links of /usr/lib/jvm lead here" },
    { "fonts",                   "fontconfig" },
    { "ImageMagick-*",           "convert and others; limits" },
    { "xml",                     "catalogues" },
    { "sgml",                    "catalogues" },
    { "fpc*.cfg",                "the Pascal compiler" },
    { "gnucobol",                "the Cobol compiler" },
    { "maven",                   "links of /usr/share/maven lead here" },
    /* clang-format on */
};

/* Left out though a row above names their directory. */
static const char *const kept_out[] = {
    "*.key",        "*private*",          "*password*",    "*secret*",
    "*credential*", "ssl-cert-snakeoil*", "settings*.xml", /* maven's, with servers and their tokens
                                                            */
    "*~",           "*.dpkg-*",           "*.ucf-*",       ".*",
};

static const struct {
    const char *path;
    mode_t mode;
    uid_t uid;
} dirs[] = {
    /* clang-format off */
    { "usr",       0755, 0 }, { "proc",      0555, 0 }, { "sys",       0555,  0 },
    { "dev",       0755, 0 }, { "tmp",       01777, 0 }, { "run",       0755,  0 },
    { "run/lock",  01777, 0 }, { "etc",      0755, 0 }, { "home",      0755,  0 },
    { "home/user", 0755, TEMPLATE_UID },                { "root",      0700,  0 },
    { "workspace", 0755, TEMPLATE_UID },
    { "opt",       0755, 0 }, { "srv",       0755, 0 }, { "mnt",       0755,  0 },
    { "media",     0755, 0 }, { "boot",      0755, 0 }, { "var",       0755,  0 },
    { "var/tmp",   01777, 0 }, { "var/lib",  0755, 0 }, { "var/cache", 0755,  0 },
    { "var/log",   0755, 0 }, { "var/spool", 0755, 0 }, { "var/mail",  0755,  0 },
    { "etc/profile.d", 0755, 0 }, { "etc/ssl", 0755, 0 }, { "etc/pki", 0755, 0 },
    { "etc/pki/tls", 0755, 0 }, { "etc/pki/ca-trust", 0755, 0 }, { "etc/default", 0755, 0 },
    { "etc/pam.d", 0755, 0 },
    /* clang-format on */
};

static const struct {
    const char *path, *target;
} links[] = {
    { "var/run", "/run" },
    { "var/lock", "/run/lock" },
    { "etc/mtab", "/proc/mounts" },
};

/* As on the host: with merged /usr these are links into it. */
static const char *const host_links[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

struct copying {
    uint64_t bytes;
    unsigned files;
};

static bool is_kept_out(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kept_out); i++)
        if (fnmatch(kept_out[i], name, FNM_CASEFOLD) == 0)
            return true;
    return false;
}

/* Absolute into /etc or /usr (whose parts the sandbox has), or relative without climbing out of
 * /etc other than into /usr. */
static bool is_link_sane(const char *target, unsigned depth)
{
    unsigned up = 0;

    if (target[0] == '/')
        return !strstr(target, "/..") &&
               (strncmp(target, "/etc/", 5) == 0 || strncmp(target, "/usr/", 5) == 0);
    while (strncmp(target, "../", 3) == 0) {
        target += 3;
        up++;
    }
    /* depth 0 is /etc itself: its entries leave it with the first "../". */
    if (up > depth + 1 || strstr(target, ".."))
        return false;
    return up <= depth || strncmp(target, "usr/", 4) == 0;
}

static int copy_link(int from_fd, const char *name, int to_fd, unsigned depth, struct err *err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(from_fd, name, target, sizeof target - 1);

    if (len <= 0 || len == sizeof target - 1)
        return 0;
    target[len] = '\0';
    if (!is_link_sane(target, depth))
        return 0;
    if (symlinkat(target, to_fd, name) < 0 && errno != EEXIST)
        return err_sys(err, errno, "link %s", name);
    return 0;
}

static bool has_private_key(int fd, size_t len)
{
    void *text = len ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    bool found;

    if (!text || text == MAP_FAILED)
        return text != NULL; /* what cannot be looked into stays out */
    found = memmem(text, len, "PRIVATE KEY", 11) != NULL;
    (void) munmap(text, len);
    return found;
}

static int copy_file(int from_fd, const char *name, int to_fd, struct copying *all, struct err *err)
{
    auto_close int fd = openat(from_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    /* Looked at again on the open descriptor: this is what gets copied. */
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
        st.st_uid != 0 || st.st_size > FILE_BYTES_MAX || has_private_key(fd, (size_t) st.st_size))
        return 0;
    all->bytes += (uint64_t) st.st_size;
    if (all->bytes > ALL_BYTES_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %u MiB", ALL_BYTES_MAX >> 20);
    return tree_copy(fd, to_fd, name, st.st_mode & 0111 ? 0755 : 0644, FILE_BYTES_MAX, err);
}

static int copy_entry(int from_fd, const char *name, int to_fd, unsigned depth, struct copying *all,
                      struct err *err);

static int copy_dir(int from_fd, const char *name, int to_fd, unsigned depth, struct copying *all,
                    struct err *err)
{
    int fd = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    auto_close int into = -1;
    struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            (void) close(fd);
        return 0;
    }
    if (tree_mkdir(to_fd, name, 0755, 0, err) < 0)
        return -1;
    into = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (into < 0)
        return err_sys(err, errno, "open %s", name);
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.' &&
            copy_entry(dirfd(dir), entry->d_name, into, depth + 1, all, err) < 0)
            return err_wrap(err, "%s", name);
    return 0;
}

/* What does not qualify is passed over in silence: a template lacks it, as it lacks the rest. */
static int copy_entry(int from_fd, const char *name, int to_fd, unsigned depth, struct copying *all,
                      struct err *err)
{
    struct stat st;

    if (is_kept_out(name) || fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        st.st_uid != 0 || depth > DEPTH_MAX)
        return 0;
    if (++all->files > ALL_FILES_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %u files", ALL_FILES_MAX);
    if (S_ISLNK(st.st_mode))
        return copy_link(from_fd, name, to_fd, depth, err);
    if (S_ISREG(st.st_mode))
        return copy_file(from_fd, name, to_fd, all, err);
    if (S_ISDIR(st.st_mode) && (st.st_mode & 05) == 05)
        return copy_dir(from_fd, name, to_fd, depth, all, err);
    return 0;
}

/* A source in /etc, with its pattern, if any. `visit` gets every entry that matches. */
struct visit {
    int (*entry)(int dir_fd, const char *name, const char *parent, void *context, struct err *err);
    void *context;
};

static int visit_source(int etc_fd, const char *path, const struct visit *visit, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char parent[64] = ".";
    auto_dir DIR *dir = NULL;
    struct dirent *entry;
    int fd;

    if (slash)
        (void) snprintf(parent, sizeof parent, "%.*s", (int) (slash - path), path);
    fd = openat(etc_fd, parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return 0;
    path = slash ? slash + 1 : path;
    if (!strchr(path, '*'))
        return visit->entry(dirfd(dir), path, parent, visit->context, err);
    while ((entry = readdir(dir)))
        if (fnmatch(path, entry->d_name, FNM_PERIOD) == 0 &&
            visit->entry(dirfd(dir), entry->d_name, parent, visit->context, err) < 0)
            return -1;
    return 0;
}

struct copy_context {
    int etc_fd; /* of the new tree */
    struct copying all;
};

static int copy_source(int dir_fd, const char *name, const char *parent, void *context,
                       struct err *err)
{
    struct copy_context *copy = context;
    auto_close int to_fd = openat(copy->etc_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned depth = strcmp(parent, ".") == 0 ? 0 : strchr(parent, '/') ? 2 : 1;

    if (to_fd < 0)
        return err_sys(err, errno, "open /etc/%s of the template", parent);
    return copy_entry(dir_fd, name, to_fd, depth, &copy->all, err);
}

static int stamp_source(int dir_fd, const char *name, const char *parent, void *context,
                        struct err *err)
{
    uint64_t *hash = context;
    struct stat st;

    (void) parent;
    (void) err;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    *hash = hash_text(*hash, name);
    *hash = hash_bytes(*hash, &st.st_mtim, sizeof st.st_mtim);
    *hash = hash_bytes(*hash, &st.st_size, sizeof st.st_size);
    *hash = hash_bytes(*hash, &st.st_mode, sizeof st.st_mode);
    return 0;
}

static int stamp(const struct template_maker *maker, int etc_fd, char out[65], struct err *err)
{
    uint64_t hash = hash_text(HASH_START, RECIPE_VERSION);
    const struct visit visit = { stamp_source, &hash };

    hash = template_kernels_hash(template_files_hash(hash, FILES_HOST));
    if (template_has_java(AT_FDCWD))
        hash = hash_text(hash, "java");
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        hash = hash_text(hash, dirs[i].path);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        (void) visit_source(etc_fd, sources[i].path, &visit, err);
    if (!maker->agent)
        return err_set(err, ERR_UNAVAILABLE, "there is no cove-agent");
    (void) stamp_source(AT_FDCWD, maker->agent, NULL, &hash, err);
    (void) snprintf(out, 65, "%016" PRIx64, hash);
    return 0;
}

static int put_links(int root_fd, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].target, root_fd, links[i].path) < 0)
            return err_sys(err, errno, "link %s", links[i].path);
    for (size_t i = 0; i < ARRAY_LEN(host_links); i++) {
        char path[16], target[64];
        ssize_t len;

        (void) snprintf(path, sizeof path, "/%s", host_links[i]);
        len = readlink(path, target, sizeof target - 1);
        if (len < 0 && errno == ENOENT)
            continue;
        target[len < 0 ? 0 : len] = '\0';
        if (strncmp(target, "usr/", 4) != 0 && strncmp(target, "/usr/", 5) != 0)
            return err_set(err, ERR_UNSUPPORTED,
                           "%s of this host is not a link into /usr: build the template 'base'",
                           path);
        if (symlinkat(target, root_fd, host_links[i]) < 0)
            return err_sys(err, errno, "link %s", host_links[i]);
    }
    return 0;
}

static int fill(const struct template_maker *maker, int root_fd, int host_etc_fd, struct err *err)
{
    struct copy_context copy = { .etc_fd = -1 };
    const struct visit visit = { copy_source, &copy };
    auto_close int etc_fd = -1;

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (tree_mkdir(root_fd, dirs[i].path, dirs[i].mode, dirs[i].uid, err) < 0)
            return -1;
    if (put_links(root_fd, err) < 0)
        return -1;
    etc_fd = openat(root_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (etc_fd < 0)
        return err_sys(err, errno, "open etc");
    copy.etc_fd = etc_fd;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (visit_source(host_etc_fd, sources[i].path, &visit, err) < 0)
            return err_wrap(err, "copy /etc/%s", sources[i].path);
    /* Last: a file of ours wins over a copy. */
    if (template_files_put(root_fd, FILES_HOST, err) < 0 ||
        template_put_kernels(root_fd, err) < 0 || template_put_sudo(maker, root_fd, err) < 0 ||
        (template_has_java(AT_FDCWD) && template_put_java(root_fd, err) < 0))
        return -1;
    if (template_check_tree(root_fd, MANIFEST_HOST, err) < 0)
        return -1;
    /* Power may fail right after the rename that makes it a template. */
    return syncfs(root_fd) < 0 ? err_sys(err, errno, "write the tree to disk") : 0;
}

static int build(const struct template_maker *maker, const char *state, int store_fd, int etc_fd,
                 const char *recipe, struct err *err)
{
    struct manifest manifest = { .kind = MANIFEST_HOST,
                                 .root = "root",
                                 .user = "user",
                                 .workdir = "/home/user",
                                 .description = "the host's own programs, read-only" };
    auto_close int build_fd = -1, root_fd = -1;
    struct tree_size size;
    struct err ignored;
    char dir[96];
    int r = -1;

    if (template_build_dir(store_fd, "host", dir, sizeof dir, &build_fd, err) < 0)
        return -1;
    if (tree_mkdir(build_fd, "root", 0755, 0, err) == 0)
        root_fd = openat(build_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd >= 0 && fill(maker, root_fd, etc_fd, err) == 0 &&
        tree_measure(build_fd, "root", &size, err) == 0 &&
        manifest_env(&manifest, "PATH=" TEMPLATE_PATH, err) == 0 &&
        manifest_env(&manifest, "LANG=C.UTF-8", err) == 0) {
        manifest.bytes = size.bytes;
        manifest.files = size.files;
        (void) snprintf(manifest.recipe, sizeof manifest.recipe, "%s", recipe);
        r = template_publish(maker, state, store_fd, "host", dir, &manifest, err);
    }
    (void) tree_remove(store_fd, dir, &ignored);
    return r;
}

static int ensure(const struct template_maker *maker, const char *state, bool rebuild,
                  struct err *err)
{
    auto_close int store_fd = -1, lock_fd = -1, etc_fd = -1;
    struct manifest manifest;
    char recipe[65];
    struct err ignored;

    etc_fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (etc_fd < 0)
        return err_sys(err, errno, "open /etc");
    if (template_store_open(state, &store_fd, err) < 0 || stamp(maker, etc_fd, recipe, err) < 0 ||
        template_refresh_sudo(maker, state, store_fd, err) < 0)
        return -1;
    if (!rebuild && template_find(store_fd, "host", &manifest, NULL, &ignored) == 0 &&
        strcmp(manifest.recipe, recipe) == 0)
        return 0;
    if (template_lock(maker, store_fd, "host", &lock_fd, err) < 0)
        return -1;
    /* The last holder of the lock may have done it meanwhile. */
    if (!rebuild && template_find(store_fd, "host", &manifest, NULL, &ignored) == 0 &&
        strcmp(manifest.recipe, recipe) == 0)
        return 0;
    return build(maker, state, store_fd, etc_fd, recipe, err);
}

int template_host_ensure(const struct template_maker *maker, const char *state, struct err *err)
{
    return ensure(maker, state, false, err) < 0 ? err_wrap(err, "template 'host'") : 0;
}

int template_host_rebuild(const struct template_maker *maker, const char *state, struct err *err)
{
    return ensure(maker, state, true, err) < 0 ? err_wrap(err, "template 'host'") : 0;
}
