#include "egress/egress_own.h"
#include "egress/peer.h"

#include "base/io.h"
#include "base/own.h"
#include "egress/may_name.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define GIVEN_LEAST_MS 300000 /* programs keep addresses longer than they are told */
#define EVENTS_PER_S   20

/* ---- buckets ---- */

uint64_t bucket_level(struct bucket *b)
{
    uint64_t now = io_now_ms(), most = b->rate * 1000;
    uint64_t more = (now - b->filled_ms) * b->rate;

    b->level_milli =
        b->level_milli + more > most || b->filled_ms == 0 ? most : b->level_milli + more;
    b->filled_ms = now;
    return b->level_milli / 1000;
}

bool bucket_take(struct bucket *b, uint64_t count)
{
    if (b->rate == 0)
        return true;
    if (bucket_level(b) < count)
        return false;
    b->level_milli -= count * 1000;
    return true;
}

/* ---- names and addresses ---- */

void box_give(struct box *box, const struct ip *ip, const char *name, uint32_t ttl)
{
    uint64_t keep = (uint64_t) ttl * 1000 + 60000, now = io_now_ms();
    struct given *slot = NULL;

    for (size_t i = 0; i < GIVEN_MAX && !slot; i++)
        if (ip_same(&box->given[i].ip, ip) && strcmp(box->given[i].name, name) == 0)
            slot = &box->given[i];
    if (!slot)
        slot = &box->given[box->given_next++ % GIVEN_MAX];
    slot->ip = *ip;
    (void) strcpy(slot->name, name);
    slot->until_ms = now + (keep < GIVEN_LEAST_MS ? GIVEN_LEAST_MS : keep);
}

const char *box_name_of(const struct box *box, const struct ip *ip, size_t *at)
{
    uint64_t now = io_now_ms();

    for (; *at < GIVEN_MAX; ++*at)
        if (box->given[*at].until_ms > now && ip_same(&box->given[*at].ip, ip))
            return box->given[(*at)++].name;
    return NULL;
}

bool box_gave(const struct box *box, const struct ip *ip, const char *name)
{
    const char *other;
    size_t at = 0;

    while ((other = box_name_of(box, ip, &at)))
        if (strcmp(other, name) == 0)
            return true;
    return false;
}

struct reach_verdict box_judge(const struct egress *e, const struct box *box, const struct ip *ip,
                               uint16_t port, const char *name, const char *kind)
{
    struct reach_verdict verdict = reach_address(box->rules, ip, port, name, kind);

    if (verdict.allowed && !may_reach(ip, kind, e->config.ranges)) {
        verdict = (struct reach_verdict){ .allowed = false };
        (void) snprintf(verdict.rule, sizeof verdict.rule, "%s", kind);
    }
    return verdict;
}

bool box_takes(struct egress *e, const struct box *box, const struct ip *ip, uint16_t port,
               const char *name, char ret_rule[REACH_TEXT_MAX])
{
    struct reach_verdict verdict = box_judge(e, box, ip, port, name, kind_here(e, ip));

    if (peer_ip_is(ip)) { /* no name leads there but those that peer.c answers */
        (void) strcpy(ret_rule, "private");
        return false;
    }
    (void) strcpy(ret_rule, verdict.rule);
    return verdict.allowed;
}

/* ---- at the socket look-up ---- */

void box_open_rows(const struct egress *e, struct box *box)
{
    bool open[SPECIAL_ROWS];

    if (!box->rules)
        return;
    may_name_rows(box->rules, e->config.ranges, open);
    for (size_t i = 0; i < special_count; i++) {
        struct ip first;

        memcpy(first.bytes, specials[i].first, sizeof first.bytes);
        __atomic_store_n(&box->table->open[i], open[i] || peer_ip_is(&first), __ATOMIC_RELAXED);
    }
}

/* false: another one is written in its place by now. */
static bool read_refused(const struct special_refused *from, uint32_t number, struct ip *ret_ip,
                         uint16_t *ret_port)
{
    static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };

    if (__atomic_load_n(&from->number, __ATOMIC_ACQUIRE) != number)
        return false;
    memcpy(ret_ip->bytes, from->family == AF_INET ? mapped : from->six, sizeof ret_ip->bytes);
    if (from->family == AF_INET)
        memcpy(ret_ip->bytes + 12, from->four, sizeof from->four);
    *ret_port = (uint16_t) from->port;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&from->number, __ATOMIC_RELAXED) == number;
}

void box_tell_refused(struct egress *e, struct box *box)
{
    uint32_t count = __atomic_load_n(&box->table->refused_count, __ATOMIC_ACQUIRE);
    uint32_t fresh = count - box->table_told;

    if (fresh == 0)
        return;
    e->counts.refused += fresh;
    if (fresh > SPECIAL_REFUSED) {
        box->missed += fresh - SPECIAL_REFUSED;
        box->table_told = count - SPECIAL_REFUSED;
    }
    while (box->table_told != count) {
        struct egress_event event = { .what = EGRESS_REFUSED };
        uint32_t number = ++box->table_told;
        const char *kind;

        if (!read_refused(&box->table->refused[(number - 1) % SPECIAL_REFUSED], number, &event.ip,
                          &event.port)) {
            box->missed++;
            continue;
        }
        kind = ip_kind(&event.ip);
        (void) snprintf(event.rule, sizeof event.rule, "%s", kind ? kind : "reserved");
        tell(e, box, &event);
    }
}

/* The gateway's sockets are ours in any case, and the rest of what was handed over. */
static struct special_table *map_table(int fd)
{
    void *at = mmap(NULL, sizeof(struct special_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* ---- life ---- */

struct box *box_find(struct egress *e, const char *id)
{
    for (struct box *box = e->boxes; box; box = box->next)
        if (strcmp(box->id, id) == 0)
            return box;
    return NULL;
}

struct box *box_new(struct egress *e, const char *id, const char *tenant, const int fds[EGRESS_FDS],
                    struct err *err)
{
    const struct egress_limits *limits = &e->config.limits;
    struct box *box = calloc(1, sizeof *box);
    int on = 1;

    if (!box || !(box->table = map_table(fds[3])) || !(box->account = account_ref(e, tenant))) {
        if (box && box->table)
            (void) munmap(box->table, sizeof *box->table);
        free(box);
        for (int i = 0; i < EGRESS_FDS; i++)
            (void) close(fds[i]);
        err_set(err, ERR_NO_MEMORY, "no memory for a gateway");
        return NULL;
    }
    (void) snprintf(box->id, sizeof box->id, "%s", id);
    box->tcp = (struct source){ .fd = fds[0], .ready = flow_accept };
    box->dns = (struct source){ .fd = fds[1], .ready = question_udp };
    box->hold_fd = fds[2];
    (void) close(fds[3]); /* what is mapped stays */
    box->connects.rate = limits->connects_per_s;
    box->bytes.rate = limits->bytes_per_s;
    box->questions.rate = limits->questions_per_s;
    box->events.rate = EVENTS_PER_S;
    box->lets.rate = limits->connects_per_s;
    (void) setsockopt(box->tcp.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* heirs have it */
    (void) setsockopt(box->dns.fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
    (void) setsockopt(box->dns.fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    if (source_arm(e, &box->tcp, EPOLLIN) < 0 || source_arm(e, &box->dns, EPOLLIN) < 0) {
        err_set(err, ERR_INTERNAL, "the gateway cannot wait for another sandbox");
        box->next = e->boxes;
        e->boxes = box;
        box_free(e, box);
        return NULL;
    }
    box->next = e->boxes;
    e->boxes = box;
    peer_box_new(e, box);
    return box;
}

void box_free(struct egress *e, struct box *box)
{
    struct box **at = &e->boxes;

    while (*at != box)
        at = &(*at)->next;
    *at = box->next;
    peer_box_end(e, box);
    while (box->flows) {
        if (box->flows->state == FLOW_RELAY) /* also the last word of a sandbox is seen */
            flow_tell(e, box->flows, EGRESS_CONNECT);
        else if (box->flows->state == FLOW_OWNER)
            flow_tell(e, box->flows, EGRESS_REFUSED);
        flow_end(e, box->flows, true);
    }
    for (struct lookup *lookup = e->lookups, *next; lookup; lookup = next) {
        next = lookup->next;
        if (lookup->box == box)
            lookup_free(e, lookup);
    }
    source_close(e, &box->tcp);
    source_close(e, &box->dns);
    own_close(&box->hold_fd);
    box_tell_refused(e, box); /* nothing more is refused now */
    (void) munmap(box->table, sizeof *box->table);
    free(box->rules);
    egress_secrets_free(box->secrets);
    account_unref(e, box->account);
    free_later(e, &box->deferred);
}
