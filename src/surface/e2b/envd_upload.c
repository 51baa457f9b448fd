/* POST /files: one file as the body, or several as parts of a form, each written while it arrives.
 *
 * A file is written in place, as envd does it: a program that has it open, watches it or has another name for it sees the new
 * content, and its mode stays. What arrives of a file is held until it is HELD_MAX bytes or all of it; only then is
 * the file touched. So an upload that breaks off changes nothing of a small file; of a larger one it leaves
 * what had come, unless the file was not there before: then it is not there afterwards either. */
#include "surface/e2b/envd.h"

#include "base/own.h"
#include "http/multipart.h"
#include "http/value.h"
#include "server/preview/upload.h"

#include <string.h>
#include <strings.h>

#define PIECE    65536
#define HELD_MAX 65536

#define META_HEADER    "X-Metadata-"
#define META_KEY_MAX   246  /* what an attribute's name has room for behind the prefix */
#define META_TOTAL_MAX 4096 /* bytes of keys and values */

struct upload {
    struct exchange *x;
    struct ops ops;
    const char *path;            /* of the query; NULL: each part says its own */
    char attrs[AGENT_ATTRS_MAX]; /* metadata for every file of this request */
    size_t attrs_len;
    json_t *entries; /* the answer */
    json_t *seen;    /* paths, as keys */

    /* the file that is being received */
    bool receiving, open;
    char name[AGENT_PATH_MAX];
    struct ops_file file;
    struct stream stream;
    size_t held_len;
    char held[HELD_MAX];

    char piece[PIECE];
    struct file_info info;
    struct multipart form;
};

/* ---- metadata ---- */

static bool printable(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < ' ' || text.at[i] > '~')
            return false;
    return true;
}

static int add_metadata(struct upload *u, struct slice key, struct slice value, size_t *total,
                        struct err *err)
{
    if (key.len == 0 || key.len > META_KEY_MAX)
        return err_set(err, ERR_INVALID, "metadata: a key has 1 to %d bytes", META_KEY_MAX);
    if (!printable(key) || !printable(value))
        return err_set(err, ERR_INVALID, "metadata: '%.*s' is not printable ASCII",
                       SLICE_ARGS(key));
    *total += key.len + value.len;
    if (*total > META_TOTAL_MAX)
        return err_set(err, ERR_INVALID, "metadata: more than %d bytes", META_TOTAL_MAX);
    for (size_t i = 0; i < key.len; i++)
        u->attrs[u->attrs_len++] =
            (char) (key.at[i] >= 'A' && key.at[i] <= 'Z' ? key.at[i] + 32 : key.at[i]);
    u->attrs[u->attrs_len++] = '\0';
    memcpy(u->attrs + u->attrs_len, value.at, value.len);
    u->attrs_len += value.len;
    u->attrs[u->attrs_len++] = '\0';
    return 0;
}

static int read_metadata(struct upload *u, struct err *err)
{
    const struct head *head = exchange_head(u->x);
    const size_t prefix = strlen(META_HEADER);
    size_t total = 0;

    /* HEAD_FIELDS_MAX keys and two NULs each fit behind META_TOTAL_MAX. */
    for (size_t i = 0; i < head->field_count; i++) {
        struct slice name = head_field_name(head, i);

        if (name.len < prefix || strncasecmp(name.at, META_HEADER, prefix) != 0)
            continue;
        if (add_metadata(u, (struct slice){ name.at + prefix, name.len - prefix },
                         head_field_value(head, i), &total, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- one file ---- */

static int seen_before(struct upload *u, const char *path, struct err *err)
{
    if (json_object_get(u->seen, path))
        return err_set(
            err, ERR_INVALID,
            "you cannot upload multiple files to the same path '%.100s', only the last one "
            "would be saved",
            path);
    return json_object_set_new(u->seen, path, json_true()) < 0
               ? err_set(err, ERR_INVALID, "a path that is not UTF-8")
               : 0;
}

static int file_begin(struct upload *u, const char *path, struct err *err)
{
    if (strlen(path) >= sizeof u->name)
        return err_set(err, ERR_INVALID, "error resolving path: longer than %zu bytes",
                       sizeof u->name - 1);
    (void) strcpy(u->name, path);
    if (envd_file(u->x, u->name, &u->file, err) < 0 || seen_before(u, u->name, err) < 0)
        return -1;
    u->file.attrs = (struct texts){ .data = u->attrs, .len = (uint32_t) u->attrs_len };
    u->receiving = true;
    u->open = false;
    u->held_len = 0;
    return 0;
}

static int file_open(struct upload *u, struct err *err)
{
    if (ops_file_write(&u->ops, &u->file, UINT32_MAX, AGENT_PARENTS, &u->stream, err) < 0)
        return -1;
    u->open = true;
    return files_write_next(&u->stream, u->held, u->held_len, err);
}

static int file_data(struct upload *u, const char *data, size_t len, struct err *err)
{
    if (!u->open && len <= sizeof u->held - u->held_len) {
        memcpy(u->held + u->held_len, data, len);
        u->held_len += len;
        return 0;
    }
    if (!u->open && file_open(u, err) < 0)
        return -1;
    return files_write_next(&u->stream, data, len, err);
}

static int file_end(struct upload *u, struct err *err)
{
    json_t *metadata, *entry;
    int r = 0;

    if (!u->open)
        r = file_open(u, err);
    if (r == 0)
        r = ops_file_write_end(&u->ops, &u->file, &u->stream, &u->info, err);
    if (u->open)
        stream_close(&u->stream);
    u->open = false;
    if (r < 0)
        return -1;
    u->receiving = false;
    if (strcmp(u->info.path, u->name) != 0 && seen_before(u, u->info.path, err) < 0)
        return -1;
    metadata = e2b_metadata_json(&u->file.attrs);
    entry = json_pack("{s:o, s:s, s:o}", "name", e2b_name_json(u->info.path), "type", "file",
                      "path", json_string(u->info.path));
    if (metadata)
        (void) json_object_set_new(entry, "metadata", metadata);
    return json_array_append_new(u->entries, entry) < 0
               ? err_set(err, ERR_NO_MEMORY, "no memory for the answer")
               : 0;
}

/* ---- bodies ---- */

static int take_raw(struct upload *u, struct err *err)
{
    ssize_t n;

    if (!u->path)
        return err_set(err, ERR_INVALID,
                       "path is needed in the query with application/octet-stream");
    if (file_begin(u, u->path, err) < 0)
        return -1;
    do {
        n = exchange_read(u->x, u->piece, sizeof u->piece, err);
        if (n > 0 && file_data(u, u->piece, (size_t) n, err) < 0)
            return -1;
    } while (n > 0 && !u->open);
    if (n > 0 && upload_body(u->x, &u->stream, err) < 0)
        return -1;
    return n < 0 ? -1 : file_end(u, err);
}

static int take_event(struct upload *u, int event, struct slice data, struct err *err)
{
    switch ((enum multipart_event) event) {
    case MULTIPART_PART: /* parts of another name are passed over */
        if (strcmp(u->form.name, "file") != 0)
            return 0;
        if (!u->path && !u->form.has_filename)
            return err_set(err, ERR_INVALID,
                           "a part without a file name, and no path in the query");
        return file_begin(u, u->path ? u->path : u->form.filename, err);
    case MULTIPART_DATA:
        return u->receiving ? file_data(u, data.at, data.len, err) : 0;
    case MULTIPART_END:
        return u->receiving ? file_end(u, err) : 0;
    case MULTIPART_MORE:
    case MULTIPART_LAST:
        break;
    }
    return 0;
}

static int take_form(struct upload *u, struct err *err)
{
    ssize_t n;

    while ((n = exchange_read(u->x, u->piece, sizeof u->piece, err)) > 0) {
        size_t at = 0;
        int event;

        do {
            struct slice data = { 0 };
            size_t used = 0;

            event = multipart_read(&u->form, u->piece + at, (size_t) n - at, &used, &data, err);
            if (event < 0 || take_event(u, event, data, err) < 0)
                return -1;
            at += used;
        } while (event != MULTIPART_MORE || at < (size_t) n);
    }
    if (n == 0 && !multipart_done(&u->form))
        return err_set(err, ERR_INVALID, "multipart: the body ended before its last boundary");
    return (int) n;
}

static int take_body(struct upload *u, struct err *err)
{
    struct slice type = head_get(exchange_head(u->x), "Content-Type");
    struct slice main = type.at ? value_main(type) : type;

    if (exchange_accept_encoding(u->x, err) < 0)
        return exchange_blame_status(u->x, 400);
    if (read_metadata(u, err) < 0)
        return -1;
    if (main.at && slice_is_nocase(main, "application/octet-stream"))
        return take_raw(u, err);
    if (!main.at || !slice_is_nocase(main, "multipart/form-data"))
        return err_set(err, ERR_INVALID,
                       "Content-Type: multipart/form-data or application/octet-stream is needed");
    if (multipart_init(&u->form, type, err) < 0)
        return -1;
    return take_form(u, err);
}

int envd_upload(struct exchange *x, struct err *err)
{
    auto_free struct upload *u = calloc(1, sizeof *u);
    int r;

    if (!u)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    u->x = x;
    u->ops = ops_of(exchange_caller(x));
    u->path = exchange_query(x, "path");
    if (u->path && !u->path[0])
        u->path = NULL;
    u->stream = STREAM_NONE;
    u->entries = json_array();
    u->seen = json_object();
    r = take_body(u, err);
    if (u->open)
        stream_close(&u->stream);
    json_decref(u->seen);
    if (r == 0)
        return exchange_reply_json(x, 200, u->entries, err);
    json_decref(u->entries);
    return u->receiving ? envd_fail(x, &u->file, err) : -1;
}
