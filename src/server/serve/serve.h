/* serve.h - from a readable connection to answered requests; runs in a worker thread. */
#ifndef COVE_SERVER_SERVE_SERVE_H
#define COVE_SERVER_SERVE_SERVE_H

#include "server/app/app.h"
#include "server/serve/conn.h"

/* Reads what is there and serves whatever requests are whole. true: the connection stays, idle or with a
 * part of a head; false: it is to be closed. */
bool serve_connection(struct app *app, struct conn *conn);

/* A short answer without a request: 408, 503. What cannot be sent within stall_ms is not. */
void serve_refusal(struct conn *conn, uint64_t stall_ms, int status, const char *code,
                   const char *sentence);

#endif
