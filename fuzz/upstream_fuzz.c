/* upstream_fuzz.c - what a proxy answers, SOCKS5 or HTTP, and addresses of proxies.
 *
 * An answer that is whole takes no more than there is, means the same with more bytes behind it, and is never whole or
 * refused in another way because it came in pieces. An address that is taken is shown in a way that is taken again. */
#include "egress/connect.h"
#include "egress/socks5.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

typedef int reader(const uint8_t *data, size_t len, size_t *ret_used, struct err *err);

static int method_of(const uint8_t *data, size_t len, size_t *ret_used, struct err *err)
{
    bool login;

    return socks5_method(data, len, true, &login, ret_used, err);
}

static int bare_method(const uint8_t *data, size_t len, size_t *ret_used, struct err *err)
{
    bool login = false;
    int r = socks5_method(data, len, false, &login, ret_used, err);

    must(!login);
    return r;
}

static int whole_head(const uint8_t *data, size_t len, size_t *ret_used, struct err *err)
{
    struct reply reply;

    reply_init(&reply);
    return connect_reply(&reply, data, len, ret_used, err);
}

/* The first verdict over growing pieces, and where it came. */
static void try_reader(reader *read, const uint8_t *data, size_t size)
{
    size_t used = 0, again = 0;
    struct err err;
    int whole = read(data, size, &used, &err), r = 0;

    must(whole != 1 || (used > 0 && used <= size));
    for (size_t len = 0; len <= size && r == 0 && len < 600; len++)
        r = read(data, len, &again, &err);
    if (size < 600)
        must(r == whole && again == used);
}

static void try_pieces(const uint8_t *data, size_t size)
{
    struct reply reply;
    size_t used = 0, again = 0;
    struct err err;
    int whole = whole_head(data, size, &used, &err), r = 0;

    reply_init(&reply);
    for (size_t len = 1; len <= size && r == 0; len++)
        r = connect_reply(&reply, data, len, &again, &err);
    must(size == 0 || (r == whole && again == used));
}

static void try_address(const uint8_t *data, size_t size)
{
    char text[UPSTREAM_ADDRESS_MAX * 2], shown[UPSTREAM_ADDRESS_MAX], twice[UPSTREAM_ADDRESS_MAX];
    struct upstream u = { .kind = UPSTREAM_HTTP }, same;
    struct err err;

    if (size >= sizeof text)
        return;
    memcpy(text, data, size);
    text[size] = '\0';
    (void) upstream_parse(text, &same, &err);
    if (upstream_set_address(&u, text, &err) < 0)
        return;
    upstream_address(&u, shown);
    same = (struct upstream){ .kind = UPSTREAM_HTTP };
    must(upstream_set_address(&same, shown, &err) == 0);
    upstream_address(&same, twice);
    must(strcmp(shown, twice) == 0 && upstream_same(&u, &same));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_reader(method_of, data, size);
    try_reader(bare_method, data, size);
    try_reader(socks5_verdict, data, size);
    try_reader(socks5_reply, data, size);
    try_pieces(data, size);
    try_address(data, size);
    return 0;
}
