/* pull.h - images for tenants: what coved orders of the process that makes templates of them, and what that reports.
 *
 *   coved ── <state>/pull.sock ──► cove-host (root, started by 'cove up') ──► cove-pull (network) and cove-import (layers),
 *                                                                               each with a user of its own and no rights
 *
 * One order for each connection, a packet; an import's comes with the archive's descriptor. Reports follow, packets, too;
 * the last is PULL_DONE, PULL_KNOWN or PULL_FAILED. A connection that coved closes ends the work, and nothing is left of it.
 * The reader of a packet trusts nothing in it: pull_order_check, pull_report_check. Pure. */
#ifndef COVE_WIRE_PULL_H
#define COVE_WIRE_PULL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PULL_SOCKET "pull.sock"
#define PULL_PREFIX "pulled." /* of the names of tenants' templates; no tenant can name one */

#define PULL_NAME_MAX   64
#define PULL_DIGEST_MAX 80
#define PULL_KNOWN_MAX  16
#define PULL_MAGIC      0x70756c31u

enum pull_op {
    PULL_IMAGE = 1, /* out of a registry */
    PULL_ARCHIVE,   /* out of a file of docker save or OCI */
    PULL_REMOVE     /* a template that was made so; ERR_STATE: something stands on it */
};

struct pull_order {
    uint32_t magic;
    uint32_t op;         /* enum pull_op */
    uint64_t bytes_most; /* of the template; 0: as many as any image may have */
    uint64_t silence_ms; /* how long the registry may say nothing */
    uint64_t limit_ms;   /* and all of it may take */
    char name[PULL_NAME_MAX];
    char reference[512];
    char tag[136];                               /* of an archive with several images; "" */
    char basic[8192];                            /* credentials, base64; "" */
    char hosts[1024], mirrors[1024], proxy[304]; /* registry/registry.h, image.h */
    char known[PULL_KNOWN_MAX][PULL_DIGEST_MAX]; /* images that need not be made: their digests */
};

enum pull_word {
    PULL_STEP = 1, /* text, percent */
    PULL_NOTE,     /* text */
    PULL_DONE,     /* bytes, files, digest */
    PULL_KNOWN,    /* digest: one of those that are known */
    PULL_FAILED    /* kind, text */
};

struct pull_report {
    uint32_t magic;
    uint32_t word; /* enum pull_word */
    uint32_t kind; /* enum err_kind */
    uint32_t percent;
    uint64_t bytes, files;
    char digest[PULL_DIGEST_MAX];
    char text[ERR_MSG_MAX];
};

/* A name that pulls make: PULL_PREFIX and an id. */
bool pull_name_ok(const char *name);
/* Whether a template's name is of that kind, so that only its tenant's records may lead to it. */
bool pull_name_is(const char *name);

int pull_order_check(const struct pull_order *order, size_t len, struct err *err);
/* What all downloads of the order may take: a day at most. */
uint64_t pull_order_limit(const struct pull_order *order);
/* Control characters of its text become '?'. */
int pull_report_check(struct pull_report *report, size_t len, struct err *err);

#endif
