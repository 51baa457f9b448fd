#include "wire/runsc.h"

#include "base/base64.h"
#include "wire/loopback.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DATE_LEN   8
#define DATE_FIRST 20000101u

uint32_t runsc_parse_version(const char *text)
{
    while (*text) {
        size_t len = strspn(text, "0123456789");
        uint32_t date = 0;

        for (size_t i = 0; len == DATE_LEN && i < len; i++)
            date = date * 10 + (uint32_t) (text[i] - '0');
        if (date >= DATE_FIRST)
            return date;
        text += len > 0 ? len : 1;
    }
    return 0;
}

bool runsc_take(struct runsc_answer *a, char c)
{
    if (a->len < sizeof a->text - 1)
        a->text[a->len++] = c;
    if (a->escaped) {
        a->escaped = false;
    } else if (a->quoted) {
        a->escaped = c == '\\';
        a->quoted = c != '"';
    } else if (c == '"') {
        a->quoted = true;
    } else if (c == '{') {
        a->depth += a->depth < UINT32_MAX;
    } else if (c == '}') {
        a->depth -= a->depth > 0;
        return a->depth == 0;
    }
    return false;
}

/* Up to the end of a text's first line; of escaped signs, those that stand for themselves. */
static void copy_line(const char *from, char *to, size_t size)
{
    size_t len = 0;

    for (; *from && *from != '"' && len + 1 < size; from++) {
        char c = *from;

        if (c == '\\') {
            c = *++from;
            if (c != '"' && c != '\\' && c != '/')
                break;
        }
        to[len++] = c >= ' ' && c <= '~' ? c : '?';
    }
    to[len] = '\0';
}

/* The one thing that is usual enough to be told in other words than a stack of calls. */
#define DELETED "deleted and invalidated dentries can't be restored"

bool runsc_read_answer(const struct runsc_answer *a, char *why, size_t size)
{
    static const char yes[] = "{\"success\":true", err[] = "\"err\":\"";
    const char *at;

    if (strncmp(a->text, yes, sizeof yes - 1) == 0)
        return true;
    at = strstr(a->text, err);
    copy_line(at ? at + sizeof err - 1 : "", why, size);
    if (strstr(a->text, DELETED)) /* behind a path, which may be longer than a reason */
        (void) snprintf(why, size, "a file that was deleted is still open");
    if (!why[0])
        (void) snprintf(why, size, "no reason is told");
    return false;
}

/* ---- the loopback ---- */

struct text {
    char *at;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(t->at + t->len, RUNSC_LINKS_MAX - t->len, fmt, args);
    va_end(args);
    assert(n >= 0 && t->len + (size_t) n < RUNSC_LINKS_MAX);
    t->len += (size_t) n;
}

/* The network that the address is of; gVisor has masks in base64. */
static void put_route(struct text *t, const struct loopback_address *a)
{
    int family = a->v6 ? AF_INET6 : AF_INET;
    size_t len = a->v6 ? 16 : 4;
    uint8_t bytes[16], mask[16] = { 0 };
    char text[INET6_ADDRSTRLEN], mask_text[25];

    if (inet_pton(family, a->text, bytes) != 1)
        return;
    for (unsigned i = 0; i < a->prefix; i++)
        mask[i / 8] |= (uint8_t) (0x80u >> i % 8);
    for (size_t i = 0; i < len; i++)
        bytes[i] &= mask[i];
    base64_put(mask_text, mask, len);
    (void) inet_ntop(family, bytes, text, sizeof text);
    put(t, "{\"Destination\":{\"IP\":\"%s\",\"Mask\":\"%s\"}}", text, mask_text);
}

void runsc_put_links(char out[RUNSC_LINKS_MAX])
{
    static const struct loopback_address own[] = { { "127.0.0.1", 8, false },
                                                   { "::1", 128, true } };
    const size_t count = sizeof own / sizeof own[0] + LOOPBACK_ADDRESSES;
    const struct loopback_address *all[sizeof own / sizeof own[0] + LOOPBACK_ADDRESSES];
    struct text t = { .at = out };

    for (size_t i = 0; i < count; i++)
        all[i] = i < count - LOOPBACK_ADDRESSES
                     ? &own[i]
                     : &loopback_addresses[i - (count - LOOPBACK_ADDRESSES)];
    put(&t, "{\"method\":\"Network.CreateLinksAndRoutes\",\"arg\":{\"LoopbackLinks\":[{\"Name\":"
            "\"lo\",\"Addresses\":[");
    for (size_t i = 0; i < count; i++)
        put(&t, "%s{\"Address\":\"%s\",\"PrefixLen\":%u}", i ? "," : "", all[i]->text,
            all[i]->prefix);
    put(&t, "],\"Routes\":[");
    for (size_t i = 0; i < count; i++) {
        put(&t, "%s", i ? "," : "");
        put_route(&t, all[i]);
    }
    put(&t, "]}]}}");
}
