#include "egress/dns.h"

#include <string.h>

#define HEAD_LEN  12
#define CLASS_IN  1
#define ALIASES   8  /* in one answer */
#define JUMPS     16 /* of compression in one name */
#define TTL_MOST  86400
#define OPT_LEN   11
#define FLAG_QR   0x80
#define FLAG_TC   0x02
#define FLAG_RD   0x01
#define FLAG_RA   0x80
#define CODE_MASK 0x0f

struct reader {
    const uint8_t *data;
    size_t len, at;
    bool bad;
};

static uint16_t get16(struct reader *r)
{
    if (r->bad || r->len - r->at < 2) {
        r->bad = true;
        return 0;
    }
    r->at += 2;
    return (uint16_t) (r->data[r->at - 2] << 8 | r->data[r->at - 1]);
}

static uint32_t get32(struct reader *r)
{
    uint32_t high = get16(r);

    return high << 16 | get16(r);
}

/* A name with its compression followed; "" is the root. What is no host name is read, too, as "?". */
static void get_name(struct reader *r, char out[REACH_NAME_MAX])
{
    char text[REACH_NAME_MAX + 1];
    size_t at = r->at, used = 0;
    int jumps = 0;
    bool jumped = false, odd = false;

    while (!r->bad) {
        uint8_t n = at < r->len ? r->data[at] : 0xff;

        if ((n & 0xc0) == 0xc0) {
            if (at + 1 >= r->len || ++jumps > JUMPS) {
                r->bad = true;
                break;
            }
            if (!jumped)
                r->at = at + 2;
            jumped = true;
            at = (size_t) (n & 0x3f) << 8 | r->data[at + 1];
            continue;
        }
        if (n > 63 || at + 1 + n > r->len || used + n + 1 > REACH_NAME_MAX) {
            r->bad = true;
            break;
        }
        at++;
        if (n == 0)
            break;
        odd |= memchr(r->data + at, '.', n) != NULL; /* would read as two labels */
        memcpy(text + used, r->data + at, n);
        used += n;
        text[used++] = '.';
        at += n;
    }
    if (!jumped)
        r->at = at;
    if (used == 0)
        out[0] = '\0';
    else if (odd || !name_normal(text, used, out))
        (void) strcpy(out, "?");
}

int dns_read_question(const uint8_t *message, size_t len, struct dns_question *ret, struct err *err)
{
    struct reader r = { message, len, 4, false };
    uint16_t counts[4];
    size_t begin;

    if (len < HEAD_LEN)
        return err_set(err, ERR_INVALID, "shorter than a message");
    if (message[2] & (FLAG_QR | 0x78))
        return err_set(err, ERR_INVALID, "no question");
    for (size_t i = 0; i < 4; i++)
        counts[i] = get16(&r);
    if (counts[0] != 1 || counts[1] != 0 || counts[2] != 0)
        return err_set(err, ERR_INVALID, "not one question");
    *ret = (struct dns_question){ .id = (uint16_t) (message[0] << 8 | message[1]),
                                  .wants_recursion = message[2] & FLAG_RD };
    begin = r.at;
    get_name(&r, ret->name);
    ret->type = get16(&r);
    if (get16(&r) != CLASS_IN || r.bad || strcmp(ret->name, "?") == 0 || !ret->name[0])
        return err_set(err, ERR_INVALID, "no host name is asked for");
    ret->text_len = r.at - begin;
    if (ret->text_len > sizeof ret->text)
        return err_set(err, ERR_INVALID, "the name is too long");
    memcpy(ret->text, message + begin, ret->text_len);
    return 0;
}

/* ---- writing ---- */

struct writer {
    uint8_t *data;
    size_t len;
};

static void put16(struct writer *w, uint16_t value)
{
    w->data[w->len++] = (uint8_t) (value >> 8);
    w->data[w->len++] = (uint8_t) value;
}

static void put_head(struct writer *w, uint16_t id, uint8_t flags1, uint8_t flags2,
                     uint16_t questions, uint16_t answers, uint16_t more)
{
    put16(w, id);
    w->data[w->len++] = flags1;
    w->data[w->len++] = flags2;
    put16(w, questions);
    put16(w, answers);
    put16(w, 0);
    put16(w, more);
}

size_t dns_write_error(const uint8_t *message, size_t len, enum dns_code code, uint8_t *out)
{
    struct writer w = { out, 0 };

    if (len < HEAD_LEN || (message[2] & FLAG_QR))
        return 0;
    put_head(&w, (uint16_t) (message[0] << 8 | message[1]),
             (uint8_t) (FLAG_QR | (message[2] & 0x79)), (uint8_t) (FLAG_RA | code), 0, 0, 0);
    return w.len;
}

size_t dns_write_answer(const struct dns_question *q, const struct dns_answer *answer,
                        uint8_t out[DNS_MESSAGE_MAX])
{
    struct writer w = { out, 0 };
    bool four = q->type == DNS_A;
    uint16_t count = 0;

    put_head(&w, q->id, (uint8_t) (FLAG_QR | (q->wants_recursion ? FLAG_RD : 0)),
             (uint8_t) (FLAG_RA | answer->code), 1, 0, 0);
    memcpy(out + w.len, q->text, q->text_len);
    w.len += q->text_len;
    for (size_t i = 0; i < answer->count; i++) {
        size_t len = four ? 4 : 16;

        if ((q->type != DNS_A && q->type != DNS_AAAA) || ip_is4(&answer->list[i]) != four)
            continue;
        put16(&w, 0xc000 | HEAD_LEN); /* the name of the question */
        put16(&w, q->type);
        put16(&w, CLASS_IN);
        put16(&w, (uint16_t) (answer->ttl >> 16));
        put16(&w, (uint16_t) answer->ttl);
        put16(&w, (uint16_t) len);
        memcpy(out + w.len, answer->list[i].bytes + 16 - len, len);
        w.len += len;
        count++;
    }
    out[6] = (uint8_t) (count >> 8);
    out[7] = (uint8_t) count;
    return w.len;
}
_Static_assert(HEAD_LEN + sizeof(((struct dns_question *) 0)->text) + DNS_ADDRESSES * 28 <=
                   DNS_MESSAGE_MAX,
               "an answer fits");

size_t dns_write_question(uint16_t id, const char *name, enum dns_type type,
                          uint8_t out[DNS_MESSAGE_MAX])
{
    struct writer w = { out, 0 };

    put_head(&w, id, FLAG_RD, 0, 1, 0, 1);
    while (*name) {
        size_t label = strcspn(name, ".");

        out[w.len++] = (uint8_t) label;
        memcpy(out + w.len, name, label);
        w.len += label;
        name += label + (name[label] == '.');
    }
    out[w.len++] = 0;
    put16(&w, (uint16_t) type);
    put16(&w, CLASS_IN);
    /* How much we take in one datagram. */
    out[w.len++] = 0;
    put16(&w, DNS_OPT);
    put16(&w, DNS_MESSAGE_MAX);
    memset(out + w.len, 0, OPT_LEN - 5);
    w.len += OPT_LEN - 5;
    return w.len;
}

/* ---- answers of a name server ---- */

struct record {
    char owner[REACH_NAME_MAX];
    uint16_t type, class;
    uint32_t ttl;
    size_t data, data_len;
};

static bool next_record(struct reader *r, struct record *ret)
{
    get_name(r, ret->owner);
    ret->type = get16(r);
    ret->class = get16(r);
    ret->ttl = get32(r);
    ret->data_len = get16(r);
    ret->data = r->at;
    if (r->bad || r->len - r->at < ret->data_len)
        return false;
    r->at += ret->data_len;
    return true;
}

/* One pass over the answers for what `name` has; an alias becomes the next name. */
static bool collect(struct reader records, unsigned count, char name[REACH_NAME_MAX],
                    enum dns_type type, struct dns_answer *answer)
{
    size_t len = type == DNS_A ? 4 : 16;
    struct record record;
    bool again = false;

    for (unsigned i = 0; i < count && next_record(&records, &record); i++) {
        struct ip ip = { { [10] = 0xff, [11] = 0xff } };

        if (record.class != CLASS_IN || strcmp(record.owner, name) != 0)
            continue;
        if (record.ttl < answer->ttl)
            answer->ttl = record.ttl;
        if (record.type == DNS_CNAME && !again) {
            struct reader target = records;

            target.at = record.data;
            get_name(&target, name);
            again = !target.bad;
            break;
        }
        if (record.type != type || record.data_len != len || answer->count == DNS_ADDRESSES)
            continue;
        memcpy(ip.bytes + 16 - len, records.data + record.data, len);
        answer->list[answer->count++] = ip;
    }
    return again;
}

int dns_read_answer(const uint8_t *message, size_t len, uint16_t id, const char *name,
                    enum dns_type type, struct dns_answer *ret, struct err *err)
{
    struct reader r = { message, len, 0, false };
    uint16_t got = get16(&r), flags = get16(&r), questions = get16(&r), answers = get16(&r);
    char current[REACH_NAME_MAX];

    r.at = HEAD_LEN;
    if (len < HEAD_LEN || got != id || !(flags & FLAG_QR << 8) || questions != 1)
        return err_set(err, ERR_INVALID, "not an answer to what was asked");
    get_name(&r, current);
    if (get16(&r) != type || get16(&r) != CLASS_IN || r.bad || strcmp(current, name) != 0)
        return err_set(err, ERR_INVALID, "an answer to another question");
    *ret = (struct dns_answer){ .code = (enum dns_code)(flags & CODE_MASK),
                                .truncated = flags & FLAG_TC << 8,
                                .ttl = TTL_MOST };
    if (ret->code != DNS_NO_ERROR)
        return 0;
    for (int i = 0; i < ALIASES && collect(r, answers, current, type, ret); i++)
        ;
    return 0;
}
