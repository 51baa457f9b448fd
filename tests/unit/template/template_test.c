#include "base/own.h"
#include "base/parse.h"
#include "check.h"
#include "template/build_apt.h"
#include "template/manifest.h"
#include "template/recipe.h"
#include "template/template_store.h"
#include "template/tree.h"

#include <fcntl.h>
#include <sys/stat.h>

static void every_recipe_is_whole(void)
{
    for (size_t i = 0; i < recipe_count; i++) {
        struct manifest manifest = { 0 };
        struct err err;

        CHECK(name_ok(recipes[i].name) && strcmp(recipes[i].name, "host") != 0);
        CHECK(recipe_find(recipes[i].name) == &recipes[i]);
        CHECK(recipes[i].description && recipes[i].suite && recipes[i].packages &&
              recipes[i].steps && recipes[i].free_mib > 0);
        CHECK(!recipes[i].start == !recipes[i].ready);
        CHECK(!strstr(recipes[i].packages, "  ") && !strchr(recipes[i].packages, ','));
        for (size_t k = 0; k < RECIPE_ENV_MAX && recipes[i].env[k]; k++)
            CHECK(manifest_env(&manifest, recipes[i].env[k], &err) == 0);
        CHECK(manifest.env_count > 0 &&
              strncmp(manifest_env_at(&manifest, 0), "PATH=/opt/cove/bin:", 19) == 0);
    }
    CHECK(recipe_find("nope") == NULL);
}

static void the_hash_follows_the_recipe(void)
{
    struct recipe recipe = recipes[0];
    char before[RECIPE_HASH_MAX], after[RECIPE_HASH_MAX], key[RECIPE_HASH_MAX],
        key_after[RECIPE_HASH_MAX];

    recipe_hash(&recipe, before);
    recipe_cache_key(&recipe, key);
    recipe.env[RECIPE_ENV_MAX - 1] = NULL;
    recipe.env[0] = "PATH=/other";
    recipe_hash(&recipe, after);
    recipe_cache_key(&recipe, key_after);
    CHECK(strcmp(before, after) != 0);
    CHECK_STR(key_after, key); /* the packages are the same: an archive of them stays good */
    recipe.packages = "bash";
    recipe_cache_key(&recipe, key_after);
    CHECK(strcmp(key, key_after) != 0);
}

static void the_meter_only_goes_forward(void)
{
    static const char *const lines[] = {
        "I: chroot architecture amd64 is equal to the host's architecture",
        "I: running apt-get update...",
        "Get:1 http://mirror.example/debian bookworm InRelease [151 kB]",
        "I: downloading packages with apt...",
        "0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.",
        "Get:1 http://mirror.example/debian bookworm/main amd64 a",
        "I: extracting archives...",
        "I: installing essential packages...",
        "Setting up a (1) ...",
        "I: installing remaining packages inside the chroot...",
        "0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.",
        "Get:1 http://mirror.example/debian bookworm/main amd64 c",
        "Unpacking c (1) ...",
        "Unpacking d (1) ...",
        "Setting up c (1) ...",
        "Setting up d (1) ...",
        "I: running --customize-hook directly: /steps",
        "I: cleaning package lists and apt cache...",
    };
    struct build_meter meter = { 0 };
    unsigned last = 0;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        unsigned percent = build_meter_line(&meter, lines[i]);

        CHECK(percent >= last && percent <= 100);
        last = percent;
        if (i == 14) {
            CHECK(percent > 60);
            CHECK_STR(build_meter_step(&meter), "installing packages");
            CHECK_STR(meter.detail, "Setting up c (1) ...");
        }
    }
    CHECK_STR(build_meter_step(&meter), "cleaning up");
}

static void the_meter_takes_any_line(void)
{
    struct build_meter meter = { 0 };
    char line[2000];

    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    CHECK(build_meter_line(&meter, line) <= 100);
    CHECK(build_meter_line(&meter, "") <= 100);
    CHECK(build_meter_line(&meter, "upgraded, 4294967295 newly installed") <= 100);
    for (int i = 0; i < 100; i++)
        CHECK(build_meter_line(&meter, "Unpacking x") <= 100);
}

static void trees_are_measured_and_removed_without_following_links(void)
{
    char dir[] = "/tmp/cove-tree.XXXXXX";
    struct tree_size size;
    struct err err;
    struct stat st;
    int fd;

    CHECK(mkdtemp(dir) != NULL);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(tree_mkdir(fd, "outside", 0755, getuid(), &err) == 0);
    CHECK(tree_put(fd, "outside/kept", "x", 1, 0600, getuid(), &err) == 0);
    CHECK(tree_mkdir(fd, "t", 0755, getuid(), &err) == 0);
    CHECK(tree_mkdir(fd, "t/a", 0711, getuid(), &err) == 0);
    CHECK(tree_put(fd, "t/a/f", "hello", 5, 0640, getuid(), &err) == 0);
    CHECK(symlinkat("../outside", fd, "t/link") == 0);
    CHECK(fstatat(fd, "t/a", &st, 0) == 0 && (st.st_mode & 07777) == 0711);
    CHECK(fstatat(fd, "t/a/f", &st, 0) == 0 && (st.st_mode & 07777) == 0640 && st.st_size == 5);
    CHECK(tree_measure(fd, "t", &size, &err) == 0);
    CHECK_INT(size.files, 4);
    CHECK(tree_put(fd, "t/a/f", "again", 5, 0640, getuid(), &err) == -1); /* never over a file */
    CHECK(tree_remove(fd, "t", &err) == 0);
    CHECK(fstatat(fd, "t", &st, AT_SYMLINK_NOFOLLOW) < 0);
    CHECK(fstatat(fd, "outside/kept", &st, 0) == 0);
    CHECK(tree_remove(fd, "t", &err) == 0);
    CHECK(tree_remove(fd, "outside", &err) == 0);
    (void) close(fd);
    CHECK(rmdir(dir) == 0);
}

static void a_tree_with_a_link_where_the_keeper_mounts_is_refused(void)
{
    static const char *const dirs[] = { "dev", "proc", "sys", "tmp", "run", "home", "etc" };
    char dir[] = "/tmp/cove-tree.XXXXXX";
    struct err err;
    int fd;

    CHECK(mkdtemp(dir) != NULL);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        CHECK(tree_mkdir(fd, dirs[i], 0755, getuid(), &err) == 0);
    CHECK(template_check_tree(fd, MANIFEST_HOST, &err) == -1);
    CHECK_STR(err.msg, "/usr of the tree is not a directory");
    CHECK(tree_mkdir(fd, "usr", 0755, getuid(), &err) == 0);
    CHECK(template_check_tree(fd, MANIFEST_HOST, &err) == 0);
    CHECK(template_check_tree(fd, MANIFEST_TREE, &err) == -1);
    CHECK_STR(err.msg, "/usr/bin/env is missing in the tree");
    CHECK(unlinkat(fd, "dev", AT_REMOVEDIR) == 0 && symlinkat("tmp", fd, "dev") == 0);
    CHECK(template_check_tree(fd, MANIFEST_HOST, &err) == -1);
    CHECK_STR(err.msg, "/dev of the tree is not a directory");
    (void) close(fd);
    fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(tree_remove(fd, dir + 5, &err) == 0);
    (void) close(fd);
}

CHECK_MAIN(T(every_recipe_is_whole), T(the_hash_follows_the_recipe), T(the_meter_only_goes_forward),
           T(the_meter_takes_any_line), T(trees_are_measured_and_removed_without_following_links),
           T(a_tree_with_a_link_where_the_keeper_mounts_is_refused))
