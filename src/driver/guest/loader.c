/* The order:
 *
 *   lock      no other process works on the image; its hashes are compared with what was signed
 *   launch    a jail with a bridge and a guest that waits
 *   feed      the state goes through a pipe to QEMU, or into a file without a name for runsc, each piece of 64 KiB once it was compared
 *             with its hash
 *   run       of gVisor: the agent answers, with the time, name and random bytes of now. A guest that dies of its load has its image still
 *   commit    of a resumed sandbox: the journal says RUNNING, and the image is spent
 *   run       of a virtual machine, whose kernel may write to its disk from here on
 *   tell      the agent lets the commands run
 *   record    of a copy: the journal says RUNNING. Before, a keeper would take a guest for running that was never let go
 *
 * Up to the commit nothing has run but, in gVisor, the agent; and a failure leaves the image as it was. Who is killed where is found by
 * load_settle(). */
#include "driver/guest/guest.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "driver/full.h"
#include "driver/guest/order.h"
#include "driver/guest/save.h"
#include "driver/jail/hear.h"
#include "driver/jail/launch.h"
#include "driver/layers.h"
#include "image/compress.h"
#include "keeper/life.h"
#include "keeper/sandbox.h"
#include "keeper/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_WORD_MS 2000 /* behind the end of what it speaks of */

struct loading {
    struct worker *w;
    struct image_meta meta;
    bool same; /* the sandbox that was saved, not another */
    int dir_fd, memory_fd;
    int state_fd;                     /* the guest's state */
    struct chunks *chunks;            /* NULL: it was compared already */
    const struct chunk_file *of_file; /* of the state */
    struct decompress plain;
    struct launch_lines lines;
};

static const struct guest_kind *kind_of(const struct loading *l)
{
    return l->w->sandbox.driver->guest;
}

static int was_changed(const struct loading *l, struct err *err)
{
    return err_set(err, ERR_DENIED, "image '%s' was changed by another process", l->meta.image.id);
}

/* ---- the image ---- */

static int open_compressed(struct loading *l, struct err *err)
{
    if (decompress_begin(&l->plain, &l->w->keeper->host->images, &l->meta, l->dir_fd, NULL, err) <
            0 ||
        decompress_wait(&l->plain, err) < 0)
        return -1;
    if (l->plain.pack.head->files != 1)
        return was_changed(l, err);
    l->state_fd = fcntl(l->plain.to_fd[0], F_DUPFD_CLOEXEC, 0);
    return l->state_fd < 0 ? err_sys(err, errno, "open the guest's state") : 0;
}

static int open_state(struct loading *l, struct err *err)
{
    bool compressed = l->meta.image.flags & KEEPER_IMAGE_COMPRESSED;
    unsigned char hash[SHA256_LEN];

    l->memory_fd = openat(l->dir_fd, "memory", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (l->memory_fd < 0)
        return err_sys(err, errno, "open memory");
    if (image_hash(&l->w->keeper->host->images, l->memory_fd,
                   compressed ? IMAGE_PARSED_BESIDE_PACK : IMAGE_PARSED, hash, err) < 0)
        return -1;
    if (!same_secret(hash, l->meta.small, sizeof hash))
        return was_changed(l, err);
    if (compressed)
        return open_compressed(l, err);
    if (chunks_read(l->memory_fd, &l->chunks, err) < 0)
        return was_changed(l, err);
    l->of_file = chunks_find(l->chunks, SAVE_STATE);
    l->state_fd = openat(l->memory_fd, SAVE_STATE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return !l->of_file || l->state_fd < 0 ? was_changed(l, err) : 0;
}

/* ---- the jail ---- */

/* The bridge's last word is better than that it is gone. */
static int hear_why(struct loading *l, struct err *err)
{
    struct pollfd p = { .fd = l->lines.control, .events = POLLIN };
    struct err said;

    while (poll(&p, 1, LAST_WORD_MS) == 1) {
        ssize_t n = hear_child(&l->w->sandbox, p.fd, &said);

        if (n == (ssize_t) sizeof said)
            *err = said;
        if (n != 1)
            break;
    }
    return -1;
}

static int wait_until_ready(struct loading *l, struct err *err)
{
    struct pollfd p[] = { { .fd = l->lines.ready, .events = POLLIN },
                          { .fd = l->lines.pidfd, .events = POLLIN } };
    char byte;

    if (poll(p, ARRAY_LEN(p), ORDER_MS) < 1 || read(l->lines.ready, &byte, 1) != 1) {
        err_set(err, ERR_UNAVAILABLE, "the guest's bridge did not start");
        return hear_why(l, err);
    }
    while (l->w->sandbox.filter_form == FILTER_UNKNOWN &&
           hear_child(&l->w->sandbox, l->lines.control, err) == 1)
        ;
    return l->w->sandbox.filter_form == FILTER_QUIET
               ? 0
               : err_set(err, ERR_INTERNAL, "the child did not say what its filter is");
}

static int launch(struct loading *l, struct err *err)
{
    struct worker *w = l->w;
    /* By name again: the keeper's descriptor belongs to its own copy of the mounts. */
    auto_close int templates = open("/templates", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct cgroup_entry entry = { .v2_fd = -1 };
    struct machine machine;
    struct launch_kind kind = { .uid_base = w->sandbox.info.uid_base,
                                .machine = &machine,
                                .low_fds = w->sandbox.low_fds };
    struct template t;
    int rc = -1;

    if (kind_of(l)->machine(w->keeper, &w->sandbox, templates, &machine, err) < 0)
        return -1;
    if (template_open_tree(&t, templates, w->sandbox.info.template, l->meta.template_inode, err) <
        0) {
        kind_of(l)->done(&machine);
        return -1;
    }
    if (layers_mount(w->keeper->host, &t, err) == 0 &&
        cgroup_entry_open(&w->keeper->host->cgroups, w->sandbox.cgroup, &entry, err) == 0 &&
        launch_child(w->keeper, &kind, &entry, &l->lines, err) == 0) {
        w->sandbox.info.pid = (int32_t) l->lines.pid;
        w->sandbox.pid.fd = l->lines.pidfd;
        rc = launch_root(w->keeper, &w->sandbox, &t, &machine, &l->lines, true, err);
    }
    kind_of(l)->done(&machine);
    cgroup_entry_close(&entry);
    template_close(&t);
    return rc < 0 ? -1 : wait_until_ready(l, err);
}

/* ---- its state ---- */

static int write_piece(int to, const char *data, size_t len, struct err *err)
{
    uint64_t until = io_now_ms() + ORDER_MS;

    while (len > 0) {
        ssize_t n = write(to, data, len);

        if (n < 0 && errno == EAGAIN && io_wait_until(to, POLLOUT, until))
            continue;
        if (n < 0 && errno != EINTR)
            return err_sys(err, errno, "hand over the guest's state");
        if (n > 0) {
            data += n;
            len -= (size_t) n;
        }
    }
    return 0;
}

/* What the program reads was compared before. */
static int feed(struct loading *l, int to, struct err *err)
{
    static char data[CHUNK_BYTES];

    for (uint64_t index = 0;; index++) {
        ssize_t n = pread(l->state_fd, data, sizeof data, (off_t) (index * CHUNK_BYTES));

        if (n < 0)
            return err_sys(err, errno, "read the guest's state");
        if (l->chunks && n == 0 && index * CHUNK_BYTES < l->of_file->bytes)
            return was_changed(l, err);
        if (n == 0)
            return 0;
        if (l->chunks && !chunks_same(l->chunks, l->of_file, index, data, (size_t) n))
            return was_changed(l, err);
        if (write_piece(to, data, (size_t) n, err) < 0)
            return -1;
    }
}

/* A file without a name on the images' disk, which the kernel need not keep in memory. A paused sandbox comes back where that is full, too. */
static int make_room(const struct loading *l, struct err *err)
{
    uint64_t bytes = l->of_file->bytes;
    int fd = full_check(l->w->keeper, bytes, err) < 0 ? -1 : decompress_room(l->dir_fd, bytes, err);

    if (fd < 0 && err->kind == ERR_DISK_FULL) {
        fd = memfd_create("state", MFD_CLOEXEC);
        if (fd < 0)
            err_sys(err, errno, "make room for the guest's state");
    }
    return fd;
}

/* What was compared, in a file that no other process writes to. Of a compressed image there is one already. */
static int copy_state(struct loading *l, int *ret_fd, struct err *err)
{
    auto_close int copy = -1;
    char name[32];

    if (l->chunks) {
        copy = make_room(l, err);
        if (copy < 0 || feed(l, copy, err) < 0)
            return -1;
    }
    /* To be read only, and from its beginning. */
    (void) snprintf(name, sizeof name, "/proc/self/fd/%d", copy >= 0 ? copy : l->state_fd);
    *ret_fd = open(name, O_RDONLY | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys(err, errno, "open the guest's state to be read") : 0;
}

static int load_file(struct loading *l, struct err *err)
{
    auto_close int state = -1, answer = -1;

    if (copy_state(l, &state, err) < 0)
        return -1;
    if (order_give(l->w->keeper, &l->w->sandbox, BRIDGE_LOAD, state, &answer, err) == 0 &&
        order_end(answer, ORDER_MS, err) == 0)
        return 0;
    return err->kind == ERR_UNSUPPORTED ? -1 : hear_why(l, err); /* the bridge's own word is all */
}

static int load_state(struct loading *l, struct err *err)
{
    auto_close int to = -1, answer = -1;
    struct err why;
    int rc;

    if (kind_of(l)->from_file)
        return load_file(l, err);
    if (order_begin(l->w->keeper, &l->w->sandbox, BRIDGE_LOAD, &to, &answer, err) < 0)
        return hear_why(l, err);
    (void) fcntl(to, F_SETFL, O_NONBLOCK);
    rc = feed(l, to, err);
    if (rc < 0 && err->kind == ERR_DENIED)
        return -1;
    own_close(&to);
    if (order_end(answer, ORDER_MS, &why) < 0) {
        *err = why;
        rc = hear_why(l, err);
    }
    return rc;
}

/* ---- all of it ---- */

static int record(struct loading *l, struct err *err)
{
    struct sandbox *s = &l->w->sandbox;
    struct keeper *k = l->w->keeper;

    s->info.life = LIFE_RUNNING;
    memcpy(s->filter, k->host->filter_name, sizeof s->filter);
    return sandbox_pid_started(s->info.pid, &s->pid_started, err) < 0 ? -1
                                                                      : sandbox_record(k, s, err);
}

/* What runs from here on changes the disk: after a power cut its image must not be there. */
static int commit(struct loading *l, struct err *err)
{
    struct images *images = &l->w->keeper->host->images;

    if (record(l, err) < 0 || image_retire(images, l->meta.image.id, err) < 0)
        return -1;
    if (image_sync_name(images, err) < 0) {
        (void) image_unretire(images, l->meta.image.id);
        return -1;
    }
    image_spend(images, l->meta.image.id);
    return 0;
}

static int load(struct loading *l, struct err *err)
{
    struct worker *w = l->w;
    uint64_t begun = io_now_us(), loaded, now = io_real_ms();
    uint64_t slept = now > l->meta.image.saved_ms ? now - l->meta.image.saved_ms : 0;

    if (open_state(l, err) < 0 || launch(l, err) < 0 || load_state(l, err) < 0)
        return -1;
    if (kind_of(l)->answers && order_run(w->keeper, &w->sandbox, err) < 0)
        return hear_why(l, err);
    if (l->same && commit(l, err) < 0)
        return -1;
    loaded = io_now_us();
    if ((!kind_of(l)->answers && order_run(w->keeper, &w->sandbox, err) < 0) ||
        order_tell(w->keeper, &w->sandbox, l->same ? TALK_RESUME : TALK_FORK, slept, err) < 0)
        return hear_why(l, err);
    if (!l->same) {
        if (record(l, err) < 0)
            return -1;
        image_use(l->dir_fd);
    }
    log_line(LOG_DEBUG, "load id=%s us_total=%llu us_loaded=%llu", w->sandbox.info.id,
             (unsigned long long) (io_now_us() - begun), (unsigned long long) (loaded - begun));
    w->result.pid = w->sandbox.info.pid;
    w->result.pid_started = w->sandbox.pid_started;
    memcpy(w->result.filter, w->sandbox.filter, sizeof w->result.filter);
    if (l->same)
        image_discard(&w->keeper->host->images, l->meta.image.id, ".old");
    return 0;
}

int guest_loader(struct worker *w, const struct keeper_request *r, struct err *err)
{
    struct loading l = { .w = w,
                         .same = strcmp(r->image, r->sandbox) == 0,
                         .dir_fd = -1,
                         .memory_fd = -1,
                         .state_fd = -1,
                         .plain = { .from_fd = -1 },
                         .lines = LAUNCH_NO_LINES };
    int rc = -1;

    if (image_lock(&w->keeper->host->images, r->image, l.same, &l.dir_fd, err) == 0 &&
        image_read(&w->keeper->host->images, r->image, &l.meta, err) == 0)
        rc = load(&l, err);
    if (rc < 0 && l.lines.pidfd >= 0)
        (void) kill((pid_t) w->sandbox.info.pid, SIGKILL);
    decompress_done(&l.plain);
    chunks_free(l.chunks);
    own_close(&l.state_fd);
    launch_close(&l.lines);
    return rc;
}
