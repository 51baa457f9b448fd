/* Read, Write, Edit, MultiEdit. */
#include "base/base64.h"
#include "base/own.h"
#include "base/parse.h"
#include "server/form/form.h"
#include "surface/tools/tools.h"
#include "surface/tools/tools_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define READ_MAX    (4u << 20) /* bytes of one answer */
#define IMAGE_MAX   (5u << 20)
#define SNIFF_BYTES 8192

/* The path in the working directory. */
static int place(struct tool_call *call, const char *path, char out[AGENT_PATH_MAX],
                 struct ops_file *ret, struct err *err)
{
    if (session_path(call->session, path, out, AGENT_PATH_MAX) < 0)
        return form_bad(call->ops->caller, err, "file_path", "longer than %u bytes",
                        AGENT_PATH_MAX - 1);
    *ret = (struct ops_file){ .sandbox = call->session->sandbox, .path = out };
    return 0;
}

/* ---- Read ---- */

struct reading {
    uint64_t offset, limit; /* lines: the first one wanted, and how many (0: all) */
    uint64_t line;          /* the next byte is on this one */
    uint64_t taken;         /* lines that were begun */
    bool in_line, more;     /* more: something behind is left out */
    struct text text;
};

/* Takes what is wanted of a piece; false: enough. */
static bool take_lines(struct reading *r, const char *data, size_t len)
{
    while (len > 0) {
        const char *newline = memchr(data, '\n', len);
        size_t n = newline ? (size_t) (newline - data) + 1 : len;

        if (r->line >= r->offset) {
            if (!r->in_line && r->limit > 0 && r->taken == r->limit)
                r->more = true;
            if (r->text.len + n > READ_MAX) {
                r->more = true;
                n = READ_MAX - r->text.len;
            }
            if (r->more && r->limit > 0 && r->taken == r->limit && !r->in_line)
                return false;
            r->taken += !r->in_line;
            if (text_add(&r->text, data, n) < 0 || r->more)
                return false;
        }
        r->in_line = !newline;
        r->line += newline != NULL;
        data += n;
        len -= n;
    }
    return true;
}

static int put_base64(json_t *answer, const char *key, const struct text *bytes, struct err *err)
{
    auto_free char *out = malloc(4 * ((bytes->len + 2) / 3) + 1);

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the answer");
    base64_put(out, (const uint8_t *) bytes->data, bytes->len);
    out[4 * ((bytes->len + 2) / 3)] = '\0';
    (void) json_object_set_new(answer, key, json_string(out));
    return 0;
}

/* A file being read; nothing may be asked of it behind its end. */
struct source {
    struct stream stream;
    bool ended;
};

static int source_next(struct source *source, const void **ret_data, uint32_t *ret_len,
                       struct err *err)
{
    int r = source->ended ? 0 : files_read_next(&source->stream, ret_data, ret_len, err);

    source->ended = r == 0;
    return r;
}

/* The whole of a file that is no text, up to a bound. */
static int read_bytes(struct source *source, struct text *text, size_t most, struct err *err)
{
    char limit[SIZE_TEXT_MAX];
    const void *data;
    uint32_t len;
    int r;

    while ((r = source_next(source, &data, &len, err)) == 1) {
        if (text->len + len > most)
            return err_set(err, ERR_TOO_BIG, "the file is larger than %s",
                           size_text(limit, sizeof limit, most));
        if (text_add(text, data, len) < 0)
            return err_set(err, ERR_NO_MEMORY, "no memory for the file");
    }
    return r;
}

static int answer_image(struct tool_call *call, struct source *source, struct text *head,
                        const char *type, const struct file_info *info, struct err *err)
{
    char said[96];

    if (read_bytes(source, head, IMAGE_MAX, err) < 0 ||
        put_base64(call->answer, "data", head, err) < 0)
        return -1;
    (void) snprintf(said, sizeof said, "%s, %" PRIu64 " bytes", type, info->size);
    (void) json_object_set_new(call->answer, "type", json_string("image"));
    (void) json_object_set_new(call->answer, "media_type", json_string(type));
    (void) json_object_set_new(call->answer, "output", json_string(said));
    return 0;
}

static int answer_binary(struct tool_call *call, struct source *source, struct text *head,
                         bool base64, const struct file_info *info, struct err *err)
{
    char said[96];

    (void) snprintf(said, sizeof said, "a binary file of %" PRIu64 " bytes", info->size);
    (void) json_object_set_new(call->answer, "type", json_string("binary"));
    (void) json_object_set_new(call->answer, "output", json_string(said));
    if (!base64)
        return 0;
    if (read_bytes(source, head, IMAGE_MAX, err) < 0)
        return -1;
    return put_base64(call->answer, "data", head, err);
}

static int answer_text(struct tool_call *call, struct source *source, const struct text *head,
                       struct reading *reading, bool numbers, struct err *err)
{
    struct text out = { 0 };
    const void *data;
    uint32_t len;
    bool go = take_lines(reading, head->data, head->len);
    int r = 0;

    while (go && (r = source_next(source, &data, &len, err)) == 1)
        go = take_lines(reading, data, len);
    if (r < 0)
        return -1;
    if (numbers) {
        struct text numbered = { 0 };

        r = text_add_numbered(&numbered, reading->text.data, reading->text.len, reading->offset);
        free(reading->text.data);
        reading->text = numbered;
    }
    if (r < 0 || text_add_utf8(&out, reading->text.data, reading->text.len) < 0 ||
        text_add(&out, "", 0) < 0) {
        free(out.data);
        return err_set(err, ERR_NO_MEMORY, "no memory for the file");
    }
    (void) json_object_set_new(call->answer, "type", json_string("text"));
    (void) json_object_set_new(call->answer, "output", json_stringn(out.data, out.len));
    (void) json_object_set_new(call->answer, "first_line",
                               json_integer((json_int_t) reading->offset));
    (void) json_object_set_new(call->answer, "lines", json_integer((json_int_t) reading->taken));
    (void) json_object_set_new(call->answer, "truncated", json_boolean(reading->more));
    free(out.data);
    return 0;
}

/* Enough of the beginning to tell what it is. */
static int read_head(struct source *source, struct text *head, struct err *err)
{
    const void *data;
    uint32_t len;
    int r = text_add(head, "", 0);

    while (r >= 0 && head->len < SNIFF_BYTES) {
        r = source_next(source, &data, &len, err);
        if (r <= 0)
            return r;
        r = text_add(head, data, len);
    }
    return r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the file") : 0;
}

static int answer_file(struct tool_call *call, struct source *source, struct reading *reading,
                       const struct file_info *info, bool numbers, bool base64, struct err *err)
{
    struct text head = { 0 };
    const char *image;
    size_t sniff;
    int r = read_head(source, &head, err);

    if (r == 0) {
        sniff = head.len < SNIFF_BYTES ? head.len : SNIFF_BYTES;
        image = text_image_type(head.data, sniff);
        if (image)
            r = answer_image(call, source, &head, image, info, err);
        else if (base64 || text_is_binary(head.data, sniff))
            r = answer_binary(call, source, &head, base64, info, err);
        else
            r = answer_text(call, source, &head, reading, numbers, err);
    }
    free(head.data);
    return r;
}

struct read_wish {
    const char *path, *encoding;
    uint64_t offset, limit;
    bool numbers;
};

#define AT(member) offsetof(struct read_wish, member)
static const char *const encodings[] = { "utf-8", "base64", NULL };
/* clang-format off */
static const struct form_field read_rows[] = {
    { "file_path", FORM_TEXT, .at = AT(path), .help = "the file to read", .needed = true },
    { "path", FORM_TEXT, .at = AT(path) },
    { "offset", FORM_COUNT, .at = AT(offset), 0, INT64_MAX, "first line to read, from 1", .fallback = "1" },
    { "limit", FORM_COUNT, .at = AT(limit), 1, INT64_MAX, "lines to read (default: all, up to 4 MiB)" },
    { "line_numbers", FORM_BOOL, .at = AT(numbers), .help = "put its number before each line", .fallback = "false" },
    { "encoding", FORM_TEXT, .at = AT(encoding), .choices = encodings, .fallback = "utf-8",
      .help = "base64: the bytes of a file that is not a text" },
    { "pages", FORM_IGNORED },
    { "allow_large", FORM_IGNORED },
};
/* clang-format on */
#undef AT
const struct form tool_read_form = FORM_OF(read_rows);
const struct form tool_read_body_form = FORM_OF(read_rows, .beside = &tool_where_form);

int tool_read(struct tool_call *call, struct err *err)
{
    struct read_wish w = { .path = NULL };
    struct reading reading = { .line = 1 };
    struct source source = { .stream = STREAM_NONE };
    auto_free struct file_info *info = calloc(1, sizeof *info);
    char at[AGENT_PATH_MAX];
    struct ops_file file;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for the file");
    if (form_read(call->ops->caller, call->arguments, &tool_read_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    reading.offset = w.offset > 0 ? w.offset : 1;
    reading.limit = w.limit;
    if (ops_file_read(call->ops, &file, 0, 0, &source.stream, info, err) < 0)
        return -1;
    r = answer_file(call, &source, &reading, info, w.numbers, strcmp(w.encoding, "base64") == 0,
                    err);
    stream_close(&source.stream);
    free(reading.text.data);
    (void) json_object_set_new(call->answer, "path", json_string(info->path));
    (void) json_object_set_new(call->answer, "size", json_integer((json_int_t) info->size));
    return r;
}

/* ---- Write ---- */

static int write_file(struct tool_call *call, const struct ops_file *file, const char *data,
                      size_t len, struct file_info *info, struct err *err)
{
    struct stream stream = STREAM_NONE;
    int r;

    if (ops_file_write(call->ops, file, UINT32_MAX, AGENT_ATOMIC | AGENT_PARENTS, &stream, err) < 0)
        return -1;
    r = files_write_next(&stream, data, len, err);
    if (r == 0)
        r = ops_file_write_end(call->ops, file, &stream, info, err);
    stream_close(&stream);
    return r;
}

static int put_written(struct tool_call *call, const struct file_info *info, const char *fmt,
                       uint64_t number)
{
    struct text said = { 0 };

    if (text_addf(&said, fmt, number) == 0 && text_addf(&said, "%s", info->path) == 0)
        (void) json_object_set_new(call->answer, "output", json_string(said.data));
    (void) json_object_set_new(call->answer, "path", json_string(info->path));
    (void) json_object_set_new(call->answer, "size", json_integer((json_int_t) info->size));
    free(said.data);
    return 0;
}

struct write_wish {
    const char *path, *content, *encoding;
};

#define AT(member) offsetof(struct write_wish, member)
/* clang-format off */
static const struct form_field write_rows[] = {
    { "file_path", FORM_TEXT, .at = AT(path), .help = "the file to write; missing directories are made", .needed = true },
    { "path", FORM_TEXT, .at = AT(path) },
    { "content", FORM_CONTENT, .at = AT(content), .help = "all of the file", .needed = true },
    { "encoding", FORM_TEXT, .at = AT(encoding), .choices = encodings, .fallback = "utf-8",
      .help = "base64: content is base64 of the bytes to write" },
};
/* clang-format on */
#undef AT
const struct form tool_write_form = FORM_OF(write_rows);
const struct form tool_write_body_form = FORM_OF(write_rows, .beside = &tool_where_form);

int tool_write(struct tool_call *call, struct err *err)
{
    struct write_wish w = { .path = NULL };
    auto_free struct file_info *info = calloc(1, sizeof *info);
    struct text bytes = { 0 };
    char at[AGENT_PATH_MAX];
    struct ops_file file;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for the file");
    if (form_read(call->ops->caller, call->arguments, &tool_write_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    if (strcmp(w.encoding, "base64") == 0 && text_from_base64(&bytes, w.content) < 0)
        return form_bad(call->ops->caller, err, "content", "must be base64");
    r = bytes.data ? write_file(call, &file, bytes.data, bytes.len, info, err)
                   : write_file(call, &file, w.content, strlen(w.content), info, err);
    free(bytes.data);
    return r < 0 ? -1 : put_written(call, info, "wrote %" PRIu64 " bytes to ", info->size);
}

/* ---- Edit, MultiEdit ---- */

struct edit {
    const char *old, *new;
    bool all;
};

static int read_whole(struct tool_call *call, const struct ops_file *file, struct text *ret,
                      uint32_t *ret_mode, struct err *err)
{
    struct source source = { .stream = STREAM_NONE };
    auto_free struct file_info *info = calloc(1, sizeof *info);
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for the file");
    if (ops_file_read(call->ops, file, 0, 0, &source.stream, info, err) < 0)
        return -1;
    *ret_mode = info->mode;
    r = text_add(ret, "", 0);
    r = r < 0 ? err_set(err, ERR_NO_MEMORY, "no memory for the file")
              : read_bytes(&source, ret, TEXT_EDIT_MAX, err);
    stream_close(&source.stream);
    return r;
}

static int write_edited(struct tool_call *call, const struct ops_file *file,
                        const struct text *text, uint32_t mode, size_t count, struct err *err)
{
    auto_free struct file_info *info = calloc(1, sizeof *info);
    struct stream stream = STREAM_NONE;
    int r;

    if (!info)
        return err_set(err, ERR_NO_MEMORY, "no memory for the file");
    if (ops_file_write(call->ops, file, mode & 07777, AGENT_ATOMIC, &stream, err) < 0)
        return -1;
    r = files_write_next(&stream, text->data, text->len, err);
    if (r == 0)
        r = ops_file_write_end(call->ops, file, &stream, info, err);
    stream_close(&stream);
    if (r < 0)
        return -1;
    (void) json_object_set_new(call->answer, "replacements", json_integer((json_int_t) count));
    return put_written(call, info, "replaced %" PRIu64 " in ", count);
}

/* All of them on the text in memory, or none on the file. */
static int apply(struct tool_call *call, const struct ops_file *file, const struct edit *edits,
                 size_t count, struct err *err)
{
    struct text text = { 0 };
    size_t done = 0, total = 0;
    uint32_t mode = 0;
    int r = read_whole(call, file, &text, &mode, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = text_edit(&text, edits[i].old, edits[i].new, edits[i].all, &done, err);
        total += done;
        if (r < 0)
            (void) caller_blame(call->ops->caller, "old_string", NULL, NULL);
        if (r < 0 && count > 1)
            (void) err_wrap(err, "edit %zu of %zu, nothing was changed", i + 1, count);
    }
    if (r == 0)
        r = write_edited(call, file, &text, mode, total, err);
    free(text.data);
    return r;
}

struct edit_wish {
    const char *path;
    struct edit edit;
    json_t *list; /* of MultiEdit */
};

#define AT(member) offsetof(struct edit_wish, member)
/* clang-format off */
static const struct form_field edit_rows[] = {
    { "file_path", FORM_TEXT, .at = AT(path), .help = "the file to change", .needed = true },
    { "path", FORM_TEXT, .at = AT(path) },
    { "old_string", FORM_CONTENT, .at = AT(edit.old), .help = "text to replace; in the file exactly once, unless replace_all is set",
      .needed = true },
    { "new_string", FORM_CONTENT, .at = AT(edit.new), .help = "text to put in its place", .needed = true },
    { "replace_all", FORM_BOOL, .at = AT(edit.all), .help = "replace every occurrence", .fallback = "false" },
};
/* clang-format on */
const struct form tool_edit_form = FORM_OF(edit_rows);

/* clang-format off */
static const struct form_field item_rows[] = {
    { "old_string", FORM_CONTENT, .at = offsetof(struct edit, old), .help = "text to replace", .needed = true },
    { "new_string", FORM_CONTENT, .at = offsetof(struct edit, new), .help = "text to put in its place", .needed = true },
    { "replace_all", FORM_BOOL, .at = offsetof(struct edit, all), .help = "replace every occurrence", .fallback = "false" },
};
/* clang-format on */
static const struct form item_form = FORM_OF(item_rows);

/* clang-format off */
static const struct form_field multi_edit_rows[] = {
    { "file_path", FORM_TEXT, .at = AT(path), .help = "the file to change", .needed = true },
    { "path", FORM_TEXT, .at = AT(path) },
    { "edits", FORM_ARRAY, .at = AT(list), 1, 1000, "edits, each on the result of the one before", .needed = true,
      .items = &item_form },
};
/* clang-format on */
#undef AT
const struct form tool_multi_edit_form = FORM_OF(multi_edit_rows);

int tool_edit(struct tool_call *call, struct err *err)
{
    struct edit_wish w = { 0 };
    char at[AGENT_PATH_MAX];
    struct ops_file file;

    if (form_read(call->ops->caller, call->arguments, &tool_edit_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    return apply(call, &file, &w.edit, 1, err);
}

int tool_multi_edit(struct tool_call *call, struct err *err)
{
    auto_free struct edit *edits = NULL;
    struct edit_wish w = { 0 };
    char at[AGENT_PATH_MAX], within[32];
    struct ops_file file;
    size_t count;

    if (form_read(call->ops->caller, call->arguments, &tool_multi_edit_form, &w, err) < 0 ||
        place(call, w.path, at, &file, err) < 0)
        return -1;
    count = json_array_size(w.list);
    if (!(edits = calloc(count, sizeof *edits)))
        return err_set(err, ERR_NO_MEMORY, "no memory for the edits");
    for (size_t i = 0; i < count; i++) {
        (void) snprintf(within, sizeof within, "edits[%zu].", i);
        if (!json_is_object(json_array_get(w.list, i)))
            return form_bad(call->ops->caller, err, "edits", "item %zu must be an object", i);
        if (form_read_within(call->ops->caller, within, json_array_get(w.list, i), &item_form,
                             &edits[i], err) < 0)
            return -1;
    }
    return apply(call, &file, edits, count, err);
}
