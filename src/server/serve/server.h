/* server.h - listening, waiting, and handing connections to threads.
 *
 * One thread waits with epoll for connections that have nothing to do: they cost a descriptor and a small
 * struct. A readable one goes to a worker, which serves whole requests, blocking as it likes, and gives it
 * back. Workers are started as needed, up to config.threads; with all of them busy new work is refused
 * with 503, and what is under way continues. */
#ifndef COVE_SERVER_SERVE_SERVER_H
#define COVE_SERVER_SERVE_SERVER_H

#include "server/app/app.h"

/* Listens and serves until SIGTERM or SIGINT, then drains. */
int server_run(struct app *app, struct err *err);

#endif
