#include "egress/dns.h"

#include "check.h"

static size_t ask(const char *name, enum dns_type type, uint8_t out[DNS_MESSAGE_MAX])
{
    return dns_write_question(0x1234, name, type, out);
}

static void a_question_is_read_as_it_was_written(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    size_t len = ask("api.example.com", DNS_AAAA, message);
    struct dns_question q;
    struct err err;

    CHECK_INT(dns_read_question(message, len, &q, &err), 0);
    CHECK_STR(q.name, "api.example.com");
    CHECK_INT(q.type, DNS_AAAA);
    CHECK_INT(q.id, 0x1234);
    CHECK(q.wants_recursion);
}

static void a_question_that_is_cut_anywhere_is_refused(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    size_t len = ask("api.example.com", DNS_A, message) - 11; /* without OPT, which nobody reads */
    struct dns_question q;
    struct err err;

    for (size_t i = 0; i < len; i++)
        CHECK_INT(dns_read_question(message, i, &q, &err), -1);
    CHECK_INT(dns_read_question(message, len, &q, &err), 0);
}

static void odd_questions_are_refused(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    size_t len = ask("example.com", DNS_A, message);
    struct dns_question q;
    struct err err;

    message[2] |= 0x80; /* an answer */
    CHECK_INT(dns_read_question(message, len, &q, &err), -1);
    (void) ask("example.com", DNS_A, message);
    message[2] |= 0x28; /* an update */
    CHECK_INT(dns_read_question(message, len, &q, &err), -1);
    (void) ask("example.com", DNS_A, message);
    message[5] = 2; /* two questions */
    CHECK_INT(dns_read_question(message, len, &q, &err), -1);
    (void) ask("example.com", DNS_A, message);
    message[13] = ' '; /* no host name */
    CHECK_INT(dns_read_question(message, len, &q, &err), -1);
    (void) ask("example.com", DNS_A, message);
    message[16] = '.'; /* one label that reads as two */
    CHECK_INT(dns_read_question(message, len, &q, &err), -1);
    (void) ask("example.com", DNS_A, message);
    message[12] = 0xc0, message[13] = 12; /* a name that is itself */
    CHECK_INT(dns_read_question(message, len, &q, &err), -1);
}

/* An answer of a server to `name`: records appended by the cases. */
static size_t answer(uint8_t message[DNS_MESSAGE_MAX], const char *name, enum dns_type type,
                     unsigned records)
{
    size_t len = ask(name, type, message) - 11;

    message[2] = 0x81, message[3] = 0x80;
    message[7] = (uint8_t) records;
    message[11] = 0;
    return len;
}

static size_t put(uint8_t *message, size_t len, const void *bytes, size_t count)
{
    memcpy(message + len, bytes, count);
    return len + count;
}

static void addresses_come_back_with_the_least_ttl(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    struct dns_answer a;
    struct err err;
    char text[IP_TEXT_MAX];
    size_t len = answer(message, "www.example.com", DNS_A, 3);

    /* www CNAME cdn.example.com (pointer to example.com at 16), then two addresses */
    len = put(message, len,
              "\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x06\x03"
              "cdn\xc0\x10",
              18);
    len = put(message, len,
              "\x03"
              "cdn\xc0\x10\0\x01\0\x01\0\0\0\x1e\0\x04\x5d\xb8\xd8\x22",
              20);
    len = put(message, len,
              "\x03"
              "CDN\xc0\x10\0\x01\0\x01\0\0\0\x2d\0\x04\x01\x02\x03\x04",
              20);
    CHECK_INT(dns_read_answer(message, len, 0x1234, "www.example.com", DNS_A, &a, &err), 0);
    CHECK_INT(a.count, 2);
    CHECK_INT(a.ttl, 30);
    ip_print(&a.list[0], text);
    CHECK_STR(text, "93.184.216.34");
    for (size_t i = 0; i < len; i++) /* cut anywhere: fewer, never more, never a crash */
        if (dns_read_answer(message, i, 0x1234, "www.example.com", DNS_A, &a, &err) == 0)
            CHECK(a.count <= 2);
}

static void records_of_other_names_do_not_count(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    struct dns_answer a;
    struct err err;
    size_t len = answer(message, "www.example.com", DNS_A, 1);

    len = put(message, len,
              "\x04"
              "evil\0\0\x01\0\x01\0\0\0\x1e\0\x04\x01\x02\x03\x04",
              20);
    CHECK_INT(dns_read_answer(message, len, 0x1234, "www.example.com", DNS_A, &a, &err), 0);
    CHECK_INT(a.count, 0);
}

static void answers_to_other_questions_do_not_count(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    struct dns_answer a;
    struct err err;
    size_t len = answer(message, "www.example.com", DNS_A, 0);

    CHECK_INT(dns_read_answer(message, len, 0x1235, "www.example.com", DNS_A, &a, &err), -1);
    CHECK_INT(dns_read_answer(message, len, 0x1234, "example.com", DNS_A, &a, &err), -1);
    CHECK_INT(dns_read_answer(message, len, 0x1234, "www.example.com", DNS_AAAA, &a, &err), -1);
    message[2] &= 0x7f;
    CHECK_INT(dns_read_answer(message, len, 0x1234, "www.example.com", DNS_A, &a, &err), -1);
}

static void what_we_answer_can_be_read(void)
{
    uint8_t message[DNS_MESSAGE_MAX], out[DNS_MESSAGE_MAX];
    size_t len = ask("example.com", DNS_A, message);
    struct dns_answer a = { .ttl = 77 }, back;
    struct dns_question q;
    struct err err;

    message[13] = 'E'; /* case is kept in the answer: some look at it */
    CHECK_INT(dns_read_question(message, len, &q, &err), 0);
    for (a.count = 0; a.count < DNS_ADDRESSES; a.count++) {
        char text[IP_TEXT_MAX];

        (void) snprintf(text, sizeof text, "1.2.3.%zu", a.count);
        CHECK(ip_parse(text, &a.list[a.count]));
    }
    len = dns_write_answer(&q, &a, out);
    CHECK_INT(out[13], 'E');
    CHECK_INT(dns_read_answer(out, len, 0x1234, "example.com", DNS_A, &back, &err), 0);
    CHECK_INT(back.count, DNS_ADDRESSES);
    CHECK_INT(back.ttl, 77);
    CHECK(ip_same(&back.list[3], &a.list[3]));
    a.code = DNS_REFUSED;
    a.count = 0;
    len = dns_write_answer(&q, &a, out);
    CHECK_INT(dns_read_answer(out, len, 0x1234, "example.com", DNS_A, &back, &err), 0);
    CHECK_INT(back.code, DNS_REFUSED);
}

static void an_alias_of_itself_ends(void)
{
    uint8_t message[DNS_MESSAGE_MAX];
    struct dns_answer a;
    struct err err;
    size_t len = answer(message, "a.example", DNS_A, 1);

    len = put(message, len, "\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c", 14);
    CHECK_INT(dns_read_answer(message, len, 0x1234, "a.example", DNS_A, &a, &err), 0);
    CHECK_INT(a.count, 0);
}

CHECK_MAIN(T(a_question_is_read_as_it_was_written), T(a_question_that_is_cut_anywhere_is_refused),
           T(odd_questions_are_refused), T(addresses_come_back_with_the_least_ttl),
           T(records_of_other_names_do_not_count), T(answers_to_other_questions_do_not_count),
           T(what_we_answer_can_be_read), T(an_alias_of_itself_ends))
