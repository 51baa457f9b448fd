#include "erofs/write.h"

#include "base/own.h"
#include "erofs/format.h"
#include "erofs/layout.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BUFFER    (256u * 1024)
#define POOL      (1024u * 1024)
#define TAIL_MOST 2048u /* a longer rest gets a block of its own */

int erofs_init(struct erofs_writer *w, int fd, uint64_t bytes_max, struct err *err)
{
    *w = (struct erofs_writer){ .fd = fd, .bytes_max = bytes_max, .next_block = 1 };
    w->buffer = malloc(BUFFER);
    w->pool = malloc(POOL);
    if (w->buffer && w->pool)
        return 0;
    erofs_done(w);
    return err_set(err, ERR_NO_MEMORY, "no memory to write an image");
}

void erofs_done(struct erofs_writer *w)
{
    free(w->buffer);
    free(w->pool);
    free(w->dead);
    w->buffer = w->pool = NULL;
    w->dead = NULL;
}

int erofs_put(int fd, const void *data, size_t len, uint64_t at, struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, (const char *) data + done, len - done, (off_t) (at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(err, n < 0 ? errno : EIO, "write the image");
        done += (size_t) n;
    }
    return 0;
}

static void add_dead(struct erofs_writer *w, uint32_t block, uint32_t count)
{
    if (count == 0)
        return;
    if (w->dead_count == w->dead_room) {
        size_t room = w->dead_room ? 2 * w->dead_room : 256;
        struct erofs_extent *more = reallocarray(w->dead, room, sizeof *more);

        if (!more) {
            w->dead_lost = true;
            return;
        }
        w->dead = more;
        w->dead_room = room;
    }
    w->dead[w->dead_count++] = (struct erofs_extent){ block, count };
}

static uint64_t blocks_of(uint64_t bytes)
{
    return (bytes + EROFS_BLOCK - 1) / EROFS_BLOCK;
}

/* A size that was checked: past `bytes_max` there is none. */
static int take_blocks(struct erofs_writer *w, uint64_t count, uint32_t *ret, struct err *err)
{
    if (count > UINT32_MAX - 1 - w->next_block)
        return err_set(err, ERR_TOO_BIG, "the image is larger than a file system can be");
    *ret = w->next_block;
    w->next_block += (uint32_t) count;
    return 0;
}

/* ---- content ---- */

static int flush_buffer(struct erofs_writer *w, struct err *err)
{
    if (erofs_put(w->fd, w->buffer, w->buffered, w->at, err) < 0)
        return -1;
    w->at += w->buffered;
    w->buffered = 0;
    return 0;
}

static int flush_pool(struct erofs_writer *w, struct err *err)
{
    if (w->pooled == 0)
        return 0;
    if (erofs_put(w->fd, w->pool, w->pooled, (uint64_t) w->pool_block * EROFS_BLOCK, err) < 0)
        return -1;
    w->pooled = 0;
    return 0;
}

/* Room for the rest of a file. A pool's blocks are of use until the image is finished. */
static int take_tail(struct erofs_writer *w, struct tree_inode *inode, size_t len, struct err *err)
{
    if (w->pooled + len > POOL && flush_pool(w, err) < 0)
        return -1;
    if (w->pooled == 0) {
        if (take_blocks(w, POOL / EROFS_BLOCK, &w->pool_block, err) < 0)
            return -1;
        add_dead(w, w->pool_block, POOL / EROFS_BLOCK);
    }
    inode->tail_at = (uint64_t) w->pool_block * EROFS_BLOCK + w->pooled;
    inode->tail_len = (uint16_t) len;
    w->pooled += len;
    return 0;
}

int erofs_begin(struct erofs_writer *w, struct tree_inode *inode, uint64_t size, struct err *err)
{
    uint64_t rest = size % EROFS_BLOCK;
    bool tail = rest > 0 && rest <= TAIL_MOST;

    assert(!w->file);
    if (size > w->bytes_max - w->arrived)
        return err_set(err, ERR_TOO_BIG, "the image has more than %llu MiB of content",
                       (unsigned long long) (w->bytes_max >> 20));
    w->arrived += size;
    if (take_blocks(w, tail ? size / EROFS_BLOCK : blocks_of(size), &inode->block, err) < 0)
        return -1;
    inode->size = size;
    inode->file = w->number;
    inode->tail_len = 0;
    if (tail && take_tail(w, inode, rest, err) < 0)
        return -1;
    w->file = inode;
    w->left = size;
    w->whole = tail ? size - rest : size;
    w->at = (uint64_t) inode->block * EROFS_BLOCK;
    w->buffered = 0;
    return 0;
}

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t) a : b;
}

int erofs_add(struct erofs_writer *w, const void *data, size_t len, struct err *err)
{
    const unsigned char *from = data;

    assert(w->file);
    if (len > w->left)
        return err_set(err, ERR_INVALID, "a file has more content than its entry says");
    w->left -= len;
    while (len > 0 && w->whole > 0) {
        size_t n = least(w->whole, least(BUFFER - w->buffered, len));

        memcpy(w->buffer + w->buffered, from, n);
        w->buffered += n;
        w->whole -= n;
        from += n;
        len -= n;
        if (w->buffered == BUFFER && flush_buffer(w, err) < 0)
            return -1;
    }
    /* The tail's place was taken at the beginning: the last one of the pool. */
    if (len > 0)
        memcpy(w->pool + w->pooled - (w->left + len), from, len);
    return 0;
}

int erofs_end(struct erofs_writer *w, struct err *err)
{
    size_t pad = (EROFS_BLOCK - w->buffered % EROFS_BLOCK) % EROFS_BLOCK;

    w->file = NULL;
    if (w->left > 0)
        return err_set(err, ERR_INVALID, "a file has less content than its entry says");
    /* Zeros behind the last byte: BUFFER is a number of blocks, so there is room. */
    memset(w->buffer + w->buffered, 0, pad);
    w->buffered += w->buffered > 0 ? pad : 0;
    return flush_buffer(w, err);
}

static int copy_range(struct erofs_writer *w, int from_fd, uint64_t at, uint64_t len, char *piece,
                      struct err *err)
{
    while (len > 0) {
        ssize_t n = pread(from_fd, piece, least(len, BUFFER), (off_t) at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(err, n < 0 ? errno : EIO, "read the image");
        if (erofs_add(w, piece, (size_t) n, err) < 0)
            return -1;
        at += (size_t) n;
        len -= (size_t) n;
    }
    return 0;
}

int erofs_copy(struct erofs_writer *w, int from_fd, struct tree_inode *inode, struct err *err)
{
    const struct tree_inode from = *inode;
    auto_free char *piece = malloc(BUFFER);

    if (!piece)
        return err_set(err, ERR_NO_MEMORY, "no memory to write an image");
    if (erofs_begin(w, inode, from.size, err) < 0 ||
        copy_range(w, from_fd, (uint64_t) from.block * EROFS_BLOCK, from.size - from.tail_len,
                   piece, err) < 0 ||
        copy_range(w, from_fd, from.tail_at, from.tail_len, piece, err) < 0)
        return -1;
    return erofs_end(w, err);
}

static int get(const struct erofs_writer *w, void *out, size_t len, uint64_t at, struct err *err)
{
    uint64_t pool = (uint64_t) w->pool_block * EROFS_BLOCK;
    ssize_t n;

    if (w->pooled > 0 && at >= pool && at < pool + POOL) {
        memcpy(out, w->pool + (at - pool), len);
        return 0;
    }
    n = pread(w->fd, out, len, (off_t) at);
    if (n != (ssize_t) len)
        return err_sys(err, n < 0 ? errno : EIO, "read the image");
    return 0;
}

int erofs_read_tail(const struct erofs_writer *w, const struct tree_inode *inode, void *out,
                    struct err *err)
{
    return get(w, out, inode->tail_len, inode->tail_at, err);
}

int erofs_read(const struct erofs_writer *w, const struct tree_inode *inode, void *out, size_t size,
               size_t *ret_len, struct err *err)
{
    size_t whole;

    if (inode->size > size)
        return err_set(err, ERR_TOO_BIG, "a file of more than %zu bytes", size);
    whole = (size_t) inode->size - inode->tail_len;
    if (whole > 0 && get(w, out, whole, (uint64_t) inode->block * EROFS_BLOCK, err) < 0)
        return -1;
    if (inode->tail_len > 0 && erofs_read_tail(w, inode, (char *) out + whole, err) < 0)
        return -1;
    if (ret_len)
        *ret_len = (size_t) inode->size;
    return 0;
}

void erofs_dropped(void *writer, const struct tree_inode *inode)
{
    if (S_ISREG(inode->mode) && inode->file == ((struct erofs_writer *) writer)->number)
        add_dead(writer, inode->block, (uint32_t) blocks_of(inode->size - inode->tail_len));
}

/* ---- the rest ---- */

/* CRC-32C, reflected, without the last inversion: as EROFS has it. */
static uint32_t crc32c(uint32_t crc, const unsigned char *data, size_t len)
{
    while (len-- > 0) {
        crc ^= *data++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return crc;
}

static int put_super(const struct erofs_writer *w, const struct layout *layout,
                     const unsigned char uuid[16], struct err *err)
{
    unsigned char block[EROFS_BLOCK] = { 0 };
    struct erofs_super super = { .magic = EROFS_MAGIC,
                                 .compat = EROFS_COMPAT_CHECKSUM | EROFS_COMPAT_MTIME,
                                 .block_bits = EROFS_BLOCK_BITS,
                                 .root_nid = LAYOUT_ROOT / EROFS_NID_UNIT,
                                 .inodes = layout->inodes,
                                 .blocks = layout->end_block,
                                 .meta_block = layout->meta_block };

    memcpy(super.uuid, uuid, sizeof super.uuid);
    memcpy(block + EROFS_SUPER_AT, &super, sizeof super);
    super.checksum = crc32c(UINT32_MAX, block + EROFS_SUPER_AT, EROFS_BLOCK - EROFS_SUPER_AT);
    memcpy(block + EROFS_SUPER_AT, &super, sizeof super);
    return erofs_put(w->fd, block, sizeof block, 0, err);
}

/* A file system without holes keeps the bytes; the image is the same. */
static void punch_dead(const struct erofs_writer *w)
{
    for (size_t i = 0; i < w->dead_count; i++)
        (void) fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         (off_t) w->dead[i].block * EROFS_BLOCK,
                         (off_t) w->dead[i].count * EROFS_BLOCK);
}

int erofs_finish(struct erofs_writer *w, struct tree *tree, const unsigned char uuid[16],
                 struct erofs_size *ret, struct err *err)
{
    struct layout layout = { .dir_block = w->next_block };
    struct stat st;

    assert(!w->file);
    if (layout_plan(&layout, tree, err) < 0 || layout_write(&layout, w, tree, err) < 0)
        return -1;
    if (ftruncate(w->fd, (off_t) layout.end_block * EROFS_BLOCK) < 0)
        return err_sys(err, errno, "write the image");
    if (put_super(w, &layout, uuid, err) < 0)
        return -1;
    punch_dead(w);
    if (fsync(w->fd) < 0 || fstat(w->fd, &st) < 0)
        return err_sys(err, errno, "write the image to disk");
    *ret = (struct erofs_size){ .bytes = (uint64_t) st.st_blocks * 512, .inodes = layout.inodes };
    return 0;
}
