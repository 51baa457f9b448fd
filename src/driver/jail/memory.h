/* memory.h - the memory of a restored jail, which may still be on its way (image/fill.h).
 *
 * Callers: jail.c, load.c. */
#ifndef COVE_DRIVER_JAIL_MEMORY_H
#define COVE_DRIVER_JAIL_MEMORY_H

#include "driver/host.h"

/* Kills a sandbox whose memory never comes; watches it meanwhile. */
void memory_watch(struct keeper *keeper, struct sandbox *sandbox);

/* Why its process died, if that was for want of memory that did not come; then it is stopped. */
bool memory_lost(struct keeper *keeper, struct sandbox *sandbox);
/* The same of one that died while no keeper ran; a text for the log. */
const char *memory_why_lost(struct keeper *keeper, const struct sandbox *sandbox);

#endif
