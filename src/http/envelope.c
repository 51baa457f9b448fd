#include "http/envelope.h"

static int take_head(struct envelope *envelope, struct err *err)
{
    const uint8_t *head = envelope->head;
    uint32_t size = (uint32_t) head[1] << 24 | (uint32_t) head[2] << 16 | (uint32_t) head[3] << 8 |
                    (uint32_t) head[4];

    if (head[0] & ENVELOPE_COMPRESSED)
        return err_set(err, ERR_INVALID, "a compressed message, where no compression was agreed");
    if (head[0] != ENVELOPE_MESSAGE)
        return err_set(err, ERR_INVALID, "an envelope with flags that a request cannot have");
    if (size > envelope->limit)
        return err_set(err, ERR_TOO_BIG, "a message of %u bytes, where %u are allowed", size,
                       envelope->limit);
    envelope->size = envelope->left = size;
    return 0;
}

int envelope_read(struct envelope *envelope, const char *in, size_t len, size_t *ret_used,
                  struct envelope_piece *ret, struct err *err)
{
    size_t at = 0, take;

    *ret_used = 0;
    if (envelope->have < ENVELOPE_HEAD) {
        while (at < len && envelope->have < ENVELOPE_HEAD) {
            envelope->head[envelope->have++] = (uint8_t) in[at++];
            /* The flags say enough to refuse; a length that never comes need not be waited for. */
            if (envelope->have == 1 && envelope->head[0] != ENVELOPE_MESSAGE)
                return take_head(envelope, err);
        }
        *ret_used = at;
        if (envelope->have < ENVELOPE_HEAD)
            return 0;
        if (take_head(envelope, err) < 0)
            return -1;
    }
    if (at == len && envelope->left > 0)
        return 0;
    take = len - at < envelope->left ? len - at : envelope->left;
    *ret = (struct envelope_piece){ .data = { in + at, take },
                                    .size = envelope->size,
                                    .first = envelope->left == envelope->size,
                                    .last = envelope->left == take };
    envelope->left -= (uint32_t) take;
    if (envelope->left == 0)
        envelope->have = 0;
    *ret_used = at + take;
    return 1;
}

void envelope_put(char out[ENVELOPE_HEAD], uint8_t flags, uint32_t len)
{
    out[0] = (char) flags;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (char) (len >> (24 - 8 * i));
}
