/* Glob, Grep, LS. */
#include "base/own.h"
#include "server/form/form.h"
#include "surface/tools/tools.h"
#include "surface/tools/tools_rg.h"
#include "surface/tools/tools_text.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FOUND_MAX   10000      /* entries that are looked at for the newest of them */
#define OUTPUT_MAX  (1u << 20) /* bytes of an answer's text */
#define IGNORE_MOST 64

static int place(struct tool_call *call, const char *path, char out[AGENT_PATH_MAX],
                 struct ops_file *ret, struct err *err)
{
    if (!path || !path[0])
        path = ".";
    if (session_path(call->session, path, out, AGENT_PATH_MAX) < 0)
        return form_bad(call->ops->caller, err, "path", "longer than %u bytes", AGENT_PATH_MAX - 1);
    *ret = (struct ops_file){ .sandbox = call->session->sandbox, .path = out };
    return 0;
}

static json_t *text_json(const char *text, size_t len)
{
    struct text clean = { 0 };
    json_t *json = NULL;

    if (text_add_utf8(&clean, text, len) == 0)
        json = json_stringn(clean.data, clean.len);
    free(clean.data);
    return json;
}

/* ---- Glob ---- */

struct found {
    char *path;
    int64_t mtime_ns;
};

struct findings {
    struct found *items;
    size_t count;
};

static int keep_found(void *context, const struct agent_reply *item, struct err *err)
{
    struct findings *found = context;
    char *path;

    if (!item->path || found->count == FOUND_MAX)
        return 0;
    if (!(path = strdup(item->path)))
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    found->items[found->count++] = (struct found){ path, item->mtime_ns };
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->mtime_ns != y->mtime_ns)
        return x->mtime_ns < y->mtime_ns ? 1 : -1;
    return strcmp(x->path, y->path);
}

static int put_found(struct tool_call *call, struct findings *found, uint64_t limit, bool cut,
                     struct err *err)
{
    size_t shown = found->count < limit ? found->count : (size_t) limit;
    json_t *files = json_array();
    struct text out = { 0 };
    int r = text_add(&out, "", 0);

    qsort(found->items, found->count, sizeof found->items[0], newest_first);
    for (size_t i = 0; i < shown && r == 0; i++) {
        size_t len = strlen(found->items[i].path);

        (void) json_array_append_new(files, text_json(found->items[i].path, len));
        r = text_add_utf8(&out, found->items[i].path, len);
        if (r == 0)
            r = text_add(&out, "\n", 1);
    }
    if (r == 0)
        (void) json_object_set_new(call->answer, "output", json_stringn(out.data, out.len));
    (void) json_object_set_new(call->answer, "files", files);
    (void) json_object_set_new(call->answer, "count", json_integer((json_int_t) found->count));
    (void) json_object_set_new(call->answer, "truncated",
                               json_boolean(cut || shown < found->count));
    free(out.data);
    return r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the list") : 0;
}

struct glob_wish {
    const char *pattern, *path;
    uint64_t limit;
    bool hidden;
};

#define AT(member) offsetof(struct glob_wish, member)
/* clang-format off */
static const struct form_field glob_rows[] = {
    { "pattern", FORM_CONTENT, .at = AT(pattern), .most = 4000, .help = "such as **/*.py or src/*.{c,h}", .needed = true },
    { "path", FORM_CONTENT, .at = AT(path), .help = "directory to search (default: the working directory)" },
    { "limit", FORM_COUNT, .at = AT(limit), 1, FOUND_MAX, "files at most", .fallback = "100" },
    { "hidden", FORM_BOOL, .at = AT(hidden), .help = "also files whose name begins with a dot", .fallback = "false" },
};
/* clang-format on */
#undef AT
const struct form tool_glob_form = FORM_OF(glob_rows);

int tool_glob(struct tool_call *call, struct err *err)
{
    struct glob_wish w = { .pattern = NULL };
    auto_free struct found *items = calloc(FOUND_MAX, sizeof *items);
    struct findings found = { items, 0 };
    struct agent_request request = { .op = AGENT_GLOB, .limit = FOUND_MAX };
    char at[AGENT_PATH_MAX];
    struct ops_file file;
    bool cut = false;
    int r;

    if (!items)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list");
    if (form_read(call->ops->caller, call->arguments, &tool_glob_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    request.pattern = w.pattern;
    request.flags = w.hidden ? AGENT_HIDDEN : 0;
    r = ops_file_search(call->ops, &file, &request, keep_found, &found, &cut, err);
    if (r == 0)
        r = put_found(call, &found, w.limit, cut, err);
    for (size_t i = 0; i < found.count; i++)
        free(found.items[i].path);
    return r;
}

/* ---- Grep ---- */

enum grep_mode { GREP_CONTENT, GREP_FILES, GREP_COUNT };

struct grep {
    enum grep_mode mode;
    bool numbers, full, context;
    struct text out;
    json_t *matches;
    char last[2 * AGENT_PATH_MAX]; /* the file of the match before */
    uint64_t last_line, in_file, total, files;
};

/* "path:12:text", "path-13-neighbour", as grep prints them. */
static int add_match(struct grep *grep, const struct agent_reply *item)
{
    bool neighbour = item->flags & AGENT_CONTEXT;
    char sign = neighbour ? '-' : ':';
    struct text line = { 0 };
    int r = 0;

    if (item->flags & AGENT_BINARY)
        r = text_addf(&line, "%s: a binary file matches", item->path);
    else if (grep->numbers)
        r = text_addf(&line, "%s%c%" PRIu64 "%c", item->path, sign, item->line, sign);
    else
        r = text_addf(&line, "%s%c", item->path, sign);
    if (r == 0 && !(item->flags & AGENT_BINARY))
        r = text_add(&line, (const char *) item->data.data, item->data.len);
    if (r == 0 && grep->context && grep->total > 0 &&
        (strcmp(grep->last, item->path) != 0 || item->line > grep->last_line + 1))
        r = text_add(&grep->out, "--\n", 3);
    if (r == 0)
        r = text_add_utf8(&grep->out, line.data, line.len);
    if (r == 0)
        r = text_add(&grep->out, "\n", 1);
    free(line.data);
    if (!neighbour)
        (void) json_array_append_new(
            grep->matches,
            json_pack("{s:o, s:I, s:I, s:o}", "path", text_json(item->path, strlen(item->path)),
                      "line", (json_int_t) item->line, "column", (json_int_t) item->column, "text",
                      text_json((const char *) item->data.data, item->data.len)));
    return r;
}

static int end_of_file(struct grep *grep)
{
    int r = 0;

    if (grep->mode == GREP_COUNT && grep->in_file > 0) {
        r = text_add_utf8(&grep->out, grep->last, strlen(grep->last));
        if (r == 0)
            r = text_addf(&grep->out, ":%" PRIu64 "\n", grep->in_file);
        (void) json_array_append_new(grep->matches,
                                     json_pack("{s:o, s:I}", "path",
                                               text_json(grep->last, strlen(grep->last)), "count",
                                               (json_int_t) grep->in_file));
    }
    grep->in_file = 0;
    return r;
}

static int take_match(void *context, const struct agent_reply *item, struct err *err)
{
    struct grep *grep = context;
    int r = 0;

    if (!item->path)
        return 0;
    if (grep->out.len > OUTPUT_MAX) {
        grep->full = true;
        return 0;
    }
    if (strcmp(grep->last, item->path) != 0) {
        r = end_of_file(grep);
        grep->files++;
    }
    if (grep->mode == GREP_CONTENT && r == 0)
        r = add_match(grep, item);
    if (grep->mode == GREP_FILES && r == 0) {
        (void) json_array_append_new(grep->matches, text_json(item->path, strlen(item->path)));
        r = text_add_utf8(&grep->out, item->path, strlen(item->path));
        if (r == 0)
            r = text_add(&grep->out, "\n", 1);
    }
    (void) snprintf(grep->last, sizeof grep->last, "%s", item->path);
    grep->last_line = item->line;
    grep->in_file += !(item->flags & AGENT_CONTEXT);
    grep->total += !(item->flags & AGENT_CONTEXT);
    return r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the matches") : 0;
}

static int put_matches(struct tool_call *call, struct grep *grep, bool cut, struct err *err)
{
    static const char *const names[] = { "matches", "files", "counts" };

    if (end_of_file(grep) < 0 || text_add(&grep->out, "", 0) < 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for the matches");
    (void) json_object_set_new(call->answer, "output", json_stringn(grep->out.data, grep->out.len));
    (void) json_object_set(call->answer, names[grep->mode], grep->matches);
    (void) json_object_set_new(call->answer, "count", json_integer((json_int_t) grep->total));
    (void) json_object_set_new(call->answer, "file_count", json_integer((json_int_t) grep->files));
    (void) json_object_set_new(call->answer, "truncated", json_boolean(cut || grep->full));
    return 0;
}

struct grep_wish {
    const char *pattern, *path, *include, *mode;
    uint64_t limit, before, after, around;
    bool ignore_case, fixed, hidden, numbers;
};

#define AT(member) offsetof(struct grep_wish, member)
/* In the order of enum grep_mode. */
#define OUTPUT_MODE_HELP                                                                           \
    "content: matching lines; files_with_matches: paths; count: matches of each file"
static const char *const grep_modes[] = { "content", "files_with_matches", "count", NULL };
/* clang-format off */
static const struct form_field grep_rows[] = {
    { "pattern", FORM_TEXT, .at = AT(pattern), .most = 4000, .help = "regular expression to search for", .needed = true },
    { "query", FORM_TEXT, .at = AT(pattern), .most = 4000 },
    { "path", FORM_CONTENT, .at = AT(path), .help = "file or directory to search (default: the working directory)" },
    { "glob", FORM_CONTENT, .at = AT(include), .most = 1000, .help = "only files whose name is like this, such as *.js" },
    { "include", FORM_CONTENT, .at = AT(include), .most = 1000 },
    { "output_mode", FORM_TEXT, .at = AT(mode), .choices = grep_modes, .fallback = "files_with_matches",
      .help = OUTPUT_MODE_HELP },
    { "-i", FORM_BOOL, .at = AT(ignore_case), .help = "ignore case", .fallback = "false" },
    { "ignore_case", FORM_BOOL, .at = AT(ignore_case) },
    { "-n", FORM_BOOL, .at = AT(numbers), .help = "line numbers, in output_mode content", .fallback = "true" },
    { "line_numbers", FORM_BOOL, .at = AT(numbers) },
    { "-A", FORM_COUNT, .at = AT(after), 0, 100, "lines to show behind each match, in output_mode content" },
    { "-B", FORM_COUNT, .at = AT(before), 0, 100, "lines to show before each match, in output_mode content" },
    { "-C", FORM_COUNT, .at = AT(around), 0, 100, "lines to show around each match, in output_mode content" },
    { "context", FORM_COUNT, .at = AT(around), 0, 100 },
    { "head_limit", FORM_COUNT, .at = AT(limit), 1, 100000, "matches at most", .fallback = "1000" },
    { "limit", FORM_COUNT, .at = AT(limit), 1, 100000 },
    { "fixed_strings", FORM_BOOL, .at = AT(fixed), .help = "pattern is a text, not a regular expression", .fallback = "false" },
    { "hidden", FORM_BOOL, .at = AT(hidden), .help = "also files whose name begins with a dot", .fallback = "false" },
};
/* clang-format on */
#undef AT
const struct form tool_grep_form = FORM_OF(grep_rows);

/* POST /search answers with lines. */
static const struct form_field search_rows[] = {
    { "output_mode", FORM_TEXT, .choices = grep_modes, .fallback = "content",
      .help = OUTPUT_MODE_HELP },
};
static const struct form search_rest = FORM_OF(grep_rows, .beside = &tool_where_form);
const struct form tool_search_body_form = FORM_OF(search_rows, .beside = &search_rest);

int tool_grep(struct tool_call *call, struct err *err)
{
    struct grep_wish w = { .pattern = NULL };
    auto_free struct grep *grep = calloc(1, sizeof *grep);
    struct agent_request request = { .op = AGENT_GREP };
    char at[AGENT_PATH_MAX];
    struct ops_file file;
    bool cut = false;
    size_t mode = 0;
    int r;

    if (!grep)
        return err_set(err, ERR_NO_MEMORY, "no memory for the matches");
    if (form_read(call->ops->caller, call->arguments, &tool_grep_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    while (strcmp(grep_modes[mode], w.mode) != 0)
        mode++;
    grep->mode = (enum grep_mode) mode;
    grep->numbers = w.numbers;
    request.pattern = w.pattern;
    request.include = w.include;
    request.limit = w.limit;
    request.flags = (w.ignore_case ? AGENT_IGNORE_CASE : 0) | (w.fixed ? AGENT_FIXED : 0) |
                    (w.hidden ? AGENT_HIDDEN : 0) |
                    (grep->mode == GREP_FILES ? AGENT_FILES_ONLY : 0);
    if (grep->mode == GREP_CONTENT) {
        request.context_before = (uint32_t) (w.before > w.around ? w.before : w.around);
        request.context_after = (uint32_t) (w.after > w.around ? w.after : w.around);
        grep->context = request.context_before + request.context_after > 0;
    }
    grep->matches = json_array();
    r = tools_rg(call->ops, &file, &request, take_match, grep, &cut, err);
    if (r == 0)
        r = ops_file_search(call->ops, &file, &request, take_match, grep, &cut, err);
    if (r < 0 && err->kind == ERR_INVALID)
        (void) caller_blame(call->ops->caller, "pattern", NULL, NULL);
    if (r >= 0)
        r = put_matches(call, grep, cut, err);
    json_decref(grep->matches);
    free(grep->out.data);
    return r;
}

/* ---- LS ---- */

struct listing {
    json_t *entries, *ignore;
    struct text out;
};

static bool ignored(const struct listing *l, const char *name)
{
    size_t i;
    json_t *pattern;

    json_array_foreach(l->ignore, i, pattern)
    {
        if (fnmatch(json_string_value(pattern), name, 0) == 0)
            return true;
    }
    return false;
}

static int take_entry(void *context, const struct agent_reply *item, struct err *err)
{
    struct listing *l = context;
    const char *slash = item->path ? strrchr(item->path, '/') : NULL;
    const char *name = slash ? slash + 1 : item->path;
    char mode[8];
    int r;

    if (!name || ignored(l, name))
        return 0;
    (void) snprintf(mode, sizeof mode, "%04o", item->mode & 07777);
    (void) json_array_append_new(
        l->entries,
        json_pack("{s:o, s:o, s:s, s:I, s:s, s:f}", "name", text_json(name, strlen(name)), "path",
                  text_json(item->path, strlen(item->path)), "type",
                  agent_entry_type_name(item->type), "size", (json_int_t) item->size, "mode", mode,
                  "modified", (double) item->mtime_ns / 1e9));
    r = text_add_utf8(&l->out, name, strlen(name));
    if (r == 0)
        r = text_add(&l->out, item->type == ENTRY_DIR ? "/\n" : "\n",
                     item->type == ENTRY_DIR ? 2 : 1);
    return r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the list") : 0;
}

struct ls_wish {
    const char *path;
    json_t *ignore;
    uint64_t limit;
};

#define AT(member) offsetof(struct ls_wish, member)
/* clang-format off */
static const struct form_field ls_rows[] = {
    { "path", FORM_CONTENT, .at = AT(path), .help = "directory to list (default: the working directory)" },
    { "ignore", FORM_ARRAY, .at = AT(ignore), .help = "patterns of names to leave out" },
    { "limit", FORM_COUNT, .at = AT(limit), 1, FOUND_MAX, "entries at most", .fallback = "1000" },
};
/* clang-format on */
#undef AT
const struct form tool_ls_form = FORM_OF(ls_rows);

int tool_ls(struct tool_call *call, struct err *err)
{
    struct listing l = { 0 };
    struct ls_wish w = { .path = NULL };
    char at[AGENT_PATH_MAX];
    struct ops_file file;
    bool cut = false;
    size_t i;
    json_t *item;
    int r;

    if (form_read(call->ops->caller, call->arguments, &tool_ls_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    l.ignore = w.ignore;
    json_array_foreach(l.ignore, i, item)
    {
        if (!json_is_string(item) || json_string_length(item) > 255 || i >= IGNORE_MOST)
            return form_bad(call->ops->caller, err, "ignore",
                            "must have at most %d strings of at most 255 bytes", IGNORE_MOST);
    }
    l.entries = json_array();
    r = ops_file_list(call->ops, &file, 1, w.limit, take_entry, &l, &cut, err);
    if (r == 0 && text_add(&l.out, "", 0) == 0) {
        (void) json_object_set_new(call->answer, "output", json_stringn(l.out.data, l.out.len));
        (void) json_object_set(call->answer, "entries", l.entries);
        (void) json_object_set_new(call->answer, "truncated", json_boolean(cut));
    }
    json_decref(l.entries);
    free(l.out.data);
    return r;
}
