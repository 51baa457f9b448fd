/* peer.h - the made-up addresses of private networks: 198.19.N.M is member M of network N of the tenant whose sandbox asks.
 *
 * The range is reserved for benchmarks (RFC 2544) and no public host has it. Here it means private networks and nothing
 * else: no rule leads it to the outside, and a sandbox outside of the network finds nothing there. There are none of IPv6.
 *
 * Pure. */
#ifndef COVE_EGRESS_PEER_H
#define COVE_EGRESS_PEER_H

#include "egress/ip.h"

struct ip peer_ip(unsigned network, unsigned member);
bool peer_ip_is(const struct ip *ip);

#endif
