/* auth.h - who asks: a key, or loopback's own tenant; and whether Host and Origin may ask at all. */
#ifndef COVE_API_AUTH_H
#define COVE_API_AUTH_H

#include "api/exchange.h"

/* Fills the exchange's caller for its route, or refuses. */
int auth_check(struct exchange *x, struct err *err);

#endif
