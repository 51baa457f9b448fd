#include "image/pack.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY /* contexts in memory of ours: the child can have no more */
#include <zstd.h>

#define MAGIC "covepack"
#define LEVEL 3

/* ---- the list ---- */

static void point(struct pack *p, void *data, size_t len, uint32_t files)
{
    p->data = data;
    p->len = len;
    p->head = data;
    p->file = (void *) (p->head + 1);
    p->chunk = (void *) (p->file + files);
}

static size_t list_len(uint32_t files, uint32_t chunks)
{
    return sizeof(struct pack_head) + files * sizeof(struct pack_file) +
           chunks * sizeof(struct pack_chunk);
}

/* Of all files; more than PACK_CHUNKS_MAX: too many. */
static uint64_t count_chunks(const struct pack_file *files, uint32_t count)
{
    uint64_t chunks = 0;

    for (uint32_t i = 0; i < count && chunks <= PACK_CHUNKS_MAX; i++)
        chunks += files[i].size / PACK_CHUNK + (files[i].size % PACK_CHUNK != 0);
    return chunks;
}

int pack_new(const struct pack_file *files, uint32_t count, struct pack *ret, struct err *err)
{
    uint64_t chunks = count_chunks(files, count);
    size_t len;
    void *data;

    if (count > PACK_FILES_MAX || chunks > PACK_CHUNKS_MAX)
        return err_set(err, ERR_TOO_BIG, "more processes or pages than are compressed");
    len = list_len(count, (uint32_t) chunks);
    data = calloc(1, len);
    if (!data)
        return err_set(err, ERR_NO_MEMORY, "no memory for a list of pages");
    point(ret, data, len, count);
    memcpy(ret->head->magic, MAGIC, sizeof ret->head->magic);
    ret->head->chunk_bytes = PACK_CHUNK;
    ret->head->files = count;
    ret->head->chunks = (uint32_t) chunks;
    memcpy(ret->file, files, count * sizeof *files);
    return 0;
}

/* "pages-<number>.img": it becomes a part of a path. */
static bool name_ok(const char name[PACK_NAME_MAX])
{
    size_t digits;

    if (!memchr(name, '\0', PACK_NAME_MAX) || strncmp(name, "pages-", 6) != 0)
        return false;
    digits = strspn(name + 6, "0123456789");
    return digits > 0 && strcmp(name + 6 + digits, ".img") == 0;
}

int pack_parse(void *data, size_t len, struct pack *ret, struct err *err)
{
    const struct pack_head *head = data;
    struct pack p;

    if (len < sizeof *head || memcmp(head->magic, MAGIC, sizeof head->magic) != 0 ||
        head->chunk_bytes != PACK_CHUNK || head->files > PACK_FILES_MAX ||
        head->chunks > PACK_CHUNKS_MAX || len != list_len(head->files, head->chunks))
        return err_set(err, ERR_DENIED, "not a list of pages");
    point(&p, data, len, head->files);
    for (uint32_t i = 0; i < head->files; i++)
        if (!name_ok(p.file[i].name))
            return err_set(err, ERR_DENIED, "a list of pages has an invalid name");
    if (count_chunks(p.file, head->files) != head->chunks)
        return err_set(err, ERR_DENIED, "a list of pages does not add up");
    for (uint32_t i = 0; i < head->chunks; i++)
        if (p.chunk[i].len == 0 || p.chunk[i].len > PACK_CHUNK)
            return err_set(err, ERR_DENIED, "a list of pages has an invalid length");
    *ret = p;
    return 0;
}

/* A chunk's place: in which file, where in it, and where among what is stored. */
struct place {
    uint32_t chunk, file;
    uint64_t offset, stored;
    size_t len; /* plain */
};

static bool place_ok(const struct pack *p, struct place *at)
{
    while (at->file < p->head->files && at->offset >= p->file[at->file].size) {
        at->file++;
        at->offset = 0;
    }
    if (at->file == p->head->files)
        return false;
    at->len = p->file[at->file].size - at->offset < PACK_CHUNK
                  ? (size_t) (p->file[at->file].size - at->offset)
                  : PACK_CHUNK;
    return true;
}

static void place_next(const struct pack *p, struct place *at)
{
    at->stored += p->chunk[at->chunk++].len;
    at->offset += at->len;
}

/* ---- a chunk ---- */

size_t pack_room(void)
{
    return ZSTD_estimateDCtxSize();
}

ssize_t pack_open_chunk(const struct pack_chunk *chunk, const void *stored, size_t plain_len,
                        void *plain, void *room)
{
    unsigned char hash[SHA256_LEN];
    ZSTD_DCtx *context;

    sha256_of(stored, chunk->len, hash);
    if (!same_secret(hash, chunk->hash, sizeof hash))
        return -1;
    if (chunk->len == plain_len) {
        memcpy(plain, stored, plain_len);
        return (ssize_t) plain_len;
    }
    context = ZSTD_initStaticDCtx(room, pack_room());
    return context &&
                   ZSTD_decompressDCtx(context, plain, PACK_CHUNK, stored, chunk->len) == plain_len
               ? (ssize_t) plain_len
               : -1;
}

/* ---- the children ---- */

/* From here on a child can read and write what it has open, and end. */
static int confine(int *fds, size_t count)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_read, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_pread64, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_pwrite64, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) signal(SIGPIPE, SIG_IGN);
    io_keep_only(fds, count);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* All the memory that a child needs, before it can have no more. */
struct memory {
    char *plain, *stored;
    void *room;
};

static int take_memory(struct memory *m, size_t room)
{
    char *all = mmap(NULL, 2 * PACK_CHUNK + room, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (all == MAP_FAILED)
        return -1;
    *m = (struct memory){ .plain = all, .stored = all + PACK_CHUNK, .room = all + 2 * PACK_CHUNK };
    return 0;
}

static int pread_all(int fd, char *data, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pread(fd, data, len, (off_t) at);

        if (n <= 0) {
            errno = n < 0 ? errno : EBADMSG;
            return -1;
        }
        data += n, at += (uint64_t) n, len -= (size_t) n;
    }
    return 0;
}

static int pwrite_all(int fd, const char *data, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t) at);

        if (n < 0)
            return -1;
        data += n, at += (uint64_t) n, len -= (size_t) n;
    }
    return 0;
}

static int close_chunk(ZSTD_CCtx *context, const struct memory *m, size_t len, int to,
                       int chunks_to)
{
    struct pack_chunk chunk = { .len = (uint32_t) len };
    const char *stored = m->plain;
    /* What gets hardly smaller is not worth the time that it takes to open. */
    size_t n = ZSTD_compressCCtx(context, m->stored, len - len / 32 - 1, m->plain, len, LEVEL);

    if (!ZSTD_isError(n)) {
        chunk.len = (uint32_t) n;
        stored = m->stored;
    }
    sha256_of(stored, chunk.len, chunk.hash);
    return io_write_all(to, stored, chunk.len) < 0 ? -1
                                                   : io_write_all(chunks_to, &chunk, sizeof chunk);
}

static int close_all(const struct pack *p, const struct memory *m, const int *from, int to,
                     int chunks_to)
{
    ZSTD_CCtx *context = ZSTD_initStaticCCtx(m->room, ZSTD_estimateCCtxSize(LEVEL));

    errno = ENOMEM;
    if (!context)
        return -1;
    for (struct place at = { 0 }; place_ok(p, &at); place_next(p, &at))
        if (pread_all(from[at.file], m->plain, at.len, at.offset) < 0 ||
            close_chunk(context, m, at.len, to, chunks_to) < 0)
            return -1;
    return 0;
}

static int open_part(const struct pack *p, const struct memory *m, int from, const int *to,
                     bool pipe, uint32_t first, uint32_t last)
{
    for (struct place at = { 0 }; place_ok(p, &at) && at.chunk < last; place_next(p, &at)) {
        if (at.chunk < first)
            continue;
        if (pread_all(from, m->stored, p->chunk[at.chunk].len, at.stored) < 0)
            return -1;
        if (pack_open_chunk(&p->chunk[at.chunk], m->stored, at.len, m->plain, m->room) < 0) {
            errno = EBADMSG;
            return -1;
        }
        if ((pipe ? io_write_all(to[0], m->plain, at.len)
                  : pwrite_all(to[at.file], m->plain, at.len, at.offset)) < 0)
            return -1;
    }
    return 0;
}

/* Its exit code is its errno. The compiler is not to know that this does not return: AddressSanitizer asks the kernel things
 * before a call that does not, and a confined child may ask nothing. */
static void end(int rc)
{
    (void) syscall(__NR_exit_group, rc < 0 ? (errno > 0 && errno < 128 ? errno : EIO) : 0);
}

pid_t pack_close_start(const struct pack *p, const int *from, int to, int chunks_to,
                       struct err *err)
{
    int fds[PACK_FILES_MAX + 2];
    pid_t pid = fork();

    if (pid == 0) {
        struct memory m;

        memcpy(fds, from, p->head->files * sizeof *from);
        fds[p->head->files] = to;
        fds[p->head->files + 1] = chunks_to;
        end(take_memory(&m, ZSTD_estimateCCtxSize(LEVEL)) < 0 ||
                    confine(fds, p->head->files + 2) < 0
                ? -1
                : close_all(p, &m, from, to, chunks_to));
    }
    return pid < 0 ? err_sys(err, errno, "fork") : pid;
}

pid_t pack_open_start(const struct pack *p, int from, const int *to, bool pipe, uint32_t part,
                      uint32_t parts, struct err *err)
{
    uint64_t chunks = p->head->chunks;
    uint32_t first = (uint32_t) (chunks * part / parts);
    uint32_t last = (uint32_t) (chunks * (part + 1) / parts);
    size_t count = pipe ? 1 : p->head->files;
    int fds[PACK_FILES_MAX + 1];
    pid_t pid = fork();

    if (pid == 0) {
        struct memory m;

        memcpy(fds, to, count * sizeof *to);
        fds[count] = from;
        end(take_memory(&m, pack_room()) < 0 || confine(fds, count + 1) < 0
                ? -1
                : open_part(p, &m, from, to, pipe, first, last));
    }
    return pid < 0 ? err_sys(err, errno, "fork") : pid;
}

int pack_wait(pid_t pid, struct err *err)
{
    int status = 0, why;

    if (waitpid(pid, &status, 0) != pid)
        return err_sys(err, errno, "wait for a child");
    if (!WIFEXITED(status))
        return err_set(err, ERR_INTERNAL, "the process that compressed or decompressed was killed");
    why = WEXITSTATUS(status);
    if (why == EBADMSG)
        return err_set(err, ERR_DENIED, "pages are not as they were written");
    return why ? err_sys(err, why, "compress or decompress pages") : 0;
}
