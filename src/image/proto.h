/* proto.h - protobuf, as much of it as is needed to read what criu writes.
 *
 * Callers: criu.c (its answers), timers.c (its files). */
#ifndef COVE_IMAGE_PROTO_H
#define COVE_IMAGE_PROTO_H

#include <stdbool.h>
#include <stdint.h>

struct proto_field {
    unsigned number;
    uint64_t value;      /* of a number; of bytes: how many */
    const uint8_t *data; /* bytes, borrowed; NULL: a number */
    const uint8_t *last; /* of a number: its last byte */
};

/* The next field, *at moved behind it; false at the end, and at anything that is no field. */
bool proto_next(const uint8_t **at, const uint8_t *end, struct proto_field *ret);

#endif
