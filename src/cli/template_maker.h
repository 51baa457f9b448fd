/* template_maker.h - templates made by the command line: progress, notes and memory images.
 *
 * Callers: the template verb, up.c. */
#ifndef COVE_CLI_TEMPLATE_MAKER_H
#define COVE_CLI_TEMPLATE_MAKER_H

#include "cli/progress.h"
#include "template/maker.h"

#include <limits.h>

struct maker {
    struct template_maker way; /* for src/template */
    struct progress progress;
    char agent[PATH_MAX];
};

/* `title` is borrowed. Not to be moved: way points into it. */
void maker_init(struct maker *maker, const char *title);
void maker_done(struct maker *maker);

#endif
