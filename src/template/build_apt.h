/* build_apt.h - runs mmdebstrap for a recipe, and follows how far it is.
 *
 * Owns:    mmdebstrap's command line, and the reading of its output.
 * Callers: template_build.c. */
#ifndef COVE_TEMPLATE_BUILD_APT_H
#define COVE_TEMPLATE_BUILD_APT_H

#include "base/err.h"
#include "template/maker.h"
#include "template/recipe.h"

/* The tree goes to <build>/root, the whole output to <build>/log. Packages are kept in `debs`. All
 * paths are absolute. */
int build_apt(const struct recipe *recipe, const char *build, const char *debs,
              const struct template_maker *maker, struct err *err);

/* Where on the way from 0 to 100 a line of output is; pure, for tests. */
struct build_meter {
    unsigned phase;
    unsigned packages, fetched, unpacked, configured;
    char detail[80];
};
unsigned build_meter_line(struct build_meter *meter, const char *line);
const char *build_meter_step(const struct build_meter *meter);

#endif
