/* ask.h - JSON to a server, JSON back, errors as struct err.
 *
 * Callers: verbs, by cli/api/server.h. */
#ifndef COVE_REMOTE_ASK_H
#define COVE_REMOTE_ASK_H

#include "remote/call.h"

#include <jansson.h>
#include <stdarg.h>

/* take_body: the reference is taken; NULL: none. ret: NULL where the answer does not matter; an answer without a body is NULL,
 * too. A refusal has the kind and the sentence of the server. */
int ask(const struct remote *remote, const char *method, const char *path, json_t *take_body,
        json_t **ret, struct err *err);

/* For those who read the body themselves: 0 when the status is 2xx; else -1, with what the server said. */
int ask_check(struct call *call, struct err *err);

/* The kind of an error by the name that the API gives it; ERR_INTERNAL: unknown. */
enum err_kind ask_kind(const char *code);
/* {"code": …, "message": …} */
int ask_error(json_t *error, struct err *err);

/* A path: %s is percent-encoded, %u a number (unsigned long long), %% a percent sign. The caller's to free. */
char *ask_path(const char *fmt, ...);
char *ask_vpath(const char *fmt, va_list args);

/* Lines of an answer, each a JSON object: 1, 0 at the end, -1. */
struct ask_lines {
    struct call *call;
    char *text; /* owned */
    size_t at, have, room;
};
int ask_next(struct ask_lines *lines, json_t **ret, struct err *err);
void ask_lines_done(struct ask_lines *lines);

#endif
