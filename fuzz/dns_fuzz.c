/* dns_fuzz.c - questions of a sandbox and answers of a name server.
 *
 * What is read as a question can be answered, and the answer is read as one to that question; an answer never has more
 * addresses than there is room for, and none of the wrong family. */
#include "egress/dns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void try_question(const uint8_t *data, size_t size)
{
    uint8_t out[DNS_MESSAGE_MAX];
    char again[REACH_NAME_MAX];
    struct dns_question q;
    struct dns_answer answer = { .ttl = 60 }, back;
    struct err err;
    size_t len;

    if (dns_read_question(data, size, &q, &err) < 0) {
        must(dns_write_error(data, size, DNS_FORMAT_ERROR, out) <= 12);
        return;
    }
    must(name_normal(q.name, strlen(q.name), again) && strcmp(q.name, again) == 0);
    if (q.type != DNS_A && q.type != DNS_AAAA)
        return;
    must(ip_parse(q.type == DNS_A ? "1.2.3.4" : "2001:db8::1", &answer.list[answer.count++]));
    len = dns_write_answer(&q, &answer, out);
    must(len <= sizeof out);
    /* A name that was written with pointers is repeated with them: they may point elsewhere now. */
    if (memchr(q.text, 0xc0, q.text_len) == NULL)
        must(dns_read_answer(out, len, q.id, q.name, (enum dns_type) q.type, &back, &err) == 0 &&
             back.count == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dns_answer answer;
    struct err err;
    uint16_t id = size >= 2 ? (uint16_t) (data[0] << 8 | data[1]) : 0;

    try_question(data, size);
    for (int six = 0; six < 2; six++) {
        if (dns_read_answer(data, size, id, "www.example.com", six ? DNS_AAAA : DNS_A, &answer,
                            &err) < 0)
            continue;
        must(answer.count <= DNS_ADDRESSES);
        for (size_t i = 0; i < answer.count && !six; i++)
            must(ip_is4(&answer.list[i]));
    }
    return 0;
}
