#include "egress/http_watch.h"

#include <string.h>

void http_watch_init(struct http_watch *watch, const char *name)
{
    *watch = (struct http_watch){ .upgraded = false };
    (void) strcpy(watch->name, name);
}

/* A whole head at `data`: its length, 0 when there is more to come, -1. */
static ssize_t pass_head(struct http_watch *w, const uint8_t *data, size_t len, struct err *err)
{
    char name[REACH_NAME_MAX] = "";
    struct slice host;
    int rc;

    head_init(&w->head);
    rc = head_feed(&w->head, (const char *) data, len, err);
    if (rc <= 0)
        return rc;
    host = head_host(&w->head);
    if (host.at && !name_normal(host.at, host.len, name)) {
        name[0] = '\0';
        if (host.len > 0 && !memchr(host.at, ':', host.len)) /* not even an address */
            return err_set(err, ERR_DENIED, "a request on this connection is for no host");
    }
    if (strcmp(name, w->name) != 0)
        return err_set(err, ERR_DENIED, "a request on this connection is for another host");
    /* Only the first: behind others, an answer to them could be taken for the one to this. */
    w->waiting = !w->begun && w->head.upgrade && w->head.method == METHOD_GET &&
                 head_has(&w->head, "Upgrade", "websocket");
    w->begun = true;
    w->body_left = w->head.body == HEAD_LENGTH ? w->head.content_length : 0;
    w->in_chunks = w->head.body == HEAD_CHUNKED;
    if (w->in_chunks)
        w->chunk = (struct chunk){ .left = 0 };
    return w->head.len;
}

/* Of a body in chunks: what of it is here. */
static ssize_t pass_chunks(struct http_watch *w, const uint8_t *data, size_t len, struct err *err)
{
    size_t passed = 0;

    while (passed < len && !chunk_done(&w->chunk)) {
        struct slice ignored;
        size_t used = 0;

        if (chunk_read(&w->chunk, (const char *) data + passed, len - passed, &used, &ignored,
                       err) < 0)
            return -1;
        if (used == 0)
            break;
        passed += used;
    }
    w->in_chunks = !chunk_done(&w->chunk);
    return (ssize_t) passed;
}

ssize_t http_watch_step(struct http_watch *w, const uint8_t *data, size_t len, bool *ret_head,
                        struct err *err)
{
    size_t n = len;

    *ret_head = false;
    if (w->upgraded || len == 0)
        return (ssize_t) len;
    if (w->body_left > 0) {
        n = len < w->body_left ? len : (size_t) w->body_left;
        w->body_left -= n;
        return (ssize_t) n;
    }
    if (w->in_chunks)
        return pass_chunks(w, data, len, err);
    if (w->waiting)
        return 0;
    *ret_head = true;
    return pass_head(w, data, len, err);
}

ssize_t http_watch_feed(struct http_watch *w, const uint8_t *data, size_t len, struct err *err)
{
    size_t passed = 0;

    while (passed < len) {
        bool head;
        ssize_t n = http_watch_step(w, data + passed, len - passed, &head, err);

        if (n < 0)
            return -1;
        if (n == 0)
            break;
        passed += (size_t) n;
    }
    return (ssize_t) passed;
}

bool http_watch_answer(struct http_watch *w, const uint8_t *data, size_t len)
{
    size_t room = sizeof w->status - w->status_len;

    if (!w->waiting)
        return false;
    if (len > room)
        len = room;
    memcpy(w->status + w->status_len, data, len);
    w->status_len += len;
    if (len < room)
        return false;
    w->waiting = false;
    w->upgraded = memcmp(w->status, "HTTP/1.1 101", sizeof w->status) == 0;
    return true;
}
