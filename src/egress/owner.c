/* Who in the sandbox had opened what was refused.
 *
 * A refused connection, or the answer to a question for a name that is refused, is kept for a moment: while its socket is
 * there, the sandbox's agent can say whose it is. The agent is asked by another thread, and what it says may be a
 * lie or come too late: then the process is not known. A sandbox whose agent did not answer in time is not asked again for
 * a while. */
#include "egress/egress_own.h"

#include "base/io.h"

#include <string.h>
#include <sys/eventfd.h>

#define QUIET_MS     10000
#define ASKS_AT_ONCE 8 /* of one sandbox */

bool owner_ask(struct egress *e, struct box *box, struct egress_ask *ask)
{
    /* What is not told of need not be known. */
    if (!e->config.ask || box->owner_asks >= ASKS_AT_ONCE || io_now_ms() < box->owner_quiet_ms ||
        bucket_level(&box->events) == 0 || bucket_level(&e->told) == 0)
        return false;
    ask->ticket = e->ticket + 1;
    (void) strcpy(ask->sandbox, box->id);
    if (!e->config.ask(e->config.context, ask))
        return false;
    e->ticket++;
    box->owner_asks++;
    return true;
}

void owner_done(struct box *box, uint64_t *ticket, bool answered)
{
    if (*ticket == 0)
        return;
    *ticket = 0;
    box->owner_asks--;
    if (!answered)
        box->owner_quiet_ms = io_now_ms() + QUIET_MS;
}

static struct flow *find_flow(struct egress *e, uint64_t ticket)
{
    for (struct box *box = e->boxes; box; box = box->next)
        for (struct flow *flow = box->owner_asks ? box->flows : NULL; flow; flow = flow->next)
            if (flow->ticket == ticket)
                return flow;
    return NULL;
}

static struct lookup *find_lookup(struct egress *e, uint64_t ticket)
{
    for (struct lookup *lookup = e->lookups; lookup; lookup = lookup->next)
        if (lookup->ticket == ticket)
            return lookup;
    return NULL;
}

void egress_answer(struct egress *e, uint64_t ticket, const struct egress_process *process)
{
    static const struct egress_process unknown;
    struct lookup *lookup;
    struct flow *flow;

    (void) pthread_mutex_lock(&e->lock);
    flow = find_flow(e, ticket);
    lookup = flow ? NULL : find_lookup(e, ticket);
    if (flow)
        flow_owner(e, flow, process ? process : &unknown);
    else if (lookup)
        question_owner(e, lookup, process ? process : &unknown);
    if (flow || lookup)
        (void) eventfd_write(e->wake_fd, 1); /* a listener waits */
    (void) pthread_mutex_unlock(&e->lock);
}
