/* auth.h - who asks: a key, or loopback's own tenant; and whether a web page may ask at all. */
#ifndef COVE_SERVER_SERVE_AUTH_H
#define COVE_SERVER_SERVE_AUTH_H

#include "server/serve/exchange.h"

/* Fills the exchange's caller for its route, or refuses. */
int auth_check(struct exchange *x, struct err *err);

/* For surfaces that take something else besides: the caller is who has that key; or the local tenant, if this comes
 * from loopback, and no page elsewhere made a browser send it (origin.h). */
int auth_key(struct exchange *x, const char *text, struct err *err);
int auth_local(struct exchange *x, struct err *err);

#endif
