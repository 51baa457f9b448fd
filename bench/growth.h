/* growth.h - what a create and an exec cost beside few sandboxes and beside many. */
#ifndef COVE_BENCH_GROWTH_H
#define COVE_BENCH_GROWTH_H

#include "rig.h"

#include <stdbool.h>

/* Measures beside GROWTH_FEW sandboxes, beside `many`, and beside few again; prints the section. quiet: judges nothing and prints
 * nothing. -1: it could not be measured. */
#define GROWTH_FEW 100
int growth_run(struct rig *rig, size_t many, unsigned rounds, bool quiet, struct err *err);

#endif
