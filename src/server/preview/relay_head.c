/* Heads are written from what was parsed: no byte of a line that was not understood is passed on. */
#include "server/preview/relay_own.h"

#include "base/own.h"
#include "http/date.h"
#include "http/response.h"
#include "http/strip.h"
#include "server/guard/keys.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

/* Of one connection, or of the framing, which is ours (RFC 9110, section 7.6.1). Proxy-* besides. */
static const char *const hops[] = {
    "Connection", "Keep-Alive",     "TE",   "Trailer", "Transfer-Encoding",
    "Upgrade",    "HTTP2-Settings", "Host", "Expect",  "Content-Length",
};

/* What a proxy says about its client. Believed of a proxy on this machine; of others it is dropped. */
static const char *const forwarded[] = {
    "Forwarded",        "X-Forwarded-For",  "X-Forwarded-Proto",
    "X-Forwarded-Host", "X-Forwarded-Port", "X-Real-IP",
};

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is_nocase(name, names[i]))
            return true;
    return false;
}

static bool is_hop(struct slice name)
{
    return is_one_of(name, hops, ARRAY_LEN(hops)) ||
           (name.len > 6 && strncasecmp(name.at, "Proxy-", 6) == 0);
}

static bool connection_names(const struct head *head, struct slice name)
{
    struct head_list list = head_list(head, "Connection");
    struct slice item;

    while (head_list_next(&list, &item))
        if (slice_same_nocase(item, name))
            return true;
    return false;
}

/* A key of this server, as X-API-Key or as Bearer. One that an application inside invented passes. */
static bool is_key(struct slice name, struct slice value)
{
    char text[STORE_KEY_TEXT_MAX];

    if (slice_is_nocase(name, "Authorization")) {
        if (value.len < 7 || strncasecmp(value.at, "Bearer ", 7) != 0)
            return false;
        value = slice_trim((struct slice){ value.at + 7, value.len - 7 });
    } else if (!slice_is_nocase(name, "X-API-Key")) {
        return false;
    }
    return slice_copy(value, text, sizeof text) && key_shaped(text);
}

static bool goes_in(const struct relay *r, struct slice name, struct slice value)
{
    const struct exchange *x = r->x;

    if (is_hop(name) || connection_names(&x->head, name) || is_key(name, value) ||
        is_one_of(name, r->ask->drop, r->ask->drop_count))
        return false;
    if (slice_is_nocase(name, "X-Forwarded-For")) /* ours has it in it */
        return false;
    if (r->ask->drop_query && slice_is_nocase(name, "Referer") &&
        memmem(value.at, value.len, r->ask->drop_query, strlen(r->ask->drop_query)))
        return false;
    return x->conn->loopback || !is_one_of(name, forwarded, ARRAY_LEN(forwarded));
}

static void put_field(struct put *put, struct slice name, struct slice value)
{
    put_bytes(put, name.at, name.len);
    put_text(put, ": ");
    put_bytes(put, value.at, value.len);
    put_text(put, "\r\n");
}

static void put_line(struct put *put, const char *name, const char *value)
{
    put_field(put, slice_of(name), slice_of(value));
}

static void put_count(struct put *put, const char *name, uint64_t value)
{
    put_text(put, name);
    put_text(put, ": ");
    put_number(put, value);
    put_text(put, "\r\n");
}

static void put_forwarded(struct put *put, const struct exchange *x)
{
    const struct head *head = &x->head;
    struct slice before = head_get(head, "X-Forwarded-For"), host = head_get(head, "Host");

    put_text(put, "X-Forwarded-For: ");
    if (before.len > 0 && x->conn->loopback) {
        put_bytes(put, before.at, before.len);
        put_text(put, ", ");
    }
    put_text(put, x->conn->peer);
    put_text(put, "\r\n");
    if (!x->conn->loopback || !head_get(head, "X-Forwarded-Proto").at)
        put_line(put, "X-Forwarded-Proto", x->conn->tls ? "https" : "http");
    if (host.at && (!x->conn->loopback || !head_get(head, "X-Forwarded-Host").at))
        put_field(put, slice_of("X-Forwarded-Host"), host);
}

/* One connection for each request: there is nothing to lose on a pipe inside one machine, and no answer can be taken
 * for that of another request. */
static void put_connection(struct put *put, const struct exchange *x)
{
    struct slice upgrade = head_get(&x->head, "Upgrade");

    if (x->head.upgrade && upgrade.len > 0 && x->head.body == HEAD_NO_BODY) {
        put_line(put, "Connection", "Upgrade");
        put_field(put, slice_of("Upgrade"), upgrade);
        return;
    }
    put_line(put, "Connection", "close");
}

static void put_target(struct put *put, const struct relay *r)
{
    struct slice method = head_method(&r->x->head), query = head_query(&r->x->head);

    put_bytes(put, method.at, method.len);
    put_char(put, ' ');
    put_bytes(put, r->ask->path.at, r->ask->path.len);
    if (query.at && r->ask->drop_query) {
        strip_query(put, query, r->ask->drop_query);
    } else if (query.at) {
        put_char(put, '?');
        put_bytes(put, query.at, query.len);
    }
    put_text(put, " HTTP/1.1\r\n");
}

static void put_header(struct put *put, const struct relay *r, struct slice name,
                       struct slice value)
{
    size_t before = put->len;

    if (r->ask->drop_cookie_count == 0 || !slice_is_nocase(name, "Cookie")) {
        put_field(put, name, value);
        return;
    }
    put_text(put, "Cookie: ");
    if (strip_cookies(put, value, r->ask->drop_cookies, r->ask->drop_cookie_count))
        put_text(put, "\r\n");
    else
        put->len = before;
}

int relay_request_head(struct relay *r, struct err *err)
{
    const struct head *head = &r->x->head;
    struct slice host = head_get(head, "Host");
    struct put put = put_into(r->up, sizeof r->up);
    char local[32];

    put_target(&put, r);
    (void) snprintf(local, sizeof local, "localhost:%u", r->ask->port);
    put_field(&put, slice_of("Host"),
              r->ask->host   ? slice_of(r->ask->host)
              : host.len > 0 ? host
                             : slice_of(local));
    for (size_t i = 0; i < head->field_count; i++)
        if (goes_in(r, head_field_name(head, i), head_field_value(head, i)))
            put_header(&put, r, head_field_name(head, i), head_field_value(head, i));
    put_forwarded(&put, r->x);
    if (head->body == HEAD_LENGTH)
        put_count(&put, "Content-Length", head->content_length);
    else if (head->body == HEAD_CHUNKED)
        put_line(&put, "Transfer-Encoding", "chunked");
    if (head->expect_continue)
        put_line(&put, "Expect", "100-continue");
    put_connection(&put, r->x);
    put_text(&put, "\r\n");
    if (!put_fits(&put))
        return err_set(err, ERR_TOO_BIG, "the request's head does not fit");
    r->up_at = 0;
    r->up_len = put.len;
    return 0;
}

/* ---- answers ---- */

static void put_status(struct put *put, unsigned status)
{
    put_text(put, "HTTP/1.1 ");
    put_number(put, status);
    put_char(put, ' ');
    put_text(put, status_reason(status));
    put_text(put, "\r\n");
}

static void put_fields(struct put *put, const struct reply *reply)
{
    for (size_t i = 0; i < reply->field_count; i++) {
        struct slice name = reply_field_name(reply, i);

        if (!is_hop(name) && !reply_has(reply, "Connection", name))
            put_field(put, name, reply_field_value(reply, i));
    }
}

static int finish(struct relay *r, struct put *put, struct err *err)
{
    put_text(put, "\r\n");
    if (!put_fits(put))
        return err_set(err, ERR_PROTOCOL, "the answer's head does not fit");
    r->head_at = 0;
    r->head_len = put->len;
    return 0;
}

/* Whether there is a body at all depends on the request, too: what answers HEAD describes one. */
static void put_framing(struct relay *r, struct put *put)
{
    struct exchange *x = r->x;
    const struct reply *reply = &r->reply;
    bool head_only = x->head.method == METHOD_HEAD;

    if (reply->has_length && (reply->body == REPLY_LENGTH || reply->status == 304))
        put_count(put, "Content-Length", reply->content_length);
    if (reply->body != REPLY_CHUNKED && reply->body != REPLY_TO_END)
        return;
    if (x->head.minor == 0) {
        x->close = x->close || !head_only;
        return;
    }
    x->chunked = !head_only;
    if (!head_only || reply->body == REPLY_CHUNKED)
        put_line(put, "Transfer-Encoding", "chunked");
}

int relay_answer_head(struct relay *r, struct err *err)
{
    struct exchange *x = r->x;
    struct put put = put_into(r->head, sizeof r->head);
    char date[DATE_SIZE];

    put_status(&put, r->reply.status);
    put_fields(&put, &r->reply);
    if (!reply_get(&r->reply, "Date").at) {
        date_put(date, (int64_t) time(NULL));
        put_line(&put, "Date", date);
    }
    put_bytes(&put, x->extra, x->extra_len);
    put_framing(r, &put);
    if (x->close)
        put_line(&put, "Connection", "close");
    else if (x->head.minor == 0)
        put_line(&put, "Connection", "keep-alive");
    return finish(r, &put, err);
}

int relay_interim_head(struct relay *r, struct err *err)
{
    struct put put = put_into(r->head, sizeof r->head);

    put_status(&put, r->reply.status);
    if (r->reply.status != 100)
        put_fields(&put, &r->reply);
    if (r->reply.status == 101) {
        put_bytes(&put, r->x->extra, r->x->extra_len);
        put_line(&put, "Connection", "Upgrade");
        put_field(&put, slice_of("Upgrade"), reply_get(&r->reply, "Upgrade"));
    }
    return finish(r, &put, err);
}
