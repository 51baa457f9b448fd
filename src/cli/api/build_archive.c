#include "cli/api/build_archive.h"

#include "base/own.h"
#include "base/parse.h"
#include "http/tar.h"
#include "remote/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PIECE 65536
#define UNASKED                                                                                    \
    (64ull << 20)          /* up to so many bytes are sent without asking what the server takes */
#define USUAL (1ull << 30) /* what a server takes that does not say */

int context_below(int fd, const char *path, uint64_t flags)
{
    struct open_how how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };

    return (int) syscall(SYS_openat2, fd, path[0] ? path : ".", &how, sizeof how);
}

struct output {
    struct call *call; /* NULL: only hashed */
    struct sha256 hash;
    struct tar_entry entry;
    const struct remote *remote;
    uint64_t bytes; /* of the entries so far */
    uint64_t most;  /* that the server takes; 0: not asked */
    char head[TAR_HEAD_MAX], data[PIECE];
};

static void hash_text(struct output *o, const char *text)
{
    uint64_t len = strlen(text);

    sha256_add(&o->hash, &len, sizeof len);
    sha256_add(&o->hash, text, len);
}

static int ask_most(struct output *o, struct err *err)
{
    json_t *answer = NULL;
    json_int_t most;

    if (ask(o->remote, "GET", "/v1/templates", NULL, &answer, err) < 0)
        return -1;
    most = json_integer_value(json_object_get(answer, "upload_bytes"));
    o->most = most > 0 ? (uint64_t) most : USUAL;
    json_decref(answer);
    return 0;
}

/* Said before anything of it is read: a file with holes may be larger than every disk. */
static int check_size(struct output *o, uint64_t size, const char *path, struct err *err)
{
    char file[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX];

    if (!o->most && (size > UNASKED || o->bytes + size > UNASKED) && ask_most(o, err) < 0)
        return -1;
    if (o->most && (o->bytes > o->most || size > o->most - o->bytes))
        return err_set(err, ERR_TOO_BIG,
                       "with '%.100s' (%s) the upload is larger than %s, which is what the server "
                       "takes (build_upload)",
                       path, size_text(file, sizeof file, size),
                       size_text(most, sizeof most, o->most));
    o->bytes += size;
    return 0;
}

static int put_head(struct output *o, struct err *err)
{
    char facts[64];
    ssize_t n;

    hash_text(o, o->entry.path);
    hash_text(o, o->entry.target);
    (void) snprintf(facts, sizeof facts, "%d %o %llu", (int) o->entry.type, o->entry.mode,
                    (unsigned long long) o->entry.size);
    hash_text(o, facts);
    if (!o->call)
        return 0;
    n = tar_put_head(o->head, sizeof o->head, &o->entry, err);
    return n < 0 ? -1 : call_send(o->call, o->head, (size_t) n, err);
}

static int put_data(struct output *o, const void *data, size_t len, struct err *err)
{
    sha256_add(&o->hash, data, len);
    return o->call ? call_send(o->call, data, len, err) : 0;
}

static int put_padding(struct output *o, size_t len, struct err *err)
{
    memset(o->data, 0, len);
    return o->call ? call_send(o->call, o->data, len, err) : 0;
}

static int put_file(struct output *o, int fd, struct err *err)
{
    uint64_t left = o->entry.size;

    while (left > 0) {
        ssize_t n = read(fd, o->data, left < PIECE ? left : PIECE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0
                       ? err_sys(err, errno, "read %s", o->entry.path)
                       : err_set(err, ERR_STATE, "%.100s changed while it was read", o->entry.path);
        left -= (uint64_t) n;
        if (put_data(o, o->data, (size_t) n, err) < 0)
            return -1;
    }
    return put_padding(o, tar_padding(o->entry.size), err);
}

static int put_entry(struct output *o, const struct context *context, const struct archive_entry *e,
                     struct err *err)
{
    auto_close int fd = -1;
    struct stat st;
    ssize_t n;

    o->entry = (struct tar_entry){ .type = e->text ? TAR_FILE : TAR_DIR,
                                   .mode = e->text ? 0644 : 0755,
                                   .size = e->text ? strlen(e->text) : 0 };
    if ((size_t) snprintf(o->entry.path, sizeof o->entry.path, "%s", e->as) >= sizeof o->entry.path)
        return err_set(err, ERR_TOO_BIG, "a path is too long: %.60s", e->as);
    if (!e->path)
        return put_head(o, err) < 0 ? -1
               : e->text            ? put_data(o, e->text, strlen(e->text), err) < 0
                                          ? -1
                                          : put_padding(o, tar_padding(o->entry.size), err)
                                    : 0;
    if (fstatat(context->fd, e->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "%s", e->path);
    o->entry.mtime = st.st_mtime;
    if (S_ISLNK(st.st_mode)) {
        o->entry.type = TAR_LINK;
        o->entry.mode = 0777;
        n = readlinkat(context->fd, e->path, o->entry.target, sizeof o->entry.target - 1);
        return n < 0 ? err_sys(err, errno, "%s", e->path) : put_head(o, err);
    }
    fd = context_below(context->fd, e->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "%s", e->path);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return err_set(err, ERR_STATE, "%.100s changed while it was read", e->path);
    o->entry.mode = st.st_mode & 0777;
    o->entry.type = S_ISDIR(st.st_mode) ? TAR_DIR : TAR_FILE;
    o->entry.size = S_ISDIR(st.st_mode) ? 0 : (uint64_t) st.st_size;
    if (check_size(o, o->entry.size, e->path, err) < 0 || put_head(o, err) < 0)
        return -1;
    return S_ISDIR(st.st_mode) ? 0 : put_file(o, fd, err);
}

/* The hash of all; with a call, the archive is sent, too. */
static int put_all(struct output *o, const struct archive *list, char ret[SHA256_HEX],
                   struct err *err)
{
    unsigned char sum[SHA256_LEN];

    sha256_init(&o->hash);
    o->bytes = 0;
    hash_text(o, "cove-files-1");
    for (size_t i = 0; i < list->count && !(o->call && o->call->dead); i++)
        if (put_entry(o, list->context, &list->entries[i], err) < 0)
            return -1;
    sha256_done(&o->hash, sum);
    sha256_hex(sum, sizeof sum, ret);
    return put_padding(o, TAR_END_SIZE, err);
}

/* An archive of the directory as it is: ADD unpacks it. */
static int put_raw(struct output *o, const struct context *context, const char *path,
                   char ret[SHA256_HEX], struct err *err)
{
    auto_close int fd = context_below(context->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    unsigned char sum[SHA256_LEN];
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_NOT_FILE, "%.100s is not a file", path);
    o->bytes = 0;
    if (check_size(o, (uint64_t) st.st_size, path, err) < 0)
        return -1;
    sha256_init(&o->hash);
    hash_text(o, "cove-archive-1");
    o->entry.size = (uint64_t) st.st_size;
    (void) snprintf(o->entry.path, sizeof o->entry.path, "%s", path);
    for (uint64_t left = o->entry.size; left > 0;) {
        ssize_t n = read(fd, o->data, left < PIECE ? left : PIECE);

        if (n <= 0)
            return err_set(err, ERR_STATE, "%.100s changed while it was read", path);
        left -= (uint64_t) n;
        if (put_data(o, o->data, (size_t) n, err) < 0)
            return -1;
    }
    sha256_done(&o->hash, sum);
    sha256_hex(sum, sizeof sum, ret);
    return 0;
}

/* raw NULL: the list. */
static int put(struct output *o, const struct archive *list, const char *raw, char ret[SHA256_HEX],
               struct err *err)
{
    return raw ? put_raw(o, list->context, raw, ret, err) : put_all(o, list, ret, err);
}

/* The upload is whole only if what was sent is what was hashed: a connection that is cut leaves nothing. */
static int upload(const struct archive *list, const char *raw, const char *hash, struct output *o,
                  struct err *err)
{
    auto_free char *path = ask_path("/v1/builds/files/%s", hash);
    const struct call_request request = {
        .method = "PUT", .path = path, .type = "application/octet-stream", .streams = true
    };
    struct call call = CALL_NONE;
    char sent[SHA256_HEX] = "";
    int r;

    if (!path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a request");
    if (call_open(&call, list->context->remote, &request, err) < 0)
        return -1;
    o->call = &call;
    r = put(o, list, raw, sent, err);
    o->call = NULL;
    if (r == 0 && !call.dead && strcmp(sent, hash) != 0)
        r = err_set(err, ERR_STATE, "files changed while they were read: build again");
    if (r == 0)
        r = call_sent(&call, err) < 0 || call_answer(&call, err) < 0 ? -1 : ask_check(&call, err);
    call_close(&call);
    return r;
}

int archive_send(const struct archive *list, const char *raw, char hash[SHA256_HEX],
                 struct err *err)
{
    auto_free struct output *o = calloc(1, sizeof *o);
    auto_free char *path = NULL;
    struct err why;

    if (!o)
        return err_set(err, ERR_NO_MEMORY, "no memory for an upload");
    o->remote = list->context->remote;
    if (put(o, list, raw, hash, err) < 0)
        return -1;
    path = ask_path("/v1/builds/files/%s", hash);
    if (path && ask(list->context->remote, "GET", path, NULL, NULL, &why) == 0)
        return 0;
    return upload(list, raw, hash, o, err);
}
