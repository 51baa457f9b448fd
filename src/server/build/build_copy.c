/* COPY: an archive into the sandbox of a build, and out of that of a stage. The agent does all of it, so that a template without a
 * single program will do; which entries go where is decided here, entry by entry, and no path is looked at outside of the sandbox. */
#include "server/build/build_own.h"

#include "base/own.h"

#include <string.h>

#define MATCHES_MAX 10000 /* of a pattern of COPY --from */

/* What is taken out of a stage is below one of these in its archive: the content of a directory, or one file. */
#define OF_DIR  "dir"
#define OF_FILE "file"

/* ---- into the sandbox ---- */

struct copying {
    struct run *run;
    char source[PATH_MAX]; /* of the archive; "": of a stage, until its first entry */
    const char *to;
    struct ops_file file; /* where the archive goes: base, and whose it is then */
    char base[PATH_MAX], owner[160];
    const char *name; /* of a file in base; NULL: the content of a directory goes there */
    const char *mode; /* "": as it is */
};

/* The rest of a path below the source, "" of the source itself; NULL: it is not of it. */
static const char *below(const char *path, const char *source)
{
    size_t len = strlen(source);

    if (strcmp(source, ".") == 0)
        return path;
    if (strncmp(path, source, len) != 0 || (path[len] && path[len] != '/'))
        return NULL;
    return path[len] ? path + len + 1 : path + len;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Whether a file goes into the destination, and not in its place. */
static int goes_into(struct copying *c, bool *ret, struct err *err)
{
    struct ops_file at = { .sandbox = c->file.sandbox, .user = c->file.user, .path = c->to };
    auto_free struct file_info *info = NULL;

    *ret = !last_part(c->to)[0];
    if (*ret)
        return 0;
    info = calloc(1, sizeof *info);
    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory to copy files");
    if (ops_file_stat(&c->run->ops, &at, 0, info, err) < 0)
        return err->kind == ERR_NO_PATH ? 0 : -1;
    *ret = info->type == ENTRY_DIR;
    return 0;
}

/* The first entry of the source says what the source is. */
static int settle(struct copying *c, const struct tar_entry *entry, const char *rest,
                  struct err *err)
{
    bool into = true;

    (void) snprintf(c->base, sizeof c->base, "%s", c->to);
    c->file.path = c->base;
    if (rest[0] || entry->type == TAR_DIR)
        return 0;
    if (goes_into(c, &into, err) < 0)
        return -1;
    c->name = last_part(into ? c->source : c->to);
    if (!into) /* `to` begins with a slash, and this may be the only one */
        c->base[c->name - c->to > 1 ? c->name - c->to - 1 : 1] = '\0';
    return 0;
}

static int pick(struct ops_tar *in, struct err *err)
{
    struct copying *c = in->pick_arg;
    struct tar_entry *entry = &in->entry;
    const char *rest, *same;
    uint32_t bits = 0;

    if (!c->source[0])
        (void) snprintf(c->source, sizeof c->source, "%s",
                        strncmp(entry->path, OF_FILE "/", strlen(OF_FILE "/")) == 0 ? entry->path
                        : strcmp(entry->path, OF_FILE) == 0                         ? ""
                                                                                    : OF_DIR);
    rest = c->source[0] ? below(entry->path, c->source) : NULL;
    if (!rest)
        return 0;
    if (!in->open && (settle(c, entry, rest, err) < 0 ||
                      ops_tar_open(in, &c->file, AGENT_PARENTS | AGENT_THROUGH, err) < 0))
        return -1;
    if (!c->name && !rest[0])
        return 0; /* the directory itself is the destination, which is there now */
    if (entry->type == TAR_SAME) {
        same = below(entry->target, c->source);
        if (c->name || !same || !same[0])
            return err_set(err, ERR_INVALID,
                           "'%.80s' is a hard link to '%.80s', which is not copied", entry->path,
                           entry->target);
        (void) memmove(entry->target, same, strlen(same) + 1);
    }
    if (c->name)
        (void) snprintf(entry->path, sizeof entry->path, "%s", c->name);
    else
        (void) memmove(entry->path, rest, strlen(rest) + 1);
    if (c->mode[0] && entry->type != TAR_LINK && parse_mode(c->mode, &bits, err) == 0)
        entry->mode = bits;
    return 1;
}

static void files_of(const struct run *run, const struct build_step *step, char out[KEY_MAX])
{
    const struct build_spec *spec = job_spec(run->job);

    export_key(run->keys[step->stage][spec->stages[step->stage].count], step_arg(step, 0), out);
}

bool copy_has_files(const struct run *run, const struct build_step *step)
{
    char key[KEY_MAX];

    files_of(run, step, key);
    return build_files_own(job_app(run->job), run->ops.caller->tenant, job_record(run->job)->id,
                           key);
}

int copy_do(struct run *run, const struct build_step *step, struct err *err)
{
    auto_free struct copying *c = calloc(1, sizeof *c);
    auto_free char *where = state_expand(&run->state, step_arg(step, 1), err);
    char to[PATH_MAX], key[KEY_MAX];
    const char *files = step->files;
    bool own = step->stage >= 0;

    if (!where || !c)
        return where ? err_set(err, ERR_NO_MEMORY, "no memory to copy files") : -1;
    c->run = run;
    c->to = to;
    c->mode = step_arg(step, 3);
    c->file = (struct ops_file){ .sandbox = job_record(run->job)->sandbox, .user = "root" };
    owner_split(step_arg(step, 2)[0] ? step_arg(step, 2) : run->state.user, c->owner, &c->file);
    if (!own && copy_source(step_arg(step, 0), c->source, err) < 0)
        return -1;
    if (own) {
        files_of(run, step, key);
        files = key;
    }
    if (state_path(&run->state, where, to, err) < 0 ||
        build_files_unpack(&run->ops, own ? job_record(run->job)->id : "", files, pick, c, err) < 0)
        return -1;
    return c->file.path ? 0
                        : err_set(err, ERR_NO_PATH, "'%.120s' is not among the files",
                                  own ? step_arg(step, 0) : c->source);
}

/* ---- out of the sandbox of a stage ---- */

struct exporting {
    struct run *run;
    struct ops_file file;
    const char *path; /* of the step */
    char **matches;   /* of a pattern; owned */
    size_t count;
};

static int not_there(const struct exporting *e, struct err *err)
{
    return err->kind == ERR_NO_PATH
               ? err_set(err, ERR_NO_PATH, "'%.120s' is not in the stage", e->path)
               : -1;
}

static int keep_match(void *arg, const struct agent_reply *item, struct err *err)
{
    struct exporting *e = arg;
    char **more;

    if (!item->path || strlen(item->path) >= AGENT_PATH_MAX)
        return err_set(err, ERR_PROTOCOL, "the sandbox sent an invalid entry");
    more = realloc(e->matches, (e->count + 1) * sizeof *more);
    if (more)
        e->matches = more;
    if (!more || !(more[e->count] = strdup(item->path)))
        return err_set(err, ERR_NO_MEMORY, "no memory to copy files");
    e->count++;
    return 0;
}

/* What a pattern means goes into one directory: files by their names, and the contents of directories. */
static int add_matches(struct exporting *e, struct tar_out *out, struct err *err)
{
    char folder[PATH_MAX];
    struct agent_request request = { .op = AGENT_GLOB,
                                     .flags = AGENT_HIDDEN,
                                     .limit = MATCHES_MAX };
    size_t cut = strcspn(e->path, "*?[");
    bool more = false;

    if (strlen(e->path) >= sizeof folder)
        return err_set(err, ERR_INVALID, "a path is longer than %zu bytes", sizeof folder - 1);
    while (e->path[cut - 1] != '/')
        cut--;
    (void) snprintf(folder, sizeof folder, "%.*s", (int) cut, e->path);
    e->file.path = folder;
    request.pattern = e->path + cut;
    if (ops_file_search(&e->run->ops, &e->file, &request, keep_match, e, &more, err) < 0)
        return not_there(e, err);
    if (more)
        return err_set(err, ERR_TOO_BIG, "'%.120s': more than %d files", e->path, MATCHES_MAX);
    if (e->count == 0)
        return err_set(err, ERR_NO_PATH, "'%.120s' is not in the stage", e->path);
    for (size_t i = 0; i < e->count; i++) {
        e->file.path = e->matches[i];
        if (build_files_add(&e->run->ops, &e->file, out, OF_DIR, OF_DIR, err) < 0)
            return -1;
    }
    return 0;
}

static int add_all(void *arg, struct tar_out *out, struct err *err)
{
    struct exporting *e = arg;

    if (strpbrk(e->path, "*?["))
        return add_matches(e, out, err);
    e->file.path = e->path;
    return build_files_add(&e->run->ops, &e->file, out, OF_DIR, OF_FILE, err) < 0
               ? not_there(e, err)
               : 0;
}

int copy_export(struct run *run, const struct build_step *step, struct err *err)
{
    struct exporting e = { .run = run,
                           .file = { .sandbox = job_record(run->job)->sandbox, .user = "root" },
                           .path = step_arg(step, 0) };
    char key[KEY_MAX];
    int r;

    files_of(run, step, key);
    r = build_files_pack(&run->ops, job_record(run->job)->id, key, add_all, &e, err);
    while (e.count > 0)
        free(e.matches[--e.count]);
    free(e.matches);
    return r;
}
