#include "backup/source.h"

#include "backup/content.h"
#include "backup/sink.h"
#include "base/io.h"
#include "base/own.h"
#include "http/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#define PIECE  (1u << 20)
#define SPARSE 4096u /* a page of zeros becomes a hole */

struct source {
    bool archive;
    int fd;              /* the directory, or the archive */
    uint64_t size, tail; /* of an archive: where the frame with the manifest begins */
    ZSTD_DCtx *zstd;
    char *in, *out; /* PIECE each */
};

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "the backup is damaged: %s", what);
}

/* ---- opening ---- */

static uint64_t get_le(const unsigned char *in, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = bytes; i-- > 0;)
        number = number << 8 | in[i];
    return number;
}

static int find_tail(struct source *s, struct err *err)
{
    unsigned char trailer[SINK_TRAILER];
    struct stat st;

    if (fstat(s->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_NOT_FILE, "the backup is neither a directory nor a regular file");
    s->size = (uint64_t) st.st_size;
    if (s->size < sizeof trailer ||
        pread(s->fd, trailer, sizeof trailer, (off_t) (s->size - sizeof trailer)) !=
            (ssize_t) sizeof trailer ||
        get_le(trailer, 4) != SINK_TRAILER_SKIP || get_le(trailer + 4, 4) != SINK_TRAILER - 8 ||
        memcmp(trailer + 8, SINK_TRAILER_WORD, 8) != 0)
        return err_set(err, ERR_INVALID, "this is no backup of cove, or its end is missing");
    s->tail = get_le(trailer + 16, 8);
    return s->tail < s->size - sizeof trailer ? 0 : damaged(err, "its end points nowhere");
}

int source_open(const char *path, struct source **ret, struct err *err)
{
    struct source *s = calloc(1, sizeof *s);
    struct stat st;

    if (!s)
        return err_set(err, ERR_NO_MEMORY, "no memory for a backup");
    s->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) < 0) {
        err_sys(err, errno, "open %s", path);
        goto undo;
    }
    s->archive = !S_ISDIR(st.st_mode);
    s->zstd = ZSTD_createDCtx();
    s->in = malloc(PIECE);
    s->out = malloc(PIECE);
    if (!s->zstd || !s->in || !s->out) {
        err_set(err, ERR_NO_MEMORY, "no memory to decompress");
        goto undo;
    }
    if (s->archive && find_tail(s, err) < 0) {
        err_wrap(err, "%s", path);
        goto undo;
    }
    *ret = s;
    return 0;

undo:
    source_close(s);
    return -1;
}

void source_close(struct source *s)
{
    if (!s)
        return;
    own_close(&s->fd);
    (void) ZSTD_freeDCtx(s->zstd);
    free(s->in);
    free(s->out);
    free(s);
}

/* ---- an archive's entries ---- */

/* Who gets them. A false `begin` leaves the entry out. */
struct taker {
    int (*begin)(void *arg, const struct tar_entry *entry, bool *ret_wanted, struct err *err);
    int (*data)(void *arg, const char *data, size_t len, struct err *err);
    int (*end)(void *arg, struct err *err);
    void *arg;
};

static int take_event(int event, const struct tar *tar, struct slice data, const struct taker *t,
                      bool *wanted, struct err *err)
{
    switch (event) {
    case TAR_ENTRY:
        return t->begin(t->arg, &tar->entry, wanted, err);
    case TAR_DATA:
        return *wanted ? t->data(t->arg, data.at, data.len, err) : 0;
    case TAR_ENTRY_END:
        return *wanted ? t->end(t->arg, err) : 0;
    default:
        return event < 0 ? -1 : 0;
    }
}

/* An entry may end behind the last byte of the input: the reader is asked until it wants more. */
static int take_piece(struct tar *tar, const char *piece, size_t len, const struct taker *t,
                      bool *wanted, struct err *err)
{
    size_t at = 0;
    int event;

    do {
        struct slice data = { NULL, 0 };
        size_t used = 0;

        event = tar_read(tar, piece + at, len - at, &used, &data, err);
        if (take_event(event, tar, data, t, wanted, err) < 0)
            return -1;
        at += used;
    } while (event != TAR_MORE);
    return 0;
}

/* The frames from `from` to `to` of the archive. */
static int take_frames(struct source *s, uint64_t from, uint64_t to, struct tar *tar,
                       const struct taker *t, struct err *err)
{
    size_t left = 0;
    bool wanted = false, full;

    (void) ZSTD_DCtx_reset(s->zstd, ZSTD_reset_session_only);
    while (from < to) {
        size_t want = to - from < PIECE ? (size_t) (to - from) : PIECE;
        ssize_t n = pread(s->fd, s->in, want, (off_t) from);
        ZSTD_inBuffer in = { s->in, n > 0 ? (size_t) n : 0, 0 };

        if (n <= 0)
            return n < 0 ? err_sys(err, errno, "read the backup")
                         : damaged(err, "its end is missing");
        from += (uint64_t) n;
        do {
            ZSTD_outBuffer out = { s->out, PIECE, 0 };

            left = ZSTD_decompressStream(s->zstd, &out, &in);
            if (ZSTD_isError(left))
                return damaged(err, ZSTD_getErrorName(left));
            if (take_piece(tar, s->out, out.pos, t, &wanted, err) < 0)
                return -1;
            full = out.pos == out.size; /* there may be more that did not fit */
        } while (in.pos < in.size || (full && left != 0));
    }
    return left == 0 ? 0 : damaged(err, "its end is missing");
}

/* ---- the manifest ---- */

struct text {
    char *data;
    size_t len, size;
};

static int text_begin(void *arg, const struct tar_entry *entry, bool *ret_wanted, struct err *err)
{
    struct text *text = arg;

    if (strcmp(entry->path, "manifest") != 0 || entry->type != TAR_FILE || text->data)
        return damaged(err, "its manifest is not where it should be");
    if (entry->size > BACKUP_BYTES_MAX)
        return err_set(err, ERR_TOO_BIG, "the manifest is too large");
    text->size = (size_t) entry->size;
    text->data = malloc(text->size + 1);
    *ret_wanted = true;
    return text->data ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for the manifest");
}

static int text_data(void *arg, const char *data, size_t len, struct err *err)
{
    struct text *text = arg;

    if (len > text->size - text->len)
        return damaged(err, "its manifest is longer than it says");
    memcpy(text->data + text->len, data, len);
    text->len += len;
    return 0;
}

static int text_end(void *arg, struct err *err)
{
    struct text *text = arg;

    text->data[text->len] = '\0';
    return text->len == text->size ? 0 : damaged(err, "its manifest is shorter than it says");
}

static int archive_manifest(struct source *s, struct text *text, struct err *err)
{
    struct taker taker = { text_begin, text_data, text_end, text };
    auto_free struct tar *tar = calloc(1, sizeof *tar);

    if (!tar)
        return err_set(err, ERR_NO_MEMORY, "no memory to read an archive");
    if (take_frames(s, s->tail, s->size - SINK_TRAILER, tar, &taker, err) < 0)
        return -1;
    return text->data && tar_read_end(tar, err) == 0 ? 0 : damaged(err, "it has no manifest");
}

static int directory_manifest(struct source *s, struct text *text, struct err *err)
{
    auto_close int fd = openat(s->fd, "manifest", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return err_set(err, ERR_INVALID, "this directory is no backup of cove: it has no manifest");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t) BACKUP_BYTES_MAX)
        return damaged(err, "its manifest is no file, or too large");
    text->len = (size_t) st.st_size;
    text->data = calloc(1, text->len + 1);
    if (!text->data || io_read_all(fd, text->data, text->len) < 0)
        return err_sys(err, errno, "read the manifest");
    return 0;
}

int source_manifest(struct source *s, char **ret, size_t *ret_len, struct err *err)
{
    struct text text = { NULL, 0, 0 };
    int r = s->archive ? archive_manifest(s, &text, err) : directory_manifest(s, &text, err);

    if (r < 0) {
        free(text.data);
        return -1;
    }
    *ret = text.data;
    *ret_len = text.len;
    return 0;
}

/* ---- files ---- */

struct receiver {
    const struct unpack *unpack;
    struct backup_file *file; /* the one that is being written */
    int fd;
    uint64_t total;
    struct content content;
};

static int make_parents(int at, const char *path, struct err *err)
{
    char copy[BACKUP_PATH_MAX];

    (void) snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(at, copy, 0700) < 0 && errno != EEXIST)
            return err_sys(err, errno, "make %s", copy);
        *slash = '/';
    }
    return 0;
}

static int receive_begin(struct receiver *r, struct backup_file *file, struct err *err)
{
    int at = r->unpack->dir_fd;

    r->file = file;
    content_init(&r->content);
    own_close(&r->fd);
    if (at < 0)
        return 0;
    if (make_parents(at, file->path, err) < 0)
        return -1;
    (void) unlinkat(at, file->path, 0); /* of a try that the backup gave up */
    r->fd = openat(at, file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r->fd < 0 || ftruncate(r->fd, (off_t) file->size) < 0 || fchmod(r->fd, file->mode) < 0)
        return err_sys(err, errno, "make %s", file->path);
    return 0;
}

static int write_at(int fd, const char *data, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t) at);

        if (n < 0 && errno != EINTR)
            return -1;
        n = n < 0 ? 0 : n;
        data += n;
        len -= (size_t) n;
        at += (uint64_t) n;
    }
    return 0;
}

static int receive_data(struct receiver *r, const char *data, size_t len, struct err *err)
{
    uint64_t at = r->content.size;

    if (r->unpack->stop())
        return err_set(err, ERR_STATE, "interrupted");
    if (len > r->file->size - at)
        return err_set(err, ERR_INVALID,
                       "the backup is damaged: %s is longer than its manifest says", r->file->path);
    content_add(&r->content, data, len);
    r->total += len;
    for (size_t done = 0; r->fd >= 0 && done < len;) {
        size_t page = SPARSE - (at + done) % SPARSE, n = len - done < page ? len - done : page;

        if (!content_is_zero(data + done, n) && write_at(r->fd, data + done, n, at + done) < 0)
            return err_sys(err, errno, "write %s", r->file->path);
        done += n;
    }
    if (r->unpack->progress)
        r->unpack->progress(r->unpack->arg, r->total);
    return 0;
}

static void receive_end(struct receiver *r)
{
    unsigned char digest[SHA256_LEN];

    own_close(&r->fd);
    content_done(&r->content, digest);
    r->file->seen =
        r->content.size == r->file->size && memcmp(digest, r->file->digest, sizeof digest) == 0;
}

static int taken_begin(void *arg, const struct tar_entry *entry, bool *ret_wanted, struct err *err)
{
    struct receiver *r = arg;
    struct backup_file *file = backup_manifest_find(r->unpack->manifest, entry->path);

    /* What the backup gave up is in the archive and in no manifest. What was taken again is in the archive twice: the one that is as the
     * manifest says counts. */
    *ret_wanted = file && !file->seen && entry->type == TAR_FILE && entry->size == file->size;
    return *ret_wanted ? receive_begin(r, file, err) : 0;
}

static int taken_data(void *arg, const char *data, size_t len, struct err *err)
{
    return receive_data(arg, data, len, err);
}

static int taken_end(void *arg, struct err *err)
{
    (void) err;
    receive_end(arg);
    return 0;
}

static int unpack_archive(struct source *s, struct receiver *r, struct err *err)
{
    struct taker taker = { taken_begin, taken_data, taken_end, r };
    auto_free struct tar *tar = calloc(1, sizeof *tar);

    if (!tar)
        return err_set(err, ERR_NO_MEMORY, "no memory to read an archive");
    return take_frames(s, 0, s->tail, tar, &taker, err);
}

static int unpack_file(struct source *s, struct receiver *r, struct backup_file *file,
                       struct err *err)
{
    auto_close int fd = openat(s->fd, file->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "the backup is damaged: %s is missing", file->path);
    if (receive_begin(r, file, err) < 0)
        return -1;
    while ((n = read(fd, s->in, PIECE)) != 0)
        if (n < 0 ? errno != EINTR : receive_data(r, s->in, (size_t) n, err) < 0)
            return n < 0 ? err_sys(err, errno, "read %s", file->path) : -1;
    receive_end(r);
    return 0;
}

int source_unpack(struct source *s, const struct unpack *unpack, struct err *err)
{
    struct receiver r = { .unpack = unpack, .fd = -1 };
    struct backup_manifest *m = unpack->manifest;
    int rc = s->archive ? unpack_archive(s, &r, err) : 0;

    for (size_t i = 0; rc == 0 && i < m->file_count; i++) {
        if (!s->archive)
            rc = unpack_file(s, &r, &m->files[i], err);
        if (rc == 0 && !m->files[i].seen)
            rc = err_set(err, ERR_INVALID,
                         "the backup is damaged: %s is missing, or not what the manifest says",
                         m->files[i].path);
    }
    own_close(&r.fd);
    return rc;
}
