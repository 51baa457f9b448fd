/* socks5.h - what is said to a SOCKS5 proxy, and what it answers (RFC 1928, RFC 1929).
 *
 *   greeting → method → (login → verdict) → request → reply → the other side's bytes
 *
 * Readers get all bytes of one answer so far and may get more: 1, it is whole and took *ret_used of them; 0, more are
 * needed; -1, it is refused or no SOCKS5, with a sentence.
 *
 * Pure; what is read is hostile. Fuzzed. */
#ifndef COVE_EGRESS_SOCKS5_H
#define COVE_EGRESS_SOCKS5_H

#include "egress/ip.h"
#include "egress/upstream.h"

#define SOCKS5_SAY_MAX 515 /* a login: two texts of 255 */

size_t socks5_greeting(const struct upstream *upstream, uint8_t out[SOCKS5_SAY_MAX]);
/* *ret_login: it wants one. */
int socks5_method(const uint8_t *data, size_t len, bool has_login, bool *ret_login,
                  size_t *ret_used, struct err *err);
size_t socks5_login(const struct upstream *upstream, uint8_t out[SOCKS5_SAY_MAX]);
int socks5_verdict(const uint8_t *data, size_t len, size_t *ret_used, struct err *err);
/* To the name, which the proxy looks up; NULL: to the address. */
size_t socks5_request(const char *name, const struct ip *ip, uint16_t port,
                      uint8_t out[SOCKS5_SAY_MAX]);
int socks5_reply(const uint8_t *data, size_t len, size_t *ret_used, struct err *err);

#endif
