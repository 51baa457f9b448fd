/* dns.h - messages of the domain name system, as far as a gateway needs them: questions for addresses and their answers.
 *
 * Only A and AAAA are ever asked and answered with records. Others get an empty answer: service records would carry keys
 * for encrypted names (ECH), text records would carry whatever a program wants to smuggle.
 *
 * Pure; what is read is hostile. Fuzzed. */
#ifndef COVE_EGRESS_DNS_H
#define COVE_EGRESS_DNS_H

#include "egress/ip.h"
#include "egress/reach.h"

#include <stddef.h>

#define DNS_MESSAGE_MAX 1232 /* what is sent and taken over UDP */
#define DNS_ADDRESSES   16

enum dns_type { DNS_A = 1, DNS_CNAME = 5, DNS_AAAA = 28, DNS_OPT = 41 };
enum dns_code {
    DNS_NO_ERROR = 0,
    DNS_FORMAT_ERROR = 1,
    DNS_SERVER_FAILURE = 2,
    DNS_NO_NAME = 3,
    DNS_NOT_IMPLEMENTED = 4,
    DNS_REFUSED = 5
};

struct dns_question {
    uint16_t id, type;
    bool wants_recursion;
    char name[REACH_NAME_MAX]; /* normal: lower case, no dot at the end */
    uint8_t text[REACH_NAME_MAX +
                 6]; /* as it stood in the message: the answer repeats it, case included */
    size_t text_len;
};

/* One question of class IN with a host name in it. -1: not even that can be answered, but with dns_write_error. */
int dns_read_question(const uint8_t *message, size_t len, struct dns_question *ret,
                      struct err *err);
/* To a message that could not be read; 0 if it does not even have an id. */
size_t dns_write_error(const uint8_t *message, size_t len, enum dns_code code, uint8_t *out);

struct dns_answer {
    enum dns_code code;
    bool truncated;
    uint32_t ttl; /* the least of those on the way */
    size_t count;
    struct ip list[DNS_ADDRESSES];
};

/* Fits into DNS_MESSAGE_MAX. Addresses of the family that was not asked for are left out. */
size_t dns_write_answer(const struct dns_question *question, const struct dns_answer *answer,
                        uint8_t out[DNS_MESSAGE_MAX]);

/* To a name server. */
size_t dns_write_question(uint16_t id, const char *name, enum dns_type type,
                          uint8_t out[DNS_MESSAGE_MAX]);
/* From it: only an answer to that very question counts (ERR_INVALID: anything else). Aliases are followed within it. */
int dns_read_answer(const uint8_t *message, size_t len, uint16_t id, const char *name,
                    enum dns_type type, struct dns_answer *ret, struct err *err);

#endif
