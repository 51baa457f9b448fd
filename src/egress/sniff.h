/* sniff.h - which host the first bytes of a connection are for: TLS by its server name, HTTP by its Host.
 *
 * Pure; what is read is hostile. Fuzzed. */
#ifndef COVE_EGRESS_SNIFF_H
#define COVE_EGRESS_SNIFF_H

#include "egress/reach.h"

#include <stddef.h>
#include <stdint.h>

#define SNIFF_MAX 16384 /* no hello and no head is longer than that */

#define SNIFF_TLS_BYTE 22 /* what begins otherwise is no TLS */

enum sniff {
    SNIFF_MORE,  /* not enough yet to tell */
    SNIFF_TLS,   /* name is "" if it has none */
    SNIFF_HTTP,  /* likewise */
    SNIFF_OTHER, /* neither */
    SNIFF_BAD, /* begins as one of them and is broken, or hides its name: refuse it where names count */
};

/* Looks at all bytes so far. */
enum sniff sniff_first(const uint8_t *data, size_t len, char ret_name[REACH_NAME_MAX]);

#endif
