/* The window of a file always begins at the begin of a line or of a piece of one. A piece ends with
 * its line, or where the window is full; then the next one begins GREP_OVERLAP bytes before its end,
 * so that a match across the cut is found in one of the two. */
#include "agent/worker/grep.h"

#include "agent/worker/answer.h"
#include "agent/worker/entry.h"
#include "agent/worker/file.h"
#include "agent/worker/glob.h"
#include "agent/worker/path.h"
#include "agent/worker/walk.h"
#include "base/own.h"
#include "base/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define BINARY_LOOK 8192u
/* Some short patterns are huge once compiled: they end here, not with the sandbox's memory. */
#define MEMORY_MAX (192u << 20)

/* A line that may become context of the match behind it. */
struct before {
    uint64_t line;
    uint32_t len;
    char *text; /* owned */
};

struct grep {
    struct worker *w;
    struct needle *needle;
    struct glob *include; /* NULL: all */
    bool include_path;    /* its pattern has a slash: whole paths, not names */
    size_t root_len;      /* of the directory where the search began */
    char *window;         /* GREP_LINE + 1 */
    struct before *ring;  /* context_before of them */
    struct agent_reply end;
    uint64_t steps;
    /* the current file */
    const char *path;
    struct stat st;
    uint64_t line;      /* the number of the current one */
    uint64_t column;    /* of the window's first byte in it */
    bool line_matched;  /* an earlier piece of it was a match */
    bool binary;        /* a NUL was seen */
    uint64_t sent_line; /* the last one that was sent */
    uint32_t after;     /* lines that still follow as context */
};

enum { CONTINUE, NEXT_FILE, STOP };

/* The piece of [text, len) to show around a match at `at`. */
static struct bytes shown(const char *text, size_t len, size_t at)
{
    size_t from = at > GREP_SHOWN / 4 && len > GREP_SHOWN ? at - GREP_SHOWN / 4 : 0;
    size_t size = len - from < GREP_SHOWN ? len - from : GREP_SHOWN;

    return (struct bytes){ .data = text + from, .len = (uint32_t) size };
}

static int send_line(struct grep *g, uint64_t line, uint64_t column, uint32_t flags,
                     struct bytes data, struct err *err)
{
    struct agent_reply item = {
        .path = g->path, .line = line, .column = column, .flags = flags, .data = data
    };

    g->sent_line = line;
    return answer_record(g->w, FRAME_ITEM, &item, err);
}

/* The lines before the current one that were not sent yet. */
static int send_before(struct grep *g, struct err *err)
{
    const uint32_t count = g->w->request->context_before;

    for (uint64_t line = g->line > count ? g->line - count : 1; count && line < g->line; line++) {
        const struct before *b = &g->ring[line % count];
        struct bytes data = { .data = b->text, .len = b->len };

        if (b->line == line && line > g->sent_line &&
            send_line(g, line, 0, AGENT_CONTEXT, data, err) < 0)
            return -1;
    }
    return 0;
}

/* Only the first piece of a long line is kept. */
static int keep_before(struct grep *g, const char *text, size_t len, struct err *err)
{
    const uint32_t count = g->w->request->context_before;
    struct before *b = count ? &g->ring[g->line % count] : NULL;
    char *copy;

    if (!b || g->column > 0)
        return 0;
    len = len < GREP_SHOWN ? len : GREP_SHOWN;
    copy = realloc(b->text, len + 1);
    if (!copy)
        return err_sys(err, ENOMEM, "grep");
    memcpy(copy, text, len);
    *b = (struct before){ .line = g->line, .len = (uint32_t) len, .text = copy };
    return 0;
}

static int on_match(struct grep *g, const char *text, size_t len, size_t at, struct err *err)
{
    const uint64_t limit = g->w->request->limit ? g->w->request->limit : GREP_LIMIT;

    if (g->end.count == limit) {
        g->end.flags |= AGENT_TRUNCATED;
        return STOP;
    }
    g->end.count++;
    g->line_matched = true;
    if (g->w->request->flags & AGENT_FILES_ONLY) {
        struct agent_reply item = { .flags = g->binary ? AGENT_BINARY : 0 };

        entry_fill(&item, g->path, &g->st);
        return answer_record(g->w, FRAME_ITEM, &item, err) < 0 ? -1 : NEXT_FILE;
    }
    if (g->binary)
        return send_line(g, 0, 0, AGENT_BINARY, (struct bytes){ 0 }, err) < 0 ? -1 : NEXT_FILE;
    if (send_before(g, err) < 0 ||
        send_line(g, g->line, g->column + at + 1, 0, shown(text, len, at), err) < 0)
        return -1;
    g->after = g->w->request->context_after;
    return CONTINUE;
}

/* One line, or a piece of one; text[len] may be written to. */
static int on_piece(struct grep *g, char *text, size_t len, bool ends, struct err *err)
{
    size_t at, match_len;
    char behind = text[len];
    int rc = CONTINUE;

    for (char *nul = text; (nul = memchr(nul, '\0', len - (size_t) (nul - text))); *nul = '\n')
        g->binary = true;
    text[len] = '\0';
    if (!g->line_matched &&
        needle_find(g->needle, text, len, g->column == 0, ends, &at, &match_len))
        rc = on_match(g, text, len, at, err);
    else if (g->after > 0 && g->column == 0 && !g->binary)
        rc = send_line(g, g->line, 0, AGENT_CONTEXT, shown(text, len, 0), err);
    text[len] = behind;
    if (rc == CONTINUE && keep_before(g, text, len, err) < 0)
        return -1;
    return rc;
}

/* The line is finished. */
static void next_line(struct grep *g)
{
    if (g->after > 0 && !g->line_matched)
        g->after--;
    g->line++;
    g->column = 0;
    g->line_matched = false;
}

/* All whole lines at the begin of the window, and at the end of the file or with a full window the
 * rest as well. *used is what may be dropped. */
static int search_window(struct grep *g, size_t len, bool eof, size_t *used, struct err *err)
{
    size_t at = 0;
    int rc = CONTINUE;

    while (rc == CONTINUE && at < len) {
        char *text = g->window + at;
        char *newline = memchr(text, '\n', len - at);
        size_t size = newline ? (size_t) (newline - text) : len - at;

        if (newline || eof) {
            rc = on_piece(g, text, size, true, err);
            next_line(g);
            at += size + (newline != NULL);
        } else if (at == 0 && len == GREP_LINE) {
            rc = on_piece(g, text, size, false, err);
            g->column += GREP_LINE - GREP_OVERLAP;
            at = GREP_LINE - GREP_OVERLAP;
            break;
        } else {
            break;
        }
    }
    *used = at;
    return rc;
}

static int search_file(struct grep *g, int fd, struct err *err)
{
    size_t len = 0, used;
    bool first = true, eof = false;
    int rc = CONTINUE;

    g->line = 1;
    g->column = g->sent_line = 0;
    g->after = 0;
    g->binary = g->line_matched = false;
    for (uint32_t i = 0; i < g->w->request->context_before; i++)
        g->ring[i].line = 0;
    while (rc == CONTINUE && !eof) {
        ssize_t n = read(fd, g->window + len, GREP_LINE - len);

        if (n < 0 && errno == EINTR)
            continue;
        /* What cannot be read (a file of procfs, a bad disk) is passed over like a denied one. */
        if (n < 0)
            return CONTINUE;
        if (first)
            g->binary =
                memchr(g->window, '\0', (size_t) n < BINARY_LOOK ? (size_t) n : BINARY_LOOK);
        first = false;
        eof = n == 0;
        len += (size_t) n;
        if (answer_wanted(g->w, g->steps++, err) < 0)
            return -1;
        rc = search_window(g, len, eof, &used, err);
        memmove(g->window, g->window + used, len - used);
        len -= used;
    }
    return rc;
}

/* Returns STOP when a limit ends the search. */
static int search_at(struct grep *g, int dirfd, const char *name, const char *path, int flags,
                     struct err *err)
{
    struct err denied;
    auto_close int fd = file_open_regular(dirfd, name, O_RDONLY | flags, path, &denied);

    if (fd < 0 || fstat(fd, &g->st) < 0)
        return CONTINUE;
    g->path = path;
    g->end.total++;
    return search_file(g, fd, err);
}

static bool is_wanted(const struct grep *g, const struct walk *walk)
{
    if (walk->type != DT_REG && walk->type != DT_UNKNOWN)
        return false;
    if (!g->include)
        return true;
    return glob_match(g->include, g->include_path ? walk->path + g->root_len + 1 : walk->name);
}

static int search_tree(struct grep *g, struct walk *walk, struct err *err)
{
    const bool hidden = g->w->request->flags & AGENT_HIDDEN;
    struct err below;
    int step, rc = CONTINUE;

    while (rc != STOP && rc >= 0 && (step = walk_next(walk, err)) != WALK_END) {
        if (step < 0 || answer_wanted(g->w, g->steps++, err) < 0)
            return -1;
        if (step != WALK_ENTRY || (walk->name[0] == '.' && !hidden))
            continue;
        if (walk->path_len >= 2 * AGENT_PATH_MAX) { /* longer than a reply can say */
            g->end.flags |= AGENT_TRUNCATED;
            continue;
        }
        if (walk_is_dir(walk))
            (void) walk_enter(walk, false, &below);
        else if (is_wanted(g, walk))
            rc = search_at(g, walk->dirfd, walk->name, walk->path, O_NOFOLLOW, err);
    }
    return rc < 0 ? -1 : 0;
}

/* A file that was named is opened for its error's sake; a directory is walked. */
static int search_path(struct grep *g, const char *path, struct err *err)
{
    struct walk walk = WALK_INIT;
    auto_close int fd = -1;
    struct stat st;
    int rc;

    if (stat(path, &st) < 0)
        return path_err(err, errno, path);
    if (!S_ISDIR(st.st_mode)) {
        fd = file_open_regular(AT_FDCWD, path, O_RDONLY, path, err);
        if (fd < 0)
            return -1;
        return search_at(g, AT_FDCWD, path, path, 0, err) < 0 ? -1 : 0;
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return path_err(err, errno, path);
    g->root_len = strcmp(path, "/") == 0 ? 0 : strlen(path);
    rc = walk_open(&walk, take_fd(&fd), path, WALK_SKIP_PROC, err);
    if (rc == 0)
        rc = search_tree(g, &walk, err);
    walk_close(&walk);
    return rc;
}

/* Sanitizers reserve terabytes of addresses. */
static void limit_memory(void)
{
    struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };

    if (!SANITIZED)
        (void) setrlimit(RLIMIT_AS, &limit);
}

static int grep_init(struct grep *g, struct err *err)
{
    const struct agent_request *r = g->w->request;

    if (needle_new(r->pattern, r->flags & AGENT_FIXED, r->flags & AGENT_IGNORE_CASE, &g->needle,
                   err) < 0)
        return -1;
    if (r->include && glob_new(r->include, true, &g->include, err) < 0)
        return err_wrap(err, "include");
    g->include_path = r->include && strchr(r->include, '/');
    g->window = malloc(GREP_LINE + 1);
    g->ring = calloc(r->context_before + 1u, sizeof *g->ring);
    if (!g->window || !g->ring)
        return err_sys(err, ENOMEM, "grep");
    return 0;
}

int grep_run(struct worker *w, struct err *err)
{
    char path[PATH_TEXT_MAX];
    struct grep g = { .w = w };
    int rc;

    if (path_resolve(w->user->home, w->request->path, path, err) < 0)
        return -1;
    limit_memory();
    rc = grep_init(&g, err);
    if (rc == 0)
        rc = search_path(&g, path, err);
    for (uint32_t i = 0; g.ring && i < w->request->context_before; i++)
        free(g.ring[i].text);
    free(g.ring);
    free(g.window);
    glob_free(g.include);
    needle_free(g.needle);
    return rc < 0 ? -1 : answer_record(w, FRAME_END, &g.end, err);
}
