#include "base/own.h"
#include "check.h"
#include "layers.h"
#include "oci/finish.h"

static struct merge merge;
static struct err err;
static int image = -1;

static void begin(const struct tree_limits *limits, uint64_t bytes)
{
    if (image >= 0)
        merge_done(&merge);
    own_close(&image);
    image = memfd_create("image", MFD_CLOEXEC);
    CHECK(merge_init(&merge, image, limits ? limits : &tree_limits_default, bytes, &err) == 0);
}

static void fresh(void)
{
    begin(NULL, 64u << 20);
}

static void upper_layers_replace_and_keep(void)
{
    struct made m = { 0 };

    fresh();
    made_dir(&m, "d", 0700);
    made_file(&m, "d/old", "old");
    made_file(&m, "file", "one");
    made_file(&m, "was-dir/inner", "x");
    made_file(&m, "was-file", "x");
    CHECK(made_merge(&merge, &m, &err) == 0);
    made_dir(&m, "d", 0755);
    made_file(&m, "file", "three");
    made_file(&m, "was-dir", "now a file");
    made_dir(&m, "was-file", 0755);
    CHECK(made_merge(&merge, &m, &err) == 0);

    CHECK_STR(made_look(&merge, "d"), "d 755 0");
    CHECK_STR(made_text(&merge, "d/old"), "old");
    CHECK_STR(made_text(&merge, "file"), "three");
    CHECK_STR(made_look(&merge, "was-dir"), "f 644 0 10");
    CHECK_STR(made_look(&merge, "was-file"), "d 755 0");
}

static void whiteouts_hide_lower_layers_only(void)
{
    struct made m = { 0 };

    fresh();
    made_file(&m, "a", "a");
    made_file(&m, "dir/b", "b");
    made_file(&m, "dir/c", "c");
    made_file(&m, "all/x", "x");
    made_file(&m, "again/x", "x");
    CHECK(made_merge(&merge, &m, &err) == 0);
    made_file(&m, ".wh.a", "");
    made_file(&m, "dir/.wh.b", "");
    made_file(&m, "all/new", "new"); /* before its opaque mark */
    made_file(&m, "all/.wh..wh..opq", "");
    made_file(&m, "again/new", "new"); /* a directory that is removed and made again */
    made_file(&m, ".wh.again", "");
    made_file(&m, ".wh.missing", "");
    made_file(&m, ".wh..wh.plnk", "");
    CHECK(made_merge(&merge, &m, &err) == 0);

    CHECK_STR(made_look(&merge, "a"), "-");
    CHECK_STR(made_look(&merge, "dir/b"), "-");
    CHECK_STR(made_text(&merge, "dir/c"), "c");
    CHECK_STR(made_look(&merge, "all/x"), "-");
    CHECK_STR(made_text(&merge, "all/new"), "new");
    CHECK_STR(made_look(&merge, "again/x"), "-");
    CHECK_STR(made_text(&merge, "again/new"), "new");
    CHECK_STR(made_look(&merge, ".wh.missing"), "-");
}

static void links_are_followed_inside_the_tree_only(void)
{
    struct made m = { 0 };

    fresh();
    made_dir(&m, "usr/lib", 0755);
    made_link(&m, "lib", "usr/lib");
    made_link(&m, "out", "/../../../../outside");
    made_link(&m, "up", "../../..");
    made_link(&m, "loop", "loop");
    CHECK(made_merge(&merge, &m, &err) == 0);
    made_file(&m, "lib/x", "x");
    made_file(&m, "out/y", "y");
    made_file(&m, "up/z", "z");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(made_text(&merge, "usr/lib/x"), "x");
    CHECK_STR(made_text(&merge, "outside/y"), "y");
    CHECK_STR(made_text(&merge, "z"), "z");
    CHECK_STR(made_look(&merge, "lib"), "l usr/lib");

    made_file(&m, "loop/x", "x");
    CHECK(made_merge(&merge, &m, &err) == -1);
    CHECK_STR(err.msg, "the image's entry 'loop/x': too many symbolic links on the way");
}

static void names_that_leave_are_refused(void)
{
    static const struct {
        const char *path, *said;
    } rows[] = {
        { "../x", "the archive's entry '../x': a path with '..'" },
        { "a/../../x", "the archive's entry 'a/../../x': a path with '..'" },
        { "a/.wh...", "the image's entry 'a/.wh...': a whiteout without a name" },
        { "a/.wh..", "the image's entry 'a/.wh..': a whiteout without a name" },
        { "a/.wh.", "the image's entry 'a/.wh.': a whiteout without a name" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m = { 0 };

        fresh();
        made_dir(&m, "a", 0755);
        made_file(&m, rows[i].path, "x");
        CHECK(made_merge(&merge, &m, &err) == -1);
        CHECK_STR(err.msg, rows[i].said);
    }
}

static void absolute_names_are_of_the_image(void)
{
    struct made m = { 0 };

    fresh();
    made_file(&m, "/etc/shadow", "x");
    made_hard(&m, "./same", "/etc/shadow");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(made_text(&merge, "etc/shadow"), "x");
    CHECK_STR(made_text(&merge, "same"), "x");
}

static void hard_links_name_files_of_the_image(void)
{
    static const char *const targets[] = { "missing", "dir", "../etc/passwd" };
    struct made m = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        fresh();
        made_dir(&m, "dir", 0755);
        made_hard(&m, "h", targets[i]);
        CHECK(made_merge(&merge, &m, &err) == -1);
        CHECK(err.kind == ERR_INVALID);
    }
    fresh();
    made_file(&m, "low", "low");
    made_file(&m, "dir/f", "f");
    CHECK(made_merge(&merge, &m, &err) == 0);
    made_hard(&m, "h", "low");
    made_hard(&m, "low", "low");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(made_text(&merge, "h"), "low");
    /* In the place of a directory that has the only name of its target. */
    made_hard(&m, "dir", "dir/f");
    CHECK(made_merge(&merge, &m, &err) == -1);
    CHECK_STR(err.msg, "the image's entry 'dir': a hard link to a file that the link replaces");
}

static void dangerous_things_are_dropped_and_counted(void)
{
    struct made m = { 0 };

    fresh();
    made_entry(&m, TAR_FILE, "suid", "", 06755, 0, "x", 1);
    made_entry(&m, TAR_DIR, "mail", "", 02775, 0, "", 0);
    made_entry(&m, TAR_DIR, "tmp", "", 01777, 0, "", 0);
    for (const char *type = "346"; *type; type++) {
        made_file(&m, "node", "");
        made_type(&m, *type);
    }
    made_file(&m, "dev/sda", "x");
    made_link(&m, "proc", "/etc");
    made_file(&m, "sys/kernel/x", "x");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(made_look(&merge, "suid"), "f 755 0 1");
    CHECK_STR(made_look(&merge, "mail"), "d 2775 0");
    CHECK_STR(made_look(&merge, "tmp"), "d 1777 0");
    CHECK_STR(made_look(&merge, "node"), "-");
    CHECK_STR(made_look(&merge, "dev/sda"), "-");
    CHECK_STR(made_look(&merge, "proc"), "-");
    CHECK_INT(merge.dropped.nodes, 3);
    CHECK_INT(merge.dropped.set_ids, 1);
    CHECK_INT(merge.dropped.system, 3);
}

static void owners_above_65535_are_refused_or_squashed(void)
{
    struct made m = { 0 };

    fresh();
    made_entry(&m, TAR_FILE, "f", "", 0644, 65536, "x", 1);
    CHECK(made_merge(&merge, &m, &err) == -1);
    CHECK(strstr(err.msg, "its owner is 65536"));
    fresh();
    merge.squash_ids = true;
    made_entry(&m, TAR_FILE, "f", "", 0644, 65536, "x", 1);
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_STR(made_look(&merge, "f"), "f 644 65534 1");
}

static void every_limit_holds(void)
{
    static const char zeros[1 << 20];
    struct tree_limits few = tree_limits_default;
    struct made m = { 0 };
    char path[600] = "";

    few.entries = 3;
    begin(&few, 1 << 20);
    for (int i = 0; i < 4; i++) {
        (void) snprintf(path, sizeof path, "f%d", i);
        made_file(&m, path, "");
    }
    CHECK(made_merge(&merge, &m, &err) == -1 && err.kind == ERR_TOO_BIG);
    CHECK_STR(err.msg, "the image's entry 'f3': the image has more than 3 entries");

    few = tree_limits_default;
    few.directory = 2;
    begin(&few, 1 << 20);
    for (int i = 0; i < 3; i++) {
        (void) snprintf(path, sizeof path, "d/f%d", i);
        made_file(&m, path, "");
    }
    CHECK(made_merge(&merge, &m, &err) == -1 && err.kind == ERR_TOO_BIG);
    CHECK(strstr(err.msg, "a directory of the image has more than 2 entries"));

    fresh();
    path[0] = '\0';
    for (int i = 0; i < 257; i++)
        (void) strcat(path, i ? "/d" : "d");
    made_dir(&m, path, 0755);
    CHECK(made_merge(&merge, &m, &err) == -1 && err.kind == ERR_TOO_BIG);
    CHECK(strstr(err.msg, "more than 256 levels of directories"));

    begin(NULL, 1 << 20);
    made_entry(&m, TAR_FILE, "big", "", 0644, 0, zeros, 1 << 20);
    made_file(&m, "more", "x");
    CHECK(made_merge(&merge, &m, &err) == -1 && err.kind == ERR_TOO_BIG);
    CHECK(strstr(err.msg, "more than 1 MiB of content"));
}

static void a_layer_that_ends_early_is_refused(void)
{
    struct made m = { 0 };
    struct unpack *u;
    char diff[SHA256_HEX];

    made_file(&m, "f", "content");
    for (size_t len = 0; len < m.len; len += 100) {
        fresh();
        u = unpack_new(&merge, &err);
        CHECK(unpack_feed(u, m.data, len, &err) == 0);
        CHECK(unpack_end(u, diff, &err) == -1);
        unpack_free(u);
    }
    free(m.data);
}

static void finish_with(const char *user, const char *passwd, struct finish *ret, int want)
{
    static struct oci_config config;
    struct made m = { 0 };

    fresh();
    if (passwd)
        made_file(&m, "etc/passwd", passwd);
    made_link(&m, "dev", "/etc");
    made_link(&m, "home/user", "/etc/skel");
    made_file(&m, "etc/skel/.profile", "skel");
    CHECK(made_merge(&merge, &m, &err) == 0);
    memset(&config, 0, sizeof config);
    (void) snprintf(config.user, sizeof config.user, "%s", user);
    CHECK_INT(finish_image(&merge, &config, ret, &err), want);
}

static void any_image_gets_users_and_directories(void)
{
    struct finish finish;

    finish_with("", NULL, &finish, 0);
    CHECK_STR(finish.user, "user");
    CHECK_STR(finish.workdir, "/home/user");
    CHECK_STR(made_text(&merge, "etc/passwd"),
              "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n");
    CHECK_STR(made_text(&merge, "etc/group"), "root:x:0:\nuser:x:1000:\n");
    CHECK_STR(made_look(&merge, "dev"), "d 755 0");
    CHECK_STR(made_look(&merge, "tmp"), "d 1777 0");
    CHECK_STR(made_look(&merge, "home/user"), "d 755 1000");
    CHECK_STR(made_text(&merge, "home/user/.profile"), "skel");

    finish_with("0:0", "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh", &finish, 0);
    CHECK_STR(finish.user, "user");
    CHECK_STR(made_text(&merge, "etc/passwd"),
              "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n"
              "user:x:1001:1001::/home/user:/bin/sh\n");
    finish_with("node", "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n", &finish,
                0);
    CHECK_STR(finish.user, "node");
    CHECK_STR(finish.workdir, "/home/node");
    finish_with("1000:1000", "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n",
                &finish, 0);
    CHECK_STR(finish.user, "node");
    finish_with("65532", "root:x:0:0::/:/bin/sh\n", &finish, 0);
    CHECK_STR(finish.user, "user");
    CHECK(strstr(made_text(&merge, "etc/passwd"), "user:x:65532:65532:"));
}

static void users_that_cannot_be_are_refused(void)
{
    struct finish finish;

    finish_with("nobody-knows", "root:x:0:0::/:/bin/sh\n", &finish, -1);
    CHECK_STR(err.msg, "the image's user 'nobody-knows' is not in its /etc/passwd");
    CHECK(err.kind == ERR_UNSUPPORTED);
    finish_with("70000", "root:x:0:0::/:/bin/sh\n", &finish, -1);
    CHECK(err.kind == ERR_UNSUPPORTED);
}

/* A home that /etc leads to has /etc/skel in it: a file of that directory would take the place of the directory. */
static void a_skeleton_inside_the_home_stays(void)
{
    static struct oci_config config;
    struct made m = { 0 };
    struct finish finish;

    fresh();
    made_link(&m, "etc", "/home/user");
    made_file(&m, "home/user/.profile", "own");
    made_file(&m, "home/user/skel/.profile", "skel");
    made_file(&m, "home/user/skel/skel", "x");
    made_file(&m, "home/user/skel/more", "more");
    CHECK(made_merge(&merge, &m, &err) == 0);
    CHECK_INT(finish_image(&merge, &config, &finish, &err), 0);
    CHECK_STR(made_look(&merge, "home/user/skel"), "d 755 0");
    CHECK_STR(made_text(&merge, "home/user/skel/skel"), "x");
    CHECK_STR(made_text(&merge, "home/user/more"), "more");
    CHECK_STR(made_text(&merge, "home/user/.profile"), "own");
}

/* A directory of that name would stand beside the "." that every directory has. */
static void no_directory_is_named_dot(void)
{
    static const char *const paths[] = { "/.", "/./", "/srv/.", "/srv/./x", "/..", "/srv/.." };
    static struct oci_config config;
    struct finish finish;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct made m = { 0 };
        char passwd[128];

        fresh();
        made_file(&m, "etc/hosts", "");
        CHECK(made_merge(&merge, &m, &err) == 0);
        (void) snprintf(config.user, sizeof config.user, "%s", "");
        (void) snprintf(config.workdir, sizeof config.workdir, "%s", paths[i]);
        CHECK_INT(finish_image(&merge, &config, &finish, &err), -1);
        CHECK(err.kind == ERR_UNSUPPORTED);

        fresh();
        (void) snprintf(passwd, sizeof passwd, "a:x:5:5::%s:/bin/sh\n", paths[i]);
        made_file(&m, "etc/passwd", passwd);
        CHECK(made_merge(&merge, &m, &err) == 0);
        (void) snprintf(config.user, sizeof config.user, "a");
        config.workdir[0] = '\0';
        CHECK_INT(finish_image(&merge, &config, &finish, &err), 0);
        CHECK_STR(finish.workdir, "/");
        CHECK(!tree_child(&merge.tree, merge.tree.root, ".", 1));
    }
}

CHECK_MAIN(T(upper_layers_replace_and_keep), T(whiteouts_hide_lower_layers_only),
           T(links_are_followed_inside_the_tree_only), T(names_that_leave_are_refused),
           T(absolute_names_are_of_the_image), T(hard_links_name_files_of_the_image),
           T(dangerous_things_are_dropped_and_counted),
           T(owners_above_65535_are_refused_or_squashed), T(every_limit_holds),
           T(a_layer_that_ends_early_is_refused), T(any_image_gets_users_and_directories),
           T(users_that_cannot_be_are_refused), T(a_skeleton_inside_the_home_stays),
           T(no_directory_is_named_dot))
