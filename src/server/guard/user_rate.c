#include "server/guard/user_rate.h"

#include "base/sha256.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SETS 2048
#define WAYS 8

struct window {
    /* of the SHA-256 of the name, so that no name can be made to count as another's */
    uint64_t user;
    uint64_t begun_ms, count;
    bool used;
};

struct user_rate {
    struct window windows[SETS][WAYS];
};

struct user_rate *user_rate_new(void)
{
    return calloc(1, sizeof(struct user_rate)); /* pages that are not used cost nothing */
}

void user_rate_free(struct user_rate *rate)
{
    free(rate);
}

/* The user's place, or the one to use for that user: an empty one, or the oldest. */
static struct window *find(struct user_rate *rate, uint64_t user)
{
    struct window *set = rate->windows[user % SETS], *oldest = set;

    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].used && set[i].user == user)
            return &set[i];
        if (oldest->used && (!set[i].used || set[i].begun_ms < oldest->begun_ms))
            oldest = &set[i];
    }
    *oldest = (struct window){ .user = user };
    return oldest;
}

uint64_t user_rate_take(struct user_rate *rate, const char *user, uint64_t most, uint64_t window_ms,
                        uint64_t now_ms)
{
    unsigned char sum[SHA256_LEN];
    struct window *window;
    uint64_t key;

    sha256_of(user, strlen(user), sum);
    memcpy(&key, sum, sizeof key);
    window = find(rate, key);
    if (!window->used || now_ms - window->begun_ms >= window_ms)
        *window = (struct window){ .user = key, .begun_ms = now_ms, .used = true };
    if (window->count >= most)
        return window->begun_ms + window_ms - now_ms;
    window->count++;
    return 0;
}
