#include "backup/content.h"
#include "backup/keys.h"
#include "backup/manifest.h"
#include "check.h"

#define HEX64 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEAD  "cove-backup 1\nmade 5\nversion 0.1.0\nstore 16\nkeys 00ff\n"
#define CODE  "code " HEX64 "\n"

static const unsigned char key[SHA256_LEN] = { 7 };

static int parse(const char *text, struct backup_manifest *m, struct err *err)
{
    return backup_manifest_parse(text, strlen(text), m, err);
}

static void only_known_paths_are_taken(void)
{
    static const char *const good[] = {
        "server/cove.db",
        "images/i39cfba1ylll8zh38fkcv/meta",
        "images/i39cfba1ylll8zh38fkcv/memory/pages-1.img",
        "disks/d0123456789abcdef",
        "volumes/v39cfba1ylll8zh38fkcv.img",
        "agents/0123456789abcdef",
        "templates/base/manifest",
        "templates/base/root-6afb4d2ba8282.tar",
    };
    static const char *const bad[] = {
        "",
        "/etc/passwd",
        "../image.key",
        "image.key",
        "server/secrets.key",
        "server/../image.key",
        "server//cove.db",
        "server/cove.db/",
        "images/i39cfba1ylll8zh38fkcv/memory/..",
        "images/i39cfba1ylll8zh38fkcv/memory/.hidden",
        "images/i39cfba1ylll8zh38fkcv/memory/a/b",
        "images/../server/meta",
        "disks/d0123456789abcdeg",
        "volumes/v39cfba1ylll8zh38fkcv.new",
        "templates/base/root/bin",
        "templates/../x.tar",
        "agents/a b",
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(backup_manifest_path_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!backup_manifest_path_ok(bad[i]));
}

static void a_manifest_reads_as_it_was_written(void)
{
    struct backup_manifest m, again;
    struct backup_file file = { .path = "server/cove.db", .mode = 0600, .size = 9, .stored = 4 };
    struct backup_tree tree = { .template = "base", .root = "root-1", .inode = 77 };
    char *text = NULL;
    size_t len = 0;
    struct err err;

    backup_manifest_init(&m);
    m.made_ms = 5;
    m.store = 16;
    (void) strcpy(m.version, "0.1.0");
    (void) strcpy(m.keys, "00ff");
    CHECK(backup_manifest_add_file(&m, &file, &err) == 0);
    CHECK(backup_manifest_add_tree(&m, &tree, &err) == 0);
    CHECK(backup_manifest_write(&m, key, &text, &len, &err) == 0);
    CHECK(backup_manifest_parse(text, len, &again, &err) == 0);
    CHECK(backup_manifest_check(text, len, key, &err) == 0);
    CHECK_INT(again.file_count, 1);
    CHECK(memcmp(again.files, m.files, sizeof *m.files) == 0);
    CHECK_INT(again.trees[0].inode, 77);
    CHECK(backup_manifest_find(&again, "server/cove.db") == &again.files[0]);
    CHECK(!backup_manifest_find(&again, "server/cove.dc"));
    text[20] ^= 1;
    CHECK(backup_manifest_check(text, len, key, &err) == -1);
    CHECK_STR(err.msg, "the manifest was changed since the backup was made");
    free(text);
    backup_manifest_done(&m);
    backup_manifest_done(&again);
}

static void what_is_no_manifest_is_refused_with_its_line(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "", "this is no backup of cove, or of a later version" },
        { "cove-backup 2\nmade 5\n" CODE, "this is no backup of cove, or of a later version" },
        { HEAD, "this is no backup of cove, or of a later version" },
        { "cove-backup 1\nmade 5\n" CODE, "the manifest has no line 'version'" },
        { HEAD "made 6\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "made\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "unknown 5\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "file 600 5 5 " HEX64 " ../x\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "file 600 5 6 " HEX64 " server/cove.db\n" CODE,
          "line 6 of the manifest is invalid" },
        { HEAD "file 4755 5 5 " HEX64 " server/cove.db\n" CODE,
          "line 6 of the manifest is invalid" },
        { HEAD "file 600 -5 5 " HEX64 " server/cove.db\n" CODE,
          "line 6 of the manifest is invalid" },
        { HEAD "file 600 5 5 00 server/cove.db\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "tree .. root 5\n" CODE, "line 6 of the manifest is invalid" },
        { HEAD "file 600 5 5 " HEX64 " server/cove.db\nfile 600 5 5 " HEX64
               " server/cove.db\n" CODE,
          "the manifest has 'server/cove.db' twice" },
    };
    struct backup_manifest m;
    struct err err;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(parse(rows[i].text, &m, &err) == -1);
        CHECK_STR(err.msg, rows[i].why);
    }
}

static void keys_open_with_their_passphrase_alone(void)
{
    struct keys keys = { .has_secrets = true }, got;
    struct backup_manifest m;
    struct err err;

    memset(keys.image, 1, sizeof keys.image);
    memset(keys.secrets, 2, sizeof keys.secrets);
    backup_manifest_init(&m);
    CHECK(keys_seal(&keys, "correct horse", &m, &err) == 0);
    CHECK(keys_open(&m, "correct horse", &got, &err) == 0);
    CHECK(memcmp(got.image, keys.image, KEYS_LEN) == 0 &&
          memcmp(got.secrets, keys.secrets, KEYS_LEN) == 0);
    CHECK(keys_open(&m, "correct house", &got, &err) == -1);
    CHECK_STR(err.msg, "the passphrase does not open this backup's keys");
    m.sealed_cost = 40; /* what nobody has signed may not take all memory */
    CHECK(keys_open(&m, "correct horse", &got, &err) == -1);
    CHECK_STR(err.msg, "the backup's sealed keys are invalid");
}

static void a_digest_does_not_depend_on_holes(void)
{
    static char data[300000];
    unsigned char one[SHA256_LEN], two[SHA256_LEN];
    struct content c;

    data[200000] = 1;
    content_init(&c);
    content_add(&c, data, sizeof data);
    CHECK_INT(c.size, sizeof data);
    content_done(&c, one);
    CHECK_INT(c.stored, CONTENT_BLOCK);
    content_init(&c);
    content_zeros(&c, 150001);
    content_add(&c, data + 150001, 60000);
    content_zeros(&c, sizeof data - 210001);
    content_done(&c, two);
    CHECK(memcmp(one, two, sizeof one) == 0);
    content_init(&c);
    content_add(&c, data, sizeof data - 1);
    content_done(&c, two);
    CHECK(memcmp(one, two, sizeof one) != 0);
}

CHECK_MAIN(T(only_known_paths_are_taken), T(a_manifest_reads_as_it_was_written),
           T(what_is_no_manifest_is_refused_with_its_line),
           T(keys_open_with_their_passphrase_alone), T(a_digest_does_not_depend_on_holes))
