/* server.h - servers to measure: a coved on the rig's state, and nginx beside it.
 *
 * Owns: the server's process (its own, never the system's service) and its scratch files in the rig's directory. */
#ifndef COVE_BENCH_SERVER_H
#define COVE_BENCH_SERVER_H

#include "rig.h"

struct server {
    pid_t pid;  /* our child */
    pid_t work; /* the process that serves: nginx's worker, else `pid` */
    uint16_t port;
    int log;
};

#define SERVER_NONE ((struct server){ .pid = -1, .work = -1, .log = -1 })

/* A coved with this setting of `pool`, and with quotas that no measurement reaches. */
int server_coved(struct server *server, const struct rig *rig, const char *pool, struct err *err);

/* nginx with one worker, serving `root` (reads, and writes by PUT). -1 also when there is no nginx. */
int server_nginx(struct server *server, const struct rig *rig, const char *root, struct err *err);

void server_stop(struct server *server);

/* A new file for a server to read. */
int server_file(const char *path, const char *text, struct err *err);

/* Microseconds of processor that the server has used, system time included. */
uint64_t server_cpu_us(const struct server *server);

/* Peak of its resident memory since the last server_peak_reset, in KiB. */
uint64_t server_peak_kib(const struct server *server);
void server_peak_reset(const struct server *server);

#endif
