/* kernel.h - the least Linux that cove runs on, and how a release is compared with a version.
 *
 * Callers: the keeper, which does not start below it; 'cove doctor', which says so. */
#ifndef COVE_BASE_KERNEL_H
#define COVE_BASE_KERNEL_H

#include "base/err.h"

#include <stdbool.h>

#define KERNEL_LEAST_MAJOR 6u
#define KERNEL_LEAST_MINOR 1u
#define KERNEL_LEAST       "Linux 6.1"

/* release: as uname has it, "6.1.0-50-cloud-amd64". False for a text that is no release. */
bool kernel_at_least(const char *release, unsigned major, unsigned minor);

/* ERR_UNSUPPORTED with a sentence, if the running kernel is older than KERNEL_LEAST. */
int kernel_check(struct err *err);

#endif
