/* egress_own.h - the inside of the gateway, for its parts: loop.c, host.c, box.c, share.c, flow_state.c, flow.c, refuse.c, owner.c, via.c, relay.c,
 * question.c, lookup.c, peer.c, peer_set.c, open.c, transform.c.
 *
 * All of it belongs to the holder of egress->lock: the loop while it works, other threads while they change rules. What is
 * ended is put aside and freed at the end of the loop's round, since an event that the kernel gave out before may still
 * point to it. */
#ifndef COVE_EGRESS_EGRESS_OWN_H
#define COVE_EGRESS_EGRESS_OWN_H

#include "base/special.h"
#include "egress/dns.h"
#include "egress/egress.h"
#include "egress/http_watch.h"
#include "egress/rewrite.h"
#include "egress/sniff.h"
#include "egress/tls.h"

#include <pthread.h>
#include <stdatomic.h>

/* First in what is put aside when it has ended. */
struct deferred {
    struct deferred *next;
};

/* A descriptor that is waited for; embedded in what it belongs to. */
struct source {
    int fd;
    uint32_t armed; /* events; 0: not in epoll */
    bool alone;     /* no other process has its file: closing it takes it out of epoll */
    void (*ready)(struct egress *e, struct source *source, uint32_t events); /* NULL: ended */
};

struct bucket { /* of tokens: `rate` a second, and as many saved up */
    uint64_t rate, level_milli, filled_ms;
};

/* An address that was given out for a name. */
struct given {
    struct ip ip;
    char name[REACH_NAME_MAX];
    uint64_t until_ms;
};
#define GIVEN_MAX 256

/* What is put into requests of one sandbox, and the authority by which its TLS is opened for that. */
struct egress_secrets {
    struct rewrite *rewrite;
    struct tls_ca *ca; /* NULL: none is opened */
};

/* What the sandboxes of a tenant use. */
struct account {
    char tenant[EGRESS_ID_MAX];
    uint64_t used[EGRESS_SHARES];
    size_t boxes;
    struct account *next;
};

struct box {
    struct deferred deferred;
    char id[EGRESS_ID_MAX];
    struct account *account;
    uint64_t used[EGRESS_SHARES];
    struct reach *rules;
    struct egress_secrets *secrets; /* NULL: none */
    size_t open_count;
    struct source tcp, dns;
    int hold_fd;
    struct special_table *table; /* shared with the program at its socket look-up */
    uint32_t table_told;         /* refusals of that program that are told */
    struct bucket connects, bytes, questions;
    struct bucket events, lets; /* told: what was refused, and what was let out */
    uint64_t missed;            /* not told, since the last that was */
    struct flow *flows;
    size_t owner_asks;       /* of its agent, not answered yet */
    uint64_t owner_quiet_ms; /* until then it is not asked: it did not answer */
    size_t given_next;
    struct given given[GIVEN_MAX];
    const struct peer_set *peers; /* of its tenant; NULL: it is in no network */
    struct peer_link *links;
    size_t link_count;
    size_t guests; /* connections of other sandboxes to this one */
    struct box *next;
};

/* The networks of a tenant, as one thing that is put in the place of the one before. */
struct peer_link { /* a sandbox is in a network */
    const struct egress_net *net;
    const struct egress_member *self;
    bool here; /* it has a gateway */
};
struct peer_set {
    char tenant[EGRESS_ID_MAX];
    struct egress_net *nets;
    size_t net_count;
    struct peer_link *links; /* by sandbox, and then by who joined first */
    size_t link_count;
    struct peer_set *next;
};

enum side_of { CLIENT, SERVER };

struct side {
    struct source source;
    struct flow *flow;
    uint8_t *held; /* read from the other side, not yet taken by this one; NULL: nothing */
    size_t held_len, held_at;
    bool ended; /* nothing more comes from it */
    bool shut;  /* nothing more goes to it */
};

enum flow_state {
    FLOW_NEW,
    FLOW_SNIFF,
    FLOW_LOOKUP,
    FLOW_CONNECT,
    FLOW_DIAL, /* to another sandbox */
    FLOW_RELAY,
    FLOW_NAMES,
    FLOW_WHY,   /* not let through by the proxy; what it says first tells how that can be said */
    FLOW_OWNER, /* refused; its agent is asked whose it is */
    FLOW_LINGER,
    FLOW_ENDED,
    FLOW_STATE_COUNT
};

struct via;

struct flow {
    struct deferred deferred;
    struct box *box;
    struct side sides[2];
    enum flow_state state; /* written by flow_enter alone */
    struct ip ip;          /* meant by the client */
    uint16_t port;
    /* from what it sent, or by which the address was given out; "" if none */
    char name[REACH_NAME_MAX];
    char rule[REACH_TEXT_MAX];
    char reason[EGRESS_REASON_MAX];
    struct egress_process process;
    uint64_t ticket; /* of the question whose it is; 0: none is under way */
    bool plain_http;
    bool by_name;   /* let out for its name: a proxy is told that, and not the address */
    bool refused;   /* cut for what it said after it was let out */
    bool late;      /* let out before it said anything: what it says first is looked at then */
    uint8_t *first; /* bytes of the client that no rule has let pass */
    bool barred;    /* refused already; what it says is only read to know how to tell it */
    /* the other sandbox; NULL: it goes outside, or (FLOW_DIAL) the other one sleeps */
    struct box *far;
    uint64_t dial_ticket; /* of FLOW_DIAL; 0: it waits until the other sandbox takes more */
    size_t first_len;
    struct http_watch *watch; /* NULL: bytes pass unread */
    bool bound; /* something may be put into its requests: it goes to addresses of its name only */
    bool opens; /* its TLS is ended here; counts in the box */
    bool again; /* let out too early: to be judged again by what it said */
    bool in_head;           /* transform.c's own */
    struct opened *opened;  /* open.c's own */
    bool answers;           /* who waits for an answer is told flow->reason in place of it */
    uint64_t received_then; /* when the last request went on */
    struct dns_answer targets;
    size_t target_next;
    struct lookup *lookup;
    struct via *via;                /* on the way through a proxy; NULL: not, or not any more */
    uint64_t begun_ms, deadline_ms; /* deadline of the state; in FLOW_RELAY: of doing nothing */
    uint64_t sent, received;
    struct flow *prev, *next;
};

/* Who waits for a name server. */
typedef void lookup_fn(struct egress *e, struct lookup *lookup, const struct dns_answer *answer);

/* Why a name is not told; rule "": it is. */
struct refusal {
    char rule[REACH_TEXT_MAX];
    char reason[EGRESS_REASON_MAX];
};

struct lookup {
    struct deferred deferred;
    struct source source;
    struct box *box;
    struct flow *flow; /* or the question below */
    lookup_fn *done;
    /* Of one that was refused, and waits until it is known whose it was; ticket 0: it is not. */
    uint64_t ticket;
    struct refusal refusal;
    struct dns_answer answer;
    struct dns_question question;
    struct sockaddr_storage from; /* of a question over UDP */
    socklen_t from_len;
    struct ip asked; /* the address that it came to, and so comes from */
    char name[REACH_NAME_MAX];
    enum dns_type type;
    uint16_t id;
    unsigned tries;
    uint64_t deadline_ms;
    struct lookup *prev, *next;
};

#define DNS_PORT    53
#define EVENTS_MAX  256
#define COPY_SIZE   (256 * 1024)
#define OWN_IPS     256
#define FOREIGN_IPS 1021

struct egress {
    struct egress_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    int epoll_fd, wake_fd;
    bool stop;
    struct box *boxes;
    struct lookup *lookups;
    struct peer_set *peer_sets;
    struct deferred *deferred;
    size_t event_count;
    struct egress_event events[EVENTS_MAX];
    struct ip own[OWN_IPS]; /* addresses of this host */
    size_t own_count;
    int news_fd;                    /* says when those may have changed; -1: nothing does */
    struct ip foreign[FOREIGN_IPS]; /* host.c's: not of this host, each at the place of its hash */
    bool has6;                      /* this host has a route for IPv6 */
    struct ip servers[EGRESS_SERVERS];
    size_t server_count;
    struct account *accounts;
    uint64_t used[EGRESS_SHARES], most[EGRESS_SHARES]; /* of all sandboxes */
    uint64_t second_ms;                                /* when this one began, for handshakes */
    struct bucket told;                                /* what was refused, of all */
    struct tls_trust *trust;                           /* NULL until a sandbox has secrets */
    uint64_t looked_ms, ticked_ms;
    uint64_t ticket; /* the last one given out */
    struct egress_counts counts;
    uint8_t copy[COPY_SIZE];
};

/* ---- loop.c ---- */
int source_arm(struct egress *e, struct source *source, uint32_t events);
/* A connection to the outside, begun: to the server's side of a flow, or its proxy. -1: not even begun. */
int source_connect(struct egress *e, struct source *source, const struct ip *ip, uint16_t port,
                   void (*ready)(struct egress *e, struct source *source, uint32_t events));
void source_close(struct egress *e, struct source *source);
/* Freed when the round is over. */
void free_later(struct egress *e, struct deferred *what);
void tell(struct egress *e, struct box *box, const struct egress_event *event);

/* ---- host.c: this host ---- */
/* -1: it cannot be watched. */
int host_watch(void);
/* From time to time: its addresses, its name servers. */
void host_look(struct egress *e, uint64_t now);
/* What is special about an address here. */
const char *kind_here(struct egress *e, const struct ip *ip);

/* ---- share.c: what sandboxes share ---- */
#define LIMIT_RULE "limit" /* of what is refused for want of a share; the reason says which */
void shares_init(struct egress *e);
void shares_count(struct egress *e, struct egress_counts *ret);
/* NULL: no memory. One for each sandbox. */
struct account *account_ref(struct egress *e, const char *tenant);
/* Accepts NULL. */
void account_unref(struct egress *e, struct account *account);
/* One more; false: whose limit it is says `why`. */
bool share_take(struct egress *e, struct box *box, enum egress_share share,
                char why[EGRESS_REASON_MAX]);
/* Not for handshakes. */
void share_give(struct egress *e, struct box *box, enum egress_share share);

/* ---- box.c ---- */
bool bucket_take(struct bucket *bucket, uint64_t count);
uint64_t bucket_level(struct bucket *bucket);
void box_give(struct box *box, const struct ip *ip, const char *name, uint32_t ttl);
bool box_gave(const struct box *box, const struct ip *ip, const char *name);
/* The next name that an address was given out for, behind *at (0 first); NULL: no more. */
const char *box_name_of(const struct box *box, const struct ip *ip, size_t *at);
struct box *box_find(struct egress *e, const char *id);
struct box *box_new(struct egress *e, const char *id, const char *tenant, const int fds[EGRESS_FDS],
                    struct err *err);
void box_free(struct egress *e, struct box *box);
/* The word of the rules, and of the ranges that they may name. kind: from kind_here. */
struct reach_verdict box_judge(const struct egress *e, const struct box *box, const struct ip *ip,
                               uint16_t port, const char *name, const char *kind);
/* Rules, ranges or networks have changed: what the program at the socket look-up refuses. */
void box_open_rows(const struct egress *e, struct box *box);
/* From time to time: tells what that program refused. */
void box_tell_refused(struct egress *e, struct box *box);
/* Whether an address that a name server gave may be given out and connected to. */
bool box_takes(struct egress *e, const struct box *box, const struct ip *ip, uint16_t port,
               const char *name, char ret_rule[REACH_TEXT_MAX]);

/* ---- flow_state.c: the states of a connection ---- */
/* The move must be in the table. deadline_ms: of the state, by io_now_ms. */
void flow_enter(struct flow *flow, enum flow_state state, uint64_t deadline_ms);
bool flow_may(enum flow_state from, enum flow_state to);
const char *flow_state_name(enum flow_state state);

/* ---- flow.c: a connection until it is let out ---- */
void flow_accept(struct egress *e, struct source *listener, uint32_t events);
void flow_tick(struct egress *e, struct flow *flow, uint64_t now);
/* The rules have changed; `moved`: and connections go another way now. */
void flow_judge_again(struct egress *e, struct flow *flow, bool moved);
/* Let out without a name; now it has said this. NULL: it may be, with a watch if it is to have one. Else the reason. */
const char *flow_look_late(struct egress *e, struct flow *flow, bool *ret_more);

/* ---- refuse.c: how it ends, and whose it was ---- */
/* `reset`: the client sees that it was cut. */
void flow_end(struct egress *e, struct flow *flow, bool reset);
void flow_tell(struct egress *e, const struct flow *flow, enum egress_what what);
void source_reset(struct egress *e, struct source *source);
/* Not let out, with what decided. */
void flow_refuse(struct egress *e, struct flow *flow, const char *rule);
/* Let out, and cut for what it said then: flow->rule. */
void flow_cut(struct egress *e, struct flow *flow);
/* Let out, but not by the proxy. */
void flow_no_proxy(struct egress *e, struct flow *flow, const char *reason);
/* Of one in FLOW_WHY: now, or it is cut. */
void flow_say_why(struct egress *e, struct flow *flow);
/* Of one in FLOW_OWNER: whose it is; NULL: no answer came. */
void flow_owner(struct egress *e, struct flow *flow, const struct egress_process *process);

/* ---- owner.c: whose it was ---- */
#define OWNER_MS                                                                                   \
    2000 /* for an answer: a busy machine takes its time, and only who was refused waits */
/* Asks the sandbox's agent, if it may be: fills in ask's sandbox and ticket, by which the answer comes. The ticket is the
 * caller's to end, by owner_done. */
bool owner_ask(struct egress *e, struct box *box, struct egress_ask *ask);
/* `answered`: else it is left alone for a while. */
void owner_done(struct box *box, uint64_t *ticket, bool answered);

/* ---- via.c: a connection that is let out through a proxy, until that has agreed ---- */
void via_begin(struct egress *e, struct flow *flow);
/* The time for it is over. */
void via_late(struct egress *e, struct flow *flow);
/* Accepts one that has none. */
void via_free(struct flow *flow);

/* Who waits for an answer is told flow->reason in place of it; then the end. */
void flow_answer(struct egress *e, struct flow *flow);
/* Back to where its first bytes are judged. */
void flow_again(struct egress *e, struct flow *flow);

/* ---- peer.c: between sandboxes ---- */
/* A connection to an address of private networks is taken care of, whatever the rules say; false: it is no such address. */
bool peer_take(struct egress *e, struct flow *flow);
/* Its first bytes are known, or will never be: refuses a connection that is barred. */
void peer_refuse(struct egress *e, struct flow *flow);
void peer_tick(struct egress *e, struct flow *flow, uint64_t now);
/* The other sandbox's share in a connection that ends. */
void peer_end(struct flow *flow);
/* Told to the other sandbox, too. */
void peer_tell(struct egress *e, const struct flow *flow, struct egress_event *event);
/* Answers a name that belongs to private networks; false: it is not one of theirs. */
bool peer_answer(const struct box *box, const struct dns_question *question, struct dns_answer *ret,
                 struct refusal *ret_refusal);
/* Finds its networks. */
void peer_box_new(struct egress *e, struct box *box);
/* Cuts what others have with it. */
void peer_box_end(struct egress *e, struct box *box);
void peer_sets_free(struct egress *e);
/* What may be read now without going past anybody's bytes a second; and what was. */
uint64_t flow_room(struct flow *flow);
void flow_spend(struct flow *flow, uint64_t bytes);

/* ---- relay.c: a connection that is let out ---- */
void relay_begin(struct egress *e, struct flow *flow);
void relay_ready(struct egress *e, struct source *source, uint32_t events);
void relay_arm(struct egress *e, struct flow *flow);
/* Behind the bytes of the client that no rule has let pass. */
bool relay_keep(struct flow *flow, const uint8_t *data, size_t len);
/* Tells what became of it, and ends it. */
void relay_finish(struct egress *e, struct flow *flow, enum egress_what what, bool reset);

/* ---- transform.c: requests that something may be put into ---- */
/* Takes what can be passed on from flow->first; ret is the caller's to free, and NULL if it is nothing. False: refused, with
 * flow->rule, and flow->reason and answers if it can be answered. */
bool transform(struct flow *flow, uint8_t **ret, size_t *ret_len);

/* ---- open.c: TLS that is ended here ---- */
bool open_concerns(const struct flow *flow, const char *name, bool tls);
/* By its name, before it is let out: sets bound and opens. Else the reason why it must not be. */
const char *open_judge(struct egress *e, struct flow *flow, bool tls);
void open_begin(struct egress *e, struct flow *flow);
void open_arm(struct egress *e, struct flow *flow);
void open_end(struct flow *flow);
/* False: it has no reader. */
bool open_answer(struct flow *flow, const char *text, size_t len);

/* ---- question.c: names asked by the sandbox ---- */
void question_udp(struct egress *e, struct source *source, uint32_t events);
/* Bytes have come on a connection to port 53. */
void question_tcp(struct egress *e, struct flow *flow);
/* Of one that has a ticket: whose it is; NULL: no answer came. */
void question_owner(struct egress *e, struct lookup *lookup, const struct egress_process *process);
/* The same, but it ends before an answer came: it is told of, and no answer is given. */
void question_forget(struct egress *e, struct lookup *lookup);

/* ---- lookup.c: names asked of this host's name servers ---- */
/* One that nothing is asked for yet. NULL: too many at once, with the reason; "" for want of memory. */
struct lookup *lookup_new(struct egress *e, struct box *box, const char *name,
                          char why[EGRESS_REASON_MAX]);
/* NULL: the same, or no descriptor. */
struct lookup *lookup_start(struct egress *e, struct box *box, const char *name, enum dns_type type,
                            lookup_fn *done, char why[EGRESS_REASON_MAX]);
void lookup_free(struct egress *e, struct lookup *lookup);
void lookup_tick(struct egress *e, uint64_t now);
void lookup_servers(struct egress *e);

#endif
