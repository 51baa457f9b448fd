#include "egress/upstream.h"

#include "base/own.h"
#include "base/parse.h"
#include "egress/reach.h"

#include <stdio.h>
#include <string.h>

_Static_assert(UPSTREAM_HOST_MAX == REACH_NAME_MAX, "a name fits into both");

static const char *const kinds[] = {
    [UPSTREAM_NONE] = "none",
    [UPSTREAM_HTTP] = "http",
    [UPSTREAM_SOCKS5] = "socks5",
};
_Static_assert(ARRAY_LEN(kinds) == UPSTREAM_KINDS, "every kind has a name");

const char *upstream_kind_name(enum upstream_kind kind)
{
    return kinds[kind];
}

int upstream_kind_parse(const char *text, enum upstream_kind *ret, struct err *err)
{
    for (int i = UPSTREAM_HTTP; i < UPSTREAM_KINDS; i++)
        if (strcmp(text, kinds[i]) == 0) {
            *ret = (enum upstream_kind) i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "'%.40s' is neither http nor socks5", text);
}

static int no_address(struct err *err, const char *text)
{
    return err_set(err, ERR_INVALID, "'%.80s' is not host:port", text);
}

int upstream_set_address(struct upstream *upstream, const char *text, struct err *err)
{
    const char *colon = strrchr(text, ':');
    char host[UPSTREAM_HOST_MAX];
    bool in_brackets;
    uint64_t port;
    struct ip ip;
    size_t len;

    /* Not repeated: a password that was put here must not be seen in an answer or a log. */
    if (strchr(text, '@'))
        return err_set(err, ERR_INVALID, "a login does not belong into the address");
    if (!colon || colon == text)
        return no_address(err, text);
    in_brackets = text[0] == '[' && colon[-1] == ']' && colon - text > 2;
    text += in_brackets;
    len = (size_t) (colon - text) - in_brackets;
    if (len >= sizeof host || parse_u64(colon + 1, &port, err) < 0 || port < 1 || port > 65535)
        return no_address(err, text);
    memcpy(host, text, len);
    host[len] = '\0';
    if (ip_parse(host, &ip)) {
        if (strchr(host, ':') && !in_brackets)
            return no_address(err, text);
        ip_print(&ip, upstream->host);
    } else if (in_brackets || !name_normal(host, len, upstream->host)) {
        return no_address(err, text);
    }
    upstream->port = (uint16_t) port;
    return 0;
}

void upstream_address(const struct upstream *upstream, char out[UPSTREAM_ADDRESS_MAX])
{
    bool six = strchr(upstream->host, ':') != NULL;

    (void) snprintf(out, UPSTREAM_ADDRESS_MAX, "%s%s%s:%u", six ? "[" : "", upstream->host,
                    six ? "]" : "", upstream->port);
}

int upstream_parse(const char *text, struct upstream *ret, struct err *err)
{
    const char *rest = strstr(text, "://");
    struct upstream upstream = { .kind = UPSTREAM_NONE };
    char kind[16] = "";

    if (!rest || (size_t) (rest - text) >= sizeof kind)
        return err_set(err, ERR_INVALID, "neither http://host:port nor socks5://host:port");
    memcpy(kind, text, (size_t) (rest - text));
    if (upstream_kind_parse(kind, &upstream.kind, err) < 0)
        return -1;
    if (upstream_set_address(&upstream, rest + 3, err) < 0)
        return -1;
    *ret = upstream;
    return 0;
}

/* Line ends divide the two where they are kept. */
static bool login_ok(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            return false;
    return strlen(text) < UPSTREAM_LOGIN_MAX;
}

int upstream_set_login(struct upstream *upstream, const char *user, const char *password,
                       struct err *err)
{
    if (!user)
        user = "";
    if (!password)
        password = "";
    if (!login_ok(user) || !login_ok(password))
        return err_set(err, ERR_INVALID, "user and password: at most 255 bytes each, no controls");
    if (!user[0] && password[0])
        return err_set(err, ERR_INVALID, "a password without a user");
    if (upstream->kind == UPSTREAM_HTTP && strchr(user, ':'))
        return err_set(err, ERR_INVALID, "a user of an http proxy has no ':'");
    (void) strcpy(upstream->user, user);
    (void) strcpy(upstream->password, password);
    return 0;
}

void upstream_join_login(const struct upstream *upstream, char out[UPSTREAM_JOINED_MAX])
{
    out[0] = '\0';
    if (upstream->user[0])
        (void) snprintf(out, UPSTREAM_JOINED_MAX, "%s\n%s", upstream->user, upstream->password);
}

int upstream_split_login(struct upstream *upstream, char *text, struct err *err)
{
    char *password = strchr(text, '\n');

    if (!password)
        return 0;
    *password++ = '\0';
    return upstream_set_login(upstream, text, password, err);
}

bool upstream_same(const struct upstream *a, const struct upstream *b)
{
    return a->kind == b->kind && a->port == b->port && a->trusted == b->trusted &&
           strcmp(a->host, b->host) == 0 && strcmp(a->user, b->user) == 0 &&
           strcmp(a->password, b->password) == 0;
}
