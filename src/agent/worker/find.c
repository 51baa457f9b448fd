/* find.c - the operation GLOB: a walk that goes where its pattern can still match. */
#include "agent/worker/answer.h"
#include "agent/worker/entry.h"
#include "agent/worker/glob.h"
#include "agent/worker/path.h"
#include "agent/worker/walk.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FIND_LIMIT 10000u

/* The states in each directory between the first and the current one, `words` each. */
struct find {
    struct worker *w;
    const struct glob *glob;
    struct walk walk;
    uint64_t *sets;
    size_t words, room; /* room: levels */
    struct agent_reply end;
};

static int keep_set(struct find *find, size_t level, const struct glob_set *set, struct err *err)
{
    if (level >= find->room) {
        size_t room = find->room ? 2 * find->room : 16;
        void *sets = realloc(find->sets, room * find->words * sizeof *find->sets);

        if (!sets)
            return err_sys(err, ENOMEM, "glob");
        find->sets = sets;
        find->room = room;
    }
    memcpy(find->sets + level * find->words, set->bits, find->words * sizeof *find->sets);
    return 0;
}

/* Returns 1 when it was sent, 0 when it is no match after all. */
static int send_match(struct find *find, unsigned flags, struct err *err)
{
    struct walk *walk = &find->walk;
    char target[AGENT_PATH_MAX];
    struct agent_reply item = { 0 };
    struct stat st;

    if (fstatat(walk->dirfd, walk->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (!(flags & GLOB_MATCH) && !S_ISDIR(st.st_mode))
        return 0;
    entry_fill(&item, walk->path, &st);
    if (item.type == ENTRY_LINK)
        entry_target(&item, walk->dirfd, walk->name, target, sizeof target);
    return answer_record(find->w, FRAME_ITEM, &item, err) < 0 ? -1 : 1;
}

/* Returns 1 when a limit ends the search. */
static int find_entry(struct find *find, struct err *err)
{
    const uint64_t limit = find->w->request->limit ? find->w->request->limit : FIND_LIMIT;
    struct walk *walk = &find->walk;
    bool dir = walk_is_dir(walk);
    bool link = !dir && (walk->type == DT_LNK || walk->type == DT_UNKNOWN);
    struct glob_set set;
    struct err below;
    unsigned flags =
        glob_step(find->glob, find->sets + (walk->depth - 1) * find->words, walk->name, link, &set);

    if (walk->path_len >= 2 * AGENT_PATH_MAX) { /* longer than a reply can say */
        find->end.flags |= AGENT_TRUNCATED;
        return 0;
    }
    if (flags & (GLOB_MATCH | GLOB_MATCH_DIR)) {
        int sent;

        if (find->end.count == limit) {
            find->end.flags |= AGENT_TRUNCATED;
            return 1;
        }
        sent = send_match(find, flags, err);
        if (sent < 0)
            return -1;
        find->end.count += (uint64_t) sent;
    }
    /* What cannot be entered holds nothing for us. */
    if (!(flags & GLOB_MORE) || !(dir || link) || walk_enter(walk, link, &below) < 0)
        return 0;
    return keep_set(find, walk->depth - 1, &set, err);
}

static int find_all(struct find *find, struct err *err)
{
    uint64_t steps = 0;
    int step, rc = 0;

    while (rc == 0 && (step = walk_next(&find->walk, err)) != WALK_END) {
        if (step < 0 || answer_wanted(find->w, ++steps, err) < 0)
            return -1;
        if (step == WALK_ENTRY)
            rc = find_entry(find, err);
    }
    return rc < 0 ? -1 : answer_record(find->w, FRAME_END, &find->end, err);
}

static int find_run(struct find *find, const char *path, struct err *err)
{
    struct glob_set start;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return path_err(err, errno, path);
    if (walk_open(&find->walk, fd, path, WALK_SKIP_PROC, err) < 0)
        return -1;
    find->words = glob_words(find->glob);
    glob_start(find->glob, &start);
    if (keep_set(find, 0, &start, err) < 0)
        return -1;
    return find_all(find, err);
}

int glob_run(struct worker *w, struct err *err)
{
    const char *pattern = w->request->pattern;
    const char *from = pattern[0] == '/' ? "/" : w->request->path;
    char path[PATH_TEXT_MAX];
    struct glob *glob = NULL;
    struct find find = { .w = w, .walk = WALK_INIT };
    int rc;

    if (path_resolve(w->user->home, from, path, err) < 0 ||
        glob_new(pattern, w->request->flags & AGENT_HIDDEN, &glob, err) < 0)
        return -1;
    find.glob = glob;
    rc = find_run(&find, path, err);
    walk_close(&find.walk);
    free(find.sets);
    glob_free(glob);
    return rc;
}
