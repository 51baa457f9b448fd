/* sleep.h - putting sandboxes to sleep and waking them, tier by tier.
 *
 * Tiers: hot (every process stands still, memory stays), warm (and memory goes to swap), disk (the sandbox is an image
 * of the keeper's, with its processes or only its files; nothing of it runs). The record says what is meant, the keeper
 * what is: sleep_settle makes the record true again after a crash, or after another process paused it.
 *
 * Each function takes the sandbox's turn (turn.h) for as long as it works. Nothing here asks whose sandbox it is: that
 * is for ops_*.c, which also write the audit.
 *
 * Owns:    nothing between calls.
 * Callers: ops_*.c, deadline.c, idle.c. */
#ifndef COVE_SERVER_LIFE_SLEEP_H
#define COVE_SERVER_LIFE_SLEEP_H

#include "client/image.h"
#include "server/app/app.h"
#include "store/store.h"

/* "auto", "hot", "warm", "disk", NULL */
extern const char *const sleep_tier_names[];
const char *sleep_tier_name(int tier); /* "hot", "warm", "disk"; NULL: awake */
/* "auto" is STORE_AWAKE: this server chooses. false: none of them. */
bool sleep_tier_parse(const char *text, int *ret);

/* What the keeper has of a sandbox: one of the two, or neither. */
struct sleep_kept {
    bool there, saved;
    struct keeper_sandbox sandbox; /* if it is there; as it was, if it is saved */
    struct keeper_image image;
};
int sleep_look(struct app *app, struct link *link, const char *sandbox, struct sleep_kept *ret,
               struct err *err);

/* Everything that it has, each list the caller's to free. Sandboxes first, then images: one that is resumed meanwhile may
 * be in neither. */
int sleep_list(struct link *link, struct keeper_sandbox **ret, size_t *ret_count,
               struct keeper_image **ret_images, size_t *ret_image_count, struct err *err);

struct sleep_ask {
    int tier;        /* enum store_tier; STORE_AWAKE: chosen by size and settings */
    int by;          /* enum store_paused_by */
    bool files_only; /* without its processes: only disk will do */
    bool hold;       /* its deadline stands still until it is resumed */
    bool if_unused;  /* ERR_STATE when a request is open for it */
    bool if_free;    /* ERR_STATE when another thread has its turn */
};
struct sleep_told {
    int tier;
    bool already;               /* it was paused before, and stays where it is */
    uint64_t bytes;             /* of its image; 0: none */
    char fallback[ERR_MSG_MAX]; /* why it is not in the tier that was meant; "": it is */
};
int sleep_pause(struct app *app, const char *sandbox, const struct sleep_ask *ask,
                struct sleep_told *ret, struct err *err);

/* Runs afterwards. timeout_ms 0: its deadline stays if it is still to come, else it is as far away as its create said,
 * but not less than least_ms. */
int sleep_wake(struct app *app, const char *sandbox, uint64_t timeout_ms, uint64_t least_ms,
               bool *ret_woken, struct err *err);
/* For callers with a request for a sandbox, of which `record` was read before: wakes it if it sleeps and may be woken by
 * that; ERR_STATE if it may not. *ret_woken: by this call. */
int sleep_answer(struct app *app, const struct store_sandbox *record, bool *ret_woken,
                 struct err *err);

/* What becomes of the thread that has its turn. */
enum sleep_force {
    SLEEP_IF_FREE,   /* has it: ERR_STATE */
    SLEEP_IF_SAVING, /* is interrupted where the sandbox is being saved, but not one who wakes it */
    SLEEP_AT_ONCE, /* is interrupted: the keeper is asked to destroy it, and whatever they waited for ends */
};
/* Nothing of it is left, image or not. What is gone already is no error. */
int sleep_end(struct app *app, const char *sandbox, enum sleep_force force, struct err *err);

/* Further down, from memory to the tier that its record aims at. ERR_STATE when another thread has its turn. */
int sleep_move(struct app *app, const char *sandbox, struct sleep_told *ret, struct err *err);

/* The record says again what the keeper has. *ret_lost: the keeper has nothing. if_free: one whose turn is taken is
 * left alone. */
int sleep_settle(struct app *app, const char *sandbox, bool if_free, bool *ret_lost,
                 struct err *err);

#endif
