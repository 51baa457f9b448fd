#include "egress/peer.h"

#define FIRST   198 /* 198.19.0.0/16 */
#define SECOND  19
#define AT_IPV4 12

struct ip peer_ip(unsigned network, unsigned member)
{
    return (struct ip){
        { [10] = 0xff, [11] = 0xff, FIRST, SECOND, (uint8_t) network, (uint8_t) member }
    };
}

bool peer_ip_is(const struct ip *ip)
{
    return ip_is4(ip) && ip->bytes[AT_IPV4] == FIRST && ip->bytes[AT_IPV4 + 1] == SECOND;
}
