#include "server/preview/slots.h"

#include "base/parse.h"
#include "server/app/app.h"
#include "server/guard/audit.h"
#include "server/serve/exchange_own.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256

struct slot {
    struct slot *next;
    char id[ID_LEN + 1];
    uint64_t count, visitors; /* of count, the unknown ones */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *buckets[BUCKETS];

/* Ids are random: a few of their letters are as good as a hash. */
static struct slot **find(const char *id)
{
    size_t len = strlen(id);
    unsigned sum = 0;
    struct slot **at;

    for (size_t i = len > 6 ? len - 6 : 0; i < len; i++)
        sum = 31 * sum + (unsigned char) id[i];
    at = &buckets[sum % BUCKETS];
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

/* 1 taken, 0 there are that many, -1 no memory. */
static int take(const char *id, bool visitor, uint64_t most)
{
    struct slot **at = find(id);

    if (*at && (visitor ? (*at)->visitors : (*at)->count) >= most)
        return 0;
    if (!*at && !(*at = calloc(1, sizeof **at)))
        return -1;
    (void) strcpy((*at)->id, id);
    (*at)->count++;
    (*at)->visitors += visitor;
    return 1;
}

int slots_take(struct exchange *x, const char *sandbox, struct err *err)
{
    uint64_t most = app_config(exchange_app(x))->relay_most;
    struct err ignored;
    int rc;

    if (!id_ok(sandbox))
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.40s'", sandbox);
    if (x->caller.visitor)
        most = (most + 1) / 2;
    (void) pthread_mutex_lock(&lock);
    rc = take(sandbox, x->caller.visitor, most);
    (void) pthread_mutex_unlock(&lock);
    if (rc == 1)
        return 0;
    if (rc < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a relay");
    err_set(err, ERR_TOO_MANY,
            "%" PRIu64 " exchanges with the ports of a sandbox at once are "
            "allowed%s: some of them have to end first",
            most, x->caller.visitor ? " without a token" : "");
    (void) exchange_add_header(x, "Retry-After", "1", &ignored);
    (void) exchange_blame(x, NULL, x->caller.visitor ? "visitors" : "relay_most", "quota");
    audit_refusal(exchange_caller(x), "quota.relays", err);
    return -1;
}

void slots_give(const struct exchange *x, const char *sandbox)
{
    struct slot **at;

    (void) pthread_mutex_lock(&lock);
    at = find(sandbox);
    if (*at)
        (*at)->visitors -= x->caller.visitor;
    if (*at && --(*at)->count == 0) {
        struct slot *empty = *at;

        *at = empty->next;
        free(empty);
    }
    (void) pthread_mutex_unlock(&lock);
}
