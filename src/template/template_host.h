/* template_host.h - the template `host`: the host's /usr under an /etc of our own.
 *
 * Owns:    which parts of the host's /etc are copied (a list of what is harmless and needed; all
 *          else stays out), and the directories around it. /usr itself is bound by the keeper.
 * Callers: code that starts a keeper or builds templates.
 * Never:   copies what not every user of the host may read. */
#ifndef COVE_TEMPLATE_TEMPLATE_HOST_H
#define COVE_TEMPLATE_TEMPLATE_HOST_H

#include "base/err.h"
#include "template/maker.h"

/* Makes it, or makes it again when the host's libraries, alternatives or certificates, or cove
 * itself, have changed. Milliseconds when there is nothing to do. Also gives built templates the
 * sudo of this cove. */
int template_host_ensure(const struct template_maker *maker, const char *state, struct err *err);

/* Makes it again in any case. */
int template_host_rebuild(const struct template_maker *maker, const char *state, struct err *err);

#endif
