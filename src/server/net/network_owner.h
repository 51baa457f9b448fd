/* network_owner.h - whose connection or question for a name the gateway refused: asked of the sandbox's agent, by threads of their own.
 *
 * The gateway never waits for a sandbox: it leaves its question here and continues. What an agent answers is the word of
 * something hostile: cut, and made harmless to show. A sandbox that does not answer costs ANSWER_MS of one thread, and the
 * gateway then does not ask of it for a while.
 *
 * Owns:    the questions that wait, and THREADS threads.
 * Callers: network.c. */
#ifndef COVE_SERVER_NET_NETWORK_OWNER_H
#define COVE_SERVER_NET_NETWORK_OWNER_H

#include "egress/egress.h"
#include "server/app/app.h"

struct owners;

/* `answer` is called by its threads, once for each question that was taken; process NULL: not known. */
typedef void owners_answer_fn(struct app *app, uint64_t ticket,
                              const struct egress_process *process);
int owners_start(struct app *app, owners_answer_fn *answer, struct owners **ret, struct err *err);
/* Never waits; false: too many wait already. */
bool owners_ask(struct owners *owners, const struct egress_ask *ask);

/* Of what an agent said: at most size - 1 characters that can be seen. Pure. */
void owners_clean(const char *said, char *out, size_t size);

#endif
