#include "http/proxy.h"

#include "http/slice.h"

#include <arpa/inet.h>
#include <stdbool.h>

#define LINE_MAX_1 107 /* of version 1, with CR and LF */
#define HEAD_2     16
#define TEXT_1     "PROXY "

static const char signature_2[12] = "\r\n\r\n\0\r\nQUIT\n";

static int bad(struct err *err, const char *why)
{
    return err_set(err, ERR_INVALID, "the PROXY preamble %s", why);
}

/* ---- version 1: "PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n" ---- */

static bool read_address(int family, struct slice text, unsigned char *out)
{
    char copy[INET6_ADDRSTRLEN];

    return slice_copy(text, copy, sizeof copy) && inet_pton(family, copy, out) == 1;
}

static bool read_port(struct slice text, uint16_t *ret)
{
    uint64_t value;

    if (text.len == 0 || text.len > 5 || !slice_number(text, &value) || value > 65535 ||
        (text.at[0] == '0' && text.len > 1))
        return false;
    *ret = (uint16_t) value;
    return true;
}

static int read_line(struct slice line, struct proxy *ret, struct err *err)
{
    struct slice kind, source, target, port;
    unsigned char ignored[16];
    uint16_t ignored_port;
    int family;

    if (!slice_cut(&line, ' ', &kind))
        kind = line;
    if (slice_is(kind, "UNKNOWN"))
        return 1; /* what follows has no meaning */
    family = slice_is(kind, "TCP4") ? AF_INET : slice_is(kind, "TCP6") ? AF_INET6 : AF_UNSPEC;
    if (family == AF_UNSPEC)
        return bad(err, "is neither of TCP4, TCP6 nor UNKNOWN");
    if (!slice_cut(&line, ' ', &source) || !slice_cut(&line, ' ', &target) ||
        !slice_cut(&line, ' ', &port) || !read_address(family, source, ret->source) ||
        !read_address(family, target, ignored))
        return bad(err, "has an invalid address");
    if (!read_port(port, &ret->port) || !read_port(line, &ignored_port))
        return bad(err, "has an invalid port");
    ret->family = family == AF_INET ? PROXY_IPV4 : PROXY_IPV6;
    return 1;
}

static int feed_1(const char *data, size_t len, struct proxy *ret, struct err *err)
{
    const char *end = memchr(data, '\n', len < LINE_MAX_1 ? len : LINE_MAX_1);

    if (!end)
        return len < LINE_MAX_1 ? 0 : bad(err, "is a line that is too long");
    if (end[-1] != '\r')
        return bad(err, "does not end with CR and LF");
    ret->len = (size_t) (end + 1 - data);
    return read_line((struct slice){ data + sizeof TEXT_1 - 1, ret->len - (sizeof TEXT_1 - 1) - 2 },
                     ret, err);
}

/* ---- version 2: a signature, four bytes, and addresses in binary ---- */

/* Those that carry an address of the internet, and how long both addresses and ports are. */
static const struct {
    unsigned char family; /* upper half: family, lower half: stream or datagram */
    enum proxy_family is;
    size_t size, address;
} families[] = {
    { 0x11, PROXY_IPV4, 12, 4 },
    { 0x21, PROXY_IPV6, 36, 16 },
};

static int read_addresses(unsigned char family, const unsigned char *at, size_t size,
                          struct proxy *ret, struct err *err)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const unsigned char *port = at + 2 * families[i].address;

        if (families[i].family != family)
            continue;
        if (size < families[i].size)
            return bad(err, "is too short for its addresses");
        memcpy(ret->source, at, families[i].address);
        ret->port = (uint16_t) (port[0] << 8 | port[1]);
        ret->family = families[i].is;
    }
    return 1; /* others (datagrams, unix sockets) have no address that we could use */
}

static int feed_2(const unsigned char *data, size_t len, struct proxy *ret, struct err *err)
{
    size_t size;

    if (len > 12 && data[12] != 0x20 && data[12] != 0x21)
        return bad(err, "has a version or a command that is not known");
    if (len < HEAD_2)
        return 0;
    size = (size_t) (data[14] << 8 | data[15]);
    if (HEAD_2 + size > PROXY_MAX)
        return bad(err, "is too long");
    if (len < HEAD_2 + size)
        return 0;
    ret->len = HEAD_2 + size;
    if (data[12] == 0x20) /* LOCAL: the proxy speaks for itself */
        return 1;
    return read_addresses(data[13], data + HEAD_2, size, ret, err);
}

int proxy_feed(const char *data, size_t len, struct proxy *ret, struct err *err)
{
    size_t known = len < sizeof signature_2 ? len : sizeof signature_2;

    *ret = (struct proxy){ .family = PROXY_UNKNOWN };
    if (len == 0)
        return 0;
    if (memcmp(data, signature_2, known) == 0)
        return feed_2((const unsigned char *) data, len, ret, err);
    known = len < sizeof TEXT_1 - 1 ? len : sizeof TEXT_1 - 1;
    if (memcmp(data, TEXT_1, known) == 0)
        return known == len ? 0 : feed_1(data, len, ret, err);
    return bad(err, "is missing");
}
