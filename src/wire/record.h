/* record.h - C structs as bytes, driven by a table of fields.
 *
 * A record is a sequence of fields: u16 tag, u32 length, value; little-endian, in the table's
 * order or any other, each at most once. Zero numbers, NULL texts and empty lists are left out,
 * so that "absent" and "default" are one thing. Texts and list items carry their NUL on the wire,
 * so that a decoded struct points straight into the received bytes: nothing is copied or allocated.
 *
 * Decoding is strict: unknown tag, repeated tag, wrong length, NUL inside a text, a text
 * over its field's limit, trailing bytes: all refused, by field name. Pure; fuzzed. */
#ifndef COVE_WIRE_RECORD_H
#define COVE_WIRE_RECORD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum field_type {
    FIELD_U32,
    FIELD_U64,
    FIELD_I64,
    FIELD_TEXT,  /* const char * */
    FIELD_BYTES, /* struct bytes */
    FIELD_LIST,  /* struct texts */
};

/* Borrowed: points into the decoded buffer or the encoder's own data. */
struct bytes {
    const void *data;
    uint32_t len;
};

/* NUL-terminated texts, one behind the other. */
struct texts {
    const char *data; /* borrowed */
    uint32_t len;     /* bytes, NULs included */
    uint32_t count;   /* set by decode; encode goes by len */
};

struct field {
    uint16_t tag; /* never reused for another meaning */
    const char *name;
    enum field_type type;
    size_t offset;
    uint32_t most; /* bytes of text (NUL included), bytes or list; the greatest U32 value; 0: any */
};

/* How many bytes record_encode will write, or -1 (ERR_TOO_BIG: a field is longer than it may be). */
ssize_t record_length(const struct field *fields, size_t count, const void *object,
                      struct err *err);

/* Returns the number of bytes, or -1 (ERR_TOO_BIG). */
ssize_t record_encode(const struct field *fields, size_t count, const void *object, void *out,
                      size_t size, struct err *err);

/* The object is zeroed first. */
int record_decode(const struct field *fields, size_t count, void *object, const void *data,
                  size_t len, struct err *err);

/* The item behind `at` (NULL: the first), or NULL at the end. */
const char *texts_next(const struct texts *texts, const char *at);

#endif
