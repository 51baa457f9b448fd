/* http_strip_fuzz.c - queries and cookies without ours: of ours nothing is left, and a second time changes nothing. */
#include "http/strip.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "cove-preview", "__Host-cove-preview" };

static void must(int condition)
{
    if (!condition)
        abort();
}

static void query(struct slice text, char *out, char *again, size_t room)
{
    struct put put = put_into(out, room), twice = put_into(again, room);
    struct slice value;

    strip_query(&put, text, "cove_token");
    must(put_fits(&put) && put.len <= text.len + 1);
    if (put.len == 0)
        return;
    must(out[0] == '?');
    must(strip_query_find((struct slice){ out + 1, put.len - 1 }, "cove_token", &value) == 0);
    strip_query(&twice, (struct slice){ out + 1, put.len - 1 }, "cove_token");
    must(twice.len == put.len && memcmp(out, again, put.len) == 0);
}

static void cookies(struct slice text, char *out, size_t room)
{
    struct put put = put_into(out, room);
    struct slice rest, name, value;

    if (!strip_cookies(&put, text, names, 2)) {
        must(put.len == 0);
        return;
    }
    must(put_fits(&put));
    rest = (struct slice){ out, put.len };
    while (strip_cookie_next(&rest, &name, &value))
        must(!slice_is(name, names[0]) && !slice_is(name, names[1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t room = 2 * size + 16; /* "; " may be longer than what stood between */
    char *copy = malloc(size + 1), *out = malloc(room), *again = malloc(room);

    memcpy(copy, data, size);
    query((struct slice){ copy, size }, out, again, room);
    cookies((struct slice){ copy, size }, out, room);
    free(copy);
    free(out);
    free(again);
    return 0;
}
