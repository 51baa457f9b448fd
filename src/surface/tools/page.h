/* page.h - what the server says about itself: GET /, /health and /docs; and what it tells people in a browser. */
#ifndef COVE_SURFACE_TOOLS_PAGE_H
#define COVE_SURFACE_TOOLS_PAGE_H

#include "server/serve/exchange.h"

int page_root(struct exchange *x, struct err *err);
int page_health(struct exchange *x, struct err *err);
int page_docs(struct exchange *x, struct err *err);

/* Whether a person looks at the answer: a browser goes to the address, it is not a script that asks. */
bool page_wanted(struct exchange *x);
/* What is wrong, and what can be done. Plain texts: they are escaped here, and what stands between backquotes is code. */
int page_trouble(struct exchange *x, int status, const char *title, const char *what,
                 const char *todo, struct err *err);

#endif
