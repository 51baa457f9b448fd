#include "cli/hints.h"

#include "check.h"

static void distance_counts_slips(void)
{
    static const struct {
        const char *a, *b;
        unsigned want;
    } cases[] = {
        { "run", "run", 0 },  { "rnu", "run", 1 },       { "ru", "run", 1 },
        { "runn", "run", 1 }, { "rin", "run", 1 },       { "exce", "exec", 1 },
        { "", "run", 3 },     { "volume", "vlumee", 2 }, { "abcdef", "uvwxyz", 3 },
        { "run", "", 3 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_INT(hint_distance(cases[i].a, cases[i].b, 2), cases[i].want);
}

static void long_words_are_near_to_nothing(void)
{
    char text[4096], out[160];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_INT(hint_distance(text, "run", 2), 3);
    CHECK_STR(hint_verb(verbs, verb_count, text, out, sizeof out), "");
    CHECK_STR(hint_option(&run_verb, text, out, sizeof out), "");
}

static void no_word_of_docker_is_a_verb_of_ours(void)
{
    static const char *const words[] = {
        "rm", "ls", "stop", "start", "inspect", "images", "attach"
    };
    char out[160];

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        CHECK(verb_find(words[i]) == NULL);
        CHECK(strncmp(hint_verb(verbs, verb_count, words[i], out, sizeof out), "; use: cove ",
                      12) == 0);
    }
}

static void letters_are_not_guessed(void)
{
    char out[160];

    CHECK_STR(hint_option(&run_verb, "z", out, sizeof out), "");
    CHECK_STR(hint_option(&run_verb, "", out, sizeof out), "");
    CHECK_STR(hint_option(&run_verb, "memroy", out, sizeof out), "; did you mean '--memory'?");
    CHECK_STR(hint_option(&run_verb, "cpu-time", out, sizeof out),
              "; did you mean '--cpu-timeout'?");
    CHECK_STR(hint_option(&run_verb, "cp", out, sizeof out), "");
    CHECK_STR(hint_verb(verbs, verb_count, "x", out, sizeof out), "");
}

CHECK_MAIN(T(distance_counts_slips), T(long_words_are_near_to_nothing),
           T(no_word_of_docker_is_a_verb_of_ours), T(letters_are_not_guessed))
