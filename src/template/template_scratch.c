#include "template/template_scratch.h"

#include "base/hash.h"
#include "base/own.h"
#include "template/template_files.h"
#include "template/template_kernels.h"
#include "template/template_store.h"
#include "template/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECIPE_VERSION "scratch 1"
#define DESCRIPTION    "nothing but directories, for FROM scratch"

/* As of an image that has nothing in it: src/oci/finish.c. */
static const struct {
    const char *path;
    mode_t mode;
    uid_t uid;
} dirs[] = {
    /* clang-format off */
    { "dev",  0755,  0 }, { "proc", 0555, 0 }, { "sys",  0555, 0 }, { "etc",       0755, 0 },
    { "tmp",  01777, 0 }, { "run",  0755, 0 }, { "home", 0755, 0 }, { "home/user", 0755, TEMPLATE_UID },
    { "root", 0700,  0 }, { "opt",  0755, 0 }, { "workspace", 0755, TEMPLATE_UID },
    /* clang-format on */
};

static const struct {
    const char *path, *text;
} texts[] = {
    { "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                    "user:x:1000:1000:user:/home/user:/bin/sh\n"
                    "nobody:x:65534:65534:nobody:/:/bin/sh\n" },
    { "etc/group", "root:x:0:\nuser:x:1000:\nnobody:x:65534:\n" },
};

/* Of everything that is put in. */
static int stamp(const struct template_maker *maker, char out[65], struct err *err)
{
    uint64_t hash = hash_text(HASH_START, RECIPE_VERSION);
    struct stat st;

    if (!maker->agent || stat(maker->agent, &st) < 0)
        return err_set(err, ERR_UNAVAILABLE, "there is no cove-agent");
    hash = template_kernels_hash(template_files_hash(hash, FILES_IMAGE));
    hash = hash_bytes(hash, &st.st_mtim, sizeof st.st_mtim);
    hash = hash_bytes(hash, &st.st_size, sizeof st.st_size);
    (void) snprintf(out, 65, "%016" PRIx64, hash);
    return 0;
}

static int fill(const struct template_maker *maker, int root_fd, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (tree_mkdir(root_fd, dirs[i].path, dirs[i].mode, dirs[i].uid, err) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (tree_put(root_fd, texts[i].path, texts[i].text, strlen(texts[i].text), 0644, 0, err) <
            0)
            return -1;
    if (template_files_put(root_fd, FILES_IMAGE, err) < 0 ||
        template_put_kernels(root_fd, err) < 0 || template_put_sudo(maker, root_fd, err) < 0)
        return -1;
    if (linkat(root_fd, "opt/cove/bin/sudo", root_fd, "opt/cove/bin/entrypoint", 0) < 0)
        return err_sys(err, errno, "link the entrypoint");
    /* Power may fail right after the rename that makes it a template. */
    return syncfs(root_fd) < 0 ? err_sys(err, errno, "write the tree to disk") : 0;
}

static int build(const struct template_maker *maker, const char *state, int store_fd,
                 const char *recipe, struct err *err)
{
    struct manifest manifest = { .kind = MANIFEST_TREE,
                                 .root = "root",
                                 .user = "user",
                                 .workdir = "/",
                                 .description = DESCRIPTION };
    auto_close int build_fd = -1, root_fd = -1;
    struct tree_size size;
    struct err ignored;
    char dir[96];
    int r = -1;

    if (template_build_dir(store_fd, TEMPLATE_SCRATCH, dir, sizeof dir, &build_fd, err) < 0)
        return -1;
    if (tree_mkdir(build_fd, "root", 0755, 0, err) == 0)
        root_fd = openat(build_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd >= 0 && fill(maker, root_fd, err) == 0 &&
        tree_measure(build_fd, "root", &size, err) == 0 &&
        manifest_env(&manifest, "PATH=" TEMPLATE_PATH, err) == 0) {
        manifest.bytes = size.bytes;
        manifest.files = size.files;
        (void) snprintf(manifest.recipe, sizeof manifest.recipe, "%s", recipe);
        r = template_publish(maker, state, store_fd, TEMPLATE_SCRATCH, dir, &manifest, err);
    }
    (void) tree_remove(store_fd, dir, &ignored);
    return r;
}

/* 1: it is there, and as it should be, or another user's. */
static int is_there(int store_fd, const char *recipe)
{
    struct manifest manifest;
    struct err ignored;

    if (template_find(store_fd, TEMPLATE_SCRATCH, &manifest, NULL, &ignored) < 0)
        return 0;
    return strcmp(manifest.description, DESCRIPTION) != 0 || strcmp(manifest.recipe, recipe) == 0;
}

static int ensure(const struct template_maker *maker, const char *state, struct err *err)
{
    auto_close int store_fd = -1, lock_fd = -1;
    char recipe[65];

    if (template_store_open(state, &store_fd, err) < 0 || stamp(maker, recipe, err) < 0)
        return -1;
    if (is_there(store_fd, recipe))
        return 0;
    if (template_lock(maker, store_fd, TEMPLATE_SCRATCH, &lock_fd, err) < 0)
        return -1;
    /* The last holder of the lock may have done it meanwhile. */
    return is_there(store_fd, recipe) ? 0 : build(maker, state, store_fd, recipe, err);
}

int template_scratch_ensure(const struct template_maker *maker, const char *state, struct err *err)
{
    return ensure(maker, state, err) < 0 ? err_wrap(err, "template '" TEMPLATE_SCRATCH "'") : 0;
}
