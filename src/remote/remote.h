/* remote.h - a cove server: where it is, how to get there, who asks.
 *
 * A server is the one of this host (<state>/cove.sock), or one with a URL and a key. Connections to another host are made by
 * the program cove-dial, which looks up the name and speaks TLS: this library, and so the command line, has neither.
 *
 * Callers: the command line.
 * Never:   reads settings or the environment: that is cli/api/server.h. */
#ifndef COVE_REMOTE_REMOTE_H
#define COVE_REMOTE_REMOTE_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum remote_kind { REMOTE_LOCAL, REMOTE_HTTP, REMOTE_HTTPS };

struct remote {
    enum remote_kind kind;
    char state[PATH_MAX]; /* REMOTE_LOCAL */
    char host[256];       /* without brackets */
    uint16_t port;
    char prefix[256];      /* of every path; "" or "/…" without a slash at its end */
    char key[256];         /* "": none */
    char tenant[64];       /* for whom the operator asks; "": for the own tenant */
    char cacert[PATH_MAX]; /* "": the authorities of this host */
    char dialer[PATH_MAX]; /* the program cove-dial */
    char proxy[300];       /* HOST:PORT that is asked to CONNECT; "": none */
    /* no connection to an address that is not public: another server named the host */
    bool public_only;
    unsigned seconds; /* after which a connection ends, in any case; 0: never */
};

/* http://HOST[:PORT][/PATH] or https://…; HOST may be [::1]. What a URL has beyond that is refused. Fills kind to prefix. */
int remote_parse(const char *url, struct remote *ret, struct err *err);

/* A connected stream. */
int remote_dial(const struct remote *remote, int *ret_fd, struct err *err);

#endif
