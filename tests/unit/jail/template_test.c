#include "check.h"

#include "base/own.h"
#include "jail/template.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct template t;
static struct err err;
static const char *root;

static int parse(const char *text)
{
    static char copy[20000];

    memset(&t, 0, sizeof t);
    root = "untouched";
    (void) snprintf(copy, sizeof copy, "%s", text);
    return template_parse(&t, copy, &root, &err);
}

static void refused(const char *text, const char *why)
{
    CHECK(parse(text) == -1);
    CHECK_INT(err.kind, ERR_INVALID);
    CHECK_STR(err.msg, why);
    CHECK_STR(root, "untouched");
}

static void what_is_missing_is_refused(void)
{
    const char *why = "kind, root or user is missing";

    refused("", why);
    refused("root=r\nuser=u\n", why);
    refused("kind=tree\nuser=u\n", why);
    refused("kind=tree\nroot=r\n", why);
    refused("kind=tree\nroot=r\nuser=\n", why);
}

static void what_an_image_is_known_by_is_read(void)
{
    char text[400], key[66];

    memset(key, 'a', 65);
    key[65] = '\0';
    (void) snprintf(text, sizeof text,
                    "kind=image\nroot=r\nuser=u\nlayer=%.64s\ndigest=sha256:%.64s\n"
                    "image=registry.example/x:1@sha256:%.64s\n",
                    key, key, key);
    CHECK(parse(text) == 0);
    CHECK_INT(strlen(t.layer), 64);
    CHECK_INT(strlen(t.digest), 71);
    CHECK_STR(t.named, t.digest);
    CHECK(parse("kind=image\nroot=r\nuser=u\nimage=a file@home.tar\n") == 0);
    CHECK_STR(t.named, "home.tar");
    (void) snprintf(text, sizeof text, "kind=image\nroot=r\nuser=u\nimage=x@%s%s\n", key, key);
    CHECK(parse(text) == 0);
    CHECK_STR(t.named, "");
    (void) snprintf(text, sizeof text, "kind=image\nroot=r\nuser=u\nlayer=%s%s\n", key, key);
    refused(text, "layer is too long");
}

static void an_unknown_kind_is_refused(void)
{
    refused("kind=zip\nroot=r\nuser=u\n", "kind is neither host, tree nor image");
    refused("kind=\nroot=r\nuser=u\n", "kind is neither host, tree nor image");
    refused("kind=hostile\nroot=r\nuser=u\n", "kind is neither host, tree nor image");
}

static void a_root_that_is_a_path_is_refused(void)
{
    static const char *const roots[] = { "",     "..", ".",       "a/b", "/etc",
                                         "../x", "-x", ".hidden", "A",   "a b" };

    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        char text[128];

        (void) snprintf(text, sizeof text, "kind=tree\nroot=%s\nuser=u\n", roots[i]);
        refused(text, "kind, root or user is missing");
    }
}

static void an_env_that_is_none_is_refused(void)
{
    refused("kind=tree\nroot=r\nuser=u\nenv=X\n", "env is not K=V");
    refused("kind=tree\nroot=r\nuser=u\nenv==V\n", "env is not K=V");
    refused("kind=tree\nroot=r\nuser=u\nenv=\n", "env is not K=V");
}

static void too_long_values_are_refused(void)
{
    static char text[20000], longest[16384];

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    (void) snprintf(text, sizeof text, "kind=tree\nroot=r\nuser=%.64s\n", longest);
    refused(text, "user is too long");
    (void) snprintf(text, sizeof text, "kind=tree\nroot=r\nuser=%.63s\n", longest);
    CHECK(parse(text) == 0);
    (void) snprintf(text, sizeof text, "kind=tree\nroot=r\nuser=u\nworkdir=%.256s\n", longest);
    refused(text, "workdir is too long");
    (void) snprintf(text, sizeof text, "kind=tree\nroot=r\nuser=u\nenv=K=%.16382s\n", longest);
    refused(text, "too much env");
}

static void more_env_than_there_is_room_for_is_refused(void)
{
    char text[4096] = "kind=tree\nroot=r\nuser=u\n";

    for (int i = 0; i < TEMPLATE_ENV_COUNT; i++)
        (void) strcat(text, "env=A=1\n");
    CHECK(parse(text) == 0);
    CHECK_INT(t.env_count, TEMPLATE_ENV_COUNT);
    (void) strcat(text, "env=A=1\n");
    refused(text, "too much env");
}

static void settings_are_taken_and_unknown_keys_are_not(void)
{
    CHECK(parse("kind=host\nroot=tree.1\nuser=user\nworkdir=/home/user\nenv=A=1\nenv=B==2\n"
                "future=yes\nno equals sign\ndescription=kind=tree\n") == 0);
    CHECK(t.host_usr);
    CHECK_STR(root, "tree.1");
    CHECK_STR(t.user, "user");
    CHECK_STR(t.workdir, "/home/user");
    CHECK_INT(t.env_count, 2);
    CHECK_STR(t.env, "A=1");
    CHECK_STR(t.env + 4, "B==2");
    CHECK(parse("kind=tree\nroot=r\nuser=u") == 0); /* without a last newline */
    CHECK(!t.host_usr);
}

/* ---- on disk ---- */

static char dir[] = "/tmp/cove-template.XXXXXX";
static int dir_fd = -1;

static void put(const char *path, const char *text)
{
    int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    IGNORE(write(fd, text, strlen(text)) < 0);
    (void) close(fd);
}

static void a_template_is_opened_by_name(void)
{
    if (!mkdtemp(dir))
        abort();
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
    (void) mkdirat(dir_fd, "good", 0755);
    (void) mkdirat(dir_fd, "good/tree", 0755);
    put("good/manifest", "kind=tree\nroot=tree\nuser=user\n");
    CHECK(template_open(&t, dir_fd, "good", &err) == 0);
    CHECK(t.root_fd >= 0);
    template_close(&t);
    CHECK_INT(t.root_fd, -1);
    CHECK(template_exists(dir_fd, "good"));
}

static void a_template_that_is_not_there_has_its_own_error(void)
{
    CHECK(template_open(&t, dir_fd, "absent", &err) == -1);
    CHECK_INT(err.kind, ERR_NO_TEMPLATE);
    CHECK_STR(err.msg, "there is no template 'absent'");
    CHECK(!template_exists(dir_fd, "absent"));
    (void) mkdirat(dir_fd, "hollow", 0755);
    CHECK(template_open(&t, dir_fd, "hollow", &err) == -1);
    CHECK_INT(err.kind, ERR_NO_TEMPLATE);
}

static void links_are_not_followed(void)
{
    CHECK(symlinkat("good", dir_fd, "linked") == 0);
    CHECK(template_open(&t, dir_fd, "linked", &err) == -1);
    CHECK_INT(err.kind, ERR_NO_TEMPLATE);
    (void) mkdirat(dir_fd, "sly", 0755);
    put("sly/manifest", "kind=tree\nroot=tree\nuser=user\n");
    CHECK(symlinkat("/etc", dir_fd, "sly/tree") == 0);
    CHECK(template_open(&t, dir_fd, "sly", &err) == -1);
    CHECK(strstr(err.msg, "open its tree") != NULL);
    (void) mkdirat(dir_fd, "sly2", 0755);
    CHECK(symlinkat("../good/manifest", dir_fd, "sly2/manifest") == 0);
    CHECK(template_open(&t, dir_fd, "sly2", &err) == -1);
}

static void a_bad_manifest_is_named(void)
{
    char command[64];

    put("good/manifest", "kind=odd\n");
    CHECK(template_open(&t, dir_fd, "good", &err) == -1);
    CHECK_STR(err.msg, "template 'good': its manifest: kind is neither host, tree nor image");
    (void) snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(system(command) == 0);
}

CHECK_MAIN(T(what_is_missing_is_refused), T(an_unknown_kind_is_refused),
           T(what_an_image_is_known_by_is_read), T(a_root_that_is_a_path_is_refused),
           T(an_env_that_is_none_is_refused), T(too_long_values_are_refused),
           T(more_env_than_there_is_room_for_is_refused),
           T(settings_are_taken_and_unknown_keys_are_not), T(a_template_is_opened_by_name),
           T(a_template_that_is_not_there_has_its_own_error), T(links_are_not_followed),
           T(a_bad_manifest_is_named))
