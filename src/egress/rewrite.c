#include "egress/rewrite.h"

#include "base/base64.h"
#include "base/own.h"
#include "http/chars.h"
#include "http/put.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Headers that say where a request ends, who it is for, or what a connection becomes. */
static const char *const fixed[] = {
    "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade",
    "TE",   "Trailer",        "Proxy-Connection",  "Expect",
};

static bool is_fixed(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (slice_is_nocase(name, fixed[i]))
            return true;
    return false;
}

/* ---- rules ---- */

struct rewrite *rewrite_new(size_t secrets, size_t headers)
{
    struct rewrite *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->secrets = calloc(secrets + 1, sizeof *r->secrets);
    r->headers = calloc(headers + 1, sizeof *r->headers);
    r->secret_count = r->secrets ? secrets : 0;
    r->header_count = r->headers ? headers : 0;
    if (r->secrets && r->headers)
        return r;
    rewrite_free(r);
    return NULL;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void rewrite_free(struct rewrite *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->secret_count; i++)
        wipe(r->secrets[i].value);
    for (size_t i = 0; i < r->header_count; i++)
        wipe(r->headers[i].value);
    free(r->secrets);
    free(r->headers);
    free(r);
}

bool rewrite_header_ok(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len >= REWRITE_HEADER_MAX || is_fixed(slice_of(name)))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!char_is(name[i], CHAR_TOKEN))
            return false;
    return true;
}

static bool host_is(const struct host_rule *host, const struct rewrite_to *to)
{
    return host_rule_fits(host, to->name, to->port, to->tls);
}

static bool is_bound(const struct rewrite_secret *secret, const struct rewrite_to *to)
{
    for (size_t i = 0; secret->value && i < secret->host_count; i++)
        if (host_is(&secret->hosts[i], to))
            return true;
    return false;
}

bool rewrite_concerns(const struct rewrite *r, const struct rewrite_to *to)
{
    for (size_t i = 0; i < r->secret_count; i++)
        if (is_bound(&r->secrets[i], to))
            return true;
    for (size_t i = 0; i < r->header_count; i++)
        if (host_is(&r->headers[i].host, to))
            return true;
    return false;
}

/* ---- one request ---- */

struct job {
    const struct rewrite *r;
    const struct rewrite_to *to;
    struct put put;
    bool changed; /* a value was put in */
    struct err *err;
};

/* The first placeholder in a text. Any case of letters: names of headers have none that counts. */
static const struct rewrite_secret *find(const struct rewrite *r, struct slice text, size_t *ret_at)
{
    const struct rewrite_secret *found = NULL;

    for (size_t i = 0; i < r->secret_count; i++) {
        const char *mark = r->secrets[i].placeholder;
        size_t len = strlen(mark);

        for (size_t at = 0; len > 0 && at + len <= text.len && (!found || at < *ret_at); at++)
            if (strncasecmp(text.at + at, mark, len) == 0) {
                found = &r->secrets[i];
                *ret_at = at;
            }
    }
    return found;
}

static int misplaced(struct job *j, const struct rewrite_secret *secret, const char *where)
{
    return err_set(j->err, ERR_DENIED, "the secret %s may not be %s", secret->name, where);
}

/* Text of which every placeholder becomes its value. */
static int put_replaced(struct job *j, struct put *to, struct slice text)
{
    const struct rewrite_secret *secret;
    size_t at = 0;

    while ((secret = find(j->r, text, &at))) {
        if (!is_bound(secret, j->to))
            return misplaced(j, secret,
                             j->to->tls ? "sent to this host" : "sent to this host in the clear");
        put_bytes(to, text.at, at);
        put_text(to, secret->value);
        at += strlen(secret->placeholder);
        text = (struct slice){ text.at + at, text.len - at };
        j->changed = true;
    }
    put_bytes(to, text.at, text.len);
    return 0;
}

/* "Basic dXNlcjpwYXNz": a placeholder may be in what is encoded. 1: it was, and is written. */
static int put_basic(struct job *j, struct slice value)
{
    static const char scheme[] = "basic ";
    char plain[HEAD_MAX], full[REWRITE_OUT_MAX / 2], coded[BASE64_SIZE(sizeof full)];
    struct put in = put_into(full, sizeof full);
    ssize_t len;
    size_t at;

    if (value.len <= strlen(scheme) || strncasecmp(value.at, scheme, strlen(scheme)) != 0)
        return 0;
    value = (struct slice){ value.at + strlen(scheme), value.len - strlen(scheme) };
    while (value.len > 0 && *value.at == ' ')
        value.at++, value.len--;
    len = base64_get(value.at, value.len, (uint8_t *) plain);
    if (len < 0 || !find(j->r, (struct slice){ plain, (size_t) len }, &at))
        return 0;
    if (put_replaced(j, &in, (struct slice){ plain, (size_t) len }) < 0)
        return -1;
    if (!put_fits(&in))
        return err_set(j->err, ERR_TOO_BIG, "the credentials are too long");
    base64_put(coded, (const uint8_t *) full, in.len);
    put_text(&j->put, "Basic ");
    put_text(&j->put, coded);
    explicit_bzero(full, sizeof full);
    explicit_bzero(coded, sizeof coded);
    return 1;
}

static int put_value(struct job *j, struct slice name, struct slice value)
{
    const struct rewrite_secret *secret;
    size_t at;
    int r = 0;

    if (is_fixed(name)) {
        secret = find(j->r, value, &at);
        if (secret)
            return misplaced(j, secret, "in a header that frames the request");
    }
    if (slice_is_nocase(name, "Authorization"))
        r = put_basic(j, value);
    return r != 0 ? (r < 0 ? -1 : 0) : put_replaced(j, &j->put, value);
}

static bool is_set(const struct job *j, struct slice name)
{
    for (size_t i = 0; i < j->r->header_count; i++)
        if (slice_is_nocase(name, j->r->headers[i].name) && host_is(&j->r->headers[i].host, j->to))
            return true;
    return false;
}

static int put_field(struct job *j, struct slice name, struct slice value)
{
    put_bytes(&j->put, name.at, name.len);
    put_text(&j->put, ": ");
    if (put_value(j, name, value) < 0)
        return -1;
    put_text(&j->put, "\r\n");
    return 0;
}

static int put_line(struct job *j, const struct head *head)
{
    struct slice method = head_method(head), path = head_path(head), query = head_query(head);
    const struct rewrite_secret *secret;
    size_t at;

    if ((secret = find(j->r, path, &at)) || (query.at && (secret = find(j->r, query, &at))) ||
        (secret = find(j->r, method, &at)))
        return misplaced(j, secret, "in a request line");
    put_bytes(&j->put, method.at, method.len);
    put_text(&j->put, " ");
    put_bytes(&j->put, path.at, path.len);
    if (query.at) {
        put_text(&j->put, "?");
        put_bytes(&j->put, query.at, query.len);
    }
    put_text(&j->put, head->minor == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    return 0;
}

static int put_fields(struct job *j, const struct head *head)
{
    for (size_t i = 0; i < head->field_count; i++) {
        struct slice name = head_field_name(head, i);
        const struct rewrite_secret *secret;
        size_t at;

        if ((secret = find(j->r, name, &at)))
            return misplaced(j, secret, "in the name of a header");
        if (!is_set(j, name) && put_field(j, name, head_field_value(head, i)) < 0)
            return -1;
    }
    for (size_t i = 0; i < j->r->header_count; i++) {
        const struct rewrite_header *set = &j->r->headers[i];

        if (host_is(&set->host, j->to) &&
            put_field(j, slice_of(set->name), slice_of(set->value)) < 0)
            return -1;
    }
    return 0;
}

ssize_t rewrite_head(const struct rewrite *rewrite, const struct rewrite_to *to,
                     const struct head *head, char out[REWRITE_OUT_MAX], struct err *err)
{
    struct job j = { .r = rewrite, .to = to, .put = put_into(out, REWRITE_OUT_MAX), .err = err };
    char target = head->buf[head->method_text.at + head->method_text.len + 1];

    if (target != '/' && target != '*')
        return err_set(err, ERR_INVALID, "a request with a whole address in it is for a proxy");
    if (put_line(&j, head) < 0 || put_fields(&j, head) < 0)
        return -1;
    put_text(&j.put, "\r\n");
    if (j.changed && head->method == METHOD_TRACE)
        return err_set(err, ERR_DENIED, "a server would send a secret back to who asks with TRACE");
    if (!put_fits(&j.put))
        return err_set(err, ERR_TOO_BIG, "the head is too long with what is put into it");
    return (ssize_t) j.put.len;
}
