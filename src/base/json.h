/* json.h - writes JSON, one value after the other.
 *
 * An emitter, not a tree: nothing is allocated and nothing is kept. Keys are given inside objects
 * and NULL elsewhere; a call that does not fit where it stands, or nests too deep, marks the
 * writer as bad and writes nothing more, and json_out_finish says so. Texts may hold any bytes:
 * controls are escaped, and what is no UTF-8 becomes U+FFFD. */
#ifndef COVE_BASE_JSON_H
#define COVE_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 32

struct json_out {
    FILE *out; /* borrowed */
    unsigned depth;
    uint64_t is_object; /* bit n: level n is an object, else an array */
    uint64_t has_items; /* bit n: level n needs a comma before its next item */
    bool one_line;      /* set behind json_out_init: no line breaks inside, for NDJSON */
    bool bad;
};

void json_out_init(struct json_out *json, FILE *out);

void json_out_object(struct json_out *json, const char *key);
void json_out_array(struct json_out *json, const char *key);
/* Ends the innermost object or array. */
void json_out_end(struct json_out *json);

void json_out_text(struct json_out *json, const char *key, const char *text); /* NULL text: null */
void json_out_number(struct json_out *json, const char *key, uint64_t value);
void json_out_signed(struct json_out *json, const char *key, int64_t value);
void json_out_bool(struct json_out *json, const char *key, bool value);

/* A whole value that is JSON already. */
void json_out_raw(struct json_out *json, const char *key, const char *value);

/* A newline behind the whole value. -1: calls did not match, or the stream failed. */
int json_out_finish(struct json_out *json);

#endif
