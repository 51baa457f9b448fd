/* answer.h - what a worker says to its caller, and what it hears.
 *
 * Blocking frames on the worker's socket. A caller that has gone shows as -1 with ERR_UNAVAILABLE:
 * an operation passes that on like every other failure and so ends.
 *
 * Callers: the operations of the worker. */
#ifndef COVE_AGENT_WORKER_ANSWER_H
#define COVE_AGENT_WORKER_ANSWER_H

#include "agent/worker/worker.h"
#include "wire/frame.h"

#include <stdbool.h>

/* One record as a frame of that type: REPLY, ITEM or END. */
int answer_record(struct worker *w, enum frame_type type, const struct agent_reply *reply,
                  struct err *err);

/* The last frame of an operation that failed. */
void answer_error(struct worker *w, const struct err *why);

/* A DATA frame is sent from where it was read to, without a copy: fill at most FRAME_DATA_MAX bytes
 * at answer_data_room and say how many there are. */
uint8_t *answer_data_room(void);
int answer_data(struct worker *w, size_t len, struct err *err);
int answer_data_end(struct worker *w, struct err *err);
/* A DATA frame of the next `len` bytes of a file, at most FRAME_DATA_MAX, from the page cache past our memory. A file that has fewer by
 * then fills up the frame with zeros, and is an error. */
int answer_data_from(struct worker *w, int fd, size_t len, struct err *err);

/* Raw bytes of the caller: those that came with the request first. 0 at the end, -1 with errno. */
ssize_t answer_read(struct worker *w, void *data, size_t size);

/* -1: the caller has gone, as errno says. */
int answer_gone(struct err *err);

/* The head of the caller's next frame, of at most FRAME_DATA_MAX bytes, and then its bytes. */
int answer_head(struct worker *w, struct frame_head *ret, struct err *err);
int answer_data_take(struct worker *w, uint8_t *data, size_t len, struct err *err);
/* Both at once; `data` has room for FRAME_DATA_MAX bytes. */
int answer_receive(struct worker *w, struct frame_head *ret, uint8_t *data, struct err *err);

/* For long work that sends nothing: -1 when the caller has closed its connection. Looks only at every
 * so many steps; `w` may be NULL. */
int answer_wanted(struct worker *w, uint64_t steps, struct err *err);

/* Reads and drops what the caller still sends, for a while: so that it can finish its sending and
 * then finds the error, instead of a broken connection. */
void answer_drain(struct worker *w);

#endif
