/* live.h - requests in progress, by the key that they were made with: when a key is revoked or expires, they end.
 *
 *   seen = live_seen();  … the key is looked up …  live_begin(&live, key_id, expires_ms, fd, seen)
 *
 * A revocation that came between the look-up and live_begin is told, so that the key is looked up once more. So a request either
 * sees the revoked key, or is in the list when the key is revoked.
 *
 * Owns:    a list; its nodes are the callers', from live_begin to live_end.
 * Callers: auth.c and serve.c, ops_operator.c, upkeep.c. */
#ifndef COVE_SERVER_GUARD_LIVE_H
#define COVE_SERVER_GUARD_LIVE_H

#include <stdbool.h>
#include <stdint.h>

struct live {
    char key_id[32];     /* "": not in the list */
    int fd;              /* of the connection; stays open until live_end */
    uint64_t expires_ms; /* of the key; 0: never */
    struct live *prev, *next;
};

/* How many keys were revoked so far. */
uint64_t live_seen(void);
/* false: a key was revoked since `seen`. */
bool live_begin(struct live *live, const char *key_id, uint64_t expires_ms, int fd, uint64_t seen);
void live_end(struct live *live);
/* Ends every connection with a request of that key, but for the one with that descriptor: who revokes its own key is answered. */
void live_cut(const char *key_id, int but_fd);
/* Ends every connection with a request whose key has expired by now_ms (of the clock that keys are kept in). */
void live_expire(uint64_t now_ms);

#endif
