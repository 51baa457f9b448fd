#include "http/response.h"

#include "http/date.h"
#include "http/media.h"
#include "http/range.h"
#include "http/sse.h"

#include "check.h"

#include <time.h>

static void a_head_has_its_lines_in_order(void)
{
    struct response response;
    struct err err;
    char buf[512];
    ssize_t len;

    response_begin(&response, buf, sizeof buf, 206);
    response_date(&response, 784111777);
    response_field(&response, "Content-Type", "text/plain");
    response_number(&response, "Content-Length", UINT64_MAX);
    response_field(&response, "X-Empty", "");
    len = response_end(&response, &err);
    CHECK(len > 0);
    buf[len] = '\0';
    CHECK_STR(buf, "HTTP/1.1 206 Partial Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                   "Content-Type: text/plain\r\nContent-Length: 18446744073709551615\r\n"
                   "X-Empty: \r\n\r\n");
}

static void a_sentence_may_take_the_place_of_the_reason(void)
{
    struct response response;
    char buf[256];
    struct err err = { 0 };
    ssize_t len;

    response_begin_with(&response, buf, sizeof buf, 403, "no\r\nSet-Cookie: a=b \xc3\xa9 'x'");
    len = response_end(&response, &err);
    CHECK(len > 0);
    buf[len] = '\0';
    CHECK_STR(buf, "HTTP/1.1 403 no??Set-Cookie: a=b ?? 'x'\r\n\r\n");
}

static void injected_headers_are_refused(void)
{
    static const struct {
        const char *name;
        struct slice value;
    } cases[] = {
        { "X", { "a\r\nSet-Cookie: b", 17 } },
        { "X", { "a\nb", 3 } },
        { "X", { "a\rb", 3 } },
        { "X", { "a\0b", 3 } },
        { "X", { "a\x7f", 2 } },
        { "X: y\r\nZ", { "a", 1 } },
        { "", { "a", 1 } },
        { "X Y", { "a", 1 } },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct response response;
        struct err err = { 0 };
        char buf[512];

        response_begin(&response, buf, sizeof buf, 200);
        response_slice(&response, cases[i].name, cases[i].value);
        response_field(&response, "Fine", "yes");
        CHECK_INT(response_end(&response, &err), -1);
        CHECK(strstr(err.msg, "has bytes that are not allowed"));
    }
}

static void a_head_that_does_not_fit_is_refused(void)
{
    static const char want[] = "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n";
    struct response response;
    struct err err = { 0 };
    char buf[64];

    for (size_t size = 0; size <= sizeof want; size++) {
        memset(buf, '?', sizeof buf);
        response_begin(&response, buf, size, 404);
        response_field(&response, "A", "b");
        CHECK_INT(response_end(&response, &err),
                  size >= sizeof want - 1 ? (long) sizeof want - 1 : -1);
        CHECK(buf[size] == '?');
    }
}

static void statuses_have_reasons_and_some_no_body(void)
{
    CHECK_STR(status_reason(431), "Request Header Fields Too Large");
    CHECK_STR(status_reason(418), "Client Error");
    CHECK_STR(status_reason(999), "Unknown");
    CHECK(status_has_body(200) && status_has_body(404));
    CHECK(!status_has_body(101) && !status_has_body(204) && !status_has_body(304));
}

static void dates_are_written_and_read_back(void)
{
    static const int64_t days[] = { 0, 59, 365, 789, 10957, 11016, 11017, 19723, 19782, 2932896 };

    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        time_t seconds = days[i] * 86400 + 12345;
        char text[DATE_SIZE], want[64];
        struct tm tm;
        int64_t back = -1;

        (void) gmtime_r(&seconds, &tm);
        (void) strftime(want, sizeof want, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        date_put(text, seconds);
        CHECK_STR(text, want);
        CHECK(date_parse(slice_of(text), &back) && back == seconds);
    }
}

static void other_dates_are_not_read(void)
{
    static const char *const bad[] = {
        "",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 31 Apr 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT",
        "Sun, 29 Feb 2100 08:49:37 GMT",
    };
    int64_t seconds;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!date_parse(slice_of(bad[i]), &seconds));
    CHECK(date_parse(slice_of("Thu, 29 Feb 2024 23:59:59 GMT"), &seconds));
}

static void ranges_are_parts_of_the_file_or_none(void)
{
    static const struct {
        const char *value;
        uint64_t size;
        enum range_result result;
        uint64_t first, len;
    } cases[] = {
        { NULL, 100, RANGE_NONE, 0, 0 },
        { "bytes=0-0", 100, RANGE_OK, 0, 1 },
        { "bytes=10-19", 100, RANGE_OK, 10, 10 },
        { "Bytes=10-", 100, RANGE_OK, 10, 90 },
        { "bytes=-10", 100, RANGE_OK, 90, 10 },
        { "bytes=-200", 100, RANGE_OK, 0, 100 },
        { "bytes=99-1000", 100, RANGE_OK, 99, 1 },
        { "bytes=0-99", 100, RANGE_OK, 0, 100 },
        { "bytes=0-100", 100, RANGE_OK, 0, 100 },
        { "bytes=0-99999999999999999999999", 100, RANGE_OK, 0, 100 },
        { "bytes=100-", 100, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=100-200", 100, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=99999999999999999999-", 100, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=-0", 100, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=-5", 0, RANGE_NONE, 0, 0 },
        { "bytes=0-1,5-6", 100, RANGE_NONE, 0, 0 },
        { "bytes=20-10", 100, RANGE_NONE, 0, 0 },
        { "bytes=-", 100, RANGE_NONE, 0, 0 },
        { "bytes=", 100, RANGE_NONE, 0, 0 },
        { "bytes=a-b", 100, RANGE_NONE, 0, 0 },
        { "bytes=+1-2", 100, RANGE_NONE, 0, 0 },
        { "bytes=1--2", 100, RANGE_NONE, 0, 0 },
        { "bytes 1-2", 100, RANGE_NONE, 0, 0 },
        { "lines=1-2", 100, RANGE_NONE, 0, 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct range range = { 0 };

        CHECK_INT(range_parse(slice_of(cases[i].value), cases[i].size, &range), cases[i].result);
        CHECK_INT(range.first, cases[i].first);
        CHECK_INT(range.len, cases[i].len);
    }
}

static void content_ranges_are_written(void)
{
    char text[RANGE_TEXT_SIZE];

    range_put(text, &(struct range){ 10, 5 }, 100);
    CHECK_STR(text, "bytes 10-14/100");
    range_put(text, NULL, 100);
    CHECK_STR(text, "bytes */100");
    range_put(text, &(struct range){ UINT64_MAX - 1, 1 }, UINT64_MAX);
    CHECK_STR(text, "bytes 18446744073709551614-18446744073709551614/18446744073709551615");
}

static void entity_tags_compare_strongly_and_weakly(void)
{
    char etag[ETAG_SIZE];

    etag_put(etag, UINT64_MAX, 0x10);
    CHECK_STR(etag, "\"ffffffffffffffff-10\"");
    CHECK(etag_in(slice_of("*"), "\"a\"", true));
    CHECK(etag_in(slice_of("\"b\", \"a\""), "\"a\"", false));
    CHECK(etag_in(slice_of("\"b,c\" ,W/\"a\""), "\"a\"", true));
    CHECK(!etag_in(slice_of("W/\"a\""), "\"a\"", false));
    CHECK(!etag_in(slice_of("\"a\""), "W/\"a\"", false));
    CHECK(!etag_in(slice_of("\"A\", a, \"a"), "\"a\"", true));
    CHECK(!etag_in(slice_of(""), "\"a\"", true) && !etag_in((struct slice){ 0 }, "\"a\"", true));
}

static void conditions_follow_their_order(void)
{
    struct slice none = { 0 }, date = slice_of("Sun, 06 Nov 1994 08:49:37 GMT");
    const int64_t at = 784111777;

    CHECK(!range_not_modified(none, none, "\"a\"", at));
    CHECK(range_not_modified(slice_of("\"a\""), none, "\"a\"", at));
    CHECK(range_not_modified(none, date, "\"a\"", at));
    CHECK(!range_not_modified(none, date, "\"a\"", at + 1));
    CHECK(!range_not_modified(slice_of("\"b\""), date, "\"a\"", at)); /* the tag decides alone */
    CHECK(!range_not_modified(none, slice_of("yesterday"), "\"a\"", at));
    CHECK(range_applies(none, "\"a\"", at));
    CHECK(range_applies(slice_of("\"a\""), "\"a\"", at));
    CHECK(!range_applies(slice_of("W/\"a\""), "\"a\"", at) &&
          !range_applies(slice_of("*"), "\"a\"", at));
    CHECK(range_applies(date, "\"a\"", at) && !range_applies(date, "\"a\"", at - 1));
}

static void media_types_come_from_names(void)
{
    CHECK_STR(media_type(slice_of("/a.b/index.HTML")), "text/html; charset=utf-8");
    CHECK_STR(media_type(slice_of("x.tar.gz")), "application/gzip");
    CHECK_STR(media_type(slice_of("Makefile")), "application/octet-stream");
    CHECK_STR(media_type(slice_of("a.html/b")), "application/octet-stream");
    CHECK_STR(media_type(slice_of("a.")), "application/octet-stream");
    CHECK_STR(media_type(slice_of("")), "application/octet-stream");
}

static void events_keep_their_lines(void)
{
    struct err err = { 0 };
    char out[128] = "";
    ssize_t n = sse_event(out, sizeof out, "output", "7", slice_of("a\nb\r\nc\rd\n"), &err);

    CHECK(n > 0 && n < (ssize_t) sizeof out);
    out[n] = '\0';
    CHECK_STR(out, "event: output\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
    n = sse_event(out, sizeof out, NULL, NULL, slice_of(""), &err);
    out[n] = '\0';
    CHECK_STR(out, "data: \n\n");
    CHECK_INT(sse_event(NULL, 0, NULL, NULL, slice_of("ab"), &err), 10);
    CHECK_INT(sse_event(out, sizeof out, "a\nb", NULL, slice_of(""), &err), -1);
    CHECK_STR(err.msg, "a line break in the event of an event");
    CHECK_INT(sse_event(out, sizeof out, NULL, "a\rb", slice_of(""), &err), -1);
}

CHECK_MAIN(T(a_head_has_its_lines_in_order), T(injected_headers_are_refused),
           T(a_sentence_may_take_the_place_of_the_reason), T(a_head_that_does_not_fit_is_refused),
           T(statuses_have_reasons_and_some_no_body), T(dates_are_written_and_read_back),
           T(other_dates_are_not_read), T(ranges_are_parts_of_the_file_or_none),
           T(content_ranges_are_written), T(entity_tags_compare_strongly_and_weakly),
           T(conditions_follow_their_order), T(media_types_come_from_names),
           T(events_keep_their_lines))
