#include "agent/worker/owner.h"

#include "agent/worker/answer.h"
#include "agent/worker/port.h"
#include "base/own.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

bool owner_parse(const char *line, bool v6, struct owner_line *ret)
{
    unsigned words[4] = { 0 }, port, peer_port, uid;
    unsigned long long inode;
    int n = -1;

    memset(ret, 0, sizeof *ret);
    if (v6)
        (void) sscanf(
            line, " %*u: %*32x:%4x %8x%8x%8x%8x:%4x %*2x %*x:%*x %*x:%*x %*x %u %*u %llu%n", &port,
            &words[0], &words[1], &words[2], &words[3], &peer_port, &uid, &inode, &n);
    else
        (void) sscanf(line, " %*u: %*8x:%4x %8x:%4x %*2x %*x:%*x %*x:%*x %*x %u %*u %llu%n", &port,
                      &words[3], &peer_port, &uid, &inode, &n);
    if (n < 0)
        return false;
    /* The kernel prints each word of the address as it lies in memory. */
    memcpy(ret->peer, words, sizeof ret->peer);
    if (!v6)
        memcpy(ret->peer, mapped, sizeof mapped);
    ret->port = port;
    ret->peer_port = peer_port;
    ret->uid = uid;
    ret->inode = inode;
    return true;
}

bool owner_matches(const struct owner_line *line, const struct owner_line *wanted, bool datagram)
{
    static const uint8_t none[2][16] = { { 0 }, { [10] = 0xff, [11] = 0xff } };

    if (line->port != wanted->port || line->inode == 0)
        return false;
    if (line->peer_port == wanted->peer_port &&
        memcmp(line->peer, wanted->peer, sizeof line->peer) == 0)
        return true;
    /* One that is not connected sends to whom it likes. */
    return datagram && line->peer_port == 0 &&
           (memcmp(line->peer, none[0], sizeof line->peer) == 0 ||
            memcmp(line->peer, none[1], sizeof line->peer) == 0);
}

static bool find_socket(const char *path, bool v6, bool datagram, const struct owner_line *wanted,
                        struct owner_line *ret)
{
    auto_file FILE *file = fopen(path, "re");
    char line[512];

    while (file && fgets(line, sizeof line, file))
        if (owner_parse(line, v6, ret) && owner_matches(ret, wanted, datagram))
            return true;
    return false;
}

int owner_run(struct worker *w, struct err *err)
{
    const struct agent_request *r = w->request;
    struct owner_line wanted = { .port = r->port, .peer_port = r->peer_port }, found;
    struct agent_reply reply = { .pid = 0 };
    struct port holder = { .port = r->port };
    bool datagram = r->flags & AGENT_DATAGRAM;

    memcpy(wanted.peer, mapped, sizeof mapped);
    if (inet_pton(AF_INET, r->peer, wanted.peer + sizeof mapped) != 1 &&
        inet_pton(AF_INET6, r->peer, wanted.peer) != 1)
        return err_set(err, ERR_INVALID, "owner: peer is not an address");
    /* A socket of IPv6 may hold a connection of IPv4. */
    if (find_socket(datagram ? "/proc/net/udp" : "/proc/net/tcp", false, datagram, &wanted,
                    &found) ||
        find_socket(datagram ? "/proc/net/udp6" : "/proc/net/tcp6", true, datagram, &wanted,
                    &found)) {
        reply.uid = found.uid;
        reply.count = 1;
        holder.inode = found.inode;
        port_find_processes(&holder, 1);
        reply.pid = holder.pid;
        reply.program = holder.program[0] ? holder.program : NULL;
    }
    return answer_record(w, FRAME_REPLY, &reply, err);
}
