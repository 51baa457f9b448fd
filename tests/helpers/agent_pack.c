/* The agent's PACK and UNPACK, also with callers that send what coved never would. Run by
 * tests/e2e/agent_files_test. */
#include "drive.h"

#include "check.h"

#define REQ(...) ((struct agent_request){ __VA_ARGS__ })

static void entry(struct agent_reply item, const char *content)
{
    static uint8_t data[4 * AGENT_PATH_MAX];
    struct err err;
    ssize_t len;

    item.mode = item.mode ? item.mode : 0644;
    item.size = content && !item.size ? strlen(content) : item.size;
    len = agent_reply_encode(&item, data, sizeof data, &err);
    CHECK(len > 0);
    drive_frame(&once, FRAME_ITEM, data, (size_t) len);
    if (!content)
        return;
    drive_frame(&once, FRAME_DATA, content, strlen(content));
    drive_frame(&once, FRAME_DATA_END, NULL, 0);
}

static uint32_t begin(const char *path, uint32_t flags)
{
    drive_start(&once, REQ(.op = AGENT_UNPACK, .path = path, .flags = flags), NOBODY);
    return drive_kind(&once, drive_next(&once), FRAME_REPLY);
}

static uint32_t end(void)
{
    uint32_t kind;

    drive_frame(&once, FRAME_END, NULL, 0);
    kind = drive_kind(&once, drive_next(&once), FRAME_END);
    drive_end(&once);
    return kind;
}

#define FILE_AT(...) ((struct agent_reply){ .type = ENTRY_FILE, __VA_ARGS__ })

static void an_unpacked_tree_packs_to_itself(void)
{
    static const char want[] =
        "d 555 7\nd/f 600 9 hello\nd/l -> ../nowhere\nempty 644 0 \nsame 600 9 hello\n";
    char lines[8][200], all[1600] = "";
    size_t count = 0;
    int type;

    CHECK_INT(begin("new/place", AGENT_PARENTS), ERR_NONE);
    entry(
        (struct agent_reply){
            .type = ENTRY_DIR, .path = "d", .mode = 0555, .mtime_ns = 7000000000 },
        NULL);
    entry(FILE_AT(.path = "d/f", .mode = 0600, .mtime_ns = 9000000000), "hello");
    entry((struct agent_reply){ .type = ENTRY_LINK, .path = "d/l", .target = "../nowhere" }, NULL);
    entry(FILE_AT(.path = "empty"), "");
    entry(FILE_AT(.path = "same", .target = "d/f"), NULL);
    CHECK_INT(end(), ERR_NONE);
    CHECK_INT(once.reply.count, 5);
    CHECK_INT(once.reply.total, 5);

    drive_start(&once, REQ(.op = AGENT_PACK, .path = "new/place"), NOBODY);
    CHECK_INT(drive_next(&once), FRAME_REPLY);
    while ((type = drive_next(&once)) == FRAME_ITEM && count < ARRAY_LEN(lines)) {
        char *line = lines[count++];
        uint32_t kind = once.reply.type;
        int n = snprintf(line, 200, "%s", once.reply.path);

        if (kind == ENTRY_LINK)
            n += snprintf(line + n, 100, " -> %s", once.reply.target);
        else
            n += snprintf(line + n, 100, " %o %lld", once.reply.mode,
                          (long long) once.reply.mtime_ns / 1000000000);
        if (kind == ENTRY_FILE) {
            n += snprintf(line + n, 100, " ");
            while ((type = drive_next(&once)) == FRAME_DATA)
                n += snprintf(line + n, 100, "%.*s", (int) once.head.len, (char *) once.data);
            CHECK_INT(type, FRAME_DATA_END);
        }
    }
    CHECK_INT(type, FRAME_END);
    CHECK_INT(once.reply.count, 5);
    drive_end(&once);
    qsort(lines, count, sizeof lines[0], (int (*)(const void *, const void *)) strcmp);
    for (size_t i = 0; i < count; i++)
        (void) snprintf(all + strlen(all), sizeof all - strlen(all), "%s\n", lines[i]);
    CHECK_STR(all, want);
}

static void entries_that_lead_out_are_refused(void)
{
    static const char *const paths[] = { "/abs", "..",    "a/..", "../a", "a/../b",
                                         ".",    "a/./b", "a//b", "a/",   "" };
    char name[300];

    (void) memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CHECK_INT(begin("here", AGENT_PARENTS), ERR_NONE);
        entry(FILE_AT(.path = paths[i]), "x");
        CHECK_INT(end(), ERR_INVALID);
        CHECK_STR(last_error, "unpack: an invalid entry");
        CHECK_INT(begin("here", 0), ERR_NONE);
        entry(FILE_AT(.path = "ok", .target = paths[i][0] ? paths[i] : ".."), NULL);
        CHECK_INT(end(), ERR_INVALID);
    }
    CHECK_INT(begin("here", 0), ERR_NONE);
    entry(FILE_AT(.path = name), "x");
    CHECK_INT(end(), ERR_INVALID);
    CHECK_INT(begin("here", 0), ERR_NONE);
    entry((struct agent_reply){ .type = ENTRY_CHAR, .path = "dev" }, NULL);
    CHECK_INT(end(), ERR_INVALID);
    CHECK_INT(begin("here", 0), ERR_NONE);
    entry((struct agent_reply){ .type = ENTRY_LINK, .path = "l" }, NULL);
    CHECK_INT(end(), ERR_INVALID);
}

static void no_link_is_followed(void)
{
    CHECK_INT(put("victim/f", AGENT_PARENTS, "safe", NOBODY), ERR_NONE);
    (void) mkdir(at("into"), 0777);
    (void) chown(at("into"), NOBODY, NOBODY);
    (void) symlink(at("victim"), at("into/l"));
    CHECK_INT(begin("into", 0), ERR_NONE);
    entry(FILE_AT(.path = "l/f"), "bad");
    CHECK_INT(end(), ERR_NOT_DIR);
    CHECK_INT(begin("into", 0), ERR_NONE);
    entry(FILE_AT(.path = "mine", .target = "l/f"), NULL);
    CHECK_INT(end(), ERR_NOT_DIR);
    (void) symlink(at("victim/f"), at("into/f"));
    CHECK_INT(begin("into", 0), ERR_NONE);
    entry(FILE_AT(.path = "f"), "new");
    CHECK_INT(end(), ERR_NONE);
    {
        char text[16];

        CHECK_INT(get(REQ(.path = "victim/f"), NOBODY, text, sizeof text, NULL), ERR_NONE);
        CHECK_STR(text, "safe");
        CHECK_INT(get(REQ(.path = "into/f"), NOBODY, text, sizeof text, NULL), ERR_NONE);
        CHECK_STR(text, "new");
    }
}

static void a_file_is_whole_or_not_there(void)
{
    struct stat st;

    CHECK_INT(begin("part", AGENT_PARENTS), ERR_NONE);
    entry(FILE_AT(.path = "lies", .size = 100), "short");
    CHECK_INT(end(), ERR_PROTOCOL);
    CHECK_INT(begin("part", 0), ERR_NONE);
    entry(FILE_AT(.path = "half", .size = 10), NULL);
    drive_frame(&once, FRAME_DATA, "half", 4);
    own_close(&once.sock);
    CHECK(drive_ends_within(&once, 10000));
    CHECK_INT(begin("part", 0), ERR_NONE);
    drive_frame(&once, FRAME_DATA, "x", 1);
    CHECK_INT(drive_kind(&once, drive_next(&once), FRAME_END), ERR_PROTOCOL);
    drive_end(&once);
    CHECK(stat(at("part"), &st) == 0 && rmdir(at("part")) == 0); /* empty */
}

static const struct check_test tests[] = {
    T(an_unpacked_tree_packs_to_itself),
    T(entries_that_lead_out_are_refused),
    T(no_link_is_followed),
    T(a_file_is_whole_or_not_there),
};

int main(int argc, char **argv)
{
    if (drive_setup(argc, argv) < 0)
        return 2;
    return check_run(tests, ARRAY_LEN(tests));
}
