/* field.h - one header line, split into name and value; the same for request heads and parts. */
#ifndef COVE_HTTP_FIELD_H
#define COVE_HTTP_FIELD_H

#include "base/err.h"
#include "http/slice.h"

struct http_field {
    struct slice name, value;
};

/* `line` is without its CRLF, not empty, and all its bytes are CHAR_VALUE: who finds the line's end
 * looks at every byte anyway. Refuses folded lines, blanks before the colon, and names that are no
 * token; the sentence says which. */
int field_parse(struct slice line, struct http_field *ret_field, struct err *err);

#endif
