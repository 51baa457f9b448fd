#include "driver/guest/save.h"

#include "base/io.h"
#include "base/own.h"
#include "driver/guest/guest.h"
#include "driver/guest/order.h"
#include "driver/jail/connect.h"
#include "driver/jail/jail.h"
#include "driver/jail/save.h"
#include "keeper/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (256u << 10)

static const struct guest_kind *kind_of(const struct saving *s)
{
    return s->w->sandbox.driver->guest;
}

/* From the pipe to the file. A program that says nothing, or too much, has lost. */
static int write_state(struct saving *s, int from, struct err *err)
{
    static char data[PIECE];
    const uint64_t most = s->w->sandbox.info.limits.memory_bytes + kind_of(s)->beside;
    auto_close int to = openat(s->memory_fd, SAVE_STATE,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    uint64_t all = 0;

    if (to < 0)
        return err_sys(err, errno, "make " SAVE_STATE);
    for (;;) {
        struct pollfd p = { .fd = from, .events = POLLIN };
        ssize_t n = poll(&p, 1, ORDER_MS);

        if (n == 0)
            return err_set(err, ERR_TIMEOUT, "%s did not write the guest's state in %u s",
                           kind_of(s)->program, ORDER_MS / 1000);
        n = read(from, data, sizeof data);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return 0;
        all += n > 0 ? (uint64_t) n : 0;
        if (all > most)
            return err_set(err, ERR_TOO_BIG, "the guest's state is larger than the guest");
        if (n < 0 || io_write_all(to, data, (size_t) n) < 0)
            return err_sys(err, errno, "write the guest's state");
    }
}

static int save_state(struct saving *s, struct err *err)
{
    auto_close int from = -1, answer = -1;
    struct err why;
    int rc;

    if (order_begin(s->w->keeper, &s->w->sandbox, BRIDGE_SAVE, &from, &answer, err) < 0)
        return -1;
    rc = write_state(s, from, err);
    own_close(&from); /* or the program would wait for us */
    if (order_end(answer, ORDER_MS, &why) < 0 && rc == 0) {
        *err = why;
        rc = -1;
    }
    return rc;
}

/* The sandbox continues, as itself; after a failure, too. */
static int put_back(struct saving *s, struct err *err)
{
    struct err why;

    if (order_go(s->w->keeper, &s->w->sandbox, TALK_CONTINUE, 0, &why) == 0)
        return 0;
    s->w->result.unconfined = true;
    err_set(err, ERR_UNAVAILABLE, "the guest does not continue: %.200s", why.msg);
    return -1;
}

static int quiesce(struct saving *s, struct err *err)
{
    const struct sandbox *box = &s->w->sandbox;
    int rc = connect_quiesce(&s->w->keeper->host->nets, box->pid.fd, box->info.pid, err);

    s->stood_since_us = io_now_us();
    return rc;
}

/* It stood still, or was to. */
static int thaw(struct saving *s, int rc, struct err *err)
{
    if (rc == 0 && s->flags & SAVE_ENDS) /* killed when its image has a name */
        return 0;
    if (put_back(s, err) < 0)
        return -1;
    return rc < 0 ? -1 : save_finish(s, err);
}

/* The image has the version of the program that writes it, which is not this host's where that was updated since. */
static int note_version(struct saving *s, struct err *err)
{
    const struct sandbox *box = &s->w->sandbox;
    auto_close int fd = jail_open_inside(box->info.pid, kind_of(s)->file, O_PATH);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "look at the guest's program");
    kind_of(s)->version(&st, s->meta.kernel, sizeof s->meta.kernel);
    return s->meta.kernel[0]
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "sandbox '%s' was started by another %s than this host has now: only its "
                         "files can be saved",
                         box->info.id, kind_of(s)->program);
}

static int with_memory(struct saving *s, struct err *err)
{
    if (note_version(s, err) < 0)
        return -1;
    return thaw(s,
                quiesce(s, err) < 0 || save_state(s, err) < 0 || save_standing(s, err) < 0 ? -1 : 0,
                err);
}

/* The guest's kernel has written everything, and its program writes nothing while it is frozen. */
static int files_alone(struct saving *s, struct err *err)
{
    struct err ignored;
    int rc = quiesce(s, err);

    if (rc == 0)
        rc = save_freeze(s->w, true, err);
    if (rc == 0)
        rc = save_standing(s, err);
    if (rc < 0 || !(s->flags & SAVE_ENDS))
        (void) save_freeze(s->w, false, &ignored);
    return thaw(s, rc, err);
}

static int complete(struct saving *s, struct err *err)
{
    struct stat st;

    if (fstatat(s->memory_fd, SAVE_STATE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "look at the guest's state");
    s->meta.image.memory_bytes = (uint64_t) st.st_size;
    s->meta.template_disks = s->w->sandbox.template_disks;
    return 0;
}

static int save(struct worker *w, const struct keeper_request *r, struct err *err)
{
    const struct save_way way = { .disk = w->sandbox.driver->guest->disk,
                                  .memory = with_memory,
                                  .files = files_alone,
                                  .complete = complete };

    return order_possible(w->keeper, &w->sandbox, err) < 0 ? -1 : save_run(w, r, &way, err);
}

int guest_save(struct keeper *k, struct sandbox *s, const struct keeper_request *r, struct err *err)
{
    return save_begin(k, s, r, save, err);
}

int save_continue(struct worker *w, const struct keeper_request *r, struct err *err)
{
    (void) r;
    return order_go(w->keeper, &w->sandbox, TALK_CONTINUE, 0, err);
}
