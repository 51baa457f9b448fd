#include "agent/worker/glob.h"

#include "base/io.h"
#include "check.h"

static bool matches(const char *pattern, const char *path, bool hidden)
{
    struct glob *glob = NULL;
    struct err err;
    bool match;

    if (glob_new(pattern, hidden, &glob, &err) < 0) {
        CHECK_STR(err.msg, "");
        return false;
    }
    match = glob_match(glob, path);
    glob_free(glob);
    return match;
}

static void refuses(const char *pattern, const char *why)
{
    struct glob *glob = NULL;
    struct err err = { 0 };

    CHECK(glob_new(pattern, false, &glob, &err) == -1);
    CHECK_INT(err.kind, ERR_INVALID);
    CHECK_STR(err.msg, why);
    CHECK(!glob);
}

static void patterns_that_mean_nothing_are_refused(void)
{
    refuses("", "pattern: names nothing");
    refuses("/", "pattern: names nothing");
    refuses("./.", "pattern: names nothing");
    refuses("a/../b", "pattern: '..' is not followed; search from a path");
    refuses("{a,..}/b", "pattern: '..' is not followed; search from a path");
}

static void too_many_alternatives_are_refused(void)
{
    char parts[6000] = "";

    refuses("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
            "pattern: more than 1000 alternatives");
    for (int i = 0; i < 2100; i++)
        strcat(parts, "a/");
    refuses(parts, "pattern: more than 2048 parts");
}

static const struct {
    const char *pattern, *path;
    bool match, match_hidden;
} rows[] = {
    /* clang-format off */
    { "a",               "a",             true,  true  },
    { "a",               "b",             false, false },
    { "a",               "a/b",           false, false },
    { "*",               "abc",           true,  true  },
    { "*",               "a/b",           false, false },
    { "*",               ".abc",          false, true  },
    { ".*",              ".abc",          true,  true  },
    { "\\.*",            ".abc",          true,  true  },
    { "?abc",            ".abc",          false, true  },
    { "[.]abc",          ".abc",          false, true  },
    { "a*c",             "abbbc",         true,  true  },
    { "a*c",             "abbb",          false, false },
    { "*a*b*c*",         "xaxbxcx",       true,  true  },
    { "*a*b*c*",         "xaxcxbx",       false, false },
    { "*.tar.gz",        "a.tar.tar.gz",  true,  true  },
    { "a?c",             "abc",           true,  true  },
    { "a?c",             "ac",            false, false },
    { "?",               "\xc3\xa4",      true,  true  }, /* one character of two bytes */
    { "??",              "\xc3\xa4",      false, false },
    { "?",               "\xff",          true,  true  }, /* no character: one byte */
    { "[\xc3\xa0-\xc3\xb6]", "\xc3\xa4",  true,  true  },
    { "[a-c]x",          "bx",            true,  true  },
    { "[a-c]x",          "dx",            false, false },
    { "[!a-c]x",         "dx",            true,  true  },
    { "[^a-c]x",         "ax",            false, false },
    { "[]]",             "]",             true,  true  },
    { "[a\\]b]",         "]",             true,  true  },
    { "[a-]",            "-",             true,  true  },
    { "[[:digit:]x]",    "7",             true,  true  },
    { "[[:digit:]x]",    "y",             false, false },
    { "[abc",            "[abc",          true,  true  }, /* no end: itself */
    { "\\*",             "*",             true,  true  },
    { "\\*",             "x",             false, false },
    { "a\\",             "a\\",           true,  true  },
    { "{a,b}",           "b",             true,  true  },
    { "{a,b}",           "{a,b}",         false, false },
    { "{a}",             "{a}",           true,  true  },
    { "{a,",             "{a,",           true,  true  },
    { "\\{a,b}",         "{a,b}",         true,  true  },
    { "x{,y}",           "x",             true,  true  },
    { "x{,y}",           "xy",            true,  true  },
    { "{a,{b,c}d}e",     "cde",           true,  true  },
    { "{a,{b,c}d}e",     "ce",            false, false },
    { "{a/b,c}/d",       "a/b/d",         true,  true  },
    { "**",              "a/b/c",         true,  true  },
    { "**",              "a/.b/c",        false, true  },
    { "**/c",            "c",             true,  true  },
    { "**/c",            "a/b/c",         true,  true  },
    { "a/**/c",          "a/c",           true,  true  },
    { "a/**/c",          "a/b/b/c",       true,  true  },
    { "a/**/c",          "b/c",           false, false },
    { "a/**",            "a",             false, false },
    { "a/**",            "a/b",           true,  true  },
    { "**/**/c",         "c",             true,  true  },
    { "**/a/**/b",       "x/a/a/y/b",     true,  true  },
    { "a**b",            "axxb",          true,  true  }, /* within a name they are one star */
    { "a**b",            "a/b",           false, false },
    { "./a",             "a",             true,  true  },
    { "a//b",            "a/b",           true,  true  },
    { "a/",              "a",             false, false }, /* only a directory */
    /* clang-format on */
};

static void patterns_match_what_they_say(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int hidden = 0; hidden < 2; hidden++)
            if (matches(rows[i].pattern, rows[i].path, hidden) !=
                    (hidden ? rows[i].match_hidden : rows[i].match) &&
                !check_why[0])
                (void) snprintf(check_why, sizeof check_why, "'%s' against '%s', hidden %d",
                                rows[i].pattern, rows[i].path, hidden);
}

static void many_stars_do_not_take_for_ever(void)
{
    char pattern[512] = "", path[256];
    uint64_t begin = io_now_ms();

    for (int i = 0; i < 100; i++)
        strcat(pattern, "*a");
    strcat(pattern, "*b");
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    for (int i = 0; i < 100; i++)
        CHECK(!matches(pattern, path, false));
    pattern[0] = '\0';
    for (int i = 0; i < 60; i++)
        strcat(pattern, "**/*a/");
    strcat(pattern, "b");
    for (size_t i = 1; i < sizeof path - 1; i += 2)
        path[i] = '/';
    for (int i = 0; i < 100; i++)
        CHECK(!matches(pattern, path, false));
    CHECK(io_now_ms() - begin < 20000);
}

static void steps_say_where_to_look_and_links_stop_two_stars(void)
{
    struct glob *glob = NULL;
    struct glob_set start, next;
    struct err err;

    CHECK(glob_new("src/**/*.c", false, &glob, &err) == 0);
    glob_start(glob, &start);
    CHECK_INT(glob_step(glob, start.bits, "other", false, &next), 0);
    CHECK_INT(glob_step(glob, start.bits, "src", false, &next), GLOB_MORE);
    CHECK_INT(glob_step(glob, start.bits, "src", true, &next), GLOB_MORE);
    CHECK_INT(glob_step(glob, next.bits, "dir", false, &start), GLOB_MORE);
    CHECK_INT(glob_step(glob, next.bits, "dir", true, &start), 0);
    CHECK_INT(glob_step(glob, next.bits, "x.c", true, &start), GLOB_MATCH);
    CHECK_INT(glob_step(glob, next.bits, "x.c", false, &start), GLOB_MATCH | GLOB_MORE);
    glob_free(glob);
}

CHECK_MAIN(T(patterns_that_mean_nothing_are_refused), T(too_many_alternatives_are_refused),
           T(patterns_match_what_they_say), T(many_stars_do_not_take_for_ever),
           T(steps_say_where_to_look_and_links_stop_two_stars))
