#include "template/manifest.h"

#include "base/own.h"
#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>

#define GOOD "kind=tree\nroot=root-1\nuser=user\nworkdir=/home/user\n"

static struct manifest manifest;
static struct err err;

static void a_manifest_says_what_it_must(void)
{
    CHECK(manifest_parse(&manifest,
                         GOOD "env=PATH=/bin\nenv=A=b=c\ncreated=7\nbytes=12\nfiles=3\n"
                              "recipe=0af9\ndescription=some words = text\n",
                         &err) == 0);
    CHECK_INT(manifest.kind, MANIFEST_TREE);
    CHECK_STR(manifest.root, "root-1");
    CHECK_STR(manifest.user, "user");
    CHECK_STR(manifest.workdir, "/home/user");
    CHECK_INT(manifest.env_count, 2);
    CHECK_STR(manifest_env_at(&manifest, 1), "A=b=c");
    CHECK_INT(manifest.created, 7);
    CHECK_INT(manifest.bytes, 12);
    CHECK_INT(manifest.files, 3);
    CHECK_STR(manifest.recipe, "0af9");
    CHECK_STR(manifest.description, "some words = text");
}

static void what_cannot_be_is_refused_by_line_and_key(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "kind is missing" },
        { "kind=tree\n", "root is missing" },
        { "kind=tree\nroot=r\nuser=user\n", "workdir is missing" },
        { "kind=zip\n", "line 1: kind: 'zip' is neither host, tree nor image" },
        { GOOD "kind=host\n", "line 5: kind is given twice" },
        { GOOD "user=root\n", "line 5: user is given twice" },
        { GOOD "colour=red\n", "line 5: unknown key 'colour' (made by a newer cove?)" },
        { GOOD "nonsense\n", "line 5: 'nonsense' is not key=value" },
        { GOOD "\n", "line 5: '' is not key=value" },
        { GOOD "description=a\tb\n", "line 5: has a control character" },
        { GOOD "bytes=-1\n", "line 5: bytes: '-1' is not a number" },
        { GOOD "bytes=99999999999999999999\n",
          "line 5: bytes: '99999999999999999999' is too large" },
        { GOOD "recipe=xyz\n", "line 5: recipe: 'xyz' is not a hash" },
        { GOOD "env=NOVALUE\n", "line 5: env: 'NOVALUE' is not NAME=VALUE" },
        { GOOD "env==x\n", "line 5: env: '=x' is not NAME=VALUE" },
        { GOOD "env=1A=x\n", "line 5: env: '1A=x' is not NAME=VALUE" },
        { GOOD "bytes=1", "line 5 does not end" },
        { "root=..\n", "line 1: root: '..' is not a directory name of [a-z0-9.-]" },
        { "root=.hidden\n", "line 1: root: '.hidden' is not a directory name of [a-z0-9.-]" },
        { "root=a/b\n", "line 1: root: 'a/b' is not a directory name of [a-z0-9.-]" },
        { "root=\n", "line 1: root: '' is not a directory name of [a-z0-9.-]" },
        { "user=0\n", "line 1: user: '0' is not a user name" },
        { "user=a b\n", "line 1: user: 'a b' is not a user name" },
        { "workdir=home\n", "line 1: workdir: 'home' is not an absolute path" },
        { "workdir=/a/../b\n", "line 1: workdir: '/a/../b' is not an absolute path" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK(manifest_parse(&manifest, rows[i].text, &err) == -1);
        CHECK_STR(err.msg, rows[i].why);
    }
}

static void long_values_and_too_many_are_refused(void)
{
    char text[MANIFEST_FILE_MAX], value[400];
    size_t len;

    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    (void) snprintf(text, sizeof text, "description=%s\n", value);
    CHECK(manifest_parse(&manifest, text, &err) == -1);
    CHECK_STR(err.msg, "line 1: description: longer than 255 characters");
    len = (size_t) snprintf(text, sizeof text, GOOD);
    for (int i = 0; i < 42; i++) /* each 400 and a name */
        len += (size_t) snprintf(text + len, sizeof text - len, "env=A%d=%s\n", i, value);
    CHECK(manifest_parse(&manifest, text, &err) == -1);
    CHECK_STR(err.msg, "line 45: env: more than 16384 bytes together");
    len = (size_t) snprintf(text, sizeof text, GOOD);
    for (int i = 0; i <= MANIFEST_ENV_MAX; i++)
        len += (size_t) snprintf(text + len, sizeof text - len, "env=A%d=1\n", i);
    CHECK(manifest_parse(&manifest, text, &err) == -1);
    CHECK_STR(err.msg, "line 69: env: more than 64 of them");
}

static void a_failed_parse_leaves_the_result_alone(void)
{
    CHECK(manifest_parse(&manifest, GOOD, &err) == 0);
    CHECK(manifest_parse(&manifest, "kind=host\nroot=other\n", &err) == -1);
    CHECK_STR(manifest.root, "root-1");
}

static void what_is_written_is_read_again(void)
{
    char dir[] = "/tmp/cove-manifest.XXXXXX";
    struct manifest again;
    struct stat st;
    int fd;

    CHECK(mkdtemp(dir) != NULL);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(manifest_parse(&manifest, GOOD "env=A=1\nrecipe=ff\nbytes=5\n", &err) == 0);
    CHECK(manifest_write(fd, &manifest, &err) == 0);
    CHECK(manifest_read(fd, &again, &err) == 0);
    CHECK(memcmp(&manifest, &again, sizeof again) == 0);
    CHECK(fstatat(fd, "manifest.new", &st, 0) < 0);

    /* What could not be read again is not written: the old one stays. */
    (void) snprintf(manifest.root, sizeof manifest.root, "../up");
    CHECK(manifest_write(fd, &manifest, &err) == -1);
    CHECK_STR(err.msg,
              "write manifest: line 2: root: '../up' is not a directory name of [a-z0-9.-]");
    CHECK(manifest_read(fd, &again, &err) == 0);
    CHECK_STR(again.root, "root-1");

    (void) unlinkat(fd, "manifest", 0);
    CHECK(symlinkat("/etc/passwd", fd, "manifest") == 0);
    CHECK(manifest_read(fd, &again, &err) == -1);
    (void) unlinkat(fd, "manifest", 0);
    CHECK(manifest_read(fd, &again, &err) == -1);
    CHECK_STR(err.msg, "read manifest: No such file or directory");
    (void) close(fd);
    (void) rmdir(dir);
}

static void a_line_break_makes_no_line_of_its_own(void)
{
    static const char *const texts[] = { "a\nenv=LD_PRELOAD=/x", "a\nrecipe=0af9", "a\rb",
                                         "\033[2J" };
    char dir[] = "/tmp/cove-manifest-XXXXXX";
    int fd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK(manifest_parse(&manifest, GOOD, &err) == 0);
        (void) snprintf(manifest.image, sizeof manifest.image, "%s", texts[i]);
        CHECK(manifest_write(fd, &manifest, &err) == -1);
        CHECK_STR(err.msg, "write manifest: image: has a control character");
    }
    CHECK(faccessat(fd, "manifest", F_OK, 0) == -1);
    CHECK(manifest_env(&manifest, "A=b\nrecipe=0af9", &err) == -1);
    (void) close(fd);
    (void) unlinkat(AT_FDCWD, dir, AT_REMOVEDIR);
}

static void a_variable_is_found_by_its_whole_name(void)
{
    CHECK(manifest_parse(&manifest, GOOD "env=GOPATH=/go\nenv=A=PATH=x\n", &err) == 0);
    CHECK(!manifest_has_env(&manifest, "PATH") && manifest_has_env(&manifest, "GOPATH"));
    CHECK(manifest_env(&manifest, "PATH=/bin", &err) == 0);
    CHECK(manifest_has_env(&manifest, "PATH"));
}

static void files_below_are_listed_from_the_lowest(void)
{
    char text[600], key[65];
    const char *a = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const char *b = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    static const char *const wrong[] = { "%s%s", "%s,%s,", ",%s,%s", "%s,,%s", "%s;%s" };

    CHECK(manifest_parse(&manifest, GOOD, &err) == 0);
    CHECK_INT(manifest_below_count(&manifest), 0);
    (void) snprintf(text, sizeof text, GOOD "below=%s,%s\n", a, b);
    CHECK(manifest_parse(&manifest, text, &err) == 0);
    CHECK_INT(manifest_below_count(&manifest), 2);
    manifest_below_at(&manifest, 0, key);
    CHECK_STR(key, a);
    manifest_below_at(&manifest, 1, key);
    CHECK_STR(key, b);
    (void) snprintf(text, sizeof text, GOOD "below=%s,%s,%s,%s\n", a, b, a, b);
    CHECK(manifest_parse(&manifest, text, &err) == -1); /* more than there may be */
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        size_t len = (size_t) snprintf(text, sizeof text, GOOD "below=");

        len += (size_t) snprintf(text + len, sizeof text - len, wrong[i], a, b);
        (void) snprintf(text + len, sizeof text - len, "\n");
        CHECK(manifest_parse(&manifest, text, &err) == -1);
    }
}

CHECK_MAIN(T(files_below_are_listed_from_the_lowest), T(a_manifest_says_what_it_must),
           T(what_cannot_be_is_refused_by_line_and_key), T(long_values_and_too_many_are_refused),
           T(a_failed_parse_leaves_the_result_alone), T(what_is_written_is_read_again),
           T(a_line_break_makes_no_line_of_its_own), T(a_variable_is_found_by_its_whole_name))
