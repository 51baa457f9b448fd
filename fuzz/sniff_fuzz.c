/* sniff_fuzz.c - the first bytes of a connection, and the watch over plain HTTP.
 *
 * A name that is found is a normal one; a verdict that was reached does not change when more bytes follow; and what the
 * watch lets pass does not depend on how the bytes were cut. */
#include "egress/http_watch.h"
#include "egress/sniff.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void try_first(const uint8_t *data, size_t size)
{
    char name[REACH_NAME_MAX], again[REACH_NAME_MAX];
    enum sniff kind = sniff_first(data, size, name), half = sniff_first(data, size / 2, again);

    if (half != SNIFF_MORE && half != SNIFF_BAD)
        must(half == kind && strcmp(name, again) == 0);
    if (name[0])
        must(name_normal(name, strlen(name), again) && strcmp(name, again) == 0);
}

/* How many bytes pass in all when they come in pieces; -1 when it is cut. */
static ssize_t try_watch(const uint8_t *data, size_t size, size_t piece)
{
    static struct http_watch watch;
    size_t passed = 0;

    http_watch_init(&watch, "a.com");
    for (size_t have = piece < size ? piece : size;;
         have = have + piece < size ? have + piece : size) {
        struct err err;
        ssize_t n = http_watch_feed(&watch, data + passed, have - passed, &err);

        if (n < 0)
            return -1;
        must((size_t) n <= have - passed);
        passed += (size_t) n;
        if (have == size)
            return (ssize_t) passed;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_first(data, size);
    must(try_watch(data, size, size + 1) == try_watch(data, size, 7));
    return 0;
}
