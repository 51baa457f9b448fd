/* template_scratch.h - the template `scratch`: what a sandbox cannot do without, and no program. A Dockerfile's FROM scratch.
 *
 * Callers: cove up.
 * Never:   replaces a template of that name that another program made. */
#ifndef COVE_TEMPLATE_TEMPLATE_SCRATCH_H
#define COVE_TEMPLATE_TEMPLATE_SCRATCH_H

#include "base/err.h"
#include "template/maker.h"

#define TEMPLATE_SCRATCH "scratch"

/* Made where it is missing, or of another version. */
int template_scratch_ensure(const struct template_maker *maker, const char *state, struct err *err);

#endif
