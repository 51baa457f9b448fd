#include "egress/socks5.h"

#include "base/own.h"

#include <string.h>

#define VERSION       5
#define LOGIN_VERSION 1
#define NO_LOGIN      0
#define WITH_LOGIN    2
#define NO_METHOD     0xff
#define CONNECT       1
#define TO_IP4        1
#define TO_NAME       3
#define TO_IP6        4

size_t socks5_greeting(const struct upstream *upstream, uint8_t out[SOCKS5_SAY_MAX])
{
    bool login = upstream->user[0] != '\0';

    out[0] = VERSION;
    out[1] = login ? 2 : 1;
    out[2] = NO_LOGIN;
    out[3] = WITH_LOGIN;
    return login ? 4 : 3;
}

int socks5_method(const uint8_t *data, size_t len, bool has_login, bool *ret_login,
                  size_t *ret_used, struct err *err)
{
    if (len > 0 && data[0] != VERSION)
        return err_set(err, ERR_PROTOCOL, "it does not speak SOCKS5");
    if (len < 2)
        return 0;
    if (data[1] == NO_METHOD || (data[1] == WITH_LOGIN && !has_login))
        return err_set(err, ERR_DENIED,
                       has_login ? "it takes no login of this kind" : "it wants a login");
    if (data[1] != NO_LOGIN && data[1] != WITH_LOGIN)
        return err_set(err, ERR_PROTOCOL, "it chose a login that was not offered");
    *ret_login = data[1] == WITH_LOGIN;
    *ret_used = 2;
    return 1;
}

size_t socks5_login(const struct upstream *upstream, uint8_t out[SOCKS5_SAY_MAX])
{
    size_t user = strlen(upstream->user), password = strlen(upstream->password);

    out[0] = LOGIN_VERSION;
    out[1] = (uint8_t) user;
    memcpy(out + 2, upstream->user, user);
    out[2 + user] = (uint8_t) password;
    memcpy(out + 3 + user, upstream->password, password);
    return 3 + user + password;
}

int socks5_verdict(const uint8_t *data, size_t len, size_t *ret_used, struct err *err)
{
    if (len > 0 && data[0] != LOGIN_VERSION)
        return err_set(err, ERR_PROTOCOL, "its answer to the login cannot be read");
    if (len < 2)
        return 0;
    if (data[1] != 0)
        return err_set(err, ERR_DENIED, "it does not take the login");
    *ret_used = 2;
    return 1;
}

size_t socks5_request(const char *name, const struct ip *ip, uint16_t port,
                      uint8_t out[SOCKS5_SAY_MAX])
{
    size_t at = 4;

    out[0] = VERSION;
    out[1] = CONNECT;
    out[2] = 0;
    if (name) {
        size_t len = strlen(name);

        out[3] = TO_NAME;
        out[at++] = (uint8_t) len;
        memcpy(out + at, name, len);
        at += len;
    } else {
        bool four = ip_is4(ip);

        out[3] = four ? TO_IP4 : TO_IP6;
        memcpy(out + at, ip->bytes + (four ? 12 : 0), four ? 4 : 16);
        at += four ? 4 : 16;
    }
    out[at++] = (uint8_t) (port >> 8);
    out[at++] = (uint8_t) port;
    return at;
}

int socks5_reply(const uint8_t *data, size_t len, size_t *ret_used, struct err *err)
{
    static const char *const refusals[] = {
        NULL,
        "it failed",
        "its rules do not allow it",
        "the network is unreachable from it",
        "the host is unreachable from it",
        "the host refused its connection",
        "its connection took too long",
        "it cannot connect",
        "it does not know this kind of address",
    };
    size_t need;

    if (len > 0 && data[0] != VERSION)
        return err_set(err, ERR_PROTOCOL, "its reply cannot be read");
    if (len > 1 && data[1] != 0)
        return err_set(err, ERR_DENIED, "%s",
                       data[1] < ARRAY_LEN(refusals) ? refusals[data[1]] : "it refused");
    if (len < 5) /* the fifth tells the length of a name */
        return 0;
    if (data[2] != 0 || (data[3] != TO_IP4 && data[3] != TO_IP6 && data[3] != TO_NAME))
        return err_set(err, ERR_PROTOCOL, "its reply cannot be read");
    need = 6 + (data[3] == TO_IP4 ? 4 : data[3] == TO_IP6 ? 16 : 1 + (size_t) data[4]);
    if (len < need)
        return 0;
    *ret_used = need;
    return 1;
}
