/* The states of a connection:
 *
 *   new ──► sniff ──► lookup ──► connect ──► relay ──► linger ──► ended
 *    │        ▲          │          │          │          ▲
 *    │        │          │          └─► why ───┼──────────┤
 *    ├─► dial ┴──────────┼─────────────────────┤          │
 *    └─► names           └──────► owner ◄──────┴── sniff  │
 *                                   └────────────────────-┘
 *
 * Each state can end. flow_enter is the only writer. */
#include "egress/egress_own.h"

#include "base/own.h"

#include <assert.h>

#define TO(s) (1u << FLOW_##s)

/* Who may follow whom; in brackets, the only functions that enter the state. */
static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [FLOW_NEW] = { "new",
                   TO(SNIFF) | TO(NAMES) | TO(CONNECT) | TO(DIAL) | TO(ENDED) }, /* [flow_new] */
    [FLOW_SNIFF] = { "sniff", TO(LOOKUP) | TO(CONNECT) | TO(OWNER) | TO(LINGER) |
                                  TO(ENDED) }, /* [judge, flow_again, peer.c's bar] */
    [FLOW_LOOKUP] = { "lookup",
                      TO(CONNECT) | TO(OWNER) | TO(LINGER) | TO(ENDED) }, /* [ask_for_name] */
    [FLOW_CONNECT] = { "connect",
                       TO(CONNECT) | TO(RELAY) | TO(WHY) | TO(ENDED) }, /* [try_next, via_begin] */
    [FLOW_DIAL] = { "dial", TO(RELAY) | TO(SNIFF) | TO(ENDED) },        /* [peer_take] */
    [FLOW_RELAY] = { "relay", TO(SNIFF) | TO(OWNER) | TO(LINGER) | TO(ENDED) }, /* [relay_begin] */
    [FLOW_NAMES] = { "names", TO(ENDED) },                                      /* [judge] */
    [FLOW_WHY] = { "why", TO(LINGER) | TO(ENDED) },     /* [flow_no_proxy] */
    [FLOW_OWNER] = { "owner", TO(LINGER) | TO(ENDED) }, /* [wait_for_owner] */
    [FLOW_LINGER] = { "linger", TO(ENDED) },            /* [linger] */
    [FLOW_ENDED] = { "ended", 0 },                      /* [flow_end] */
};
_Static_assert(ARRAY_LEN(states) == FLOW_STATE_COUNT, "every state has a row");

const char *flow_state_name(enum flow_state state)
{
    return states[state].name;
}

bool flow_may(enum flow_state from, enum flow_state to)
{
    return states[from].next & (1u << to);
}

void flow_enter(struct flow *flow, enum flow_state state, uint64_t deadline_ms)
{
    assert(flow_may(flow->state, state));
    flow->state = state;
    flow->deadline_ms = deadline_ms;
}
