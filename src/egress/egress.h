/* egress.h - the gateway: what sandboxes may reach, they reach through it, and nothing else.
 *
 * One thread holds the sockets that the keeper opened inside the sandboxes (KEEPER_GATEWAY), answers their questions for
 * names, accepts their connections, asks the rules, connects from this host, and copies bytes. A sandbox without rules
 * here has no egress at all.
 *
 *   name asked      → allowed? → asked of this host's name servers → addresses checked → remembered, answered
 *   connection      → address allowed? or a name in it (SNI, Host) that is → connected to an address that was checked
 *
 * Owns:    the sockets from egress_set on, and every connection.
 * Callers: api. All functions from any thread; events come on the gateway's own, and the last ones of a sandbox on the
 *          one that calls egress_drop.
 * Never:   trusts a name that a sandbox brings along with an address: the address it connects to is one that it
 *          resolved itself, or that is allowed as such. */
#ifndef COVE_EGRESS_EGRESS_H
#define COVE_EGRESS_EGRESS_H

#include "egress/rewrite.h"

#define EGRESS_ID_MAX      64
#define EGRESS_SERVERS     3
#define EGRESS_REASON_MAX  120
#define EGRESS_PROCESS_MAX 64
#define EGRESS_RANGES_MAX  512
#define EGRESS_FDS         4 /* of one sandbox: enum keeper_gateway of wire/keeper.h */
/* The gateway's user, where there is no user 'cove-gateway'. Nothing else on this host has it: it is below the ids of sandboxes
 * (jail/ids.h). By its user, servers on the same host know the gateway's connections to the outside. */
#define EGRESS_UID 1048575u

enum egress_what {
    EGRESS_CONNECT, /* let out; told when it has ended */
    EGRESS_REFUSED, /* a connection */
    EGRESS_NAME,    /* a name was refused */
    EGRESS_FAILED,  /* let out, but no answer came */
    EGRESS_WHATS
};
const char *egress_what_name(enum egress_what what);

/* What is meant by a refusal whose rule is a word ("reserved", "metadata", "off" …) and not a rule of the sandbox;
 * "" for others. Shorter than EGRESS_REASON_MAX. */
const char *egress_rule_means(const char *rule);

/* Of a sandbox, by the word of its agent. */
struct egress_process {
    uint32_t pid; /* inside; 0: not known */
    char name[EGRESS_PROCESS_MAX];
};

struct egress_event {
    char sandbox[EGRESS_ID_MAX];
    enum egress_what what;
    char host[REACH_NAME_MAX]; /* "" if none is known */
    struct ip ip;
    uint16_t port; /* for names: where it was asked */
    char rule[REACH_TEXT_MAX];
    char reason
        [EGRESS_REASON_MAX]; /* what is wrong, or what the rule means; "": nothing more is known */
    struct egress_process process; /* of EGRESS_REFUSED and EGRESS_NAME */
    uint64_t sent, received, ms;
    uint64_t missed; /* others of this sandbox before it, which were too many to be told */
    char from[EGRESS_ID_MAX], to[EGRESS_ID_MAX]; /* between two sandboxes: both are told; else "" */
};
typedef void egress_event_fn(void *context, const struct egress_event *event);

/* Whose is the connection or the datagram of that sandbox, from there to there? Called with the gateway's lock held, so it only takes the
 * question down; false: there is no room. The answer comes from another thread, by egress_answer. */
struct egress_ask {
    char sandbox[EGRESS_ID_MAX];
    uint64_t ticket;
    bool datagram; /* a question for a name, over UDP */
    struct ip from, to;
    uint16_t from_port, to_port;
};
typedef bool egress_ask_fn(void *context, const struct egress_ask *ask);

/* What sandboxes share. A tenant may have as many as are free, so that one alone has half of all and there is always some
 * left for the next tenant; a sandbox may have as many as its tenant could still take. */
enum egress_share {
    EGRESS_CONNECTIONS, /* at once */
    EGRESS_LOOKUPS,     /* questions to name servers, at once */
    EGRESS_HANDSHAKES,  /* of TLS that is opened for secrets, in a second */
    EGRESS_SHARES
};
const char *egress_share_name(enum egress_share share);

/* Whose limit it was. */
enum egress_whose { EGRESS_OF_SANDBOX, EGRESS_OF_TENANT, EGRESS_OF_SERVER, EGRESS_WHOSE };
const char *egress_whose_name(enum egress_whose whose);

struct egress_limits { /* of one sandbox */
    uint64_t connections;
    uint64_t connects_per_s;
    uint64_t bytes_per_s; /* both ways; 0: no limit */
    uint64_t idle_ms;
    uint64_t questions_per_s;
};

/* A port of another sandbox is wanted. */
struct egress_dial {
    uint64_t ticket;
    char tenant[EGRESS_ID_MAX], from[EGRESS_ID_MAX], to[EGRESS_ID_MAX];
    uint16_t port;
};
/* On any thread, with the gateway locked: takes note and returns. The listener answers with egress_dialed. */
typedef void egress_dial_fn(void *context, const struct egress_dial *dial);

struct egress_config {
    struct egress_limits limits;
    uint64_t shares[EGRESS_SHARES]; /* of all sandboxes; 0: no limit but descriptors */
    char ranges[EGRESS_RANGES_MAX]; /* not public, and rules may name them: base/prefix.h */
    char servers[EGRESS_SERVERS][IP_TEXT_MAX]; /* name servers; none: those of /etc/resolv.conf */
    uint16_t server_port;                      /* 0: 53 */
    /* where proxies of tenants may be, besides public addresses: base/prefix.h */
    char proxy_ranges[EGRESS_RANGES_MAX];
    /* PEM text, beside those of this host; NULL: none. Borrowed until egress_stop */
    const char *authorities;
    egress_event_fn *event;
    egress_ask_fn *ask; /* NULL: no question can be asked */
    egress_dial_fn *dial;
    void *context;
};

struct egress;

int egress_start(const struct egress_config *config, struct egress **ret, struct err *err);
/* Cuts everything. Accepts NULL. */
void egress_stop(struct egress *egress);
/* Other ranges that rules may name, from now on; connections that they do not allow are cut. */
void egress_set_ranges(struct egress *egress, const char *ranges);

/* What is put into requests of one sandbox. `rewrite` is taken in any case. With the PEM texts of an authority (else NULL)
 * TLS to hosts that it concerns is opened on the way. NULL: with err. */
struct egress_secrets *egress_secrets_new(struct rewrite *rewrite, const char *cert,
                                          const char *key, struct err *err);
void egress_secrets_free(struct egress_secrets *secrets);

/* Rules of a sandbox, copied. tenant: whose share it uses; only looked at with fds. secrets: taken in any case; NULL: as they are. fds: its sockets, taken in any case; NULL: it
 * has them already, and only the rules change, which cuts the connections that they do not allow. ERR_NO_SANDBOX: it has
 * none. */
int egress_set(struct egress *egress, const char *sandbox, const char *tenant,
               const struct reach *rules, struct egress_secrets *secrets, const int fds[EGRESS_FDS],
               struct err *err);
/* NULL: not known. An answer that comes too late is no error. */
void egress_answer(struct egress *egress, uint64_t ticket, const struct egress_process *process);
/* Connections and questions that it has open; 0 also for one that is not there. */
size_t egress_open(struct egress *egress, const char *sandbox);
/* One that is not there is no error. */
void egress_drop(struct egress *egress, const char *sandbox);

/* ---- private networks (peer.c) ---- */

#define EGRESS_LABEL_MAX 64
#define EGRESS_PORTS     32
#define EGRESS_SUFFIX    "internal" /* alias.network.internal */

struct egress_member {
    char sandbox[EGRESS_ID_MAX];
    char alias[EGRESS_LABEL_MAX];
    struct ip ip;
    uint64_t seq; /* who joined earlier has a smaller one */
    size_t port_count;
    uint16_t ports[EGRESS_PORTS];
};

static inline bool egress_member_has(const struct egress_member *member, uint16_t port)
{
    for (size_t i = 0; i < member->port_count; i++)
        if (member->ports[i] == port)
            return true;
    return false;
}

struct egress_net {
    char name[EGRESS_LABEL_MAX];
    size_t count;
    struct egress_member *members;
};

/* All networks of a tenant as they are from now on, copied. Connections that they do not allow are cut. */
int egress_nets_set(struct egress *egress, const char *tenant, const struct egress_net *nets,
                    size_t count, struct err *err);
/* Members that have no gateway, so that no member reaches them, of a tenant or (NULL) of all. *ret: the caller's to free. */
int egress_nets_without(struct egress *egress, const char *tenant, char (**ret)[EGRESS_ID_MAX],
                        size_t *ret_count, struct err *err);
/* fd: a stream to the port, taken in any case; -1: why not. ERR_STATE is told as a refusal. No caller may wait any more. */
void egress_dialed(struct egress *egress, const struct egress_dial *dial, int fd,
                   const struct err *why);

struct egress_counts {
    uint64_t sandboxes, connections, connects, refused, questions, bytes;
    uint64_t used[EGRESS_SHARES], most[EGRESS_SHARES]; /* by all; handshakes: of this second */
    uint64_t tenant_used[EGRESS_SHARES];               /* by the tenant that uses most */
    uint64_t limited[EGRESS_SHARES][EGRESS_WHOSE];     /* refused for want of a share */
};
void egress_counts(struct egress *egress, struct egress_counts *ret);

#endif
