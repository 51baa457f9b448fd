/* proxy_fuzz.c - the PROXY preamble: where it is split does not matter, and what follows it is never looked at. */
#include "http/proxy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy whole, part;
    struct err err = { 0 };
    char *copy = malloc(size + 1);
    int rc;

    memcpy(copy, data, size);
    rc = proxy_feed(copy, size, &whole, &err);
    must(rc >= -1 && rc <= 1);
    must(rc != -1 || err.msg[0] != '\0');
    must(rc != 0 || size < PROXY_MAX);
    if (rc == 1) {
        char *exact = malloc(whole.len); /* a byte behind it would be an overflow */

        must(whole.len > 0 && whole.len <= size && whole.len <= PROXY_MAX);
        memcpy(exact, data, whole.len);
        must(proxy_feed(exact, whole.len, &part, &err) == 1);
        must(memcmp(&part, &whole, sizeof part) == 0);
        for (size_t n = 0; n < whole.len; n++)
            must(proxy_feed(exact, n, &part, &err) == 0);
        free(exact);
    }
    free(copy);
    return 0;
}
