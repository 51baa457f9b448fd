/* use.h - which sandboxes have an open request, and when the last one ended.
 *
 * Owns:    one entry for each sandbox that was asked for something in the last hour.
 * Callers: exchange.c (a request's beginning and end), idle.c (which puts idle ones to sleep). */
#ifndef COVE_API_USE_H
#define COVE_API_USE_H

#include <stdbool.h>
#include <stdint.h>

void use_begin(const char *sandbox);
void use_end(const char *sandbox);
/* Whether one is open; *ret_last_ms: when the last one ended, in the time of io_now_ms(), 0 if that is long ago. */
bool use_now(const char *sandbox, uint64_t *ret_last_ms);

#endif
