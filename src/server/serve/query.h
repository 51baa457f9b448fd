/* query.h - values of a request's query, checked. Absent: untouched. A refusal blames the name.
 *
 * Callers: surfaces. */
#ifndef COVE_SERVER_SERVE_QUERY_H
#define COVE_SERVER_SERVE_QUERY_H

#include "server/serve/exchange.h"

int query_count(struct exchange *x, const char *name, uint64_t least, uint64_t most, uint64_t *ret,
                struct err *err);
int query_bool(struct exchange *x, const char *name, bool *ret, struct err *err);
int query_mode(struct exchange *x, const char *name, uint32_t *ret, struct err *err);

#endif
