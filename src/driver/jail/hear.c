#include "driver/jail/hear.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/jail/launch.h"
#include "jail/child.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"
#include "wire/boot.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define WORDS_PER_TURN                                                                             \
    4 /* a bridge that was taken over may talk without an end: others have their turn, too */

/* A failure, a word about the filter, or the end; -1 with EAGAIN: nothing yet. A child that ended before it read what we
 * sent leaves ECONNRESET in front of its last word. */
ssize_t hear_child(struct sandbox *s, int control, struct err *ret)
{
    struct pollfd p = { .fd = control, .events = POLLIN };
    size_t count = 0;
    ssize_t n;
    int fd = -1;

    do {
        if (poll(&p, 1, 0) != 1) {
            errno = EAGAIN;
            return -1;
        }
        n = io_recv_fds(control, ret, sizeof *ret, &fd, 1, &count);
    } while (n < 0 && errno == ECONNRESET);
    if (n == 1 && s->filter_form == FILTER_UNKNOWN) {
        char word;

        memcpy(&word, ret, sizeof word);
        if (word == CHILD_LISTENS && count == 1)
            s->filter_form = FILTER_LISTENS, s->listener = take_fd(&fd);
        else if (word == CHILD_QUIET)
            s->filter_form = FILTER_QUIET;
    }
    own_close(&fd);
    if (n == (ssize_t) sizeof *ret)
        ret->msg[sizeof ret->msg - 1] = '\0';
    if (n == (ssize_t) sizeof *ret && (ret->kind == ERR_NONE || ret->kind >= ERR_KIND_COUNT))
        ret->kind = ERR_INTERNAL; /* a bridge's word, and not the keeper's own code's */
    return n;
}

/* A machine that was to have another's memory, and has none. */
static void hear_started(struct keeper *k, const struct sandbox *s, const struct err *said)
{
    if (memcmp(said, BOOT_WORD_STARTED, 1) != 0)
        return;
    if (s->info.limits.cpu_milli >= MEMORY_MAKER_MILLI)
        k->host->memory_refused = true;
    log_line(LOG_WARNING,
             "sandbox=%s its machine cannot use memory of another, and starts its own kernel",
             s->info.id);
}

void hear_on_control(struct keeper *k, struct watch *watch)
{
    struct sandbox *s = container_of(watch, struct sandbox, control);
    struct err err;
    ssize_t n = 1;
    bool later;

    for (int i = 0; i < WORDS_PER_TURN && n == 1; i++) {
        n = hear_child(s, watch->fd, &err); /* about its filter: taken */
        if (n == 1)
            hear_started(k, s, &err);
    }
    later = n == 1 || (n < 0 && (errno == EAGAIN || errno == EINTR));
    if (s->filter_form != FILTER_UNKNOWN)
        launch_free_fds(k, s);
    if (later)
        return;
    keeper_unwatch(k, watch); /* its end is the exec, or a death that sandbox_on_death hears of */
    if (n == (ssize_t) sizeof err)
        sandbox_fail(k, s, &err);
}

/* The agent listens, so the child has said all: what it said of its filter may still have to be read. */
int hear_take_listener(struct keeper *k, struct sandbox *s, struct err *err)
{
    while (s->control.fd >= 0 && s->filter_form == FILTER_UNKNOWN &&
           hear_child(s, s->control.fd, err) == 1)
        ;
    keeper_unwatch(k, &s->control);
    launch_free_fds(k, s);
    memcpy(s->filter, k->host->filter_name, sizeof s->filter);
    return s->filter_form != FILTER_UNKNOWN
               ? 0
               : err_set(err, ERR_INTERNAL, "the child did not hand over its listener");
}
