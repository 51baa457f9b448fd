/* One round: read every record, hand over what is due, remember the next deadline, sleep until then (at most
 * ROUND_MS, so that a record that another program changed is noticed). Sandboxes are paused and ended by threads of the
 * crew's (crew.h): one that takes long, because its code wants it so, is no reason for another one's deadline to be late.
 *
 * Deadlines are real time, so that they survive a restart, but mean a length of time: a sandbox that was given five
 * minutes has five minutes. So when the clock is set, they move along with it. A timer of the kernel's says at
 * once that it was set; how far is the difference to a clock that cannot be set.
 *
 * What is lost is looked for at every round, too: with one list of the keeper's, not one question for each. A
 * record that is being made has no sandbox yet; so one counts as lost only when it is older than this
 * process, or than the longest time that a create takes. */
#include "server/life/deadline.h"

#include "base/log.h"
#include "base/own.h"
#include "client/sandbox.h"
#include "server/app/app.h"
#include "server/guard/audit.h"
#include "server/life/crew.h"
#include "server/life/idle.h"
#include "server/life/sleep.h"
#include "server/net/network.h"
#include "store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define ROUND_MS      5000
#define JUMP_MS       2000 /* less is drift */
#define LOST_AFTER_MS (LINK_PATIENCE_MS + 30000)
#define FILES_ONLY    1 /* how, of a task */

struct due {
    char id[ID_LEN + 1];
    char tenant[STORE_TENANT_MAX];
    uint64_t created_ms, deadline_ms;
    int on_timeout, tier;
    bool forgets;
};

/* What the keeper has, by id. */
struct there {
    struct keeper_sandbox *kept;
    struct keeper_image *images;
    size_t kept_count, image_count;
};

static struct {
    pthread_t thread;
    bool running;
    bool settled; /* a round has looked at everything since the start */
    atomic_bool stop;
    int wake_fd, clock_fd; /* an eventfd; a timer that ends when the clock is set */
    uint64_t began_ms;     /* real time */
    int64_t ahead_ms;      /* real time, compared with the clock that cannot be set */
} own = { .wake_fd = -1, .clock_fd = -1 };

struct round {
    struct due *list;
    size_t count, room;
};

static int keep(void *arg, const struct store_sandbox *record, struct err *err)
{
    struct round *round = arg;
    struct due *due;

    if (round->count == round->room) {
        size_t room = round->room ? 2 * round->room : 64;
        struct due *more = realloc(round->list, room * sizeof *more);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for deadlines");
        round->list = more;
        round->room = room;
    }
    due = &round->list[round->count++];
    *due = (struct due){ .created_ms = record->created_ms,
                         .deadline_ms =
                             (record->on_timeout & STORE_TIMEOUT_HELD) ? 0 : record->deadline_ms,
                         .on_timeout = record->on_timeout,
                         .tier = record->sleep.tier,
                         .forgets = record->forgets };
    memcpy(due->id, record->id, sizeof due->id);
    memcpy(due->tenant, record->tenant, sizeof due->tenant);
    return 0;
}

static void forget(struct app *app, const char *sandbox)
{
    struct err err;

    network_ended(app, sandbox);
    if (store_sandbox_remove(app->store, sandbox, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s record not removed: %s", sandbox, err.msg);
}

static void note(struct app *app, const char *tenant, const char *sandbox, const char *action,
                 const struct err *why)
{
    struct audit_facts facts = AUDIT_FACTS;

    facts.refusal = why;
    audit_system(app, tenant, action, sandbox, &facts);
}

/* ---- in a thread of the crew's ---- */

/* It may have been given more time since the round began. */
static bool still_due(struct app *app, const struct crew_task *task)
{
    struct store_sandbox record;
    struct err err;

    return store_sandbox_get(app->store, NULL, task->id, &record, &err) == 0 &&
           record.deadline_ms == task->deadline_ms;
}

/* Who has its turn may be writing it to disk, and is interrupted; one who wakes it is not, since that moves the deadline. */
static void end(struct app *app, const struct crew_task *task)
{
    struct err err;

    if (!still_due(app, task))
        return;
    if (sleep_end(app, task->id, SLEEP_IF_SAVING, &err) < 0) {
        log_line(LOG_WARNING, "sandbox=%s not ended at its deadline: %s", task->id, err.msg);
        return; /* the next round tries again */
    }
    forget(app, task->id);
    note(app, task->tenant, task->id, "sandbox.expire", NULL);
    log_line(LOG_INFO, "sandbox=%s ended at its deadline", task->id);
}

/* Without a deadline it stays paused until it is resumed, or killed. It stands still at once; idle.c moves it to disk. */
static void pause_it(struct app *app, const struct crew_task *task)
{
    const struct sleep_ask ask = { .by = STORE_BY_DEADLINE,
                                   .files_only = task->how == FILES_ONLY,
                                   .hold = true,
                                   .if_free = true };
    struct sleep_told told;
    struct err err;

    if (!still_due(app, task))
        return;
    if (sleep_pause(app, task->id, &ask, &told, &err) < 0) {
        log_line(LOG_WARNING, "sandbox=%s not paused at its deadline: %s", task->id, err.msg);
        return;
    }
    note(app, task->tenant, task->id, "sandbox.expire", NULL);
    log_line(LOG_INFO, "sandbox=%s paused at its deadline", task->id);
    idle_changed();
}

/* ---- in the thread of deadlines, which waits for no sandbox ---- */

static void hand_over(const struct due *due)
{
    bool pause = due->on_timeout == STORE_TIMEOUT_PAUSE;
    struct crew_task task = { .kind = pause ? CREW_PAUSE : CREW_END,
                              .deadline_ms = due->deadline_ms,
                              .how = due->forgets ? FILES_ONLY : 0,
                              .run = pause ? pause_it : end };

    memcpy(task.id, due->id, sizeof task.id);
    memcpy(task.tenant, due->tenant, sizeof task.tenant);
    (void) crew_add(&task); /* not added: it is under way, or the next round finds it again */
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct keeper_sandbox *) a)->id, ((const struct keeper_sandbox *) b)->id);
}

static int image_by_id(const void *a, const void *b)
{
    return strcmp(((const struct keeper_image *) a)->id, ((const struct keeper_image *) b)->id);
}

/* Where it is: a tier, awake, or -1 nowhere. */
static int find(const struct there *there, const struct due *due)
{
    struct keeper_sandbox key = { .life = 0 };
    struct keeper_image image = { .flags = 0 };
    const struct keeper_sandbox *kept;
    const struct keeper_image *saved;

    memcpy(key.id, due->id, sizeof due->id);
    memcpy(image.id, due->id, sizeof due->id);
    kept =
        there->kept_count ? bsearch(&key, there->kept, there->kept_count, sizeof key, by_id) : NULL;
    saved = there->image_count
                ? bsearch(&image, there->images, there->image_count, sizeof image, image_by_id)
                : NULL;
    if (kept)
        return kept->life != LIFE_PAUSED ? STORE_AWAKE
               : due->tier == STORE_WARM ? STORE_WARM
                                         : STORE_HOT;
    return saved ? STORE_DISK : -1;
}

static bool is_lost(const struct due *due, uint64_t now)
{
    return due->created_ms < own.began_ms || now > due->created_ms + LOST_AFTER_MS;
}

/* The lists are of two moments, and a pause may have come between them. */
static bool settle(struct app *app, const struct due *due)
{
    bool lost = false;
    struct err err;

    if (sleep_settle(app, due->id, true, &lost, &err) < 0 && err.kind != ERR_NO_SANDBOX)
        log_line(LOG_WARNING, "sandbox=%s not looked after: %s", due->id, err.msg);
    return lost;
}

/* What the first round after a boot misses went with the boot; later rounds may miss one that was resumed since. */
static void tell_why(const struct due *due, struct err *why)
{
    bool booted = !own.settled && (int64_t) due->created_ms < own.ahead_ms;

    (void) err_set(why, ERR_NO_SANDBOX, "%s",
                   booted ? "the host was booted, and the sandbox was not on disk"
                          : "the keeper does not have it any more");
}

/* A create that is repeated with its key may be about to make it again, under the same id: then its record was renewed,
 * and is not ours to remove. */
static void report_lost(struct app *app, const struct due *due)
{
    struct err why;
    bool removed = false;
    struct err err;

    if (store_sandbox_remove_old(app->store, due->id, due->created_ms, &removed, &err) < 0)
        log_line(LOG_WARNING, "sandbox=%s record not removed: %s", due->id, err.msg);
    if (!removed)
        return;
    tell_why(due, &why);
    network_ended(app, due->id);
    log_line(LOG_WARNING, "sandbox=%s is lost: %s", due->id, why.msg);
    note(app, due->tenant, due->id, "sandbox.lost", &why);
}

/* ---- the clock ---- */

static int64_t clock_ahead_ms(void)
{
    struct timespec steady;

    (void) clock_gettime(CLOCK_BOOTTIME, &steady); /* also counts while the machine sleeps */
    return (int64_t) store_now_ms() -
           ((int64_t) steady.tv_sec * 1000 + (int64_t) steady.tv_nsec / 1000000);
}

int64_t deadline_jump(int64_t *ahead_ms, int64_t now_ahead_ms)
{
    int64_t jump = now_ahead_ms - *ahead_ms;

    if (jump > -JUMP_MS && jump < JUMP_MS)
        jump = 0; /* a clock that is drawn to the right time bit by bit counts when it adds up */
    else
        *ahead_ms = now_ahead_ms;
    return jump;
}

/* Before anything is judged by the time of day. */
static void follow_clock(struct app *app)
{
    /* ABSTIME with CANCEL_ON_SET: readable (ECANCELED) as soon as the clock was set. */
    const struct itimerspec never = { .it_value.tv_sec = 1ll << 33 };
    int64_t jump = deadline_jump(&own.ahead_ms, clock_ahead_ms());
    struct err err;

    (void) timerfd_settime(own.clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
    if (jump == 0)
        return;
    own.began_ms += (uint64_t) jump;
    log_line(LOG_WARNING, "the clock was set by %" PRId64 " ms: deadlines follow", jump);
    if (store_sandbox_shift(app->store, jump, &err) < 0)
        log_line(LOG_ERROR, "deadlines do not follow: %s", err.msg);
}

/* Returns when to look again, at the latest. */
static uint64_t act_on(struct app *app, const struct due *due, int tier, uint64_t now)
{
    if (tier < 0) {
        if (is_lost(due, now) && settle(app, due))
            report_lost(app, due);
        return UINT64_MAX;
    }
    if (tier != due->tier)
        (void) settle(app, due);
    if (due->deadline_ms == 0)
        return UINT64_MAX;
    if (due->deadline_ms > now)
        return due->deadline_ms;
    hand_over(due);
    return UINT64_MAX;
}

/* Returns how long to sleep. */
static uint64_t act(struct app *app, const struct round *round, const struct there *there)
{
    uint64_t now = store_now_ms(), next = now + ROUND_MS;

    if (there->kept_count > 0)
        qsort(there->kept, there->kept_count, sizeof *there->kept, by_id);
    if (there->image_count > 0)
        qsort(there->images, there->image_count, sizeof *there->images, image_by_id);
    for (size_t i = 0; i < round->count; i++) {
        uint64_t again = act_on(app, &round->list[i], find(there, &round->list[i]), now);

        next = again < next ? again : next;
    }
    now = store_now_ms();
    return next > now ? next - now : 1;
}

/* Records first, then the keeper's lists: what is made between the two is in neither or in the list. */
static uint64_t one_round(struct app *app)
{
    struct round round = { .list = NULL };
    struct there there = { .kept = NULL };
    uint64_t sleep_ms = ROUND_MS;
    struct link link;
    struct err err;
    int r;

    if (store_sandbox_list(app->store, NULL, 0, 0, keep, &round, &err) < 0) {
        log_line(LOG_WARNING, "deadlines not read: %s", err.msg);
    } else if (round.count > 0 && app_link_take(app, &link, &err) == 0) {
        r = sleep_list(&link, &there.kept, &there.kept_count, &there.images, &there.image_count,
                       &err);
        app_link_give(app, &link, r == 0);
        if (r == 0) {
            sleep_ms = act(app, &round, &there);
            own.settled = true;
        }
    }
    free(there.kept);
    free(there.images);
    free(round.list);
    return sleep_ms;
}

static void *watch(void *arg)
{
    struct app *app = arg;
    struct pollfd wait[] = { { .fd = own.wake_fd, .events = POLLIN },
                             { .fd = own.clock_fd, .events = POLLIN } };

    while (!atomic_load(&own.stop)) {
        uint64_t count, sleep_ms;

        follow_clock(app);
        sleep_ms = one_round(app);
        (void) poll(wait, 2, (int) sleep_ms);
        IGNORE(read(own.wake_fd, &count, sizeof count));
    }
    return NULL;
}

int deadline_start(struct app *app, struct err *err)
{
    int why;

    own.began_ms = store_now_ms();
    own.ahead_ms = clock_ahead_ms();
    own.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    own.clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (own.wake_fd < 0 || own.clock_fd < 0)
        return err_sys(err, errno, "watch the clock");
    why = pthread_create(&own.thread, NULL, watch, app);
    if (why)
        return err_sys(err, why, "start the thread of deadlines");
    own.running = true;
    return 0;
}

void deadline_stop(void)
{
    if (!own.running)
        return;
    atomic_store(&own.stop, true);
    deadline_changed(NULL);
    (void) pthread_join(own.thread, NULL);
    own.running = false;
}

void deadline_changed(struct app *app)
{
    const uint64_t one = 1;

    (void) app;
    IGNORE(write(own.wake_fd, &one, sizeof one));
}
