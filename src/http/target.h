/* target.h - the request target and the Host header: where a request goes.
 *
 * Accepts what a server of its own origin needs (RFC 9112, section 3.2): origin-form, absolute-form
 * with http or https, and the asterisk. Nothing is decoded or resolved here. */
#ifndef COVE_HTTP_TARGET_H
#define COVE_HTTP_TARGET_H

#include "base/err.h"
#include "http/slice.h"

struct target {
    struct slice authority; /* of an absolute-form; at is NULL in the others */
    struct slice path;      /* raw; empty in "http://host", "*" for the asterisk */
    struct slice query;     /* raw, behind the '?'; at is NULL without one */
    bool asterisk;
};

int target_parse(struct slice text, struct target *ret_target, struct err *err);

struct host {
    struct slice name; /* without port; IPv6 addresses keep their brackets */
    uint16_t port;     /* 0: none given */
};

/* name, name:port, 1.2.3.4:port, [::1]:port. No user, no empty name, no empty port. */
int host_parse(struct slice text, struct host *ret_host, struct err *err);

#endif
