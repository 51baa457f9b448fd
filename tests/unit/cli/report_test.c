#include "cli/report.h"

#include "base/own.h"
#include "check.h"
#include "cli/table.h"

static void text_of_a_sandbox_is_shown_not_obeyed(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "plain", "plain" },
        { "sp ace\xc3\xa9\xe2\x82\xac", "sp ace\xc3\xa9\xe2\x82\xac" },
        { "a\nb\tc", "a\\x0ab\\x09c" },
        { "\033[31mred", "\\x1b[31mred" },
        { "\x7f", "\\x7f" },
        { "\xc2\x9b"
          "31m",
          "\\xc2\\x9b"
          "31m" },                                      /* CSI as one C1 control */
        { "\xff\xfe", "\\xff\\xfe" },                   /* never UTF-8 */
        { "\xc0\xaf", "\\xc0\\xaf" },                   /* overlong */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* past the last */
        { "\xe2\x80\xae"
          "txt",
          "\\xe2\\x80\\xae"
          "txt" }, /* right to left */
        { "cut \xe2\x82", "cut \\xe2\\x82" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[64];

        CHECK_STR(report_text(out, sizeof out, cases[i].text), cases[i].want);
    }
}

static void cells_of_a_table_are_shown_not_obeyed(void)
{
    static const char *const headings[] = { "ID", "NAME" };
    auto_free char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct table table;

    table_init(&table, 2, headings);
    table_cell(&table, "%s", "\033]0;title\a");
    table_cell(&table, "%s", "a\nb");
    CHECK_INT(table_print(&table, out), 0);
    table_done(&table);
    (void) fclose(out);
    CHECK_STR(text, "ID                NAME\n\\x1b]0;title\\x07  a\\x0ab\n");
}

static void text_is_cut_to_fit_and_ends(void)
{
    for (size_t size = 1; size < 20; size++) {
        char out[32];

        memset(out, '#', sizeof out);
        (void) report_text(out, size, "\n\n\xc3\xa9\xc3\xa9 abcdefghijkl");
        CHECK(strlen(out) < size);
        CHECK(out[size] == '#');
    }
}

static void sizes_are_for_people(void)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } cases[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1 KiB" },
        { 1536, "1.5 KiB" },
        { 512ull << 20, "512 MiB" },
        { 3ull << 29, "1.5 GiB" },
        { 20ull << 30, "20 GiB" },
        { UINT64_MAX, "15 EiB" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[32];

        CHECK_STR(report_size(out, sizeof out, cases[i].bytes), cases[i].want);
    }
}

static void spans_are_for_people(void)
{
    static const struct {
        uint64_t ms;
        const char *want;
    } cases[] = {
        { 0, "0 ms" },     { 999, "999 ms" },   { 1000, "1 s" },        { 2500, "2.5 s" },
        { 60000, "60 s" }, { 180000, "3 min" }, { 4 * 3600000, "4 h" }, { 49ull * 3600000, "2 d" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[32];

        CHECK_STR(report_span(out, sizeof out, cases[i].ms), cases[i].want);
    }
}

static void the_state_directory_has_a_default(void)
{
    (void) unsetenv("COVE_STATE");
    CHECK_STR(report_state(), "/var/lib/cove");
    (void) setenv("COVE_STATE", "", 1);
    CHECK_STR(report_state(), "/var/lib/cove");
    (void) setenv("COVE_STATE", "/x", 1);
    CHECK_STR(report_state(), "/x");
}

static void columns_line_up_by_characters_not_bytes(void)
{
    static const char *const headings[] = { "NAME", ">SIZE", "LAST" };
    struct table table;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    table_init(&table, 3, headings);
    table_cell(&table, "%s", "\xc3\xa9t\xc3\xa9");
    table_cell(&table, "%d", 5);
    table_cell(&table, "x");
    table_cell(&table, "longer");
    table_cell(&table, "%d", 12345);
    table_cell(&table, ">y");
    CHECK_INT(table_print(&table, out), 0);
    (void) fclose(out);
    CHECK_STR(text, "NAME     SIZE  LAST\n"
                    "\xc3\xa9t\xc3\xa9         5  x\n"
                    "longer  12345  >y\n");
    free(text);
    table_done(&table);
}

CHECK_MAIN(T(text_of_a_sandbox_is_shown_not_obeyed), T(cells_of_a_table_are_shown_not_obeyed),
           T(text_is_cut_to_fit_and_ends), T(sizes_are_for_people), T(spans_are_for_people),
           T(the_state_directory_has_a_default), T(columns_line_up_by_characters_not_bytes))
