#include "egress/egress_own.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#define TRY_MS   2000
#define TRIES    3
#define CONF     "/etc/resolv.conf"
#define CONF_MAX 8192

/* The servers of this host; read again when it looks around, since networks change. */
void lookup_servers(struct egress *e)
{
    char text[CONF_MAX], *line, *rest = text;
    auto_close int fd = -1;
    ssize_t n;

    e->server_count = 0;
    for (size_t i = 0; i < EGRESS_SERVERS && e->config.servers[i][0]; i++)
        if (ip_parse(e->config.servers[i], &e->servers[e->server_count]))
            e->server_count++;
    if (e->server_count > 0)
        return;
    fd = open(CONF, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return;
    text[n] = '\0';
    while ((line = strsep(&rest, "\n")) && e->server_count < EGRESS_SERVERS) {
        char address[64];

        if (sscanf(line, " nameserver %63s", address) == 1 &&
            ip_parse(address, &e->servers[e->server_count]))
            e->server_count++;
    }
}

void lookup_free(struct egress *e, struct lookup *lookup)
{
    if (lookup->ticket)
        question_forget(e, lookup);
    source_close(e, &lookup->source);
    if (lookup->prev)
        lookup->prev->next = lookup->next;
    else
        e->lookups = lookup->next;
    if (lookup->next)
        lookup->next->prev = lookup->prev;
    if (lookup->flow)
        lookup->flow->lookup = NULL;
    share_give(e, lookup->box, EGRESS_LOOKUPS);
    free_later(e, &lookup->deferred);
}

static void finish(struct egress *e, struct lookup *lookup, const struct dns_answer *answer)
{
    struct flow *flow = lookup->flow;

    if (flow)
        flow->lookup = NULL;
    lookup->done(e, lookup, answer);
    lookup->flow = NULL;
    lookup_free(e, lookup);
}

static void on_answer(struct egress *e, struct source *source, uint32_t events)
{
    struct lookup *lookup =
        (struct lookup *) (void *) ((char *) source - offsetof(struct lookup, source));
    uint8_t message[DNS_MESSAGE_MAX];
    struct dns_answer answer;
    struct err ignored;
    ssize_t n = recv(source->fd, message, sizeof message, MSG_DONTWAIT);

    (void) events;
    if (n < 0) { /* no answer: the next server, at the next tick */
        if (errno != EAGAIN)
            lookup->deadline_ms = 0;
        return;
    }
    /* Anything else than the answer is a guess by another host: the right one may still come. */
    if (dns_read_answer(message, (size_t) n, lookup->id, lookup->name, lookup->type, &answer,
                        &ignored) < 0)
        return;
    if (answer.code == DNS_SERVER_FAILURE && lookup->tries < TRIES)
        lookup->deadline_ms = 0;
    else
        finish(e, lookup, &answer);
}

/* Every try has a socket of its own, so that port and number are hard to guess. */
static int ask(struct egress *e, struct lookup *lookup)
{
    const struct ip *server = &e->servers[lookup->tries % (e->server_count ? e->server_count : 1)];
    uint8_t message[DNS_MESSAGE_MAX];
    struct sockaddr_storage at;
    socklen_t len;
    size_t size;

    if (e->server_count == 0 || lookup->tries++ == TRIES)
        return -1;
    len = ip_to_sockaddr(server, e->config.server_port ? e->config.server_port : DNS_PORT, &at);
    source_close(e, &lookup->source);
    lookup->source =
        (struct source){ .fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                         .alone = true,
                         .ready = on_answer };
    lookup->deadline_ms = io_now_ms() + TRY_MS;
    if (lookup->source.fd < 0 || getrandom(&lookup->id, sizeof lookup->id, GRND_NONBLOCK) < 0)
        return -1;
    size = dns_write_question(lookup->id, lookup->name, lookup->type, message);
    if (connect(lookup->source.fd, (const struct sockaddr *) &at, len) < 0 ||
        send(lookup->source.fd, message, size, MSG_NOSIGNAL) < 0)
        lookup->deadline_ms = 0; /* the next server, at the next tick */
    return source_arm(e, &lookup->source, EPOLLIN);
}

struct lookup *lookup_new(struct egress *e, struct box *box, const char *name,
                          char why[EGRESS_REASON_MAX])
{
    struct lookup *lookup;

    why[0] = '\0';
    if (!share_take(e, box, EGRESS_LOOKUPS, why))
        return NULL;
    lookup = calloc(1, sizeof *lookup);
    if (!lookup) {
        share_give(e, box, EGRESS_LOOKUPS);
        return NULL;
    }
    lookup->source.fd = -1;
    lookup->box = box;
    (void) strcpy(lookup->name, name);
    lookup->next = e->lookups;
    if (e->lookups)
        e->lookups->prev = lookup;
    e->lookups = lookup;
    return lookup;
}

struct lookup *lookup_start(struct egress *e, struct box *box, const char *name, enum dns_type type,
                            lookup_fn *done, char why[EGRESS_REASON_MAX])
{
    struct lookup *lookup = lookup_new(e, box, name, why);

    if (!lookup)
        return NULL;
    lookup->type = type;
    lookup->done = done;
    if (ask(e, lookup) == 0)
        return lookup;
    lookup_free(e, lookup);
    return NULL;
}

void lookup_tick(struct egress *e, uint64_t now)
{
    static const struct dns_answer failure = { .code = DNS_SERVER_FAILURE };

    for (struct lookup *lookup = e->lookups, *next; lookup; lookup = next) {
        next = lookup->next;
        if (now < lookup->deadline_ms)
            continue;
        if (lookup->ticket)
            question_owner(e, lookup, NULL);
        else if (ask(e, lookup) < 0)
            finish(e, lookup, &failure);
    }
}
