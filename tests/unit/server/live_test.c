/* Requests in progress end when their key is revoked or expires. */
#include "server/guard/live.h"

#include "check.h"

#include <sys/socket.h>
#include <unistd.h>

static bool is_cut(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void a_revoked_key_ends_its_requests_and_no_others(void)
{
    int a[2], b[2], own[2];
    struct live one, two, three;
    uint64_t seen = live_seen();

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0 &&
          socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0 &&
          socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0);
    CHECK(live_begin(&one, "aaaaaaaaaaaa", 0, a[0], seen));
    CHECK(live_begin(&two, "bbbbbbbbbbbb", 0, b[0], seen));
    CHECK(live_begin(&three, "aaaaaaaaaaaa", 0, own[0], seen));
    live_cut("aaaaaaaaaaaa", own[0]);
    CHECK(is_cut(a[1]));
    CHECK(!is_cut(b[1]));
    CHECK(!is_cut(own[1])); /* who revokes its own key is answered */
    live_end(&two);
    live_end(&one);
    live_end(&one); /* twice is once */
    live_cut("bbbbbbbbbbbb", -1);
    CHECK(!is_cut(b[1])); /* that request is over: the connection may have another key's */
    live_end(&three);
    for (int i = 0; i < 2; i++) {
        (void) close(a[i]);
        (void) close(b[i]);
        (void) close(own[i]);
    }
}

static void a_revocation_during_the_look_up_is_told(void)
{
    uint64_t seen = live_seen();
    struct live live;

    live_cut("cccccccccccc", -1);
    CHECK(!live_begin(&live, "cccccccccccc", 0, -1, seen));
    live_end(&live);
    CHECK(live_begin(&live, "cccccccccccc", 0, -1, live_seen()));
    live_end(&live);
}

static void a_key_that_expires_ends_its_requests(void)
{
    int a[2], b[2];
    struct live brief, lasting;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, a) == 0 &&
          socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
    CHECK(live_begin(&brief, "dddddddddddd", 1000, a[0], live_seen()));
    CHECK(live_begin(&lasting, "eeeeeeeeeeee", 0, b[0], live_seen()));
    live_expire(999);
    CHECK(!is_cut(a[1]));
    live_expire(1000);
    CHECK(is_cut(a[1]));
    CHECK(!is_cut(b[1]));
    live_end(&brief);
    live_end(&lasting);
    for (int i = 0; i < 2; i++) {
        (void) close(a[i]);
        (void) close(b[i]);
    }
}

CHECK_MAIN(T(a_revoked_key_ends_its_requests_and_no_others),
           T(a_revocation_during_the_look_up_is_told), T(a_key_that_expires_ends_its_requests))
