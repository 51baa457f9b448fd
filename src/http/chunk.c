/* One function per state takes one byte and names the next state; only data is taken in pieces. */
#include "http/chunk.h"

#include "base/own.h"
#include "http/chars.h"
#include "http/put.h"

static int refuse_byte(struct err *err, const char *where, char byte)
{
    return err_set(err, ERR_INVALID, "chunked body: %s has the byte 0x%02x, which is not allowed",
                   where, (unsigned char) byte);
}

/* All steps: the next state, or -1. */
static int on_size(struct chunk *chunk, char byte, struct err *err)
{
    if (char_is(byte, CHAR_HEX)) {
        if (++chunk->digits > CHUNK_DIGITS_MAX || chunk->left > (uint64_t) INT64_MAX >> 4)
            return err_set(err, ERR_INVALID, "chunked body: a chunk size is too large");
        chunk->left = chunk->left << 4 | char_hex(byte);
        return CHUNK_SIZE;
    }
    if (chunk->digits == 0 || (byte != '\r' && byte != ';'))
        return refuse_byte(err, "a chunk size", byte);
    if (chunk->left > (uint64_t) INT64_MAX - chunk->total)
        return err_set(err, ERR_INVALID, "chunked body: the chunks are too large together");
    chunk->total += chunk->left;
    chunk->extension = 0;
    return byte == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
}

static int on_extension(struct chunk *chunk, char byte, struct err *err)
{
    if (byte == '\r' && chunk->extension > 0)
        return CHUNK_SIZE_LF;
    if (!char_is(byte, CHAR_VALUE))
        return refuse_byte(err, "a chunk extension", byte);
    if (++chunk->extension > CHUNK_EXTENSION_MAX || ++chunk->extensions > CHUNK_EXTENSIONS_MAX)
        return err_set(err, ERR_TOO_BIG, "chunked body: chunk extensions are too long");
    return CHUNK_EXTENSION;
}

static int on_size_lf(struct chunk *chunk, char byte, struct err *err)
{
    if (byte != '\n')
        return refuse_byte(err, "the end of a chunk size", byte);
    chunk->digits = 0;
    return chunk->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
}

static int on_data_cr(struct chunk *chunk, char byte, struct err *err)
{
    (void) chunk;
    return byte == '\r' ? CHUNK_DATA_LF : refuse_byte(err, "the end of a chunk's data", byte);
}

static int on_data_lf(struct chunk *chunk, char byte, struct err *err)
{
    (void) chunk;
    return byte == '\n' ? CHUNK_SIZE : refuse_byte(err, "the end of a chunk's data", byte);
}

static int count_trailer(struct chunk *chunk, struct err *err)
{
    if (++chunk->trailer > CHUNK_TRAILER_MAX)
        return err_set(err, ERR_TOO_BIG, "chunked body: trailers are larger than %d bytes",
                       CHUNK_TRAILER_MAX);
    return 0;
}

static int on_trailer(struct chunk *chunk, char byte, struct err *err)
{
    if (byte == '\r')
        return CHUNK_END_LF;
    if (!char_is(byte, CHAR_TOKEN))
        return refuse_byte(err, "the name of a trailer", byte);
    if (++chunk->trailers > CHUNK_TRAILERS_MAX)
        return err_set(err, ERR_TOO_BIG, "chunked body: more than %d trailers", CHUNK_TRAILERS_MAX);
    return count_trailer(chunk, err) < 0 ? -1 : CHUNK_TRAILER_NAME;
}

static int on_trailer_name(struct chunk *chunk, char byte, struct err *err)
{
    if (byte != ':' && !char_is(byte, CHAR_TOKEN))
        return refuse_byte(err, "the name of a trailer", byte);
    if (count_trailer(chunk, err) < 0)
        return -1;
    return byte == ':' ? CHUNK_TRAILER_VALUE : CHUNK_TRAILER_NAME;
}

static int on_trailer_value(struct chunk *chunk, char byte, struct err *err)
{
    if (byte == '\r')
        return CHUNK_TRAILER_LF;
    if (!char_is(byte, CHAR_VALUE))
        return refuse_byte(err, "a trailer", byte);
    return count_trailer(chunk, err) < 0 ? -1 : CHUNK_TRAILER_VALUE;
}

static int on_trailer_lf(struct chunk *chunk, char byte, struct err *err)
{
    (void) chunk;
    return byte == '\n' ? CHUNK_TRAILER : refuse_byte(err, "the end of a trailer", byte);
}

static int on_end_lf(struct chunk *chunk, char byte, struct err *err)
{
    (void) chunk;
    return byte == '\n' ? CHUNK_DONE : refuse_byte(err, "the end of the trailers", byte);
}

static int (*const steps[])(struct chunk *chunk, char byte, struct err *err) = {
    [CHUNK_SIZE] = on_size,
    [CHUNK_EXTENSION] = on_extension,
    [CHUNK_SIZE_LF] = on_size_lf,
    [CHUNK_DATA_CR] = on_data_cr,
    [CHUNK_DATA_LF] = on_data_lf,
    [CHUNK_TRAILER] = on_trailer,
    [CHUNK_TRAILER_NAME] = on_trailer_name,
    [CHUNK_TRAILER_VALUE] = on_trailer_value,
    [CHUNK_TRAILER_LF] = on_trailer_lf,
    [CHUNK_END_LF] = on_end_lf,
};
_Static_assert(ARRAY_LEN(steps) == CHUNK_DONE, "every state but the last has a step, or is data");

int chunk_read(struct chunk *chunk, const char *in, size_t len, size_t *ret_used,
               struct slice *ret_data, struct err *err)
{
    size_t used = 0;

    while (used < len && chunk->state != CHUNK_DONE && chunk->state != CHUNK_DATA) {
        int next = steps[chunk->state](chunk, in[used], err);

        if (next < 0)
            return -1;
        chunk->state = (enum chunk_state) next;
        used++;
    }
    if (chunk->state == CHUNK_DATA && used < len) {
        size_t n = len - used < chunk->left ? len - used : (size_t) chunk->left;

        *ret_data = (struct slice){ in + used, n };
        *ret_used = used + n;
        chunk->left -= n;
        if (chunk->left == 0)
            chunk->state = CHUNK_DATA_CR;
        return 1;
    }
    *ret_used = used;
    return 0;
}

size_t chunk_head(char out[CHUNK_HEAD_MAX], uint64_t len)
{
    struct put put = put_into(out, CHUNK_HEAD_MAX);

    put_hex(&put, len);
    put_text(&put, "\r\n");
    return put.len;
}
