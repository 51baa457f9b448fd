/* A delimiter is CRLF, two dashes and the boundary. CR stands at its start and nowhere else in it,
 * so when it breaks off after `matched` bytes, all of them were data, and only the byte that broke
 * it can begin another. No buffer is needed to look back: the bytes are those of the delimiter. */
#include "http/multipart.h"

#include "http/chars.h"
#include "http/field.h"
#include "http/part.h"
#include "http/value.h"

static bool boundary_ok(const char *text, size_t len)
{
    if (len == 0 || text[len - 1] == ' ')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!char_is(text[i], CHAR_PLAIN) && !strchr("'()+,/:=? ", text[i]))
            return false;
    return true;
}

int multipart_init(struct multipart *multipart, struct slice content_type, struct err *err)
{
    char *boundary = multipart->delimiter + 4;
    ssize_t len;
    bool found;

    memset(multipart, 0, sizeof *multipart);
    if (!slice_is_nocase(value_main(content_type), "multipart/form-data"))
        return err_set(err, ERR_UNSUPPORTED, "Content-Type is not multipart/form-data");
    memcpy(multipart->delimiter, "\r\n--", 4);
    len = value_param(content_type, "boundary", boundary, MULTIPART_BOUNDARY_MAX + 1, &found);
    if (!found)
        return err_set(err, ERR_INVALID, "Content-Type has no boundary");
    if (len < 0 || !boundary_ok(boundary, (size_t) len))
        return err_set(err, ERR_INVALID, "Content-Type has an invalid boundary");
    multipart->delimiter_len = (uint8_t) (len + 4);
    return 0;
}

/* The first delimiter may do without its CRLF. */
static int on_start(struct multipart *multipart, char byte, struct err *err)
{
    if (multipart->matched == 0 && byte == '-')
        multipart->matched = 2;
    if (byte != multipart->delimiter[multipart->matched])
        return err_set(err, ERR_INVALID, "multipart: the body does not begin with its boundary");
    if (++multipart->matched == multipart->delimiter_len)
        multipart->state = MULTIPART_BEHIND;
    return MULTIPART_MORE;
}

static int on_behind(struct multipart *multipart, char byte, struct err *err)
{
    char first = multipart->behind;

    if (first == 0 && (byte == '\r' || byte == '-')) {
        multipart->behind = byte;
        return MULTIPART_MORE;
    }
    if (!(first == '\r' && byte == '\n') && !(first == '-' && byte == '-'))
        return err_set(err, ERR_INVALID, "multipart: a boundary ends with neither CRLF nor --");
    multipart->behind = 0;
    multipart->matched = 0;
    if (first == '-') {
        multipart->state = MULTIPART_EPILOGUE;
        return MULTIPART_LAST;
    }
    if (++multipart->parts > MULTIPART_PARTS_MAX)
        return err_set(err, ERR_TOO_BIG, "multipart: more than %d parts", MULTIPART_PARTS_MAX);
    part_begin(multipart);
    multipart->state = MULTIPART_HEADERS;
    return MULTIPART_MORE;
}

/* The line is in head[line..head_len), with its CRLF. */
static int on_line(struct multipart *multipart, struct err *err)
{
    struct slice line = { multipart->head + multipart->line,
                          (size_t) multipart->head_len - multipart->line - 2 };
    struct http_field field;

    multipart->line = multipart->head_len;
    if (line.len == 0) {
        if (part_complete(multipart, err) < 0)
            return -1;
        multipart->state = MULTIPART_BODY;
        return MULTIPART_PART;
    }
    if (++multipart->fields > MULTIPART_FIELDS_MAX)
        return err_set(err, ERR_TOO_BIG, "multipart: a part has more than %d headers",
                       MULTIPART_FIELDS_MAX);
    if (field_parse(line, &field, err) < 0)
        return err_wrap(err, "multipart");
    return part_field(multipart, &field, err) < 0 ? -1 : MULTIPART_MORE;
}

static int on_header(struct multipart *multipart, char byte, struct err *err)
{
    bool after_cr =
        multipart->head_len > multipart->line && multipart->head[multipart->head_len - 1] == '\r';

    if (after_cr != (byte == '\n') || (byte != '\r' && byte != '\n' && !char_is(byte, CHAR_VALUE)))
        return err_set(err, ERR_INVALID,
                       "multipart: a header has the byte 0x%02x, which is not allowed",
                       (unsigned char) (after_cr ? '\r' : byte));
    if (multipart->head_len == MULTIPART_HEAD_MAX)
        return err_set(err, ERR_TOO_BIG,
                       "multipart: the headers of a part are larger than %d bytes",
                       MULTIPART_HEAD_MAX);
    multipart->head[multipart->head_len++] = byte;
    return byte == '\n' ? on_line(multipart, err) : MULTIPART_MORE;
}

static int on_epilogue(struct multipart *multipart, char byte, struct err *err)
{
    (void) byte;
    if (++multipart->epilogue > MULTIPART_EPILOGUE_MAX)
        return err_set(err, ERR_TOO_BIG, "multipart: too much data after the last boundary");
    return MULTIPART_MORE;
}

/* Data up to the next CR, or as much of a delimiter as is there. */
static int on_body(struct multipart *multipart, const char *in, size_t len, size_t *used,
                   struct slice *ret_data)
{
    const char *cr;
    size_t n;

    while (multipart->matched > 0 && *used < len) {
        if (in[*used] != multipart->delimiter[multipart->matched]) {
            *ret_data = (struct slice){ multipart->delimiter, multipart->matched };
            multipart->matched = 0;
            return MULTIPART_DATA;
        }
        ++*used;
        if (++multipart->matched == multipart->delimiter_len) {
            multipart->state = MULTIPART_BEHIND;
            return MULTIPART_END;
        }
    }
    if (*used == len)
        return MULTIPART_MORE;
    cr = memchr(in + *used, '\r', len - *used);
    n = cr ? (size_t) (cr - in) - *used : len - *used;
    *ret_data = (struct slice){ in + *used, n };
    *used += n;
    if (cr) {
        ++*used;
        multipart->matched = 1;
    }
    return n > 0 ? MULTIPART_DATA : MULTIPART_MORE;
}

int multipart_read(struct multipart *multipart, const char *in, size_t len, size_t *ret_used,
                   struct slice *ret_data, struct err *err)
{
    static int (*const steps[])(struct multipart *, char, struct err *) = {
        [MULTIPART_START] = on_start,
        [MULTIPART_BEHIND] = on_behind,
        [MULTIPART_HEADERS] = on_header,
        [MULTIPART_EPILOGUE] = on_epilogue,
    };
    size_t used = 0;
    int r = MULTIPART_MORE;

    while (r == MULTIPART_MORE && used < len)
        if (multipart->state == MULTIPART_BODY)
            r = on_body(multipart, in, len, &used, ret_data);
        else
            r = steps[multipart->state](multipart, in[used++], err);
    *ret_used = used;
    return r;
}
