#include "wire/volume.h"

#include "base/own.h"
#include "check.h"

#define ID  "v0123456789abcdefghij"
#define ID2 "vabcdefghij0123456789"

static void ids_are_a_letter_and_twenty_more(void)
{
    static const char *const bad[] = { "",
                                       "v",
                                       "i0123456789abcdefghij",
                                       "v0123456789abcdefghi",
                                       "v0123456789abcdefghijk",
                                       "v0123456789ABCDEFGHIJ",
                                       "v0123456789abcdefgh/.",
                                       "v../../../etc/passwd0" };

    CHECK(volume_id_ok(ID));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!volume_id_ok(bad[i]));
}

static void paths_that_lead_elsewhere_are_refused(void)
{
    static const char *const bad[] = { "",        "/",     "a",       "a/b",    "//",
                                       "/a//b",   "/a/",   "/.",      "/..",    "/a/.",
                                       "/a/..",   "/../a", "/a/../b", "/a/./b", "/proc",
                                       "/proc/x", "/sys",  "/sys/fs", "/dev",   "/dev/shm",
                                       "/a\nb",   "/\x7f", "/\x01" };
    static const char *const good[] = { "/a",     "/a/b", "/process", "/system", "/devices/x",
                                        "/a/...", "/a b", "/.hidden", "/a/..b",  "/\xc3\xa9" };
    char longest[VOLUME_PATH_MAX + 1];
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(volume_path_check(bad[i], &err), -1);
        CHECK_INT(err.kind, ERR_INVALID);
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK_INT(volume_path_check(good[i], &err), 0);
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[VOLUME_PATH_MAX] = '\0';
    CHECK_INT(volume_path_check(longest, &err), -1);
    longest[VOLUME_PATH_MAX - 1] = '\0';
    CHECK_INT(volume_path_check(longest, &err), 0);
}

static void sizes_have_bounds(void)
{
    const uint64_t least = VOLUME_BYTES_LEAST, most = VOLUME_BYTES_MOST;
    struct err err;

    CHECK_INT(volume_size_check(least, volume_inodes_default(least), &err), 0);
    CHECK_INT(volume_size_check(most, volume_inodes_default(most), &err), 0);
    CHECK_INT(volume_size_check(least - VOLUME_MIB, 64, &err), -1);
    CHECK_INT(volume_size_check(most + VOLUME_MIB, 64, &err), -1);
    CHECK_INT(volume_size_check(least + 1, 64, &err), -1);
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK_INT(volume_size_check(least, VOLUME_INODES_LEAST - 1, &err), -1);
    CHECK_INT(volume_size_check(least, least / VOLUME_INODE_BYTES + 1, &err), -1);
    CHECK_INT(volume_size_check(least, least / VOLUME_INODE_BYTES, &err), 0);
}

static void uses_are_whole_and_apart(void)
{
    struct volume_use uses[VOLUMES_MAX] = { { .volume = ID, .path = "/a" },
                                            { .volume = ID2, .path = "/b", .flags = 1 } };
    struct volume_use none[VOLUMES_MAX] = { 0 };
    struct err err;

    CHECK_INT(volume_uses_check(none, &err), 0);
    CHECK_INT(volume_uses_check(uses, &err), 0);
    CHECK_INT(volume_use_count(uses), 2);
    memcpy(uses[1].volume, ID, sizeof ID);
    CHECK_INT(volume_uses_check(uses, &err), -1);
    CHECK_STR(err.msg, "volume: the same one twice");
    memcpy(uses[1].volume, ID2, sizeof ID2);
    memcpy(uses[1].path, "/a/b", 5);
    CHECK_INT(volume_uses_check(uses, &err), -1);
    CHECK_STR(err.msg, "path: one is in the other");
    memcpy(uses[1].path, "/ab\0", 5);
    CHECK_INT(volume_uses_check(uses, &err), 0);
    uses[1].flags = 2;
    CHECK_INT(volume_uses_check(uses, &err), -1);
    uses[1].flags = 0;
    uses[1].path[100] = 'x'; /* behind its end */
    CHECK_INT(volume_uses_check(uses, &err), -1);
    uses[1].path[100] = '\0';
    memset(uses[0].volume, 'v', sizeof uses[0].volume);
    CHECK_INT(volume_uses_check(uses, &err), -1);
    CHECK_INT(err.kind, ERR_PROTOCOL);
    memset(&uses[0], 0, sizeof uses[0]); /* a hole */
    CHECK_INT(volume_uses_check(uses, &err), -1);
    CHECK_STR(err.msg, "a volume after the last one");
}

CHECK_MAIN(T(ids_are_a_letter_and_twenty_more), T(paths_that_lead_elsewhere_are_refused),
           T(sizes_have_bounds), T(uses_are_whole_and_apart))
