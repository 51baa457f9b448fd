#include "check.h"
#include "surface/tools/tools_text.h"

static struct text make(const char *content)
{
    struct text text = { 0 };

    (void) text_add(&text, content, strlen(content));
    return text;
}

static void check_refused(const char *content, const char *old, const char *new, bool all,
                          const char *why)
{
    struct text text = make(content);
    size_t count = 77;
    struct err err = { 0 };

    CHECK(text_edit(&text, old, new, all, &count, &err) == -1);
    CHECK_STR(err.msg, why);
    CHECK_STR(text.data, content);
    CHECK(count == 77);
    free(text.data);
}

static void check_edited(const char *content, const char *old, const char *new, bool all,
                         const char *want, size_t want_count)
{
    struct text text = make(content);
    size_t count = 0;
    struct err err = { 0 };

    CHECK(text_edit(&text, old, new, all, &count, &err) == 0);
    CHECK_STR(text.data, want);
    CHECK(text.len == strlen(want));
    CHECK_INT(count, want_count);
    free(text.data);
}

static void an_edit_of_what_is_not_there_is_refused(void)
{
    check_refused("one two", "three", "x", false, "old_string is not in the file");
    check_refused("", "a", "b", true, "old_string is not in the file");
    check_refused("One", "one", "x", false, "old_string is not in the file");
}

static void an_edit_that_is_not_unique_is_refused_and_says_how_often(void)
{
    check_refused("a b a b a", "a", "x", false,
                  "old_string is in the file 3 times: add what stands around it to make it "
                  "unique, or set replace_all");
}

static void an_edit_without_a_change_is_refused(void)
{
    check_refused("a", "a", "a", false, "old_string and new_string are the same");
    check_refused("a", "", "b", false, "old_string is empty");
}

static void an_edit_that_grows_past_the_limit_is_refused(void)
{
    struct text text = { 0 };
    char *big = malloc(1 << 20);
    struct err err = { 0 };
    size_t count = 0;

    memset(big, 'x', 1 << 20);
    big[(1 << 20) - 1] = '\0';
    for (int i = 0; i < 100; i++)
        (void) text_add(&text, "a", 1);
    CHECK(text_edit(&text, "a", big, true, &count, &err) == -1);
    CHECK(err.kind == ERR_TOO_BIG);
    CHECK(text.len == 100);
    free(big);
    free(text.data);
}

static void edits_replace_exactly(void)
{
    check_edited("one two three", "two", "2", false, "one 2 three", 1);
    check_edited("one two", "two", "", false, "one ", 1);
    check_edited("a.c", ".", "*", false, "a*c", 1);
    check_edited("x\ny\n", "x\ny\n", "z", false, "z", 1);
    check_edited("aaaa", "aa", "b", true, "bb", 2);
    check_edited("a b a", "a", "aa", true, "aa b aa", 2);
    check_edited("$1 \\n", "$1 \\n", "\\0&", false, "\\0&", 1);
}

static void an_edit_keeps_bytes_that_are_no_text(void)
{
    struct text text = { 0 };
    struct err err;
    size_t count;

    (void) text_add(&text, "a\0\xff old", 7);
    CHECK(text_edit(&text, "old", "new", false, &count, &err) == 0);
    CHECK(text.len == 7 && memcmp(text.data, "a\0\xff new", 7) == 0);
    free(text.data);
}

static void lines_are_numbered_from_the_first(void)
{
    struct text text = { 0 };

    CHECK(text_add_numbered(&text, "a\n\nb", 4, 9) == 0);
    CHECK_STR(text.data, "     9\ta\n    10\t\n    11\tb");
    free(text.data);
}

static void a_cut_does_not_split_a_character(void)
{
    CHECK_INT(text_cut("abc", 3, 2), 2);
    CHECK_INT(text_cut("\xe4\xbd\xa0\xe5\xa5\xbd!", 7, 1), 3);
    CHECK_INT(text_cut("\xe4\xbd\xa0\xe5\xa5\xbd!", 7, 9), 7);
    CHECK_INT(text_cut("\xff\xff", 2, 1), 1);
    CHECK_INT(text_cut("", 0, 5), 0);
}

static void what_is_no_UTF_8_becomes_a_sign_that_says_so(void)
{
    struct text text = { 0 };

    CHECK(text_add_utf8(&text, "a\xff\0b\xe4\xbd\xa0\xe4", 8) == 0);
    CHECK_STR(text.data, "a\xef\xbf\xbd\xef\xbf\xbd"
                         "b\xe4\xbd\xa0\xef\xbf\xbd");
    free(text.data);
}

static void base64_is_read_or_refused(void)
{
    static const struct {
        const char *base64, *bytes;
        int r;
    } rows[] = {
        { "", "", 0 },
        { "aGVsbG8=", "hello", 0 },
        { "aGVsbA==", "hell", 0 },
        { "aGVs", "hel", 0 },
        { "+/+/", "\xfb\xff\xbf", 0 },
        { "aGV", "", -1 },
        { "aG=s", "", -1 },
        { "a===", "", -1 },
        { "aGVs\naGV", "", -1 },
        { "aGVs====", "", -1 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct text text = { 0 };

        CHECK_INT(text_from_base64(&text, rows[i].base64), rows[i].r);
        if (rows[i].r == 0)
            CHECK_STR(text.data, rows[i].bytes);
        CHECK_INT(text.len, strlen(rows[i].bytes));
        free(text.data);
    }
}

static void images_are_known_by_their_first_bytes(void)
{
    CHECK_STR(text_image_type("\x89PNG\r\n\x1a\n....", 12), "image/png");
    CHECK_STR(text_image_type("\xff\xd8\xff\xe0", 4), "image/jpeg");
    CHECK_STR(text_image_type("GIF89a", 6), "image/gif");
    CHECK_STR(text_image_type("RIFF\1\2\3\4WEBPVP8 ", 16), "image/webp");
    CHECK(text_image_type("BMW is a car", 12) == NULL);
    CHECK_STR(text_image_type("BM\0\0\0\0", 6), "image/bmp");
    CHECK(text_image_type("\x89PN", 3) == NULL);
    CHECK(text_image_type("", 0) == NULL);
}

static void texts_and_other_files_are_told_apart(void)
{
    CHECK(!text_is_binary("", 0));
    CHECK(!text_is_binary("hello\n", 6));
    CHECK(!text_is_binary("\xe4\xbd", 2)); /* cut: more may follow */
    CHECK(text_is_binary("a\0b", 3));
    CHECK(text_is_binary("\xff\xfe", 2));
}

CHECK_MAIN(T(an_edit_of_what_is_not_there_is_refused),
           T(an_edit_that_is_not_unique_is_refused_and_says_how_often),
           T(an_edit_without_a_change_is_refused), T(an_edit_that_grows_past_the_limit_is_refused),
           T(edits_replace_exactly), T(an_edit_keeps_bytes_that_are_no_text),
           T(lines_are_numbered_from_the_first), T(a_cut_does_not_split_a_character),
           T(what_is_no_UTF_8_becomes_a_sign_that_says_so), T(base64_is_read_or_refused),
           T(images_are_known_by_their_first_bytes), T(texts_and_other_files_are_told_apart))
