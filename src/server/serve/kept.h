/* kept.h - answers that are the same for everyone until the settings change: their JSON is made once, and sent often.
 *
 * Owns:    the text, for as long as the process lives, as the settings that it was made of (app_config). */
#ifndef COVE_SERVER_SERVE_KEPT_H
#define COVE_SERVER_SERVE_KEPT_H

#include "server/app/app.h"
#include "server/serve/exchange.h"

#include <stdatomic.h>

struct kept_text;

/* One for each such answer, static; all NULL to begin with. */
struct kept {
    _Atomic(const struct kept_text *) now;
};

/* Answers 200 with what `make` says of the settings of now. `make` must depend on nothing else that can change. */
int exchange_reply_kept(struct exchange *x, struct kept *kept, json_t *(*make)(struct app *app),
                        struct err *err);

#endif
