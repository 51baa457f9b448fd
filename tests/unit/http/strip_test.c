#include "http/strip.h"

#include "check.h"

static const char *const ours[] = { "cove-preview", "__Host-cove-preview" };

static void a_query_loses_its_token_and_nothing_else(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "", "?" }, /* an empty query is one */
        { "a=1&b=2", "?a=1&b=2" },
        { "&&a&", "?&&a&" }, /* without the key not a byte changes */
        { "t=1", "" },
        { "t", "" },
        { "t=", "" },
        { "a=1&t=x", "?a=1" },
        { "t=x&a=1", "?a=1" },
        { "a=1&t=x&b=%20+", "?a=1&b=%20+" },
        { "t=x&t=y&a", "?a" },
        { "tt=1&xt=2&T=3&t=4", "?tt=1&xt=2&T=3" },
        { "a=t=1", "?a=t=1" },
        { "%74=1", "?%74=1" }, /* as it was written: another name */
        { "&t=1&", "?&" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[64];
        struct put put = put_into(out, sizeof out - 1);

        strip_query(&put, slice_of(cases[i].in), "t");
        out[put.len] = '\0';
        CHECK_STR(out, cases[i].out);
    }
}

static void no_query_stays_none(void)
{
    char out[8];
    struct put put = put_into(out, sizeof out);

    strip_query(&put, (struct slice){ 0 }, "t");
    CHECK_INT(put.len, 0);
}

static void the_token_is_found_and_counted(void)
{
    struct slice value;

    CHECK_INT(strip_query_find(slice_of("a=1&tt=2"), "t", &value), 0);
    CHECK_INT(strip_query_find(slice_of("a=1&t=2&b"), "t", &value), 1);
    CHECK(slice_is(value, "2"));
    CHECK_INT(strip_query_find(slice_of("t=2&t=3=4"), "t", &value), 2);
    CHECK(slice_is(value, "3=4"));
    CHECK_INT(strip_query_find(slice_of("t"), "t", &value), 1);
    CHECK_INT(value.len, 0);
    CHECK_INT(strip_query_find((struct slice){ 0 }, "t", &value), 0);
}

static void cookies_of_ours_are_taken_out(void)
{
    static const struct {
        const char *in, *out; /* NULL: nothing is left */
    } cases[] = {
        { "a=1; b=2", "a=1; b=2" },
        { "a=1;b=2 ;; c", "a=1;b=2 ;; c" }, /* not ours, not touched */
        { "cove-preview=x", NULL },
        { "cove-preview=x; cove-preview=y;__Host-cove-preview=z", NULL },
        { "a=1; cove-preview=x; b=\"2\"", "a=1; b=\"2\"" },
        { "a=1;cove-preview=x;b=2", "a=1; b=2" },
        { " cove-preview = x ;a=1", "a=1" },
        { "Cove-Preview=x; cove-preview=y", "Cove-Preview=x" },               /* letters count */
        { "xcove-preview=1; cove-preview", "xcove-preview=1; cove-preview" }, /* no name of ours */
        { "cove-preview=x; cove-preview", "cove-preview" },
        { "cove-preview=a=b; c=d=e", "c=d=e" },
        { "cove-preview=;", NULL },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[80];
        struct put put = put_into(out, sizeof out - 1);
        bool left = strip_cookies(&put, slice_of(cases[i].in), ours, 2);

        out[put.len] = '\0';
        CHECK_INT(left, cases[i].out != NULL);
        CHECK_STR(out, cases[i].out ? cases[i].out : "");
    }
}

CHECK_MAIN(T(a_query_loses_its_token_and_nothing_else), T(no_query_stays_none),
           T(the_token_is_found_and_counted), T(cookies_of_ours_are_taken_out))
