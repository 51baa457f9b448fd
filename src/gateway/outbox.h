/* outbox.h - what the gateway has to say to coved, on its way.
 *
 * The gateway's own thread must never wait for coved: it leaves messages here, and a thread of the outbox sends what has
 * gathered, many with one call. What waits is bounded: events that find no room are counted, and the count goes with the
 * sandbox's next event (egress_event.missed); questions that find none are not asked.
 *
 * Owns:    the messages, and the thread, from start to stop. The socket is borrowed.
 * Callers: serve.c. put functions from any thread, none of which waits. */
#ifndef COVE_GATEWAY_OUTBOX_H
#define COVE_GATEWAY_OUTBOX_H

#include "egress/message.h"

struct outbox;

int outbox_start(int fd, struct outbox **ret, struct err *err);
/* What is left is thrown away. Accepts NULL. The socket must have been shut down, or the thread may not end. */
void outbox_stop(struct outbox *outbox);

void outbox_event(struct outbox *outbox, const struct egress_event *event);
bool outbox_ask(struct outbox *outbox, const struct egress_ask *ask);
void outbox_dial(struct outbox *outbox, const struct egress_dial *dial);
void outbox_result(struct outbox *outbox, uint64_t serial, const struct message_result *result);

#endif
