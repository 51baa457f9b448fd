/* page.h - what the server says about itself: GET /, /health and /docs. */
#ifndef COVE_API_PAGE_H
#define COVE_API_PAGE_H

#include "api/exchange.h"

int page_root(struct exchange *x, struct err *err);
int page_health(struct exchange *x, struct err *err);
int page_docs(struct exchange *x, struct err *err);

#endif
