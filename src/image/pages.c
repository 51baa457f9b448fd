/* What must hold: an address that waits for bytes is in its space's ranges until a copy of them was made, or until the kernel said that
 * it is gone (unmapped, freed, moved, or its process ended). Events are read in order, and while one is not read the kernel
 * refuses copies into that space (EAGAIN), so that no copy comes between a fork, say, and our knowing of it.
 *
 * A userfaultfd is closed when nothing waits in its space any more. The kernel then answers faults by itself, with zeros: which is
 * why no process may close one sooner, not even by dying (fill.c). */
#include "image/pages.h"

#include "base/io.h"
#include "base/own.h"
#include "image/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FINISHED 0x52535446 /* criu's word for: all are restored */
#define STALL_MS 10
#define HOLD_MS  200

/* ---- the image ---- */

static bool has(const struct window *w, uint32_t file, uint64_t chunk)
{
    return w->count && w->file == file && chunk >= w->first && chunk < w->first + w->count;
}

/* The window has that chunk afterwards, and as many behind it as fit. NULL: it differs, or cannot be read. */
static const unsigned char *look(struct pages *p, struct window *w, unsigned char *data,
                                 size_t size, uint32_t file, uint64_t chunk)
{
    const struct chunk_file *f = p->file[file].chunks;
    uint64_t count = size / CHUNK_BYTES, all = (f->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    size_t len;

    if (has(w, file, chunk))
        return data + (chunk - w->first) * CHUNK_BYTES;
    w->count = 0;
    if (chunk >= all)
        return NULL;
    if (count > all - chunk)
        count = all - chunk;
    len = chunk + count == all ? f->bytes - chunk * CHUNK_BYTES : count * CHUNK_BYTES;
    if (pread(p->file[file].fd, data, len, (off_t) (chunk * CHUNK_BYTES)) != (ssize_t) len)
        return NULL;
    for (uint64_t i = 0; i < count; i++) {
        size_t at = i * CHUNK_BYTES;

        if (!chunks_same(p->chunks, f, chunk + i, data + at,
                         len - at < CHUNK_BYTES ? len - at : CHUNK_BYTES))
            return NULL;
    }
    *w = (struct window){ file, chunk, count };
    return data;
}

/* ---- into a process ---- */

enum outcome {
    FINE,
    AGAIN,     /* something has to be heard first */
    NO_MEMORY, /* the sandbox is at its limit: the kernel looks after that */
    GONE,      /* that address space is */
    LEFT,      /* criu is done with us */
    STOPPED,   /* criu gave up */
    CHANGED,
    FAILED
};

static void forget_space(struct pages *p, struct space *s)
{
    p->torn = true;
    own_close(&s->uffd);
    ranges_done(&s->ranges);
    p->torn = false;
}

/* errno of a copy that did nothing at all. FINE: that page needs none. */
static enum outcome judge(const struct space *s, uint64_t at, int why)
{
    struct uffdio_range page = { .start = at, .len = PAGE_BYTES };

    switch (why) {
    case EEXIST: /* its waiting thread may continue */
        (void) ioctl(s->uffd, UFFDIO_WAKE, &page);
        return FINE;
    case ENOENT: /* there is no such memory any more */
    case EINVAL:
        return FINE;
    case EAGAIN:
        return AGAIN;
    case ESRCH:
    case ENOSPC:
        return GONE;
    case ENOMEM:
        return NO_MEMORY;
    default:
        return FAILED;
    }
}

/* From our memory to theirs; what is there already, or no more, is left out. Not FINE: why it is not all of it. */
static enum outcome put(struct pages *p, struct space *s, uint64_t at, const unsigned char *data,
                        uint64_t len)
{
    uint64_t done = 0, step = len;
    enum outcome rc = FINE;

    while (rc == FINE && done < len) {
        struct uffdio_copy copy = { .dst = at + done,
                                    .src = (uint64_t) (uintptr_t) (data + done),
                                    .len = step < len - done ? step : len - done };

        if (ioctl(s->uffd, UFFDIO_COPY, &copy) == 0) {
            done += copy.len;
            step = len;
        } else if (copy.copy > 0) {
            done += (uint64_t) copy.copy;
        } else if (errno == ENOENT && copy.len > PAGE_BYTES) {
            step = copy.len / PAGE_BYTES / 2 * PAGE_BYTES; /* it may be more than one area */
        } else {
            rc = judge(s, at + done, errno);
            if (rc == FINE)
                done += PAGE_BYTES;
        }
    }
    p->torn = true;
    if (done && ranges_drop(&s->ranges, at, at + done) < 0)
        return FAILED;
    p->torn = false;
    return rc;
}

static enum outcome put_zero(const struct space *s, uint64_t at)
{
    struct uffdio_zeropage zero = { .range = { .start = at, .len = PAGE_BYTES } };

    if (ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero) == 0)
        return FINE;
    return judge(s, at, errno);
}

/* What of the address's range is in the window that has it; but before criu is done the page alone: what lies beside it may
 * not be there yet, which must not be taken for being gone. */
static enum outcome bring(struct pages *p, struct space *s, uint64_t address, bool asked)
{
    const struct range *r = ranges_find(&s->ranges, address);
    bool small = asked && p->finished;
    uint64_t offset, chunk, begin = address, end = address + PAGE_BYTES;
    const unsigned char *data;
    struct window *w;

    if (!r)
        return put_zero(s, address);
    offset = r->offset + (address - r->start);
    chunk = offset / CHUNK_BYTES;
    w = asked && !has(&p->ahead, s->file, chunk) ? &p->asked : &p->ahead;
    data = w == &p->asked ? look(p, w, p->asked_data, sizeof p->asked_data, s->file, chunk)
                          : look(p, w, p->ahead_data, sizeof p->ahead_data, s->file, chunk);
    if (!data)
        return CHANGED;
    if (p->finished) {
        uint64_t first = chunk * CHUNK_BYTES;
        uint64_t last = small ? first + CHUNK_BYTES : (w->first + w->count) * CHUNK_BYTES;

        begin = first > r->offset ? r->start + (first - r->offset) : r->start;
        end = last - r->offset < r->end - r->start ? r->start + (last - r->offset) : r->end;
    }
    if (!asked)
        p->late += end - begin;
    return put(p, s, begin, data + (r->offset + (begin - r->start) - chunk * CHUNK_BYTES),
               end - begin);
}

/* ---- what processes do ---- */

static struct space *free_space(struct pages *p)
{
    for (uint32_t i = 0; i < p->space_count; i++)
        if (p->space[i].uffd < 0 && p->space[i].pid == 0)
            return &p->space[i];
    if (p->space_count == SPACES_MAX)
        return NULL;
    p->space[p->space_count].uffd = -1;
    return &p->space[p->space_count++];
}

static enum outcome on_fork(struct pages *p, struct space *parent, int uffd)
{
    struct space *child = free_space(p);

    if (!child || ranges_copy(&parent->ranges, &child->ranges) < 0)
        return FAILED;
    child->pid = 0;
    child->file = parent->file;
    child->uffd = uffd;
    return FINE;
}

static enum outcome on_event(struct pages *p, struct space *s, const struct uffd_msg *m)
{
    switch (m->event) {
    case UFFD_EVENT_FORK:
        return on_fork(p, s, (int) m->arg.fork.ufd);
    case UFFD_EVENT_REMAP:
        return ranges_move(&s->ranges, m->arg.remap.from, m->arg.remap.to, m->arg.remap.len) < 0
                   ? FAILED
                   : FINE;
    case UFFD_EVENT_REMOVE:
    case UFFD_EVENT_UNMAP:
        return ranges_drop(&s->ranges, m->arg.remove.start, m->arg.remove.end) < 0 ? FAILED : FINE;
    default:
        return FAILED;
    }
}

static enum outcome wait_a_little(enum outcome rc)
{
    const struct timespec moment = { .tv_nsec = STALL_MS * 1000000 };

    if (rc == NO_MEMORY)
        (void) nanosleep(&moment, NULL);
    return rc == NO_MEMORY || rc == AGAIN ? FINE : rc;
}

static enum outcome on_fault(struct pages *p, struct space *s, uint64_t address)
{
    struct uffdio_range page = { .start = address & ~(uint64_t) (PAGE_BYTES - 1),
                                 .len = PAGE_BYTES };
    enum outcome rc = bring(p, s, page.start, true);

    p->faults++;
    /* Not now: it is woken, faults again, and comes behind what has to be read first. */
    if (rc == AGAIN || rc == NO_MEMORY)
        (void) ioctl(s->uffd, UFFDIO_WAKE, &page);
    return wait_a_little(rc);
}

/* One message. */
static enum outcome hear(struct pages *p, struct space *s)
{
    struct uffd_msg m;
    ssize_t n;
    enum outcome rc = FINE;

    p->torn = true; /* once it is read the kernel continues: it must not be lost */
    n = read(s->uffd, &m, sizeof m);
    if (n == (ssize_t) sizeof m && m.event != UFFD_EVENT_PAGEFAULT)
        rc = on_event(p, s, &m);
    if (rc == FINE)
        p->torn = false;
    if (n == (ssize_t) sizeof m && m.event == UFFD_EVENT_PAGEFAULT)
        rc = on_fault(p, s, m.arg.pagefault.address);
    if (n < 0 && errno != EAGAIN && errno != EINTR && errno != EMFILE && errno != ENFILE)
        rc = FAILED;
    if (n == 0)
        rc = GONE;
    return rc;
}

/* ---- criu ---- */

static struct space *space_of(struct pages *p, int pid)
{
    for (uint32_t i = 0; i < p->space_count; i++)
        if (p->space[i].pid == pid && p->space[i].uffd < 0)
            return &p->space[i];
    return NULL;
}

/* Its pid; then the device from us, its userfaultfd, and our word that it is on (src/criu/shim.c). */
static int take_space(struct pages *p, int pid)
{
    struct uffdio_api api = { .api = UFFD_API, .features = PAGES_FEATURES };
    struct space *s = space_of(p, pid);
    size_t count = 0;
    char byte;
    int fd;

    if (io_send_fds(p->client, "d", 1, &p->device_fd, 1) != 1 ||
        io_recv_fds(p->client, &byte, 1, &fd, 1, &count) != 1 || count != 1)
        return -1;
    if (!s || ioctl(fd, UFFDIO_API, &api) < 0) {
        (void) close(fd);
        return -1;
    }
    s->uffd = fd;
    return send(p->client, "y", 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static enum outcome listen_to_criu(struct pages *p)
{
    const struct timeval patience = { .tv_sec = 20 };
    int word;

    if (p->client < 0) {
        p->client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
        if (p->client < 0 ||
            setsockopt(p->client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
            return STOPPED;
        own_close(&p->listener);
        return FINE;
    }
    if (recv(p->client, &word, sizeof word, MSG_WAITALL) != (ssize_t) sizeof word)
        return STOPPED;
    if (word < 0) /* a zombie: it has no memory */
        return FINE;
    if (word != FINISHED)
        return take_space(p, word) < 0 ? STOPPED : FINE;
    own_close(&p->client);
    own_close(&p->alive_fd);
    own_close(&p->device_fd);
    p->finished = true;
    return LEFT;
}

static enum outcome hear_criu(struct pages *p)
{
    enum outcome rc;

    p->torn = true; /* half of what was said is lost with who heard it */
    rc = listen_to_criu(p);
    if (rc != STOPPED)
        p->torn = false;
    return rc;
}

/* ---- all of it ---- */

/* -1: none. Those that were forked come last: most become another program, and need nothing. */
static int next_space(const struct pages *p)
{
    int child = -1;

    for (uint32_t n = 0; n < p->space_count; n++) {
        uint32_t i = (p->next + n) % p->space_count;

        if (p->space[i].uffd < 0 || p->space[i].ranges.count == 0)
            continue;
        if (p->space[i].pid)
            return (int) i;
        if (child < 0)
            child = (int) i;
    }
    return child;
}

static void close_idle(struct pages *p)
{
    for (uint32_t i = 0; i < p->space_count; i++)
        if (p->space[i].uffd >= 0 && p->space[i].ranges.count == 0)
            forget_space(p, &p->space[i]);
}

static enum outcome hear_all(struct pages *p, int wait_ms)
{
    uint32_t count = p->space_count;

    for (uint32_t i = 0; i < count; i++)
        p->polled[i] = (struct pollfd){ .fd = p->space[i].uffd, .events = POLLIN };
    p->polled[count] =
        (struct pollfd){ .fd = p->client >= 0 ? p->client : p->listener, .events = POLLIN };
    p->polled[count + 1] = (struct pollfd){ .fd = p->client < 0 ? p->alive_fd : -1 };
    if (poll(p->polled, count + 2, wait_ms) <= 0)
        return FINE;
    for (uint32_t i = 0; i < count; i++) {
        enum outcome rc = FINE;

        if (p->polled[i].revents & POLLIN)
            rc = hear(p, &p->space[i]);
        else if (p->polled[i].revents)
            rc = GONE;
        if (rc == GONE)
            forget_space(p, &p->space[i]);
        else if (rc != FINE)
            return rc;
    }
    if (p->polled[count].revents)
        return hear_criu(p);
    return p->polled[count + 1].revents ? STOPPED : FINE;
}

/* A piece for who has not all of it yet. */
static enum outcome next_step(struct pages *p)
{
    int i = next_space(p);
    enum outcome rc;

    if (i < 0)
        return FINE;
    p->next = (uint32_t) i;
    rc = bring(p, &p->space[i], p->space[i].ranges.at[0].start, false);
    if (rc == GONE)
        forget_space(p, &p->space[i]);
    return rc == GONE ? FINE : wait_a_little(rc);
}

enum pages_end pages_serve(struct pages *p, void (*once_criu_is_done)(void))
{
    enum outcome rc = FINE;

    if (p->finished)
        once_criu_is_done();
    while (rc == FINE && !(p->finished && next_space(p) < 0)) {
        rc = hear_all(p, p->finished ? 0 : -1);
        if (rc == LEFT) {
            once_criu_is_done();
            rc = FINE;
        }
        if (rc == FINE && p->finished) {
            rc = next_step(p);
            close_idle(p);
        }
    }
    switch (rc) {
    case FINE:
        return PAGES_DONE;
    case STOPPED:
        return PAGES_STOPPED;
    case CHANGED:
        return PAGES_CHANGED;
    case AGAIN:
    case NO_MEMORY:
    case GONE:
    case LEFT:
    case FAILED:
        break;
    }
    return PAGES_FAILED;
}

/* A change that the kernel refuses for another reason as long as there is a process (ENOENT: not of that kind). */
static bool is_gone(const struct space *s)
{
    struct uffdio_writeprotect nothing = {
        .range = { .start = s->ranges.count ? s->ranges.at[0].start : PAGE_BYTES << 4,
                   .len = PAGE_BYTES }
    };

    return ioctl(s->uffd, UFFDIO_WRITEPROTECT, &nothing) < 0 && errno == ESRCH;
}

void pages_hold(struct pages *p)
{
    uint32_t open;

    do {
        open = 0;
        for (uint32_t i = 0; i < p->space_count; i++) {
            if (p->space[i].uffd >= 0 && is_gone(&p->space[i]))
                forget_space(p, &p->space[i]);
            open += p->space[i].uffd >= 0;
        }
        (void) poll(NULL, 0, HOLD_MS);
    } while (open);
}
