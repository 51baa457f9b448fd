/* user_rate.h - how many requests each user of a tenant has made in the window that is open for that user.
 *
 * A user's window opens with a request, and the next one with the first request after its end. The table has a fixed size:
 * where it is full, the oldest window of a few is forgotten, so that a crowd of made-up users makes the limit looser, never
 * the server larger. Pure but for its memory; the caller has the lock.
 *
 * Callers: quota.c. */
#ifndef COVE_SERVER_GUARD_USER_RATE_H
#define COVE_SERVER_GUARD_USER_RATE_H

#include <stdint.h>

struct user_rate;

/* NULL: no memory. */
struct user_rate *user_rate_new(void);
void user_rate_free(struct user_rate *rate);
/* One request more of the user, if fewer than `most` were made in the window: 0. Else the milliseconds until the next window. */
uint64_t user_rate_take(struct user_rate *rate, const char *user, uint64_t most, uint64_t window_ms,
                        uint64_t now_ms);

#endif
