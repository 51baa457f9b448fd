/* Files for COPY and ADD: a flat list, in the order of names, without what .dockerignore excludes. */
#include "base/own.h"
#include "cli/api/build_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define ENTRIES_MAX 1000000
#define DEPTH_MAX   200
#define IGNORE_MAX  (256u * 1024)
#define CONTENT     "c" /* in the archive: a directory whose entries go to the destination */

/* ---- the directory ---- */

static int read_ignore(struct context *context, const char *path, int dir_fd, bool *ret_found,
                       struct err *err)
{
    auto_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    auto_free char *text = malloc(IGNORE_MAX + 1);
    ssize_t n = 0, have = 0;

    *ret_found = fd >= 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "open %s", path);
    while (text && have <= (ssize_t) IGNORE_MAX &&
           (n = read(fd, text + have, (size_t) (IGNORE_MAX + 1 - have))) > 0)
        have += n;
    if (n < 0)
        return err_sys(err, errno, "read %s", path);
    if (!text || have > (ssize_t) IGNORE_MAX)
        return err_set(err, ERR_TOO_BIG, "%s: more than %u bytes", path, IGNORE_MAX);
    return ignore_parse(text, (size_t) have, &context->ignore, err) < 0 ? err_wrap(err, "%s", path)
                                                                        : 0;
}

int context_open(const char *dir, const char *dockerfile, const struct remote *remote,
                 struct context *ret, struct err *err)
{
    auto_free char *own = NULL;
    bool found;

    *ret = (struct context){ .fd = -1, .dir = dir, .remote = remote };
    ret->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->fd < 0)
        return err_sys(err, errno, "%s", dir);
    if (asprintf(&own, "%s.dockerignore", dockerfile) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a name");
    if (read_ignore(ret, own, AT_FDCWD, &found, err) < 0)
        return -1;
    return found ? 0 : read_ignore(ret, ".dockerignore", ret->fd, &found, err);
}

void context_close(struct context *context)
{
    own_close(&context->fd);
    ignore_done(&context->ignore);
}

/* ---- the list ---- */

static int add_entry(struct archive *list, const char *path, const char *as, const char *text,
                     struct err *err)
{
    struct archive_entry *e;

    if (list->count == ENTRIES_MAX)
        return err_set(err, ERR_TOO_BIG, "more than %d files", ENTRIES_MAX);
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;

        e = realloc(list->entries, room * sizeof *e);
        if (!e)
            return err_set(err, ERR_NO_MEMORY, "no memory for a list of files");
        list->entries = e;
        list->room = room;
    }
    e = &list->entries[list->count++];
    *e = (struct archive_entry){ .path = path ? strdup(path) : NULL,
                                 .as = strdup(as),
                                 .text = text };
    return e->as && (e->path || !path) ? 0
                                       : err_set(err, ERR_NO_MEMORY, "no memory for a file's name");
}

static void drop_to(struct archive *list, size_t count)
{
    while (list->count > count) {
        struct archive_entry *e = &list->entries[--list->count];

        free(e->path);
        free(e->as);
    }
}

static char *below(const char *dir, const char *name)
{
    char *text = NULL;

    return asprintf(&text, "%s%s%s", dir, dir[0] ? "/" : "", name) < 0 ? NULL : text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Names of a directory, sorted; each and the array are the caller's to free. */
static int read_names(struct context *context, const char *path, char ***ret, size_t *ret_count,
                      struct err *err)
{
    int fd = context_below(context->fd, path, O_RDONLY | O_DIRECTORY);
    auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *item;

    *ret = NULL;
    *ret_count = 0;
    if (!dir)
        return err_sys(err, errno, "%s", path[0] ? path : context->dir);
    while ((item = readdir(dir))) {
        char **more;

        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        more = realloc(*ret, (*ret_count + 1) * sizeof *more);
        if (more)
            *ret = more;
        if (!more || !(more[*ret_count] = strdup(item->d_name)))
            return err_set(err, ERR_NO_MEMORY, "no memory for names");
        (*ret_count)++;
    }
    if (*ret_count > 0)
        qsort(*ret, *ret_count, sizeof **ret, by_name);
    return 0;
}

static int walk(struct archive *list, const char *path, const char *as, unsigned depth,
                struct err *err);

static int walk_names(struct archive *list, const char *path, const char *as, unsigned depth,
                      struct err *err)
{
    char **names;
    size_t count;
    int r = read_names(list->context, path, &names, &count, err);

    for (size_t i = 0; i < count; i++) {
        auto_free char *one = below(path, names[i]), *two = below(as, names[i]);

        if (r == 0)
            r = one && two ? walk(list, one, two, depth + 1, err)
                           : err_set(err, ERR_NO_MEMORY, "no memory for a name");
        free(names[i]);
    }
    free(names);
    return r;
}

/* One name, and what is below it, without what .dockerignore names. */
static int walk(struct archive *list, const char *path, const char *as, unsigned depth,
                struct err *err)
{
    const struct ignore *ignore = &list->context->ignore;
    bool ignored = ignore_has(ignore, path);
    size_t before = list->count;
    struct stat st;

    if (fstatat(list->context->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "%s", path);
    if (depth > DEPTH_MAX)
        return err_set(err, ERR_TOO_BIG, "deeper than %d levels: %.100s", DEPTH_MAX, path);
    if (ignored && (!S_ISDIR(st.st_mode) || !ignore->excepts))
        return 0;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return err_set(err, ERR_NOT_FILE, "%.100s is neither a file, a directory nor a link", path);
    if (add_entry(list, path, as, NULL, err) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (walk_names(list, path, as, depth, err) < 0)
        return -1;
    if (ignored && list->count == before + 1)
        drop_to(list, before); /* nothing below it was wanted either */
    return 0;
}

/* ---- sources ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* One path that a source means, into the directory CONTENT: of a directory its entries, of a file itself. */
static int take_path(struct archive *list, const char *path, struct err *err)
{
    auto_free char *as = below(CONTENT, base_name(path));
    struct stat st;

    if (fstatat(list->context->fd, path[0] ? path : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "%s", path);
    if (!as)
        return err_set(err, ERR_NO_MEMORY, "no memory for a name");
    return S_ISDIR(st.st_mode) ? walk_names(list, path, CONTENT, 0, err)
                               : walk(list, path, as, 0, err);
}

/* Every path that a pattern fits; those below one are part of it. */
static int match_below(struct archive *list, const char *pattern, const char *dir, unsigned depth,
                       bool *ret_found, struct err *err)
{
    char **names;
    size_t count;
    int r = read_names(list->context, dir, &names, &count, err);

    for (size_t i = 0; i < count; i++) {
        auto_free char *path = below(dir, names[i]);
        struct stat st;
        bool fits = false;

        free(names[i]);
        if (r < 0)
            continue;
        if (!path)
            r = err_set(err, ERR_NO_MEMORY, "no memory for a name");
        else
            r = match_path(pattern, path, false, &fits, err);
        if (r < 0 || fstatat(list->context->fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (fits && !ignore_has(&list->context->ignore, path)) {
            *ret_found = true;
            r = take_path(list, path, err);
        } else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            r = match_below(list, pattern, path, depth + 1, ret_found, err);
        }
    }
    free(names);
    return r;
}

static int missing(const struct context *context, const char *source, bool ignored, struct err *err)
{
    return err_set(err, ERR_NO_PATH,
                   ignored ? "'%.80s' is excluded by .dockerignore" : "'%.80s' is not in %.80s",
                   source, context->dir);
}

/* A source among several, or one that goes into a directory. */
static int take_source(struct archive *list, const char *source, struct err *err)
{
    bool found = false;
    char clean[4096];
    struct stat st;

    if (match_clean(source, clean, sizeof clean) < 0)
        return err_set(err, ERR_INVALID, "'%.80s' leads out of the directory", source);
    if (match_is_pattern(clean)) {
        if (match_below(list, clean, "", 0, &found, err) < 0)
            return -1;
        return found ? 0 : missing(list->context, source, false, err);
    }
    if (fstatat(list->context->fd, clean[0] ? clean : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
        return missing(list->context, source, false, err);
    if (S_ISLNK(st.st_mode))
        return err_set(err, ERR_INVALID, "'%.80s' is a link: name what it leads to", source);
    if (clean[0] && ignore_has(&list->context->ignore, clean) &&
        (!S_ISDIR(st.st_mode) || !list->context->ignore.excepts))
        return missing(list->context, source, true, err);
    return take_path(list, clean, err);
}

/* Whether the one entry of the list is the one source itself: not a file in a directory that was named. */
static bool is_source(const struct archive_entry *e, const struct plan_copy *copy)
{
    const char *source = json_string_value(json_array_get(copy->sources, 0));
    char clean[4096];
    struct err ignored;
    bool fits = false;

    if (!e->path)
        return true;
    if (match_clean(source, clean, sizeof clean) < 0)
        return false;
    return strcmp(clean, e->path) == 0 ||
           (match_path(clean, e->path, false, &fits, &ignored) == 0 && fits);
}

/* A file alone gets the destination as its new name, unless a directory is there; all else goes into the destination. */
static int name_single(struct archive *list, const struct plan_copy *copy, char ret[256],
                       struct err *err)
{
    size_t sources = json_array_size(copy->sources);
    struct archive_entry *e = &list->entries[1];
    bool several = list->count > 2;
    const char *name;

    (void) strcpy(ret, CONTENT);
    if (copy->directory || sources + json_array_size(copy->docs) > 1 || list->count < 2)
        return 0;
    if (several && sources == 1 &&
        match_is_pattern(json_string_value(json_array_get(copy->sources, 0))))
        return err_set(err, ERR_INVALID, "with several sources the destination ends with '/'");
    if (several || !is_source(e, copy))
        return 0;
    name = base_name(e->as);
    if (match_is_pattern(name) || strchr(name, '{') || strlen(name) > 200) {
        /* The engine would take it for a pattern. */
        free(e->as);
        e->as = strdup(CONTENT "/file");
        if (!e->as)
            return err_set(err, ERR_NO_MEMORY, "no memory for a name");
        name = "file";
    }
    (void) snprintf(ret, 256, CONTENT "/%s", name);
    return 0;
}

/* The list of one COPY; *ret is what of the archive is copied. */
static int collect(struct archive *list, const struct plan_copy *copy, char ret[256],
                   struct err *err)
{
    json_t *item;
    size_t i;

    if (add_entry(list, NULL, CONTENT, NULL, err) < 0)
        return -1;
    json_array_foreach(copy->docs, i, item)
    {
        auto_free char *as = below(CONTENT, json_string_value(json_array_get(item, 0)));

        if (!as || add_entry(list, NULL, as, json_string_value(json_array_get(item, 1)), err) < 0)
            return -1;
    }
    json_array_foreach(copy->sources, i, item)
    {
        if (take_source(list, json_string_value(item), err) < 0)
            return -1;
    }
    return name_single(list, copy, ret, err);
}

/* ---- a step ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);

    return a > b && strcmp(text + a - b, end) == 0;
}

/* What ADD unpacks: 1 it is such an archive, 0 it is none, -1 one that cannot be read. */
static int is_archive(const char *path, struct err *err)
{
    static const char *const read[] = { ".tar", ".tar.gz", ".tgz" };
    static const char *const not_read[] = { ".tar.xz", ".txz",     ".tar.bz2",
                                            ".tbz2",   ".tar.zst", ".tzst" };

    for (size_t i = 0; i < ARRAY_LEN(read); i++)
        if (ends_with(path, read[i]))
            return 1;
    for (size_t i = 0; i < ARRAY_LEN(not_read); i++)
        if (ends_with(path, not_read[i]))
            return err_set(err, ERR_INVALID,
                           "ADD unpacks .tar, .tar.gz and .tgz: unpack '%.60s' with RUN", path);
    return 0;
}

static int fill(struct archive *list, struct plan_copy *copy, struct err *err)
{
    char source[256] = ".", hash[SHA256_HEX], clean[4096];
    const char *raw = NULL;
    json_t *item;
    size_t i;

    json_array_foreach(copy->sources, i, item)
    {
        int r = copy->add ? is_archive(json_string_value(item), err) : 0;

        if (r < 0)
            return -1;
        if (r == 0)
            continue;
        if (json_array_size(copy->sources) + json_array_size(copy->docs) > 1 ||
            match_is_pattern(json_string_value(item)))
            return err_set(err, ERR_INVALID, "ADD unpacks one archive at a time");
        if (match_clean(json_string_value(item), clean, sizeof clean) < 0)
            return err_set(err, ERR_INVALID, "'%.80s' leads out of the directory",
                           json_string_value(item));
        if (ignore_has(&list->context->ignore, clean) ||
            faccessat(list->context->fd, clean, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return missing(list->context, clean, ignore_has(&list->context->ignore, clean), err);
        raw = clean;
    }
    if (!raw && collect(list, copy, source, err) < 0)
        return -1;
    if (archive_send(list, raw, hash, err) < 0)
        return -1;
    (void) json_array_set_new(json_object_get(copy->step, "args"), 0, json_string(source));
    (void) json_object_set_new(copy->step, "files", json_string(hash));
    return 0;
}

int context_fill(struct context *context, struct plan_copy *copy, struct err *err)
{
    struct archive list = { .context = context };
    int r = fill(&list, copy, err);

    drop_to(&list, 0);
    free(list.entries);
    return r < 0 ? dockerfile_at(err, copy->line) : 0;
}
