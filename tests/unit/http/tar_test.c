#include "http/tar.h"

#include "base/own.h"
#include "check.h"

static struct tar tar;
static char archive[1 << 20];
static size_t used_up;

static void begin(void)
{
    memset(&tar, 0, sizeof tar);
    memset(archive, 0, sizeof archive);
    used_up = 0;
}

static char *put(struct tar_entry e, const char *content)
{
    struct err err;
    char *at = archive + used_up;
    ssize_t n;

    e.size = content && e.type == TAR_FILE ? strlen(content) : e.size;
    e.mode = e.mode ? e.mode : 0644;
    n = tar_put_head(at, TAR_HEAD_MAX, &e, &err);
    CHECK(n > 0);
    used_up += (size_t) n;
    if (content) {
        (void) strcpy(archive + used_up, content);
        used_up += strlen(content) + tar_padding(strlen(content));
    }
    return at;
}

static void fix_sum(char *block)
{
    unsigned sum = 0;

    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char) block[i];
    (void) snprintf(block + 148, 8, "%06o", sum);
}

/* Everything that comes out, as text; "!" and the refusal at its end. */
static const char *told(size_t len, size_t step)
{
    static char out[32768];
    size_t at = 0, n = 0;
    struct err err;

    memset(&tar, 0, sizeof tar);
    out[0] = '\0';
    for (;;) {
        size_t give = len - at < step ? len - at : step, used;
        struct slice data;
        int event = tar_read(&tar, archive + at, give, &used, &data, &err);

        if (event < 0) {
            (void) snprintf(out + n, sizeof out - n, "!%s", err.msg);
            return out;
        }
        at += used;
        if (event == TAR_ENTRY)
            n += (size_t) snprintf(out + n, sizeof out - n,
                                   "%c %s%s%s %o %lld:", "fdls"[tar.entry.type], tar.entry.path,
                                   tar.entry.target[0] ? " -> " : "", tar.entry.target,
                                   tar.entry.mode, (long long) tar.entry.mtime);
        if (event == TAR_DATA)
            n += (size_t) snprintf(out + n, sizeof out - n, "%.*s", (int) data.len, data.at);
        if (event == TAR_ENTRY_END)
            n += (size_t) snprintf(out + n, sizeof out - n, ";");
        if (event == TAR_MORE && at == len) {
            if (tar_read_end(&tar, &err) < 0)
                (void) snprintf(out + n, sizeof out - n, "!%s", err.msg);
            return out;
        }
    }
}

static void entries_come_as_they_were_put(void)
{
    static const size_t steps[] = { 1, 7, 511, 512, 513, 100000 };

    begin();
    put((struct tar_entry){ .path = "d", .type = TAR_DIR, .mode = 0750, .mtime = 12 }, NULL);
    put((struct tar_entry){ .path = "d/a", .mode = 0600, .mtime = 1700000000 }, "hello");
    put((struct tar_entry){ .path = "empty", .mtime = -5 }, "");
    put((struct tar_entry){ .path = "l", .target = "/etc/../x", .type = TAR_LINK, .mode = 0777 },
        NULL);
    put((struct tar_entry){ .path = "h", .target = "d/a", .type = TAR_SAME }, NULL);
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        CHECK_STR(told(used_up + TAR_END_SIZE, steps[i]),
                  "d d 750 12:;f d/a 600 1700000000:hello;f empty 644 -5:;l l -> /etc/../x 777 0:;"
                  "s h -> d/a 644 0:;");
}

static void long_names_and_large_sizes_go_by_extended_headers(void)
{
    struct tar_entry e = { .type = TAR_LINK };
    char want[2 * TAR_PATH_MAX + 64];
    struct slice data;
    struct err err;
    size_t used;

    begin();
    for (size_t i = 0; i < 4000; i++) {
        e.path[i] = i % 100 == 99 ? '/' : 'p';
        e.target[i] = 't';
    }
    e.path[4000] = '\0';
    e.path[3999] = 'p';
    put(e, NULL);
    (void) snprintf(want, sizeof want, "l %s -> %s 644 0:;", e.path, e.target);
    CHECK_STR(told(used_up + TAR_END_SIZE, 1000), want);

    begin();
    put((struct tar_entry){ .path = "big", .size = 20ull << 30 }, NULL);
    CHECK_INT(tar_read(&tar, archive, used_up, &used, &data, &err), TAR_ENTRY);
    CHECK_INT(tar.entry.size, 20ll << 30);
}

/* As GNU tar writes them: an entry of type L or K before the one it is about, sizes in base 256. */
static void gnu_archives_are_read(void)
{
    static const unsigned char huge[12] = { 0x80, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0 };
    struct slice data;
    struct err err;
    size_t used;
    char *head;

    begin();
    head = put((struct tar_entry){ .path = "././@LongLink" }, "a/long/name");
    head[156] = 'L';
    memcpy(head + 257, "ustar  ", 8);
    fix_sum(head);
    head = put((struct tar_entry){ .path = "a/lo" }, "x");
    memcpy(head + 257, "ustar  ", 8);
    memcpy(head + 345, "times, not a prefix", 19);
    fix_sum(head);
    CHECK_STR(told(used_up + TAR_END_SIZE, 600), "f a/long/name 644 0:x;");

    begin();
    head = put((struct tar_entry){ .path = "huge" }, NULL);
    memcpy(head + 124, huge, sizeof huge);
    fix_sum(head);
    CHECK_INT(tar_read(&tar, archive, TAR_BLOCK, &used, &data, &err), TAR_ENTRY);
    CHECK_INT(tar.entry.size, 5ll << 32);
}

static void a_prefix_is_part_of_the_name(void)
{
    char *head;

    begin();
    head = put((struct tar_entry){ .path = "name" }, "x");
    memcpy(head + 345, "some/where", 10);
    fix_sum(head);
    CHECK_STR(told(used_up + TAR_END_SIZE, 600), "f some/where/name 644 0:x;");
}

static void paths_are_tidied(void)
{
    begin();
    put((struct tar_entry){ .path = "./", .type = TAR_DIR }, NULL);
    put((struct tar_entry){ .path = "./a//b/./c" }, "x");
    put((struct tar_entry){ .path = "old/" }, NULL); /* a directory of the oldest tars */
    CHECK_STR(told(used_up + TAR_END_SIZE, 600), "f a/b/c 644 0:x;d old 644 0:;");
}

static void what_leads_out_is_refused(void)
{
    static const struct {
        const char *path, *target, *why;
        enum tar_type type;
    } bad[] = {
        { "/etc/passwd", "", "!the archive's entry '/etc/passwd': an absolute path", TAR_FILE },
        { "../x", "", "!the archive's entry '../x': a path with '..'", TAR_FILE },
        { "./a/../../x", "", "!the archive's entry './a/../../x': a path with '..'", TAR_FILE },
        { "a/..", "", "!the archive's entry 'a/../': a path with '..'", TAR_DIR },
        { "h", "/etc/passwd", "!the archive's entry 'h': an absolute path", TAR_SAME },
        { "h", "a/../../b", "!the archive's entry 'h': a path with '..'", TAR_SAME },
        { "h", "", "!the archive's entry 'h': a link to nothing", TAR_SAME },
        { "l", "", "!the archive's entry 'l': a link to nothing", TAR_LINK },
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct tar_entry e = { .type = bad[i].type };

        begin();
        (void) strcpy(e.path, bad[i].path);
        (void) strcpy(e.target, bad[i].target);
        put(e, NULL);
        CHECK_STR(told(used_up + TAR_END_SIZE, 600), bad[i].why);
    }
}

static void devices_and_oddities_are_refused(void)
{
    static const struct {
        char type;
        const char *why;
    } bad[] = {
        { '3', "!the archive's entry 'n': a device" },
        { '4', "!the archive's entry 'n': a device" },
        { '6', "!the archive's entry 'n': a FIFO" },
        { 'S', "!the archive's entry 'n': a sparse file; make the archive without them" },
        { 'V', "!the archive's entry 'n': neither a file, a directory nor a link" },
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *head;

        begin();
        head = put((struct tar_entry){ .path = "n" }, NULL);
        head[156] = bad[i].type;
        fix_sum(head);
        CHECK_STR(told(used_up + TAR_END_SIZE, 600), bad[i].why);
    }
}

static void damage_is_refused(void)
{
    char *head;

    begin();
    head = put((struct tar_entry){ .path = "n" }, "x");
    CHECK_STR(told(used_up - 1, 600), "f n 644 0:x;!the archive ended early");
    CHECK_STR(told(used_up, 600), "f n 644 0:x;!the archive ended early");
    CHECK_STR(told(used_up + TAR_BLOCK, 600), "f n 644 0:x;");
    archive[used_up + TAR_END_SIZE] = 'x';
    CHECK_STR(told(used_up + TAR_END_SIZE + 1, 600),
              "f n 644 0:x;!something follows the end of the archive");
    head[0] ^= 1;
    CHECK_STR(told(used_up, 600), "!not a tar archive, or a damaged one");
    head[0] ^= 1;
    head[124] = 'z';
    fix_sum(head);
    CHECK_STR(told(used_up, 600), "!the archive's entry 'n': a damaged number in its header");
    begin();
    CHECK_STR(told(0, 1), "!the archive ended early");
}

static void extended_headers_are_bounded_and_checked(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "12 path=abc\n", "f abc 644 0:;" },
        { "99 path=abc\n", "!the archive has a damaged extended header" },
        { "4 =x", "!the archive has a damaged extended header" },
        { "10 size=-1\n", "!the archive has a damaged extended header" },
        { "11 size=-1\n", "!the archive has an invalid size" },
        { "30 size=18446744073709551615\n", "!the archive has a damaged extended header" },
        { "29 size=18446744073709551615\n", "!the archive has an invalid size" },
        { "22 GNU.sparse.major=1\n", "!the archive has sparse files; make it without them" },
    };
    char *head;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        begin();
        head = put((struct tar_entry){ .path = "x" }, bad[i].text);
        head[156] = 'x';
        fix_sum(head);
        put((struct tar_entry){ .path = "n" }, NULL);
        CHECK_STR(told(used_up + TAR_END_SIZE, 600), bad[i].why);
    }
    begin();
    head = put((struct tar_entry){ .path = "x", .size = TAR_PAX_MAX + 1 }, NULL);
    head[156] = 'x';
    fix_sum(head);
    CHECK_STR(told(used_up, 600), "!the archive has an extended header of more than 32768 bytes");
}

static void entries_are_counted(void)
{
    struct slice data;
    struct err err;
    size_t used;
    int event = 0;

    begin();
    put((struct tar_entry){ .path = "n" }, NULL);
    for (unsigned i = 0; event >= 0 && i <= TAR_ENTRIES_MAX; i++)
        for (size_t at = 0; event >= 0 && at < TAR_BLOCK; at += used)
            event = tar_read(&tar, archive + at, TAR_BLOCK - at, &used, &data, &err);
    CHECK_INT(event, -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    CHECK_STR(err.msg, "the archive has more than 1000000 entries");
}

CHECK_MAIN(T(entries_come_as_they_were_put), T(long_names_and_large_sizes_go_by_extended_headers),
           T(gnu_archives_are_read), T(a_prefix_is_part_of_the_name), T(paths_are_tidied),
           T(what_leads_out_is_refused), T(devices_and_oddities_are_refused), T(damage_is_refused),
           T(extended_headers_are_bounded_and_checked), T(entries_are_counted))
