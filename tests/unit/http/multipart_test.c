#include "http/multipart.h"

#include "check.h"

#define TYPE "multipart/form-data; boundary=xYz"
#define B    "--xYz"

/* What arrives, as text: (name|filename|type)data; and ! at the last boundary. */
static int play(const char *body, size_t len, size_t step, char *log, struct err *err)
{
    static struct multipart multipart;
    size_t at = 0;

    log[0] = '\0';
    if (multipart_init(&multipart, slice_of(TYPE), err) < 0)
        return -1;
    while (at < len) {
        size_t n = len - at < step ? len - at : step, used = 0;
        struct slice data = { 0 };
        int r = multipart_read(&multipart, body + at, n, &used, &data, err);

        if (r < 0)
            return -1;
        at += used;
        if (r == MULTIPART_PART)
            (void) sprintf(log + strlen(log), "(%s|%s|%s)", multipart.name,
                           multipart.has_filename ? multipart.filename : "-", multipart.type);
        if (r == MULTIPART_DATA) {
            CHECK(data.len > 0);
            strncat(log, data.at, data.len);
        }
        if (r == MULTIPART_END || r == MULTIPART_LAST)
            strcat(log, r == MULTIPART_END ? ";" : "!");
        CHECK(r != MULTIPART_MORE || used == n);
    }
    return multipart_done(&multipart) ? 1 : 0;
}

#define PART(rest) B "\r\nContent-Disposition: form-data; " rest "\r\n\r\n"
#define LAST       "\r\n" B "--"

static void forms_are_read_however_they_are_split(void)
{
    static const struct {
        const char *body, *log;
    } cases[] = {
        { B "--", "!" },
        { B "--\r\n", "!" },
        { PART("name=a") "1" LAST "\r\n", "(a|-|)1;!" },
        { PART("name=a") LAST, "(a|-|);!" },
        { "\r\n" PART("name=a") "1" LAST, "(a|-|)1;!" },
        { PART("name=\"a\"; filename=\"x y.txt\"") "1\r\n" PART("name=b") "2" LAST,
          "(a|x y.txt|)1;(b|-|)2;!" },
        { B "\r\ncontent-disposition:form-data;name=\"f\";filename=\"\"\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nX: y\r\n\r\nabc" LAST,
          "(f||text/plain; charset=utf-8)abc;!" },
        { PART("name=a; filename=\"\xc3\xa9.txt\"") "1" LAST, "(a|\xc3\xa9.txt|)1;!" },
        { PART("name=a; filename=\"e.txt\"; filename*=utf-8'en'%C3%A9%20.txt") "1" LAST,
          "(a|\xc3\xa9 .txt|)1;!" },
        { PART("name=\"q\\\"\\\\\\d;\"; filename=\"..%2F/x\"") "1" LAST,
          "(q\"\\\\d;|..%2F/x|)1;!" },
        /* What looks like a boundary and is none. */
        { PART("name=a") "\r\n--xY\r\n--xYx\r\r\n\r\n-\n--xYz" LAST,
          "(a|-|)\r\n--xY\r\n--xYx\r\r\n\r\n-\n--xYz;!" },
        { PART("name=a") "\r\r\r" LAST, "(a|-|)\r\r\r;!" },
        { PART("name=a") "1" LAST "\r\nan epilogue " B, "(a|-|)1;!" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t step = 1; step <= strlen(cases[i].body); step++) {
            struct err err = { 0 };
            char log[512];

            CHECK_INT(play(cases[i].body, strlen(cases[i].body), step, log, &err), 1);
            CHECK_STR(err.msg, "");
            CHECK_STR(log, cases[i].log);
        }
}

static void bad_forms_are_refused_however_they_are_split(void)
{
    static const struct {
        const char *body, *why;
    } cases[] = {
        { "x", "multipart: the body does not begin with its boundary" },
        { "-xYz\r\n", "multipart: the body does not begin with its boundary" },
        { "\n" B "\r\n", "multipart: the body does not begin with its boundary" },
        { "preamble\r\n" B "\r\n", "multipart: the body does not begin with its boundary" },
        { "--xYa", "multipart: the body does not begin with its boundary" },
        { B "\n", "multipart: a boundary ends with neither CRLF nor --" },
        { B "\rx", "multipart: a boundary ends with neither CRLF nor --" },
        { B "-x", "multipart: a boundary ends with neither CRLF nor --" },
        { B " \r\n", "multipart: a boundary ends with neither CRLF nor --" },
        { PART("name=a") "1\r\n" B "x", "multipart: a boundary ends with neither CRLF nor --" },
        { B "\r\n\r\n", "multipart: a part has no Content-Disposition" },
        { B "\r\nX: y\r\n\r\n", "multipart: a part has no Content-Disposition" },
        { B "\r\nX: y\n", "multipart: a header has the byte 0x0a, which is not allowed" },
        { B "\r\nX: y\rz", "multipart: a header has the byte 0x0d, which is not allowed" },
        { B "\r\nX: \x01", "multipart: a header has the byte 0x01, which is not allowed" },
        { B "\r\nX : y\r\n", "multipart: header 'X' has a blank in its name or before its colon" },
        { B "\r\nX: y\r\n z\r\n",
          "multipart: a header line begins with a blank: folding is refused" },
        { B "\r\nX\r\n", "multipart: header line 'X' has no colon" },
        { PART("filename=a"), "multipart: a part has no name" },
        { PART("name=\"\""), "multipart: a part has no name" },
        { PART("name=a; name=b"), "multipart: name is not well-formed, given twice or too long" },
        { PART("name=\"a"), "multipart: name is not well-formed, given twice or too long" },
        { PART("name=a b"), "multipart: name is not well-formed, given twice or too long" },
        { PART("name=\"\xff\""), "multipart: name is not UTF-8 without control characters" },
        { PART("name=a; filename=\"\t\""),
          "multipart: filename is not UTF-8 without control characters" },
        { PART("name=a; filename*=latin1''a"), "multipart: filename* is not in UTF-8" },
        { PART("name=a; filename*=UTF-8'a"), "multipart: filename* has no language field" },
        { PART("name=a; filename*=UTF-8''%00"), "multipart: filename*: a NUL byte is not allowed" },
        { PART("name=a; filename*=UTF-8''%0a"), "multipart: filename* has control characters" },
        { PART("name=a; filename*=UTF-8''%ff"), "multipart: filename*: it is not UTF-8" },
        { B "\r\nContent-Disposition: attachment; name=a\r\n",
          "multipart: Content-Disposition is not form-data" },
        { B "\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
            "name=b\r\n",
          "multipart: a part has Content-Disposition twice" },
        { B "\r\nContent-Transfer-Encoding: base64\r\n",
          "multipart: Content-Transfer-Encoding 'base64' is not known" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t step = 1; step <= strlen(cases[i].body); step++) {
            struct err err = { 0 };
            char log[512];

            CHECK_INT(play(cases[i].body, strlen(cases[i].body), step, log, &err), -1);
            CHECK_STR(err.msg, cases[i].why);
        }
}

static void a_form_that_stops_early_is_not_done(void)
{
    static const char body[] = PART("name=a") "1" LAST;
    struct err err;
    char log[512];

    for (size_t len = 0; len < sizeof body - 1; len++)
        CHECK_INT(play(body, len, len + 1, log, &err), 0);
    CHECK_INT(play(body, sizeof body - 1, 7, log, &err), 1);
}

static void boundaries_come_from_the_content_type(void)
{
    static const struct {
        const char *type, *why;
    } cases[] = {
        { "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", NULL },
        { "Multipart/Form-Data; charset=x; BOUNDARY=\"a b:c\"", NULL },
        { "text/plain; boundary=a", "Content-Type is not multipart/form-data" },
        { "", "Content-Type is not multipart/form-data" },
        { "multipart/form-data", "Content-Type has no boundary" },
        { "multipart/form-data; boundary=", "Content-Type has an invalid boundary" },
        { "multipart/form-data; boundary=\"a \"", "Content-Type has an invalid boundary" },
        { "multipart/form-data; boundary=\"a\\\"b\"", "Content-Type has an invalid boundary" },
        { "multipart/form-data; boundary=a; boundary=b", "Content-Type has an invalid boundary" },
        { "multipart/form-data; "
          "boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          "Content-Type has an invalid boundary" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct multipart multipart;
        struct err err = { 0 };

        CHECK_INT(multipart_init(&multipart, slice_of(cases[i].type), &err), cases[i].why ? -1 : 0);
        CHECK_STR(err.msg, cases[i].why ? cases[i].why : "");
    }
}

/* start, `times` times text; what reading it says. */
static int repeat(const char *start, const char *text, size_t times, struct err *err)
{
    size_t len = strlen(start) + times * strlen(text);
    char *all = malloc(len + 1), *log = malloc(len + 65536), *at = stpcpy(all, start);
    int r;

    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, text);
    r = play(all, len, len, log, err);
    free(all);
    free(log);
    return r;
}

static void everything_is_bounded(void)
{
    struct err err = { 0 };

    CHECK_INT(repeat(B "\r\n", "X: y\r\n", MULTIPART_FIELDS_MAX, &err), 0);
    CHECK_INT(repeat(B "\r\n", "X: y\r\n", MULTIPART_FIELDS_MAX + 1, &err), -1);
    CHECK_STR(err.msg, "multipart: a part has more than 16 headers");
    CHECK_INT(repeat(B "\r\nX:", "y", MULTIPART_HEAD_MAX - 2, &err), 0);
    CHECK_INT(repeat(B "\r\nX:", "y", MULTIPART_HEAD_MAX - 1, &err), -1);
    CHECK_STR(err.msg, "multipart: the headers of a part are larger than 8192 bytes");
    CHECK_INT(repeat("", PART("name=a") "\r\n", MULTIPART_PARTS_MAX, &err), 0);
    CHECK_INT(repeat("", PART("name=a") "\r\n", MULTIPART_PARTS_MAX + 1, &err), -1);
    CHECK_STR(err.msg, "multipart: more than 16384 parts");
    CHECK_INT(repeat(B "--", "x", MULTIPART_EPILOGUE_MAX, &err), 1);
    CHECK_INT(repeat(B "--", "x", MULTIPART_EPILOGUE_MAX + 1, &err), -1);
    CHECK_STR(err.msg, "multipart: too much data after the last boundary");
}

CHECK_MAIN(T(forms_are_read_however_they_are_split),
           T(bad_forms_are_refused_however_they_are_split), T(a_form_that_stops_early_is_not_done),
           T(boundaries_come_from_the_content_type), T(everything_is_bounded))
