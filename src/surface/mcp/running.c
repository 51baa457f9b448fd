#include "surface/mcp/running.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct running *list;

static bool same(const struct running_name *a, const struct running_name *b)
{
    return json_equal(a->id, b->id) && strcmp(a->session, b->session) == 0 &&
           strcmp(a->caller->tenant, b->caller->tenant) == 0 &&
           strcmp(a->caller->key_id, b->caller->key_id) == 0;
}

void running_add(struct running *running)
{
    (void) pthread_mutex_lock(&lock);
    running->next = list;
    list = running;
    (void) pthread_mutex_unlock(&lock);
}

void running_remove(struct running *running)
{
    (void) pthread_mutex_lock(&lock);
    for (struct running **at = &list; *at; at = &(*at)->next)
        if (*at == running) {
            *at = running->next;
            break;
        }
    (void) pthread_mutex_unlock(&lock);
}

void running_cancel(const struct running_name *name)
{
    (void) pthread_mutex_lock(&lock);
    for (struct running *at = list; at; at = at->next)
        if (!at->cancelled && same(&at->name, name)) {
            at->cancelled = true;
            /* Only what comes in: operations look for the caller's end there. The descriptor is open as long as the entry
             * is in the list. */
            (void) shutdown(at->name.caller->fd, SHUT_RD);
        }
    (void) pthread_mutex_unlock(&lock);
}

bool running_cancelled(const struct running *running)
{
    bool cancelled;

    (void) pthread_mutex_lock(&lock);
    cancelled = running->cancelled;
    (void) pthread_mutex_unlock(&lock);
    return cancelled;
}
