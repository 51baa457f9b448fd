/* sleep.h - section 7: pause and resume to the first answer, by tier and by what runs; forks. */
#ifndef COVE_BENCH_SLEEP_H
#define COVE_BENCH_SLEEP_H

#include "rig.h"

#include <stdbool.h>

/* `judge`: only whether it works, without times. */
int sleep_run(struct rig *rig, unsigned rounds, bool judge, struct err *err);

#endif
