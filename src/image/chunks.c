/* Two processes share the work: hashing is what takes the time, and there are no threads here. */
#include "image/chunks.h"

#include "base/io.h"
#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX   4096
#define PIECE       (4u * CHUNK_BYTES) /* read at once */
#define SHARE_LEAST 256                /* chunks: for fewer, a second process is not worth it */

typedef unsigned char hash_bytes[SHA256_LEN];

static uint64_t count_of(uint64_t bytes)
{
    return (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

static hash_bytes *hashes(const struct chunks *c)
{
    return (hash_bytes *) (uintptr_t) &c->file[c->files];
}

static uint64_t size_for(uint32_t files, uint64_t count)
{
    return sizeof(struct chunks) + files * sizeof(struct chunk_file) + count * SHA256_LEN;
}

size_t chunks_count(const struct chunks *c)
{
    return (c->size - size_for(c->files, 0)) / SHA256_LEN;
}

void chunks_free(struct chunks *c)
{
    if (c)
        (void) munmap(c, c->size);
}

const struct chunk_file *chunks_find(const struct chunks *c, const char *name)
{
    for (uint32_t i = 0; i < c->files; i++)
        if (strcmp(c->file[i].name, name) == 0)
            return &c->file[i];
    return NULL;
}

bool chunks_same(const struct chunks *c, const struct chunk_file *file, uint64_t index,
                 const void *data, size_t len)
{
    hash_bytes hash;

    if (index >= count_of(file->bytes) ||
        len != (file->bytes - index * CHUNK_BYTES < CHUNK_BYTES ? file->bytes - index * CHUNK_BYTES
                                                                : CHUNK_BYTES))
        return false;
    sha256_of(data, len, hash);
    return same_secret(hash, hashes(c)[file->first + index], sizeof hash);
}

void chunks_tree_of(const struct chunks *c, const struct chunk_file *file,
                    unsigned char ret[SHA256_LEN])
{
    sha256_of(hashes(c)[file->first], count_of(file->bytes) * SHA256_LEN, ret);
}

void chunks_tree_init(struct chunk_tree *tree)
{
    sha256_init(&tree->all);
    sha256_init(&tree->chunk);
    tree->len = 0;
}

static void end_chunk(struct chunk_tree *tree)
{
    hash_bytes hash;

    if (tree->len == 0)
        return;
    sha256_done(&tree->chunk, hash);
    sha256_add(&tree->all, hash, sizeof hash);
    sha256_init(&tree->chunk);
    tree->len = 0;
}

void chunks_tree_add(struct chunk_tree *tree, const void *data, size_t len)
{
    const unsigned char *at = data;

    while (len > 0) {
        size_t part = CHUNK_BYTES - tree->len < len ? CHUNK_BYTES - tree->len : len;

        sha256_add(&tree->chunk, at, part);
        tree->len += (uint32_t) part;
        if (tree->len == CHUNK_BYTES)
            end_chunk(tree);
        at += part;
        len -= part;
    }
}

void chunks_tree_done(struct chunk_tree *tree, unsigned char ret[SHA256_LEN])
{
    end_chunk(tree);
    sha256_done(&tree->all, ret);
}

/* ---- all of them ---- */

struct round {
    int memory_fd;
    struct chunks *chunks;
    const uint8_t *later;
    bool write;           /* the hashes are to be kept, not to be compared */
    uint64_t from, until; /* of all chunks, whose turn it is */
    bool failed;          /* to be read, or different */
};

static void do_piece(struct round *r, const struct chunk_file *file, uint64_t index,
                     const unsigned char *data, size_t len)
{
    for (size_t at = 0; at < len; at += CHUNK_BYTES, index++) {
        size_t part = len - at < CHUNK_BYTES ? len - at : CHUNK_BYTES;

        if (r->write)
            sha256_of(data + at, part, hashes(r->chunks)[file->first + index]);
        else if (!(r->later && r->later[file->first + index]) &&
                 !chunks_same(r->chunks, file, index, data + at, part))
            r->failed = true;
    }
}

static bool all_later(const struct round *r, const struct chunk_file *file, uint64_t index,
                      uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!r->later || !r->later[file->first + index + i])
            return false;
    return true;
}

static void do_file(struct round *r, const struct chunk_file *file)
{
    static unsigned char data[PIECE];
    uint64_t begin = r->from > file->first ? r->from - file->first : 0;
    uint64_t end = count_of(file->bytes);
    auto_close int fd = -1;

    if (r->until < file->first + end)
        end = r->until > file->first ? r->until - file->first : 0;
    if (begin >= end)
        return;
    fd = openat(r->memory_fd, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        r->failed = true;
    for (uint64_t i = begin; !r->failed && i < end; i += PIECE / CHUNK_BYTES) {
        uint64_t count = end - i < PIECE / CHUNK_BYTES ? end - i : PIECE / CHUNK_BYTES;
        uint64_t left = file->bytes - i * CHUNK_BYTES;
        size_t len = left < count * CHUNK_BYTES ? left : count * CHUNK_BYTES;

        if (all_later(r, file, i, count))
            continue;
        if (pread(fd, data, len, (off_t) (i * CHUNK_BYTES)) != (ssize_t) len)
            r->failed = true;
        else
            do_piece(r, file, i, data, len);
    }
}

static bool do_part(struct round r, uint64_t from, uint64_t until)
{
    r.from = from;
    r.until = until;
    for (uint32_t i = 0; i < r.chunks->files && !r.failed; i++)
        do_file(&r, &r.chunks->file[i]);
    return !r.failed;
}

/* The half of the work, by what has to be read. */
static uint64_t middle(const struct round *r, uint64_t count)
{
    uint64_t all = 0, seen = 0, at = 0;

    for (uint64_t i = 0; i < count; i++)
        all += !(r->later && r->later[i]);
    if (all < SHARE_LEAST)
        return count;
    for (; at < count && seen < all / 2; at++)
        seen += !(r->later && r->later[at]);
    return at;
}

static bool do_all(const struct round *r)
{
    uint64_t count = chunks_count(r->chunks), half = middle(r, count);
    pid_t other = half < count ? fork() : -1;
    int status = 1;
    bool good;

    if (other == 0)
        _exit(do_part(*r, half, count) ? 0 : 1);
    good = do_part(*r, 0, other < 0 ? count : half);
    if (other > 0 && (waitpid(other, &status, 0) != other || status != 0))
        good = false;
    return good;
}

int chunks_check(int memory_fd, const struct chunks *c, const uint8_t *later, struct err *err)
{
    struct round r = { .memory_fd = memory_fd,
                       .chunks = (struct chunks *) (uintptr_t) c,
                       .later = later };

    return do_all(&r) ? 0 : err_set(err, ERR_DENIED, "its pages are not as they were");
}

/* ---- the file ---- */

static int list_files(int memory_fd, struct chunk_file *file, uint32_t *ret_count, struct err *err)
{
    int own = openat(memory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    uint64_t first = 0;
    struct stat st;

    *ret_count = 0;
    if (!dir)
        return err_sys(err, errno, "list an image");
    while ((entry = readdir(dir))) {
        struct chunk_file *f = &file[*ret_count];

        if (strncmp(entry->d_name, "pages-", 6) != 0)
            continue;
        if (*ret_count == FILES_MAX || strlen(entry->d_name) >= sizeof f->name ||
            fstatat(own, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            return err_set(err, ERR_DENIED, "a file of the image has an invalid name");
        memset(f->name, 0, sizeof f->name);
        memcpy(f->name, entry->d_name, strlen(entry->d_name));
        f->bytes = (uint64_t) st.st_size;
        f->first = first;
        first += count_of(f->bytes);
        ++*ret_count;
    }
    return 0;
}

/* Shared, for the second process to write into. */
static struct chunks *map(uint64_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

int chunks_write(int memory_fd, struct chunks **ret, struct err *err)
{
    auto_free struct chunk_file *file = calloc(FILES_MAX, sizeof *file);
    auto_close int fd = -1;
    struct round r = { .memory_fd = memory_fd, .write = true };
    uint64_t count, size;
    uint32_t files;
    int rc = 0;

    if (!file)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of files");
    if (list_files(memory_fd, file, &files, err) < 0)
        return -1;
    count = files ? file[files - 1].first + count_of(file[files - 1].bytes) : 0;
    size = size_for(files, count);
    r.chunks = map(size);
    if (!r.chunks)
        return err_sys(err, errno, "make a table of hashes");
    r.chunks->size = size;
    r.chunks->files = files;
    memcpy(r.chunks->file, file, files * sizeof *file);
    fd = openat(memory_fd, CHUNKS_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (!do_all(&r))
        rc = err_set(err, ERR_INTERNAL, "the pages cannot be read");
    else if (fd < 0 || io_write_all(fd, r.chunks, size) < 0)
        rc = err_sys(err, errno, "write the hashes");
    if (rc == 0)
        *ret = r.chunks;
    else
        chunks_free(r.chunks);
    return rc;
}

/* It was signed; but a file may have been put beside those that it speaks of. */
static bool fits(const struct chunks *c, uint64_t size, int memory_fd)
{
    uint64_t first = 0, files = 0;
    int own = openat(memory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_dir DIR *dir = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    struct stat st;

    if (!dir || c->size != size || c->files > FILES_MAX || size < size_for(c->files, 0))
        return false;
    for (uint32_t i = 0; i < c->files; i++) {
        const struct chunk_file *f = &c->file[i];

        if (strnlen(f->name, sizeof f->name) == sizeof f->name || f->first != first ||
            fstatat(memory_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            (uint64_t) st.st_size != f->bytes)
            return false;
        first += count_of(f->bytes);
    }
    while ((entry = readdir(dir)))
        files += strncmp(entry->d_name, "pages-", 6) == 0;
    return files == c->files && size == size_for(c->files, first);
}

int chunks_read(int memory_fd, struct chunks **ret, struct err *err)
{
    auto_close int fd = openat(memory_fd, CHUNKS_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct chunks *c;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "open the hashes");
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t) sizeof *c)
        return err_set(err, ERR_DENIED, "the hashes are not as they were");
    c = map((uint64_t) st.st_size);
    if (!c)
        return err_sys(err, errno, "map the hashes");
    if (io_read_all(fd, c, (size_t) st.st_size) < 0 || !fits(c, (uint64_t) st.st_size, memory_fd)) {
        (void) munmap(c, (size_t) st.st_size);
        return err_set(err, ERR_DENIED, "its pages are not as they were");
    }
    *ret = c;
    return 0;
}
