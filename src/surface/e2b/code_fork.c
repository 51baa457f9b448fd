/* POST /contexts/:id/fork: another context with everything that this one has, by forking its kernel (kernels/fork.py).
 *
 * The order: our turn in the old context; a process for the new one, which is to be its pump; a line to the old kernel, which
 * forks and says so. From then on the new context is there. Its pump and its kernel find each other by themselves, and a cell
 * that comes before that waits in the pipe. */
#include "surface/e2b/code_cell.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>

#define TURN_MS 200  /* how often one who waits looks for its client */
#define WAIT_MS 5000 /* for cells under way */

/* For a kernel of a template that was built before there were forks: it takes the line for a cell. */
#define TOO_OLD                                                                                    \
    "raise RuntimeError('the kernel of this template cannot fork: rebuild the template')"

struct fork {
    struct ops ops;
    struct code_context *old, fresh;
    struct code_cell cell;
    char why[160]; /* the kernel's */
};

static void on_event(void *to, const struct code_event *event)
{
    struct fork *f = to;
    json_t *value = event->type == CODE_ERROR && event->value.len < 8 * sizeof f->why
                        ? json_loadb(event->value.at, event->value.len, JSON_DECODE_ANY, NULL)
                        : NULL;

    if (event->type == CODE_ERROR)
        (void) snprintf(f->why, sizeof f->why, "%.150s", json_string_value(value) ?: "unknown");
    json_decref(value);
}

static const struct code_sink sink = { .event = on_event };

/* The kernel's answer. */
static int ask_kernel(struct fork *f, uint32_t pid, struct err *err)
{
    json_t *line = json_pack("{s:s, s:{s:s, s:I}}", "code", TOO_OLD, "fork", "name", f->fresh.id,
                             "pid", (json_int_t) pid);

    if (code_cell_init(&f->cell, err) < 0 || code_cell_say(&f->cell, line, err) < 0)
        return -1;
    switch (code_cell_run(&f->cell, err)) {
    case CODE_ENDED:
        break;
    case CODE_DIED:
    case CODE_NEVER_BEGUN:
        return err_set(err, ERR_STATE, "the kernel ended before it could fork");
    case CODE_NO_KERNEL:
    case CODE_LOST:
        return -1;
    }
    if (f->why[0])
        return err_set(err, ERR_UNAVAILABLE, "the kernel could not fork: %s", f->why);
    return 0;
}

/* In our turn. A kernel that had ended is found out by the line, and then the new one is asked. */
static int fork_kernel(struct fork *f, struct err *err)
{
    for (int i = 0; i < 2; i++) {
        uint32_t pid;
        bool fresh;
        int r;

        if (code_context_start(&f->ops, f->old, &fresh, err) < 0 ||
            code_context_like(&f->ops, f->old, &f->fresh, err) < 0 ||
            code_context_start_fork(&f->ops, f->old, &f->fresh, &pid, err) < 0)
            return -1;
        r = ask_kernel(f, pid, err);
        if (r == 0 && f->fresh.root == (f->old->root ? f->old->root : f->old->proc)) {
            code_registry_put(code_registry_add(&f->fresh));
            return 0;
        }
        code_context_kill(&f->ops, &f->fresh);
        code_cell_done(&f->cell);
        if (r < 0)
            return -1;
    }
    return err_set(err, ERR_STATE, "the kernel ended before it could fork");
}

static int wait_turn(struct exchange *x, struct fork *f, const struct code_turn *turn,
                     struct err *err)
{
    for (unsigned waited = 0; !code_turn_wait(f->old, turn, TURN_MS); waited += TURN_MS) {
        if (exchange_gone(x))
            return err_set(err, ERR_UNAVAILABLE, "the client went away");
        if (waited >= WAIT_MS)
            return err_set(err, ERR_STATE,
                           "Context %s runs a cell: it can be forked between two cells",
                           f->old->id);
    }
    return 0;
}

int code_context_fork(struct exchange *x, struct err *err)
{
    struct fork f = { .ops = ops_of(exchange_caller(x)) };
    struct code_turn turn;
    int r;

    if (code_context_find(&f.ops, exchange_param(x, "sandbox"), exchange_param(x, "id"), NULL,
                          &f.old, err) < 0)
        return -1;
    if (f.old->language->unforkable) {
        r = err_set(err, ERR_UNSUPPORTED, "a context of %s cannot be forked: %s",
                    f.old->language->name, f.old->language->unforkable);
        code_registry_put(f.old);
        return r;
    }
    f.cell = (struct code_cell){ .ops = &f.ops, .context = f.old, .sink = &sink, .to = &f };
    code_turn_join(f.old, &turn);
    r = wait_turn(x, &f, &turn, err);
    if (r == 0)
        r = fork_kernel(&f, err);
    code_turn_leave(f.old, &turn);
    code_cell_done(&f.cell);
    code_registry_put(f.old);
    return r < 0 ? -1 : exchange_reply_json(x, 200, code_context_json(&f.fresh), err);
}
