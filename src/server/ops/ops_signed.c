#include "server/ops/ops_signed.h"

#include "base/hash.h"
#include "base/io.h"
#include "base/own.h"
#include "server/app/app.h"
#include "server/ops/ops_own.h"
#include "store/store.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define RECENT        128
#define PEERS         256
#define SHARE_PER_S   100000 /* microseconds of one processor, for all strangers */
#define PEER_PER_S    25000  /* for those of one address */
#define SHARE_RETRY_S 1

struct known_token {
    char id[ID_LEN + 1];
    char token[TOKEN_MAX];
};

static struct {
    pthread_mutex_t lock;
    struct known_token recent[RECENT]; /* the one found last is the first; id "": none */
    struct signed_share all, peers[PEERS];
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- shares ---- */

bool signed_share_open(struct signed_share *share, uint64_t now_us, uint64_t per_s)
{
    uint64_t passed = share->at_us && now_us > share->at_us ? now_us - share->at_us : 0;

    if (!share->at_us || passed >= 1000000)
        share->left_us =
            share->at_us && share->left_us < 0 ? share->left_us + (int64_t) per_s : (int64_t) per_s;
    else
        share->left_us += (int64_t) (passed * per_s / 1000000);
    if (share->left_us > (int64_t) per_s)
        share->left_us = (int64_t) per_s;
    share->at_us = now_us;
    return share->left_us > 0;
}

void signed_share_use(struct signed_share *share, uint64_t used_us)
{
    share->left_us -= (int64_t) used_us;
}

static struct signed_share *peer_share(const struct caller *caller)
{
    return &own.peers[hash_text(HASH_START, caller->peer ? caller->peer : "") % PEERS];
}

static int begin(struct caller *caller, struct err *err)
{
    uint64_t now = io_now_us();
    bool open;

    (void) pthread_mutex_lock(&own.lock);
    open = signed_share_open(peer_share(caller), now, PEER_PER_S);
    open = signed_share_open(&own.all, now, SHARE_PER_S) && open;
    (void) pthread_mutex_unlock(&own.lock);
    if (open)
        return 0;
    caller->blame.retry_s = SHARE_RETRY_S;
    (void) caller_blame(caller, NULL, "signatures", "quota");
    return err_set(err, ERR_TOO_MANY, "too many signatures that no sandbox has made");
}

static uint64_t cpu_us(void)
{
    struct timespec now = { 0 };

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static void end(struct caller *caller, uint64_t used_us)
{
    (void) pthread_mutex_lock(&own.lock);
    signed_share_use(peer_share(caller), used_us);
    signed_share_use(&own.all, used_us);
    (void) pthread_mutex_unlock(&own.lock);
}

/* ---- those found last ---- */

/* At the head of the list, where it is already or in the place of the last. */
static void remember(const struct known_token *known)
{
    size_t at = 0;

    (void) pthread_mutex_lock(&own.lock);
    while (at < RECENT - 1 && own.recent[at].id[0] && strcmp(own.recent[at].id, known->id) != 0)
        at++;
    memmove(&own.recent[1], &own.recent[0], at * sizeof own.recent[0]);
    own.recent[0] = *known;
    (void) pthread_mutex_unlock(&own.lock);
}

/* Tokens are the same for as long as a sandbox lives, and no other sandbox gets one of them: a link that fits here was
 * made by this sandbox, or by none if the sandbox is gone. */
static bool find_recent(ops_signed_fits *fits, void *context, struct known_token *ret)
{
    struct known_token known[RECENT];

    (void) pthread_mutex_lock(&own.lock);
    memcpy(known, own.recent, sizeof known); /* hashing takes longer than copying */
    (void) pthread_mutex_unlock(&own.lock);
    for (size_t i = 0; i < RECENT && known[i].id[0]; i++)
        if (fits(context, known[i].token)) {
            remember(&known[i]);
            *ret = known[i];
            return true;
        }
    return false;
}

/* ---- all of them ---- */

struct search {
    ops_signed_fits *fits;
    void *context;
    unsigned char secret[32];
    struct known_token found;
};

static int try_sandbox(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct search *search = arg;
    char token[TOKEN_MAX];

    (void) err;
    if (search->found.id[0])
        return 0;
    token_access_of(search->secret, record->id, token);
    if (search->fits(search->context, token)) {
        memcpy(search->found.id, record->id, sizeof search->found.id);
        memcpy(search->found.token, token, sizeof token);
    }
    return 0;
}

int ops_signed_find(struct caller *caller, ops_signed_fits *fits, void *context,
                    char ret_id[ID_LEN + 1], struct err *err)
{
    struct search search = { .fits = fits, .context = context };
    struct store_sandbox record;
    struct known_token known;
    struct err gone;
    uint64_t begun;
    int r;

    if (find_recent(fits, context, &known)) {
        if (store_sandbox_get(caller->app->store, NULL, known.id, &record, &gone) < 0)
            return 0;
        memcpy(ret_id, known.id, sizeof known.id);
        return 1;
    }
    if (begin(caller, err) < 0 ||
        key_secret(caller->app, TOKEN_ACCESS_SECRET, search.secret, err) < 0)
        return -1;
    begun = cpu_us();
    r = store_sandbox_list(caller->app->store, NULL, 0, 0, try_sandbox, &search, err);
    end(caller, cpu_us() - begun);
    if (r < 0 || !search.found.id[0])
        return r < 0 ? -1 : 0;
    remember(&search.found);
    memcpy(ret_id, search.found.id, sizeof search.found.id);
    return 1;
}

int ops_owner_get(struct caller *caller, const char *sandbox, struct ops_sandbox *ret,
                  struct err *err)
{
    struct ops ops = ops_of(caller);
    struct store_sandbox record;

    if (store_sandbox_get(caller->app->store, NULL, sandbox, &record, err) < 0)
        return -1;
    (void) snprintf(caller->tenant, sizeof caller->tenant, "%s", record.tenant);
    caller->key_id[0] = '\0';
    caller->scope = SCOPE_RUN;
    return ops_look(&ops, &record, ret, err);
}
