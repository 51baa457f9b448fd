/* attach.h - a connection that follows a process: its output as frames, its end as EXIT; stdin,
 * resizes and signals the other way.
 *
 * Output goes from the ring to the socket without a copy of ours. The place of a reader in the ring
 * keeps the bytes behind it from being overwritten, which is what makes a reader that does not read
 * stop its process.
 *
 * Owns:    struct reader, from attach_new to the conn's end. Callers: ops.c; proc.c tells about
 * news. */
#ifndef COVE_AGENT_PROC_ATTACH_H
#define COVE_AGENT_PROC_ATTACH_H

#include "agent/core/conn.h"
#include "agent/proc/proc.h"

struct reader {
    struct reader *next; /* of the same process */
    struct conn *conn;   /* borrowed: they end together */
    struct proc *proc;
    uint64_t at[PROC_STREAMS]; /* next byte to send */
    uint32_t body;             /* bytes of the frame in hand that are still to go */
    uint8_t stream;            /* whose */
    bool output;               /* false: only EXIT */
    bool kill_on_close, detach, exited;
};

/* Turns the conn into a reader. For EXEC the process comes later, by attach_to. */
struct reader *attach_new(struct conn *conn, const struct agent_request *request);
void attach_to(struct reader *reader, struct proc *proc);
/* ATTACH: from where. */
int attach_from(struct reader *reader, const struct agent_request *request, struct err *err);

/* News of the process. */
void attach_started(struct reader *reader);
void attach_failed(struct reader *reader, const struct err *err);
void attach_pump(struct reader *reader);

/* Closing this connection will not kill its process, if it is a reader at all. */
void attach_spare(struct conn *conn);

/* The first byte that this reader still needs; RING_NO_PIN: none. */
uint64_t attach_pin(const struct reader *reader, int stream);

#endif
