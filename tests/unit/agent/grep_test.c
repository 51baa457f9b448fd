#include "agent/worker/grep.h"

#include "agent/worker/nodes.h"
#include "agent/worker/port.h"
#include "check.h"

static bool finds(const char *pattern, bool fixed, bool ignore_case, const char *text, size_t *at)
{
    struct needle *needle = NULL;
    struct err err;
    size_t len;
    bool hit;

    if (needle_new(pattern, fixed, ignore_case, &needle, &err) < 0) {
        CHECK_STR(err.msg, "");
        return false;
    }
    hit = needle_find(needle, text, strlen(text), true, true, at, &len);
    needle_free(needle);
    return hit;
}

static void a_pattern_that_is_none_is_refused_with_the_reason(void)
{
    static const char *const bad[] = { "a(b", "[a", "a{2,1}", "*a**(" };
    struct needle *needle = NULL;
    struct err err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(needle_new(bad[i], false, false, &needle, &err) == -1);
        CHECK_INT(err.kind, ERR_INVALID);
        CHECK(strncmp(err.msg, "pattern: ", 9) == 0 && strlen(err.msg) > 12);
        CHECK(!needle);
    }
}

static void patterns_are_extended_expressions_or_plain_texts(void)
{
    size_t at = 0;

    CHECK(finds("b+c|x", false, false, "abbc", &at) && at == 1);
    CHECK(!finds("B+C", false, false, "abbc", &at));
    CHECK(finds("B+C", false, true, "abbc", &at) && at == 1);
    CHECK(finds("b+", true, false, "abb+", &at) && at == 2);
    CHECK(!finds("b+", true, false, "abb", &at));
    CHECK(finds("(B+.[x]$", true, true, "a(b+.[X]$", &at) && at == 1);
    CHECK(finds("", true, false, "abc", &at) && at == 0);
    CHECK(finds("\xff", false, false, "a\xff", &at) && at == 1); /* bytes, not characters */
}

static void what_every_match_must_contain_is_not_guessed_wrong(void)
{
    static const struct {
        const char *pattern, *text;
        bool hit;
    } rows[] = {
        { "abc*", "xab", true },
        { "abc+d", "abccd", true },
        { "abc?d", "abd", true },
        { "abc{0,2}d", "abd", true },
        { "(abc)?d", "d", true },
        { "(a(b)c)*d{1}e", "de", true },
        { "ab|cd", "cd", true },
        { "x(ab|cd)y", "xcdy", true },
        { "[abc]d", "bd", true },
        { "[]abc]d", "]d", true },
        { "[^]a]d", "bd", true },
        { "[[:digit:]]abc", "7abc", true },
        { "a\\.b", "a.b", true },
        { "a\\.b", "axb", false },
        { "a.b", "axb", true },
        { "^ab$", "ab", true },
        { "a\\[b", "a[b", true },
        { "([)]x)*y", "y", true },
        { "(\\)x)*y", "y", true },
        { "foo[a-z]+bar", "foo_bar", false },
        { "foo[a-z]+bar", "fooxbar", true },
    };
    size_t at;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (finds(rows[i].pattern, false, false, rows[i].text, &at) != rows[i].hit && !check_why[0])
            (void) snprintf(check_why, sizeof check_why, "'%s' in '%s'", rows[i].pattern,
                            rows[i].text);
}

static void a_piece_in_the_middle_has_no_ends(void)
{
    struct needle *needle = NULL;
    struct err err;
    size_t at, len;

    CHECK(needle_new("^b", false, false, &needle, &err) == 0);
    CHECK(needle_find(needle, "bc", 2, true, true, &at, &len));
    CHECK(!needle_find(needle, "bc", 2, false, true, &at, &len));
    needle_free(needle);
    CHECK(needle_new("c$", false, false, &needle, &err) == 0);
    CHECK(needle_find(needle, "bc", 2, true, true, &at, &len));
    CHECK(!needle_find(needle, "bc", 2, true, false, &at, &len));
    needle_free(needle);
}

static void listening_sockets_are_read_from_procfs(void)
{
    struct port port;

    CHECK(port_parse(
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 "
        "       0 12345 1 0000000000000000 100 0 0 10 0\n",
        false, &port));
    CHECK_STR(port.address, "127.0.0.1");
    CHECK(port.port == 8080 && port.uid == 1000 && port.inode == 12345);
    CHECK(port_parse(
        "   1: 00000000000000000000000001000000:0016 "
        "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 "
        "    0        0 99 1 0000000000000000 100 0 0 10 0\n",
        true, &port));
    CHECK_STR(port.address, "::1");
    CHECK(port.port == 22 && port.inode == 99);
}

static void other_sockets_and_nonsense_are_no_ports(void)
{
    struct port port;

    CHECK(!port_parse("  sl  local_address rem_address   st tx_queue\n", false, &port));
    CHECK(!port_parse("", false, &port));
    CHECK(
        !port_parse("   0: 0100007F:1F90 0100007F:1234 01 00000000:00000000 00:00000000 00000000  "
                    "1000        0 12345 1\n",
                    false, &port));
    CHECK(!port_parse("   0: 0100007F:1F90 00000000:0000 0A", false, &port));
}

static void watched_directories_keep_their_paths_when_one_is_moved(void)
{
    struct nodes nodes = { 0 };
    struct node *root = nodes_add(&nodes, 1, NULL, "/w");
    struct node *a = nodes_add(&nodes, 2, root, "a");
    struct node *b = nodes_add(&nodes, 3, a, "b");
    char path[64];

    for (int wd = 4; wd < 400; wd++)
        CHECK(nodes_add(&nodes, wd, b, "x"));
    CHECK(nodes_path(nodes_find(&nodes, 399), "f", path, sizeof path));
    CHECK_STR(path, "/w/a/b/x/f");
    CHECK(nodes_move(&nodes, b, root, "c"));
    CHECK(nodes_path(nodes_find(&nodes, 399), NULL, path, sizeof path));
    CHECK_STR(path, "/w/c/x");
    CHECK(!nodes_child(a, "b") && nodes_child(root, "c") == nodes_find(&nodes, 3));
    CHECK(!nodes_path(nodes_find(&nodes, 399), NULL, path, 6));
    nodes_done(&nodes);
    CHECK(!nodes.root && !nodes_find(&nodes, 2));
    root = nodes_add(&nodes, 1, NULL, "/");
    CHECK(nodes_path(root, "f", path, sizeof path));
    CHECK_STR(path, "/f");
    CHECK(nodes_path(root, NULL, path, sizeof path));
    CHECK_STR(path, "/");
    nodes_done(&nodes);
}

CHECK_MAIN(T(a_pattern_that_is_none_is_refused_with_the_reason),
           T(patterns_are_extended_expressions_or_plain_texts),
           T(what_every_match_must_contain_is_not_guessed_wrong),
           T(a_piece_in_the_middle_has_no_ends), T(listening_sockets_are_read_from_procfs),
           T(other_sockets_and_nonsense_are_no_ports),
           T(watched_directories_keep_their_paths_when_one_is_moved))
