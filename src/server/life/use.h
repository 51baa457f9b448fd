/* use.h - which sandboxes have an open request, and when the last one ended.
 *
 * Owns:    one entry for each sandbox that was asked for something in the last hour.
 * Callers: ops.c and serve.c (a request's beginning and end), idle.c (which puts idle ones to sleep). */
#ifndef COVE_SERVER_LIFE_USE_H
#define COVE_SERVER_LIFE_USE_H

#include "base/parse.h"

#include <stdbool.h>
#include <stdint.h>

void use_begin(const char *sandbox);
void use_end(const char *sandbox);
/* `used` is now this sandbox, in use until the next switch, and the one before is not any more. "": none. */
void use_switch(char used[ID_LEN + 1], const char *sandbox);
/* Whether one is open; *ret_last_ms: when the last one ended, in the time of io_now_ms(), 0 if that is long ago. */
bool use_now(const char *sandbox, uint64_t *ret_last_ms);

#endif
