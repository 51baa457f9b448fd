/* http_watch.h - whether all requests of a plain HTTP connection are for the host that it was let out for.
 *
 * Bytes pass only up to the end of what was understood: a second request for another host, or one whose end two
 * parsers would see in two places, never leaves. After a first request for a WebSocket nothing goes until the server has
 * answered: if it agreed, the rest is not HTTP and passes; if not, requests are read on. Other upgrades (HTTP/2) are none:
 * hosts would be named in what is not read here.
 *
 * Pure. */
#ifndef COVE_EGRESS_HTTP_WATCH_H
#define COVE_EGRESS_HTTP_WATCH_H

#include "egress/reach.h"
#include "http/chunk.h"
#include "http/head.h"

#define HTTP_WATCH_STATUS 12 /* "HTTP/1.1 101" */

struct http_watch {
    char name[REACH_NAME_MAX]; /* normal; "" is an address in Host, or none */
    bool upgraded, in_chunks, begun;
    bool waiting; /* for the server's word on a WebSocket */
    char status[HTTP_WATCH_STATUS];
    size_t status_len;
    uint64_t body_left;
    struct chunk chunk;
    struct head head;
};

void http_watch_init(struct http_watch *watch, const char *name);
/* How many of the bytes may go, from the first on; the rest is shown again, with more behind. -1: the connection is to
 * be cut. */
ssize_t http_watch_feed(struct http_watch *watch, const uint8_t *data, size_t len, struct err *err);
/* The same, one piece at a time: a whole head (which is then in watch->head, until the next call), or some of a body. */
ssize_t http_watch_step(struct http_watch *watch, const uint8_t *data, size_t len, bool *ret_head,
                        struct err *err);
/* What the server says. True: it was waited for, and what was kept back can be shown again. */
bool http_watch_answer(struct http_watch *watch, const uint8_t *data, size_t len);

#endif
