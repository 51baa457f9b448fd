#include "check.h"

#include "base/own.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"

#include <fcntl.h>
#include <sys/stat.h>

static char state_path[32];
static int state = -1;
static struct keeper keeper;
static struct sandbox rows[1];
static struct err err;

static void begin(void)
{
    (void) strcpy(state_path, "/tmp/cove-starved.XXXXXX");
    keeper = (struct keeper){ 0 };
    state = mkdtemp(state_path) ? open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    keeper.sandboxes = rows;
    keeper.slot_count = 1;
    CHECK(chmod(state_path, 0700) == 0);
    CHECK(journal_open(&keeper.journal, state, &err) == 0);
}

static void finish(void)
{
    journal_close(&keeper.journal);
    CHECK(unlinkat(state, "journal", 0) == 0);
    CHECK(rmdir(state_path) == 0);
    own_close(&state);
}

static int removed(struct keeper *k, struct sandbox *s, struct err *e)
{
    (void) k, (void) s, (void) e;
    return 1;
}

static void released(struct keeper *k, struct sandbox *s)
{
    (void) k, (void) s;
}

static const struct driver driver = { .remove = removed, .release = released };

static const char *id_of(unsigned number)
{
    static char id[32];

    (void) snprintf(id, sizeof id, "iabcd%016u", number);
    return id;
}

/* One sandbox that is stopping, and then gone. */
static void end_one(unsigned number, enum err_kind why)
{
    struct sandbox *s = &rows[0];

    sandbox_reset(s);
    s->driver = &driver;
    (void) snprintf(s->info.id, sizeof s->info.id, "%s", id_of(number));
    sandbox_set_life(&keeper, s, LIFE_STOPPING);
    (void) err_set(&s->failure, why, "why");
    sandbox_clear(&keeper, s);
    CHECK(s->info.life == LIFE_GONE);
}

static void only_ends_for_want_of_memory_are_kept(void)
{
    begin();
    end_one(1, ERR_NO_SANDBOX);
    CHECK(!sandbox_starved(&keeper, id_of(1)));
    end_one(2, ERR_OOM);
    CHECK(sandbox_starved(&keeper, id_of(2)));
    CHECK(!sandbox_starved(&keeper, id_of(1)));
    CHECK(!sandbox_starved(&keeper, "name"));
    finish();
}

static void a_later_end_of_the_same_sandbox_counts(void)
{
    begin();
    end_one(3, ERR_OOM);
    end_one(3, ERR_NO_SANDBOX);
    CHECK(!sandbox_starved(&keeper, id_of(3)));
    end_one(3, ERR_OOM);
    end_one(3, ERR_OOM);
    CHECK(sandbox_starved(&keeper, id_of(3)));
    finish();
}

static void the_oldest_is_forgotten_beyond_the_most(void)
{
    begin();
    end_one(2, ERR_OOM);
    for (unsigned i = 0; i < STARVED_MAX; i++)
        end_one(1000 + i, ERR_OOM);
    for (unsigned i = 0; i < STARVED_MAX; i++)
        CHECK(sandbox_starved(&keeper, id_of(1000 + i)));
    CHECK(!sandbox_starved(&keeper, id_of(2)));
    end_one(2000, ERR_OOM);
    CHECK(sandbox_starved(&keeper, id_of(2000)));
    CHECK(!sandbox_starved(&keeper, id_of(1000)));
    CHECK(sandbox_starved(&keeper, id_of(1001)));
    finish();
}

CHECK_MAIN(T(only_ends_for_want_of_memory_are_kept), T(a_later_end_of_the_same_sandbox_counts),
           T(the_oldest_is_forgotten_beyond_the_most))
