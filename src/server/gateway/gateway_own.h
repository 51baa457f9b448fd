/* gateway_own.h - what the files of gateway.h share. */
#ifndef COVE_SERVER_GATEWAY_GATEWAY_OWN_H
#define COVE_SERVER_GATEWAY_GATEWAY_OWN_H

#include "server/gateway/gateway.h"
#include "server/gateway/gateway_known.h"

#include <limits.h>
#include <pthread.h>

#define GATEWAY_READ_SIZE 65536

struct call {
    uint64_t serial;
    enum message_kind kind;
    char sandbox[EGRESS_ID_MAX]; /* of SET and DROP */
    bool with_sockets, done, lost;
    struct message_result result;
    struct call *next;
};

struct gateway {
    struct gateway_config config;
    char directory[PATH_MAX];
    pthread_mutex_t send_lock, lock;
    pthread_cond_t changed; /* an answer, up, or down */
    int fd;                 /* -1: none */
    bool up;
    uint64_t session, serial, down_ms;
    struct call *calls;
    struct known *known;
    struct gateway_state state;
    bool ranges_due, ranges_told; /* other ranges are to be sent; a thread sends them */
    /* the reader's own */
    uint64_t event_second, event_count;
    size_t len;
    uint8_t buffer[GATEWAY_READ_SIZE];
};

struct call call_for(enum message_kind kind, const char *sandbox);
/* One message, whose serial is put in here, and its answer. `patient`: waits a little for a gateway that has just ended. */
int call_gateway(struct gateway *gateway, struct call *call, struct message_out *out,
                 const int *fds, size_t count, bool patient, struct err *err);
/* A message that waits for no answer, to the gateway if there is one. `out` is freed. */
void tell_gateway(struct gateway *gateway, struct message_out *out, const int *fds, size_t count);

#endif
