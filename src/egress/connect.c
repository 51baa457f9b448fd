#include "egress/connect.h"

#include "base/base64.h"
#include "base/own.h"

#include <stdio.h>
#include <string.h>

#define LOGIN_TEXT_MAX (2 * UPSTREAM_LOGIN_MAX)
#define NEEDS_LOGIN    407

size_t connect_request(const struct upstream *upstream, const char *name, const struct ip *ip,
                       uint16_t port, char out[CONNECT_SAY_MAX])
{
    char host[UPSTREAM_HOST_MAX], pair[LOGIN_TEXT_MAX], login[BASE64_SIZE(LOGIN_TEXT_MAX)] = "";
    bool six = !name && !ip_is4(ip);
    int len;

    if (name)
        (void) snprintf(host, sizeof host, "%s", name);
    else
        ip_print(ip, host);
    if (upstream->user[0]) {
        len = snprintf(pair, sizeof pair, "%s:%s", upstream->user, upstream->password);
        base64_put(login, (const uint8_t *) pair, (size_t) len);
        explicit_bzero(pair, sizeof pair);
    }
    len = snprintf(out, CONNECT_SAY_MAX,
                   "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n%s%s%s\r\n", six ? "[" : "",
                   host, six ? "]" : "", port, six ? "[" : "", host, six ? "]" : "", port,
                   login[0] ? "Proxy-Authorization: Basic " : "", login, login[0] ? "\r\n" : "");
    explicit_bzero(login, sizeof login);
    return (size_t) len;
}

int connect_reply(struct reply *reply, const uint8_t *data, size_t len, size_t *ret_used,
                  struct err *err)
{
    struct err why;
    int r = reply_feed(reply, (const char *) data,
                       len < CONNECT_REPLY_MAX ? len : CONNECT_REPLY_MAX, &why);

    /* What it sent is not repeated: it may be what we sent. */
    if (r < 0)
        return err_set(err, ERR_PROTOCOL, "its answer is not HTTP");
    if (r == 0 && len >= CONNECT_REPLY_MAX)
        return err_set(err, ERR_PROTOCOL, "its answer does not end");
    if (r == 0)
        return 0;
    if (reply->status == NEEDS_LOGIN)
        return err_set(err, ERR_DENIED, "it does not take the login (407)");
    if (reply->status < 200 || reply->status > 299)
        return err_set(err, ERR_DENIED, "it refused (%u)", reply->status);
    *ret_used = reply->len;
    return 1;
}
