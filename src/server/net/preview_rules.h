/* preview_rules.h - who may reach the ports of a sandbox from outside: read, written, kept with its record.
 *
 * Callers: v1_preview.c and creates, which read them; preview.h and private_dial.c, which follow them. */
#ifndef COVE_SERVER_NET_PREVIEW_RULES_H
#define COVE_SERVER_NET_PREVIEW_RULES_H

#include "server/app/app.h"
#include "server/guard/caller.h"

#include <jansson.h>

#define PREVIEW_MASK_MAX 256 /* with the NUL */

struct preview_rules {
    bool is_public;   /* no token is needed */
    bool auto_resume; /* a request wakes it */
    /* the Host that servers inside see, ${PORT} in it; "": the client's */
    char mask_host[PREVIEW_MASK_MAX];
};

/* "" is no mask. Else a host, perhaps with a port, in which ${PORT} stands for the one that was asked for. */
bool preview_mask_ok(const char *mask);
/* "": no mask, or one that does not fit. */
void preview_mask_print(const char *mask, uint16_t port, char out[PREVIEW_MASK_MAX]);

extern const struct form preview_form;
/* An object of a request; a mask that is not given is left. within: before the names of fields in messages, "preview." or "". */
int preview_rules_read(struct caller *caller, const char *within, json_t *json,
                       struct preview_rules *rules, struct err *err);
json_t *preview_rules_json(const struct preview_rules *rules);
/* As the store keeps them; the caller's to free. */
char *preview_rules_text(const struct preview_rules *rules);
/* What was said with ops_preview_set or at the create, in the place of *rules; nothing said: nothing changes. */
int preview_rules_load(struct app *app, const char *sandbox, struct preview_rules *rules,
                       struct err *err);

#endif
