/* renew.h - what a guest that was saved must not continue with, because time has passed or because it is a copy: its clock, its
 * kernel's random bytes, its id of the boot. (Its host name comes with the mux's state.)
 *
 * Callers: trunk.c, at every HELLO; resumed.c; init.c for the names. */
#ifndef COVE_AGENT_RENEW_H
#define COVE_AGENT_RENEW_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* What is read as the boot's id, and the file that is mounted there. */
#define BOOT_ID_SEEN "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_FILE "/dev/cove/boot_id"

/* Random bytes from here on depend on the seed, also in programs that have asked for some before. */
void renew_random(const uint8_t *seed, size_t len);

/* Milliseconds since 1970. A clock that is ahead stays: a HELLO may have waited for a machine that starts. */
void renew_time(uint64_t now_ms);

int renew_boot_id(struct err *err); /* of a virtual machine */
int renew_boot_id_in_gvisor(struct err *err);

#endif
