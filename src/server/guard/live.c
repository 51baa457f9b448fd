#include "server/guard/live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct live *all;
static atomic_uint_least64_t revoked; /* read without the lock: every request does */

uint64_t live_seen(void)
{
    return atomic_load(&revoked);
}

bool live_begin(struct live *live, const char *key_id, uint64_t expires_ms, int fd, uint64_t seen)
{
    bool same;

    (void) snprintf(live->key_id, sizeof live->key_id, "%s", key_id);
    live->fd = fd;
    live->expires_ms = expires_ms;
    live->prev = NULL;
    (void) pthread_mutex_lock(&lock);
    live->next = all;
    if (all)
        all->prev = live;
    all = live;
    same = seen == atomic_load(&revoked);
    (void) pthread_mutex_unlock(&lock);
    return same;
}

void live_end(struct live *live)
{
    if (!live->key_id[0])
        return;
    (void) pthread_mutex_lock(&lock);
    if (live->prev)
        live->prev->next = live->next;
    else
        all = live->next;
    if (live->next)
        live->next->prev = live->prev;
    (void) pthread_mutex_unlock(&lock);
    live->key_id[0] = '\0';
}

void live_cut(const char *key_id, int but_fd)
{
    (void) pthread_mutex_lock(&lock);
    (void) atomic_fetch_add(&revoked, 1);
    for (struct live *live = all; live; live = live->next)
        if (live->fd != but_fd && strcmp(live->key_id, key_id) == 0)
            (void) shutdown(live->fd, SHUT_RDWR);
    (void) pthread_mutex_unlock(&lock);
}

void live_expire(uint64_t now_ms)
{
    (void) pthread_mutex_lock(&lock);
    for (struct live *live = all; live; live = live->next)
        if (live->expires_ms && live->expires_ms <= now_ms)
            (void) shutdown(live->fd, SHUT_RDWR);
    (void) pthread_mutex_unlock(&lock);
}
