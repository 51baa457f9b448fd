#include "base/prefix.h"

#include "base/parse.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct prefix {
    unsigned char bytes[16];
    unsigned bits, all;
};

/* The next item of the list, or false at its end. */
static bool next_item(const char **list, char *out, size_t size)
{
    const char *begin = *list + strspn(*list, ", ");
    size_t len = strcspn(begin, ", ");

    *list = begin + len;
    (void) snprintf(out, size, "%.*s", (int) len, begin);
    return len > 0;
}

static bool read_prefix(char *text, struct prefix *ret)
{
    char *slash = strchr(text, '/');
    struct err ignored;
    uint64_t bits;

    if (slash)
        *slash = '\0';
    ret->all = strchr(text, ':') ? 128 : 32;
    if (inet_pton(ret->all == 32 ? AF_INET : AF_INET6, text, ret->bytes) != 1)
        return false;
    bits = ret->all;
    if (slash && (parse_u64(slash + 1, &bits, &ignored) < 0 || bits > ret->all))
        return false;
    ret->bits = (unsigned) bits;
    return true;
}

static bool covers(const struct prefix *prefix, const unsigned char *bytes, unsigned all)
{
    unsigned whole = prefix->bits / 8, rest = prefix->bits % 8;

    if (prefix->all != all || memcmp(prefix->bytes, bytes, whole) != 0)
        return false;
    return rest == 0 || ((prefix->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}

int prefix_list_check(const char *list, struct err *err)
{
    char text[64], copy[64];
    struct prefix prefix;

    while (next_item(&list, text, sizeof text)) {
        memcpy(copy, text, sizeof copy);
        if (!read_prefix(text, &prefix))
            return err_set(err, ERR_INVALID, "'%s' is neither an address nor a prefix", copy);
    }
    return 0;
}

bool prefix_list_has(const char *list, const struct sockaddr *address)
{
    const struct sockaddr_in6 *in6 = (const void *) address;
    const struct sockaddr_in *in = (const void *) address;
    const unsigned char *bytes;
    struct prefix prefix;
    unsigned all = 32;
    char text[64];

    if (address->sa_family == AF_INET) {
        bytes = (const void *) &in->sin_addr;
    } else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        bytes = in6->sin6_addr.s6_addr + 12;
    } else if (address->sa_family == AF_INET6) {
        bytes = in6->sin6_addr.s6_addr;
        all = 128;
    } else {
        return false;
    }
    while (next_item(&list, text, sizeof text))
        if (read_prefix(text, &prefix) && covers(&prefix, bytes, all))
            return true;
    return false;
}
