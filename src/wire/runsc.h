/* runsc.h - which runsc the isolation `gvisor` can use. Pure: the keeper and 'cove doctor' run it themselves. */
#ifndef COVE_WIRE_RUNSC_H
#define COVE_WIRE_RUNSC_H

#include <stdint.h>

#define RUNSC_OLDEST                                                                               \
    20240729u /* what the driver was tested with; Debian 12's own, of 2022, has no systrap */

/* The date in what `runsc --version` says: "runsc version 0.0~20240729.0" or "runsc version release-20240729.0"; 0: there is none. */
uint32_t runsc_parse_version(const char *text);

#endif
