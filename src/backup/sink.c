#include "backup/sink.h"

#include "backup/content.h"
#include "base/io.h"
#include "base/own.h"
#include "http/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#define PIECE   (1u << 20)
#define LEVEL   3
#define WORKERS 2 /* threads that compress, where the library has them */

struct sink {
    bool archive, finished;
    char path[PATH_MAX], part[PATH_MAX];
    char place[PATH_MAX]; /* of part */
    int fd;               /* of part: the directory, or the archive */
    bool (*stop)(void);
    uint64_t bytes;

    /* of the file that was begun */
    int file_fd; /* in a directory */
    struct backup_file file;
    struct content content;

    ZSTD_CCtx *zstd;
    char *out; /* PIECE */
};

bool sink_is_archive(const char *path)
{
    size_t len = strlen(path), end = sizeof SINK_ENDING - 1;

    return len > end && strcmp(path + len - end, SINK_ENDING) == 0;
}

const char *sink_place(const struct sink *s)
{
    return s->place;
}

uint64_t sink_bytes(const struct sink *s)
{
    return s->bytes;
}

/* ---- opening ---- */

static int name_part(struct sink *s, const char *path, struct err *err)
{
    size_t len = strlen(path);
    char *slash;

    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len + sizeof SINK_PART >= sizeof s->path)
        return err_set(err, ERR_USAGE, "the name of the backup is too long");
    (void) snprintf(s->path, sizeof s->path, "%.*s", (int) len, path);
    (void) snprintf(s->part, sizeof s->part, "%.*s" SINK_PART, (int) len, path);
    (void) snprintf(s->place, sizeof s->place, "%.*s", (int) len, path);
    slash = strrchr(s->place, '/');
    if (!slash)
        (void) snprintf(s->place, sizeof s->place, ".");
    else
        slash[slash == s->place] = '\0';
    return 0;
}

/* A directory that is there must be empty: a rename takes its place then. */
static int refuse_taken(const struct sink *s, struct err *err)
{
    struct stat st;

    if (lstat(s->path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(err, errno, "%s", s->path);
    if (s->archive || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_EXISTS, "%s is there already", s->path);
    if (rmdir(s->path) < 0)
        return err_set(err, ERR_EXISTS, "%s is not empty", s->path);
    return 0;
}

static int open_part(struct sink *s, struct err *err)
{
    if (s->archive) {
        s->fd = open(s->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (s->fd < 0)
            return err_sys(err, errno, "make %s", s->part);
        s->zstd = ZSTD_createCCtx();
        s->out = malloc(PIECE);
        if (!s->zstd || !s->out)
            return err_set(err, ERR_NO_MEMORY, "no memory to compress");
        (void) ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, LEVEL);
        (void) ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_checksumFlag, 1);
        (void) ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_nbWorkers, WORKERS);
        return 0;
    }
    if (mkdir(s->part, 0700) < 0)
        return err_sys(err, errno, "make %s", s->part);
    s->fd = open(s->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->fd < 0 ? err_sys(err, errno, "open %s", s->part) : 0;
}

int sink_open(const char *path, bool (*stop)(void), struct sink **ret, struct err *err)
{
    struct sink *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(err, ERR_NO_MEMORY, "no memory for a backup");
    s->archive = sink_is_archive(path);
    s->stop = stop;
    s->fd = s->file_fd = -1;
    if (name_part(s, path, err) < 0 || refuse_taken(s, err) < 0 || open_part(s, err) < 0) {
        sink_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

/* Of a directory the caller removes what is left: its names are those of the manifest. */
void sink_close(struct sink *s)
{
    if (!s)
        return;
    if (s->archive && !s->finished && s->fd >= 0)
        (void) unlink(s->part);
    own_close(&s->file_fd);
    own_close(&s->fd);
    (void) ZSTD_freeCCtx(s->zstd);
    free(s->out);
    free(s);
}

/* ---- the archive ---- */

static int out_all(struct sink *s, const void *data, size_t len, struct err *err)
{
    if (io_write_all(s->fd, data, len) < 0)
        return err_sys(err, errno, "write %s", s->part);
    s->bytes += len;
    return 0;
}

static int compress(struct sink *s, const void *data, size_t len, ZSTD_EndDirective what,
                    struct err *err)
{
    ZSTD_inBuffer in = { data, len, 0 };
    size_t left;

    do {
        ZSTD_outBuffer out = { s->out, PIECE, 0 };

        left = ZSTD_compressStream2(s->zstd, &out, &in, what);
        if (ZSTD_isError(left))
            return err_set(err, ERR_INTERNAL, "compress: %s", ZSTD_getErrorName(left));
        if (out_all(s, s->out, out.pos, err) < 0)
            return -1;
    } while (in.pos < in.size || (what != ZSTD_e_continue && left > 0));
    return 0;
}

static int put_zeros(struct sink *s, uint64_t len, struct err *err)
{
    static const char zeros[PIECE];

    while (len > 0) {
        size_t n = len < PIECE ? (size_t) len : PIECE;

        if (s->stop())
            return err_set(err, ERR_STATE, "interrupted");
        if (compress(s, zeros, n, ZSTD_e_continue, err) < 0)
            return -1;
        len -= n;
    }
    return 0;
}

static int put_head(struct sink *s, const char *path, uint32_t mode, uint64_t size, struct err *err)
{
    struct tar_entry entry = { .type = TAR_FILE, .mode = mode, .size = size };
    char head[TAR_HEAD_MAX];
    ssize_t len;

    (void) snprintf(entry.path, sizeof entry.path, "%s", path);
    len = tar_put_head(head, sizeof head, &entry, err);
    return len < 0 ? -1 : compress(s, head, (size_t) len, ZSTD_e_continue, err);
}

/* ---- files ---- */

/* The directories of a path, where they are missing. */
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

int sink_begin(struct sink *s, const char *path, uint32_t mode, uint64_t size, struct err *err)
{
    if (!backup_manifest_path_ok(path))
        return err_set(err, ERR_INTERNAL, "'%.100s' is no file of a backup", path);
    memset(&s->file, 0, sizeof s->file);
    (void) snprintf(s->file.path, sizeof s->file.path, "%s", path);
    s->file.mode = mode & 0777;
    s->file.size = size;
    content_init(&s->content);
    if (s->archive)
        return put_head(s, path, s->file.mode, size, err);
    if (make_parents(s->fd, path, err) < 0)
        return -1;
    s->file_fd = openat(s->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->file_fd < 0 || ftruncate(s->file_fd, (off_t) size) < 0)
        return err_sys(err, errno, "make %s/%s", s->part, path);
    return 0;
}

/* More than was said would be the beginning of the next entry. */
static int fits(const struct sink *s, uint64_t len, struct err *err)
{
    if (s->stop())
        return err_set(err, ERR_STATE, "interrupted");
    if (len > s->file.size - s->content.size)
        return err_set(err, ERR_STATE, "%s changed while it was read", s->file.path);
    return 0;
}

int sink_write(struct sink *s, const void *data, size_t len, struct err *err)
{
    const char *bytes = data;

    if (fits(s, len, err) < 0)
        return -1;
    if (s->archive) {
        if (compress(s, data, len, ZSTD_e_continue, err) < 0)
            return -1;
    } else if (!content_is_zero(data, len)) {
        for (size_t done = 0; done < len;) {
            ssize_t n =
                pwrite(s->file_fd, bytes + done, len - done, (off_t) (s->content.size + done));

            if (n < 0 && errno != EINTR)
                return err_sys(err, errno, "write %s/%s", s->part, s->file.path);
            done += n > 0 ? (size_t) n : 0;
        }
        s->bytes += len;
    }
    content_add(&s->content, data, len);
    return 0;
}

int sink_zeros(struct sink *s, uint64_t len, struct err *err)
{
    if (fits(s, len, err) < 0 || (s->archive && put_zeros(s, len, err) < 0))
        return -1;
    content_zeros(&s->content, len);
    return 0;
}

static int end_file(struct sink *s, struct err *err)
{
    if (s->archive)
        return put_zeros(s, tar_padding(s->file.size), err);
    if (fsync(s->file_fd) < 0)
        return err_sys(err, errno, "write %s/%s", s->part, s->file.path);
    own_close(&s->file_fd);
    return 0;
}

int sink_end(struct sink *s, struct backup_file *ret, struct err *err)
{
    if (s->content.size != s->file.size)
        return err_set(err, ERR_STATE, "%s changed while it was read", s->file.path);
    content_done(&s->content, s->file.digest);
    s->file.stored = s->content.stored;
    *ret = s->file;
    return end_file(s, err);
}

int sink_give_up(struct sink *s, struct err *err)
{
    if (s->archive && put_zeros(s, s->file.size - s->content.size, err) < 0)
        return -1;
    return end_file(s, err) < 0 ? -1 : (sink_drop(s, s->file.path), 0);
}

void sink_drop(struct sink *s, const char *path)
{
    if (!s->archive)
        (void) unlinkat(s->fd, path, 0);
}

/* From `at`, where data begins, to the next hole. */
static int copy_data(struct sink *s, int from, off_t at, off_t end, char *piece, struct err *err)
{
    while (at < end) {
        size_t want = end - at < (off_t) PIECE ? (size_t) (end - at) : PIECE;
        ssize_t n = pread(from, piece, want, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, "read %s", s->file.path);
        if (n == 0)
            return err_set(err, ERR_STATE, "%s changed while it was read", s->file.path);
        if (sink_write(s, piece, (size_t) n, err) < 0)
            return -1;
        at += n;
    }
    return 0;
}

static int copy_all(struct sink *s, int from, off_t size, char *piece, struct err *err)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA), end;

        if (data < 0 && errno != ENXIO)
            data = at; /* a file system that knows no holes */
        data = data < 0 || data > size ? size : data;
        if (data > at && sink_zeros(s, (uint64_t) (data - at), err) < 0)
            return -1;
        end = data < size ? lseek(from, data, SEEK_HOLE) : size;
        end = end < 0 || end > size ? size : end;
        if (copy_data(s, from, data, end, piece, err) < 0)
            return -1;
        at = end;
    }
    return 0;
}

int sink_copy(struct sink *s, int from_fd, const char *path, uint32_t mode, struct backup_file *ret,
              struct err *err)
{
    auto_free char *piece = malloc(PIECE);
    struct stat st;

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory to copy");
    if (fstat(from_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_NOT_FILE, "%s is no regular file", path);
    if (sink_begin(s, path, mode, (uint64_t) st.st_size, err) < 0 ||
        copy_all(s, from_fd, st.st_size, piece, err) < 0)
        return -1;
    return sink_end(s, ret, err);
}

/* ---- the end ---- */

static void put_le(unsigned char *out, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char) (number >> 8 * i);
}

static int finish_archive(struct sink *s, const char *manifest, size_t len, struct err *err)
{
    unsigned char trailer[SINK_TRAILER];
    uint64_t offset;

    if (compress(s, "", 0, ZSTD_e_end, err) < 0)
        return -1;
    offset = s->bytes;
    if (put_head(s, "manifest", 0600, len, err) < 0 ||
        compress(s, manifest, len, ZSTD_e_continue, err) < 0 ||
        put_zeros(s, tar_padding(len) + TAR_END_SIZE, err) < 0 ||
        compress(s, "", 0, ZSTD_e_end, err) < 0)
        return -1;
    put_le(trailer, SINK_TRAILER_SKIP, 4);
    put_le(trailer + 4, SINK_TRAILER - 8, 4);
    memcpy(trailer + 8, SINK_TRAILER_WORD, 8);
    put_le(trailer + 16, offset, 8);
    return out_all(s, trailer, sizeof trailer, err);
}

static int finish_directory(struct sink *s, const char *manifest, size_t len, struct err *err)
{
    auto_close int fd =
        openat(s->fd, "manifest", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 || io_write_all(fd, manifest, len) < 0 || fsync(fd) < 0)
        return err_sys(err, errno, "write %s/manifest", s->part);
    s->bytes += len;
    return 0;
}

int sink_finish(struct sink *s, const char *manifest, size_t len, struct err *err)
{
    auto_close int place = -1;
    int r = s->archive ? finish_archive(s, manifest, len, err)
                       : finish_directory(s, manifest, len, err);

    if (r < 0)
        return -1;
    /* An archive may not take the place of what came meanwhile; a rename over a directory takes none that is not empty. */
    if (syncfs(s->fd) < 0 || renameat2(AT_FDCWD, s->part, AT_FDCWD, s->path, RENAME_NOREPLACE) < 0)
        return err_sys(err, errno, "give the backup its name %s", s->path);
    s->finished = true;
    place = open(s->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return place < 0 || fsync(place) < 0 ? err_sys(err, errno, "write %s", s->place) : 0;
}
