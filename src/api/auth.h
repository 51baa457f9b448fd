/* auth.h - who asks: a key, or loopback's own tenant; and whether Host and Origin may ask at all. */
#ifndef COVE_API_AUTH_H
#define COVE_API_AUTH_H

#include "api/exchange.h"

/* Fills the exchange's caller for its route, or refuses. */
int auth_check(struct exchange *x, struct err *err);

/* For surfaces that take something else besides: the caller is who has that key; or the local tenant, if this comes
 * from loopback and Host and Origin are ours. */
int auth_key(struct exchange *x, const char *text, struct err *err);
int auth_local(struct exchange *x, struct err *err);

/* "http://localhost:8000" → "localhost" */
struct slice auth_origin_host(struct slice origin);

#endif
