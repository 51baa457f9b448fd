/* rewrite_fuzz.c - what the gateway puts into the head of a request.
 *
 * What comes out is a head that the strict parser takes, of the same length of body and for the same host; a value is in it
 * only where its host is meant, and no placeholder is left. */
#include "egress/rewrite.h"

#include <stdlib.h>
#include <string.h>

#define MARK  "cove-secret-0123456789abcdef0123456789abcdef"
#define VALUE "THE=VALUE:of;it"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static struct rewrite *rules(void)
{
    static char value[] = VALUE, mark[] = MARK;
    static struct host_rule host = { .tls = true, .name = "a.com" };
    static struct rewrite_secret secret = {
        .name = "S", .placeholder = MARK, .value = value, .host_count = 1
    };
    static struct rewrite_header header = { .name = "X-Set", .value = mark };
    static struct rewrite rewrite = {
        .secret_count = 1, .header_count = 1, .secrets = &secret, .headers = &header
    };

    secret.hosts[0] = header.host = host;
    return &rewrite;
}

static void try_to(const struct head *head, bool tls)
{
    static char out[REWRITE_OUT_MAX];
    struct rewrite_to to = { "a.com", 443, tls };
    static struct head again;
    struct err err;
    ssize_t n = rewrite_head(rules(), &to, head, out, &err);

    if (n < 0)
        return;
    must(!memmem(out, (size_t) n, MARK, strlen(MARK)));
    must(tls || !memmem(head->buf, head->len, MARK, strlen(MARK)));
    if (n > HEAD_MAX)
        return;
    head_init(&again);
    if (head_feed(&again, out, (size_t) n, &err) != 1)
        must(again.status == 431); /* a header more than there may be */
    else
        must(again.len == n && again.body == head->body &&
             again.content_length == head->content_length && again.minor == head->minor &&
             again.method == head->method && head_host(&again).len == head_host(head).len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head head;
    struct err err;

    head_init(&head);
    if (head_feed(&head, (const char *) data, size, &err) == 1) {
        try_to(&head, true);
        try_to(&head, false);
    }
    return 0;
}
