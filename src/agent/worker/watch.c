/* One inotify watch per directory. What must hold:
 *
 *   - A new directory is watched before it is read, so nothing in it is missed. What is found then
 *     is told as created; an event of the kernel for the same thing may follow and is left out once
 *     (seen), until the events that were queued during the reading are through.
 *   - A rename is two events with one cookie, mostly neighbours. The second is looked for in what
 *     was read, and waited for only when the first was the last of all. So events keep their order.
 *   - When the kernel's queue was full, nothing we know is certain: every watch is made again and then
 *     the caller is told to look again (EVENT_OVERFLOW). A caller that reads slowly ends there too,
 *     not in memory of ours. gVisor's queue has no end: while the caller does not read, we look how long the queue is, and a
 *     queue of more than QUEUE_MAX is thrown away (lost).
 *   - Directories whose paths no reply can carry are not watched. */
#include "agent/worker/watch.h"

#include "agent/worker/answer.h"
#include "agent/worker/entry.h"
#include "agent/worker/nodes.h"
#include "agent/worker/path.h"
#include "agent/worker/walk.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define EVENTS                                                                                     \
    (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK)
#define PAIR_MS    10
#define SEEN_SLOTS 8192u
#define TEXT_MAX   (2 * AGENT_PATH_MAX)
#define QUEUE_MAX                                                                                  \
    (1 << 20) /* bytes of events; the kernel has room for half of it, if names are short */

struct watch {
    struct worker *w;
    int inotify;
    bool recursive;
    bool ended; /* the watched file or directory is gone */
    bool lost;  /* events were thrown away, and the caller is not told yet */
    char root[PATH_TEXT_MAX];
    struct nodes nodes;
    /* told from reading a directory: hashes of directory and name */
    uint64_t *seen; /* SEEN_SLOTS */
    uint64_t seen_until;
    uint64_t bytes_read, bytes_done; /* of events */
};

/* FNV-1a */
static uint64_t hash_of(const struct node *node, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t) node->wd;

    for (hash *= 0x100000001b3u; *name; name++)
        hash = (hash ^ (uint8_t) *name) * 0x100000001b3u;
    return hash | 1; /* 0 is an empty slot */
}

static int tell(struct watch *watch, enum agent_event event, const char *path, const char *target,
                bool dir, struct err *err)
{
    static struct entry_room room;
    bool there = event == EVENT_CREATE || event == EVENT_WRITE || event == EVENT_CHMOD;
    const char *now = event == EVENT_RENAME ? target : there ? path : NULL;
    struct agent_reply item = {
        .event = event, .path = path, .target = target, .type = dir ? ENTRY_DIR : ENTRY_NONE
    };
    struct stat st;

    if (now && (watch->w->request->flags & AGENT_RESOLVE) && lstat(now, &st) == 0) {
        entry_fill(&item, now, &st);
        entry_detail(&item, watch->w->request, &room);
        item.flags = AGENT_ENTRY;
        item.path = path;
        item.target = event == EVENT_RENAME ? target : item.target;
    }
    return answer_record(watch->w, FRAME_ITEM, &item, err);
}

static int tell_overflow(struct watch *watch, struct err *err)
{
    return tell(watch, EVENT_OVERFLOW, watch->root, NULL, true, err);
}

static int tell_at(struct watch *watch, enum agent_event event, const struct node *node,
                   const char *name, bool dir, struct err *err)
{
    char path[TEXT_MAX];

    if (!nodes_path(node, name, path, sizeof path))
        return tell_overflow(watch, err);
    return tell(watch, event, path, NULL, dir, err);
}

/* Watches the open file or directory. Returns 1 for a new node, 0 when it is watched already or may
 * not be, -1 when no more can be watched. */
static int add_watch(struct watch *watch, int fd, struct node *above, const char *name,
                     struct node **ret, struct err *err)
{
    char self[40];
    int wd;

    (void) snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    wd = inotify_add_watch(watch->inotify, self, EVENTS);
    if (wd < 0 && errno == ENOSPC)
        return err_set(err, ERR_TOO_MANY,
                       "no inotify watches left after %zu directories (max_user_watches)",
                       watch->nodes.count);
    if (wd < 0 && above)
        return 0;
    if (wd < 0)
        return path_err(err, errno, name);
    *ret = nodes_find(&watch->nodes, wd);
    if (*ret)
        return 0;
    *ret = nodes_add(&watch->nodes, wd, above, name);
    return *ret ? 1 : err_sys(err, ENOMEM, "watch");
}

/* The nodes of the directories that a walk is in. */
struct trail {
    struct node **nodes;
    size_t room;
};

static int trail_set(struct trail *trail, size_t level, struct node *node, struct err *err)
{
    if (level >= trail->room) {
        size_t room = trail->room ? 2 * trail->room : 32;
        void *nodes = realloc(trail->nodes, room * sizeof(struct node *));

        if (!nodes)
            return err_sys(err, ENOMEM, "watch");
        trail->nodes = nodes;
        trail->room = room;
    }
    trail->nodes[level] = node;
    return 0;
}

static int scan_entry(struct watch *watch, struct walk *walk, struct trail *trail, bool announce,
                      struct err *err)
{
    struct node *above = trail->nodes[walk->depth - 1], *node;
    bool dir = walk_is_dir(walk);
    auto_close int fd = -1;
    struct err below;
    int added;

    if (walk->path_len >= TEXT_MAX)
        return 0;
    if (announce) {
        uint64_t hash = hash_of(above, walk->name);

        watch->seen[hash % SEEN_SLOTS] = hash;
        if (tell(watch, EVENT_CREATE, walk->path, NULL, dir, err) < 0)
            return -1;
    }
    if (dir)
        fd = walk_open_dir(walk->dirfd, walk->name, 0);
    if (fd < 0)
        return 0;
    added = add_watch(watch, fd, above, walk->name, &node, err);
    if (added <= 0)
        return added;
    if (walk_enter(walk, false, &below) < 0)
        return 0;
    return trail_set(trail, walk->depth - 1, node, err);
}

/* Watches every directory below `node`, which is open at fd (taken over). */
static int scan(struct watch *watch, struct node *node, int fd, const char *path, bool announce,
                struct err *err)
{
    struct walk walk = WALK_INIT;
    struct trail trail = { 0 };
    uint64_t steps = 0;
    int step = walk_open(&walk, fd, path, WALK_SKIP_PROC, err);
    int queued = 0;

    if (step == 0)
        step = trail_set(&trail, 0, node, err);
    while (step == 0 && (step = walk_next(&walk, err)) > 0) {
        if (answer_wanted(watch->w, ++steps, err) < 0)
            step = -1;
        else
            step = step == WALK_ENTRY ? scan_entry(watch, &walk, &trail, announce, err) : 0;
    }
    walk_close(&walk);
    free(trail.nodes);
    if (step < 0 && announce && err->kind == ERR_STATE) /* moved under our feet */
        step = tell_overflow(watch, err);
    if (ioctl(watch->inotify, FIONREAD, &queued) == 0)
        watch->seen_until = watch->bytes_read + (uint64_t) queued;
    return step;
}

/* A directory appeared: it and all below it. */
static int add_new(struct watch *watch, struct node *above, const char *name, struct err *err)
{
    char path[TEXT_MAX];
    auto_close int fd = -1;
    struct node *node;
    int added;

    if (!watch->recursive)
        return 0;
    if (!nodes_path(above, name, path, sizeof path))
        return tell_overflow(watch, err);
    fd = walk_open_dir(AT_FDCWD, path, 0);
    if (fd < 0)
        return errno == ENAMETOOLONG || errno == EMFILE ? tell_overflow(watch, err) : 0;
    added = add_watch(watch, fd, above, name, &node, err);
    return added <= 0 ? added : scan(watch, node, take_fd(&fd), path, true, err);
}

/* A directory is no longer ours: it and all below it. */
static void drop(struct watch *watch, struct node *top)
{
    struct node *above = top->above, *node = nodes_leaf(top);

    while (node != above) {
        struct node *up = node->above;
        bool last = node == top;

        (void) inotify_rm_watch(watch->inotify, node->wd);
        nodes_remove(&watch->nodes, node);
        node = last ? above : nodes_leaf(up);
    }
}

/* From the beginning, without telling of what is there. */
static int start(struct watch *watch, struct err *err)
{
    auto_close int fd = -1;
    struct node *node;
    struct stat st;

    nodes_done(&watch->nodes);
    own_close(&watch->inotify);
    watch->seen_until = watch->bytes_read = watch->bytes_done = 0;
    memset(watch->seen, 0, SEEN_SLOTS * sizeof watch->seen[0]);
    watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->inotify < 0 && errno == EMFILE)
        return err_set(err, ERR_TOO_MANY, "no more watches for this user (max_user_instances)");
    if (watch->inotify < 0)
        return err_sys(err, errno, "watch");
    fd = open(watch->root, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return path_err(err, errno, watch->root);
    if (add_watch(watch, fd, NULL, watch->root, &node, err) < 0)
        return -1;
    if (!watch->recursive || !S_ISDIR(st.st_mode))
        return 0;
    own_close(&fd);
    fd = open(watch->root, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return path_err(err, errno, watch->root);
    return scan(watch, node, take_fd(&fd), watch->root, false, err);
}

/* Events in memory, as read. */
struct events {
    uint8_t *data; /* SIZE_OF_EVENTS, aligned */
    size_t at, len;
};
#define SIZE_OF_EVENTS 65536u

static struct inotify_event *event_at(const struct events *events, size_t at)
{
    return (struct inotify_event *) (void *) (events->data + at);
}

static size_t event_size(const struct inotify_event *e)
{
    return sizeof *e + e->len;
}

/* The number of bytes that came, 0 when there are none now. */
static ssize_t read_events(struct watch *watch, struct events *events)
{
    ssize_t n = read(watch->inotify, events->data + events->len, SIZE_OF_EVENTS - events->len);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    events->len += (size_t) n;
    watch->bytes_read += (uint64_t) n;
    return n;
}

/* The event at events->at is one half of a rename: the other half, or NULL. */
static struct inotify_event *find_pair(struct watch *watch, struct events *events)
{
    struct inotify_event *from = event_at(events, events->at);

    if (events->at + event_size(from) == events->len) {
        struct pollfd p = { .fd = watch->inotify, .events = POLLIN };

        memmove(events->data, from, event_size(from));
        from = event_at(events, 0);
        events->at = 0;
        events->len = event_size(from);
        if (poll(&p, 1, PAIR_MS) > 0)
            (void) read_events(watch, events);
    }
    for (size_t at = events->at + event_size(from); at < events->len;) {
        struct inotify_event *e = event_at(events, at);

        if ((e->mask & IN_MOVED_TO) && e->cookie == from->cookie)
            return e;
        at += event_size(e);
    }
    return NULL;
}

static int on_rename(struct watch *watch, struct node *from, const struct inotify_event *e,
                     struct node *to, const struct inotify_event *pair, struct err *err)
{
    char path[TEXT_MAX], target[TEXT_MAX];
    bool dir = e->mask & IN_ISDIR;
    struct node *child = dir && watch->recursive ? nodes_child(from, e->name) : NULL;

    if (nodes_path(from, e->name, path, sizeof path) &&
        (!to || nodes_path(to, pair->name, target, sizeof target))) {
        if (tell(watch, EVENT_RENAME, path, to ? target : NULL, dir, err) < 0)
            return -1;
    } else if (tell_overflow(watch, err) < 0) {
        return -1;
    }
    if (child && !to)
        drop(watch, child);
    else if (child && nodes_within(to, child))
        return tell_overflow(watch, err); /* names were exchanged: what we know of them is wrong */
    else if (child && !nodes_move(&watch->nodes, child, to, pair->name))
        return err_sys(err, ENOMEM, "watch");
    else if (!child && to && dir)
        return add_new(watch, to, pair->name, err);
    return 0;
}

static int on_moved_from(struct watch *watch, struct node *node, struct events *events,
                         struct err *err)
{
    struct inotify_event *pair = find_pair(watch, events);
    struct node *to = pair ? nodes_find(&watch->nodes, pair->wd) : NULL;

    if (to)
        pair->mask = 0; /* done with */
    return on_rename(watch, node, event_at(events, events->at), to, pair, err);
}

static int on_moved_to(struct watch *watch, struct node *node, const struct inotify_event *e,
                       struct err *err)
{
    char target[TEXT_MAX];

    if (!nodes_path(node, e->name, target, sizeof target))
        return tell_overflow(watch, err);
    if (tell(watch, EVENT_RENAME, NULL, target, e->mask & IN_ISDIR, err) < 0)
        return -1;
    return e->mask & IN_ISDIR ? add_new(watch, node, e->name, err) : 0;
}

static int on_create(struct watch *watch, struct node *node, const struct inotify_event *e,
                     struct err *err)
{
    uint64_t hash = hash_of(node, e->name);
    bool dir = e->mask & IN_ISDIR;

    if (watch->seen[hash % SEEN_SLOTS] == hash)
        watch->seen[hash % SEEN_SLOTS] = 0;
    else if (tell_at(watch, EVENT_CREATE, node, e->name, dir, err) < 0)
        return -1;
    return dir ? add_new(watch, node, e->name, err) : 0;
}

/* What happened to a watched thing itself. The directory above tells the same of all but the root. */
static int on_self(struct watch *watch, struct node *node, uint32_t mask, struct err *err)
{
    if (mask & IN_IGNORED) {
        watch->ended |= !node->above;
        drop(watch, node);
        return 0;
    }
    if (node->above)
        return 0;
    if (mask & IN_MODIFY)
        return tell_at(watch, EVENT_WRITE, node, NULL, false, err);
    if (mask & IN_ATTRIB)
        return tell_at(watch, EVENT_CHMOD, node, NULL, mask & IN_ISDIR, err);
    watch->ended = true;
    return tell_at(watch, mask & IN_MOVE_SELF ? EVENT_RENAME : EVENT_REMOVE, node, NULL,
                   mask & IN_ISDIR, err);
}

static int on_event(struct watch *watch, struct events *events, struct err *err)
{
    const struct inotify_event *e = event_at(events, events->at);
    struct node *node = nodes_find(&watch->nodes, e->wd);

    if (!node || !e->mask)
        return 0;
    if (e->len == 0 || (e->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)))
        return on_self(watch, node, e->mask, err);
    if (e->mask & IN_MOVED_FROM)
        return on_moved_from(watch, node, events, err);
    if (e->mask & IN_MOVED_TO)
        return on_moved_to(watch, node, e, err);
    if (e->mask & IN_CREATE)
        return on_create(watch, node, e, err);
    return tell_at(watch,
                   e->mask & IN_DELETE   ? EVENT_REMOVE
                   : e->mask & IN_MODIFY ? EVENT_WRITE
                                         : EVENT_CHMOD,
                   node, e->name, e->mask & IN_ISDIR, err);
}

static void bound_queue(void *arg)
{
    struct watch *watch = arg;
    uint8_t thrown[4096] __attribute__((aligned(8)));
    int queued = 0;

    if (ioctl(watch->inotify, FIONREAD, &queued) < 0 || queued <= QUEUE_MAX)
        return;
    watch->lost = true;
    for (ssize_t n; queued > 0 && (n = read(watch->inotify, thrown, sizeof thrown)) > 0;)
        queued -= (int) n;
}

static int on_events(struct watch *watch, struct events *events, struct err *err)
{
    events->at = events->len = 0;
    if (read_events(watch, events) < 0)
        return err_sys(err, errno, "watch");
    while ((watch->lost || events->at < events->len) && !watch->ended) {
        if (watch->lost || (event_at(events, events->at)->mask & IN_Q_OVERFLOW)) {
            watch->lost = false;
            if (start(watch, err) < 0)
                return -1;
            return tell_overflow(watch, err);
        }
        if (watch->bytes_done >= watch->seen_until && watch->seen_until > 0) {
            memset(watch->seen, 0, SEEN_SLOTS * sizeof watch->seen[0]);
            watch->seen_until = 0;
        }
        if (on_event(watch, events, err) < 0)
            return -1;
        watch->bytes_done += event_size(event_at(events, events->at));
        events->at += event_size(event_at(events, events->at));
    }
    return 0;
}

/* Until the caller closes, or what is watched is gone. */
static int follow(struct watch *watch, struct events *events, struct err *err)
{
    char dropped[256];

    while (!watch->ended) {
        struct pollfd p[2] = { { .fd = watch->inotify, .events = POLLIN },
                               { .fd = watch->w->sock, .events = POLLIN } };

        if (poll(p, 2, watch->lost ? 0 : -1) < 0 && errno != EINTR)
            return err_sys(err, errno, "watch");
        if (p[1].revents && read(watch->w->sock, dropped, sizeof dropped) <= 0)
            return err_set(err, ERR_UNAVAILABLE, "the caller has gone");
        if ((p[0].revents || watch->lost) && on_events(watch, events, err) < 0)
            return -1;
    }
    return answer_record(watch->w, FRAME_END, &(struct agent_reply){ 0 }, err);
}

int watch_run(struct worker *w, struct err *err)
{
    struct watch watch = { .w = w,
                           .inotify = -1,
                           .recursive = w->request->flags & AGENT_RECURSIVE };
    struct events events = { .data = malloc(SIZE_OF_EVENTS) };
    struct agent_reply ready = { 0 };
    int rc = -1;

    w->meanwhile = bound_queue;
    w->meanwhile_arg = &watch;
    watch.seen = calloc(SEEN_SLOTS, sizeof *watch.seen);
    if (!events.data || !watch.seen)
        (void) err_sys(err, ENOMEM, "watch");
    else if (path_resolve(w->user->home, w->request->path, watch.root, err) == 0 &&
             start(&watch, err) == 0 && answer_record(w, FRAME_REPLY, &ready, err) == 0)
        rc = follow(&watch, &events, err);
    w->meanwhile = NULL; /* the watch ends with this function */
    nodes_done(&watch.nodes);
    own_close(&watch.inotify);
    free(watch.seen);
    free(events.data);
    return rc;
}
