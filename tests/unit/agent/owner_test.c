#include "agent/worker/owner.h"

#include "base/own.h"
#include "check.h"

#include <arpa/inet.h>

static void what_is_no_socket_is_none(void)
{
    static const char *const rows[] = {
        "",
        ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
         "timeout inode"),
        "   0: 020200C0:9C40 22D8B85D:0050 01",
        "garbage",
    };
    struct owner_line line;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK(!owner_parse(rows[i], false, &line));
        CHECK(!owner_parse(rows[i], true, &line));
    }
}

static void a_connection_of_either_family_is_read(void)
{
    uint8_t want[16];
    struct owner_line line;

    CHECK(owner_parse(
        "   3: 020200C0:9C40 22D8B85D:0050 01 00000000:00000000 00:00000000 00000000  1000"
        "        0 4711 1 0000000000000000 20 4 30 10 -1",
        false, &line));
    CHECK_INT(line.port, 40000);
    CHECK_INT(line.peer_port, 80);
    CHECK_INT(line.uid, 1000);
    CHECK_INT(line.inode, 4711);
    CHECK(inet_pton(AF_INET6, "::ffff:93.184.216.34", want) == 1);
    CHECK(memcmp(line.peer, want, sizeof want) == 0);
    CHECK(owner_parse(
        "   0: 0000000000000000FFFF0000020200C0:9C41 0000000000000000FFFF000022D8B85D:01BB 01 "
        "00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 0 10 "
        "-1",
        true, &line));
    CHECK_INT(line.port, 40001);
    CHECK_INT(line.peer_port, 443);
    CHECK_INT(line.inode, 4712);
    CHECK(memcmp(line.peer, want, sizeof want) == 0);
}

static void only_a_datagram_may_be_of_a_socket_without_another_end(void)
{
    struct owner_line wanted = { .port = 4, .peer_port = 53 }, line;

    CHECK(inet_pton(AF_INET6, "::ffff:93.184.216.34", wanted.peer) == 1);
    line = wanted;
    line.inode = 9;
    CHECK(owner_matches(&line, &wanted, false) && owner_matches(&line, &wanted, true));
    line.peer[15] = 1; /* connected to somebody else */
    CHECK(!owner_matches(&line, &wanted, true));
    line.peer_port = 0;
    CHECK(!owner_matches(&line, &wanted, true));
    CHECK(inet_pton(AF_INET6, "::ffff:0.0.0.0", line.peer) == 1);
    CHECK(!owner_matches(&line, &wanted, false) && owner_matches(&line, &wanted, true));
    memset(line.peer, 0, sizeof line.peer);
    CHECK(owner_matches(&line, &wanted, true));
    line.port = 5;
    CHECK(!owner_matches(&line, &wanted, true));
    line.port = 4;
    line.inode = 0; /* nobody's any more */
    CHECK(!owner_matches(&line, &wanted, true));
}

CHECK_MAIN(T(what_is_no_socket_is_none), T(a_connection_of_either_family_is_read),
           T(only_a_datagram_may_be_of_a_socket_without_another_end))
