/* runsc.h - the runsc of this host: where it is, and whether it is new enough.
 *
 * Its version is asked for once, by running it without rights, and again only when the file changes.
 *
 * Callers: gvisor.c; host.c for the keeper's hello. */
#ifndef COVE_DRIVER_GVISOR_RUNSC_H
#define COVE_DRIVER_GVISOR_RUNSC_H

#include "base/err.h"

#include <stddef.h>
#include <sys/stat.h>

/* ERR_UNSUPPORTED, with what is missing. *ret: a path below /usr. */
int runsc_find(const char **ret, struct err *err);

/* "20240729"; "": there is none, or it does not tell, or it is not `file` (NULL: any). What one saved another may not understand. */
void runsc_version(const struct stat *file, char *out, size_t size);

/* "runsc 20240729", or why there is none in a few words; for a line of text. */
const char *runsc_text(void);

#endif
