/* url_fuzz.c - paths, queries, and header values: lists, parameters, dates, ranges, tags.
 *
 * Encoding and decoding undo each other; what a path is said to have is looked for in another
 * way; no text makes a writer write more lines or events than were asked for. */
#include "base/utf8.h"
#include "http/date.h"
#include "http/media.h"
#include "http/range.h"
#include "http/response.h"
#include "http/sse.h"
#include "http/url.h"
#include "http/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void try_codec(struct slice text)
{
    size_t room = text.len * 3 + 1;
    char *encoded = malloc(room), *back = malloc(room);
    struct err err = { 0 };
    ssize_t n = (ssize_t) url_encode(text, encoded, room);
    bool nul = text.len > 0 && memchr(text.at, '\0', text.len);

    must((size_t) n < room);
    n = url_decode((struct slice){ encoded, (size_t) n }, 0, back, room, &err);
    must(nul ? n == -1
             : n == (ssize_t) text.len && (n == 0 || memcmp(back, text.at, text.len) == 0));
    n = url_decode(text, URL_UTF8 | URL_PLUS, back, room, &err);
    must(n < 0 ? err.msg[0] != '\0' : strlen(back) == (size_t) n && utf8_ok(back, strlen(back)));
    free(encoded);
    free(back);
}

static void try_path(struct slice text)
{
    struct url_path path;
    struct err err;
    char *out = malloc(text.len + 1);
    bool dots = false, hidden = false;

    if (url_path_split(text, &path, &err) == 0) {
        for (unsigned i = 0; i < path.count; i++) {
            must(url_decode(path.segments[i], 0, out, text.len + 1, &err) >= 0);
            dots |= strcmp(out, ".") == 0 || strcmp(out, "..") == 0;
            hidden |= strpbrk(out, "/\\") != NULL;
        }
        must(dots == path.dots && hidden == path.hidden);
    }
    free(out);
}

static void try_query(struct slice text)
{
    struct url_query query = url_query(text);
    struct url_pair pair;
    struct err err;
    char out[32];
    unsigned count = 0;

    while (url_query_next(&query, &pair, &err) == 1)
        count++;
    must(count <= URL_PAIRS_MAX);
    (void) url_query_get(text, "a", out, sizeof out, &err);
    must(strlen(out) < sizeof out);
}

static void try_values(struct slice text)
{
    struct slice rest = text, item;
    struct range range = { 0 };
    char out[32], date[DATE_SIZE];
    int64_t seconds, again;
    bool found;

    while (value_list_next(&rest, &item))
        must(item.len > 0 && item.at >= text.at && item.at + item.len <= text.at + text.len);
    (void) value_main(text);
    (void) value_param(text, "a", out, sizeof out, &found);
    if (range_parse(text, 1000, &range) == RANGE_OK)
        must(range.len > 0 && range.first < 1000 && range.len <= 1000 - range.first);
    (void) etag_in(text, "\"a\"", true);
    (void) range_applies(text, "\"a\"", 0);
    (void) media_type(text);
    if (date_parse(text, &seconds)) {
        date_put(date, seconds);
        must(date_parse(slice_of(date), &again) && again == seconds);
    }
}

/* No text makes a head of more lines than were written, or an event of more events. */
static void try_writers(struct slice text)
{
    struct response response;
    size_t room = text.len * 8 + 256, ends = 0;
    char *out = malloc(room);
    struct err err;
    ssize_t n;

    response_begin(&response, out, room, 200);
    response_slice(&response, "A", text);
    n = response_end(&response, &err);
    for (ssize_t i = 0; i < n; i++)
        ends += out[i] == '\n';
    must(n < 0 || ends == 3);
    n = sse_event(out, room, "e", NULL, text, &err);
    must(n > 0 && (size_t) n <= room && memcmp(out + n - 2, "\n\n", 2) == 0);
    for (ssize_t i = 0; i + 2 < n; i++)
        must(out[i] != '\r' && (out[i] != '\n' || out[i + 1] == 'd'));
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = { (const char *) data, size };

    if (size == 0)
        text.at = "";
    try_codec(text);
    try_path(text);
    try_query(text);
    try_values(text);
    try_writers(text);
    return 0;
}
