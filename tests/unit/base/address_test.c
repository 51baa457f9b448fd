#include "base/address.h"

#include "check.h"

#include <unistd.h>

static void what_is_no_address_is_refused_in_words(void)
{
    static const struct {
        const char *text, *msg;
    } cases[] = {
        { "", "listen: '' is not ADDRESS:PORT" },
        { "8000", "listen: '8000' is not ADDRESS:PORT" },
        { "127.0.0.1:", "listen: '127.0.0.1:' is not ADDRESS:PORT" },
        { "127.0.0.1:65536", "listen: '127.0.0.1:65536' is not ADDRESS:PORT" },
        { "127.0.0.1:-1", "listen: '127.0.0.1:-1' is not ADDRESS:PORT" },
        { ":8000", "listen: '' is not an address" },
        { "[]:8000", "listen: '[]' is not an address" },
        { "example.com:80", "listen: 'example.com' is not an address" }, /* not looked up */
        { "::1:8000", "listen: '::1' is not an address" },               /* without brackets */
        { "[127.0.0.1]:80", "listen: '127.0.0.1' is not an address" },
        { "[fe80::1%lo]:80", "listen: 'fe80::1%lo' is not an address" },
        { "1111111111111111111111111111111111111111111111111111111111111111:80",
          "listen: '111111111111111111111111111111111111111111111111111111111111' is not "
          "ADDRESS:PORT" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        struct err err;

        CHECK_INT(address_parse(cases[i].text, &address, &err), -1);
        CHECK_STR(err.msg, cases[i].msg);
    }
}

static void what_is_read_is_written_as_the_same(void)
{
    static const struct {
        const char *text, *written;
        bool loopback;
    } cases[] = {
        { "127.0.0.1:8000", "127.0.0.1:8000", true },
        { "localhost:0", "127.0.0.1:0", true },
        { "127.9.9.9:1", "127.9.9.9:1", true },
        { "0.0.0.0:80", "0.0.0.0:80", false },
        { "128.0.0.1:80", "128.0.0.1:80", false },
        { "[::1]:65535", "[::1]:65535", true },
        { "[::]:80", "[::]:80", false },
        { "[2001:DB8::1]:80", "[2001:db8::1]:80", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        char text[80];
        struct err err;

        CHECK_INT(address_parse(cases[i].text, &address, &err), 0);
        address_print(&address, text, sizeof text);
        CHECK_STR(text, cases[i].written);
        CHECK_INT(address.loopback, cases[i].loopback);
    }
}

static void a_port_that_is_taken_is_said_so(void)
{
    struct address first, second;
    int fd = -1, other = -1;
    struct err err;

    CHECK_INT(address_parse("127.0.0.1:0", &first, &err), 0);
    CHECK_INT(address_listen(&first, &fd, &err), 0);
    second = first; /* with the port that 0 became */
    CHECK_INT(address_listen(&second, &other, &err), -1);
    CHECK_INT(err.kind, ERR_STATE);
    CHECK_INT(other, -1);
    (void) close(fd);
}

CHECK_MAIN(T(what_is_no_address_is_refused_in_words), T(what_is_read_is_written_as_the_same),
           T(a_port_that_is_taken_is_said_so))
