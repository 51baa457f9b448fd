#include "base/log.h"

#include "check.h"

#include <fcntl.h>
#include <unistd.h>

static void quote_escapes_everything_but_plain_ascii(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "\"\"" },
        { "plain text 1.2", "\"plain text 1.2\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "new\nline\r\t", "\"new\\x0aline\\x0d\\x09\"" },
        { "\033[2J", "\"\\x1b[2J\"" },
        { "\x7f\xc3\xa9\xff", "\"\\x7f\\xc3\\xa9\\xff\"" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[128];

        CHECK_STR(log_quote(out, sizeof out, cases[i].text), cases[i].want);
    }
}

static void quote_cuts_and_still_closes(void)
{
    for (size_t size = 8; size < 40; size++) {
        char out[64];
        size_t len;

        memset(out, '#', sizeof out);
        (void) log_quote(out, size, "\n\n\n\n\n\n\n\n\n\n\n\n");
        len = strlen(out);
        CHECK(len < size);
        CHECK(out[0] == '"' && out[len - 1] == '"');
        CHECK(out[size] == '#'); /* nothing behind the end */
    }
}

static void quote_into_almost_nothing_is_empty(void)
{
    char out[8] = "#######";

    CHECK_STR(log_quote(out, 7, "abc"), "");
    CHECK(log_quote(out, 0, "abc") == out);
}

/* What log_line writes, one call. */
static void capture(char *text, size_t size, enum log_level most, enum log_level level,
                    const char *word)
{
    int fds[2], saved = dup(STDERR_FILENO);
    ssize_t n;

    text[0] = '\0';
    if (saved < 0 || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    (void) dup2(fds[1], STDERR_FILENO);
    log_init("test", most);
    log_line(level, "event=%s", word);
    (void) dup2(saved, STDERR_FILENO);
    n = read(fds[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    (void) close(fds[0]);
    (void) close(fds[1]);
    (void) close(saved);
}

static void a_line_has_time_level_program_and_text(void)
{
    char text[256];

    capture(text, sizeof text, LOG_INFO, LOG_WARNING, "hello");
    CHECK(strlen(text) > 24 && text[4] == '-' && text[10] == 'T' && text[23] == 'Z');
    CHECK_STR(text + 24, " warning test event=hello\n");
}

static void a_level_beyond_the_wanted_one_says_nothing(void)
{
    char text[256];

    capture(text, sizeof text, LOG_WARNING, LOG_INFO, "hello");
    CHECK_STR(text, "");
}

static void a_long_line_is_cut_to_one_line(void)
{
    char text[4096], word[3000];
    size_t len;

    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    capture(text, sizeof text, LOG_INFO, LOG_INFO, word);
    len = strlen(text);
    CHECK(len > 900 && len < 1024);
    CHECK(text[len - 1] == '\n' && strchr(text, '\n') == text + len - 1);
}

CHECK_MAIN(T(quote_escapes_everything_but_plain_ascii), T(quote_cuts_and_still_closes),
           T(quote_into_almost_nothing_is_empty), T(a_line_has_time_level_program_and_text),
           T(a_level_beyond_the_wanted_one_says_nothing), T(a_long_line_is_cut_to_one_line))
