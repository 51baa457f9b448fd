/* api.h - the server beside what it stands on (the keeper, the agent) and beside nginx.
 *
 * Every comparison is made in one run and interleaved. Nothing is measured through a proxy or over a real network. */
#ifndef COVE_BENCH_API_H
#define COVE_BENCH_API_H

#include "caller.h"
#include "rig.h"
#include "series.h"
#include "server.h"

#include <stdbool.h>

#define API_CLIENTS 32

/* What short requests cost one server. */
struct api_load {
    size_t answered, failures;
    uint64_t cpu_us, wall_us;
};

/* A large file into a server and out of it, by curl: the fastest of some. */
struct api_transfer {
    uint64_t up_us, down_us; /* 0: none worked */
    uint64_t peak_kib;       /* what the server's memory grew by, at most */
};

struct api {
    struct rig *rig; /* borrowed */
    struct lane lane;
    struct caller caller;
    struct server coved, nginx;
    char without_nginx[200]; /* why there is none; "": there is */
    char root[140];          /* what nginx serves */
    char living[KEEPER_NAME_MAX];
    unsigned failures;
    struct err why; /* of the last failure */

    struct series create, create_keeper, exec, exec_agent, exec_kept, exec_mcp;

    size_t crowd_count, crowd_created, crowd_failures;
    uint64_t crowd_us;

    size_t short_len;                 /* bytes of the short answers' bodies */
    struct api_load load, load_nginx; /* what the server answers alone, and a file of that size */
    struct api_load load_sandbox;     /* what it asks store and keeper for */

    size_t idle_count;
    uint64_t idle_kib; /* what the server's memory grew by */

    uint64_t transfer_bytes;
    struct api_transfer transfer, transfer_nginx;
    struct api_transfer
        transfer_narrow; /* a sandbox whose memory is smaller than the file's page cache */
};

/* peers: also start nginx. */
int api_init(struct api *api, struct rig *rig, bool peers, struct err *err);
void api_done(struct api *api);

/* One create and one command in each way. */
void api_round(struct api *api, unsigned round);

/* `count` sandboxes made, and removed, by `clients` connections. */
void api_crowd(struct api *api, size_t count, unsigned clients);

/* `count` short requests of each kind over 16 connections. */
void api_requests(struct api *api, size_t count);

/* `count` connections that have asked once and stay open. */
void api_idle(struct api *api, size_t count);

/* A file of so many bytes into a sandbox and out of it, and the same with nginx, so many times. */
void api_transfer(struct api *api, uint64_t bytes, unsigned turns);

/* A sandbox with memory for the page cache of a file of so many bytes, as nginx has it. */
int api_sandbox(struct api *api, uint64_t bytes, char id[KEEPER_NAME_MAX], struct err *err);
void api_sandbox_done(struct api *api, const char *id);

void api_report(struct api *api);

#endif
