#include "image/proto.h"

#include <stddef.h>

static bool get_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;

        *ret |= (uint64_t) (byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool proto_next(const uint8_t **at, const uint8_t *end, struct proto_field *ret)
{
    uint64_t key;

    if (!get_varint(at, end, &key) || !get_varint(at, end, &ret->value))
        return false;
    ret->number = (unsigned) (key >> 3);
    ret->data = NULL;
    ret->last = *at - 1;
    if ((key & 7) == 0)
        return true;
    if ((key & 7) != 2 || ret->value > (size_t) (end - *at))
        return false;
    ret->data = *at;
    *at += ret->value;
    return true;
}
