/* tar_fuzz.c - archives: read by blocks and in small pieces, which must give the same entries and bytes.
 *
 * Checksums are put right on the way, or nothing would come past the first one. Whatever is handed out must be safe to
 * be used below a directory, and is written again and read back. */
#include "http/tar.h"
#include "tar_sum.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path)
{
    must(path[0] && path[0] != '/' && strlen(path) < TAR_PATH_MAX);
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");

        must(len > 0 && len <= 255 && !(len == 1 && at[0] == '.') &&
             !(len == 2 && at[0] == '.' && at[1] == '.'));
        at += len;
        must(*at == '\0' || at[1] != '\0');
        at += *at == '/';
    }
}

/* The head that we would write of it says the same. */
static void write_again(const struct tar_entry *e)
{
    static struct tar again;
    static char head[TAR_HEAD_MAX];
    struct slice data;
    struct err err;
    size_t used, at = 0;
    ssize_t len = tar_put_head(head, sizeof head, e, &err);
    int event;

    must(len > 0 && len % TAR_BLOCK == 0);
    memset(&again, 0, sizeof again);
    do {
        event = tar_read(&again, head + at, (size_t) len - at, &used, &data, &err);
        at += used;
    } while (event == TAR_MORE && at < (size_t) len);
    must(event == TAR_ENTRY && again.entry.type == e->type && again.entry.size == e->size &&
         again.entry.mtime == e->mtime && again.entry.mode == e->mode);
    must(strcmp(again.entry.path, e->path) == 0 && strcmp(again.entry.target, e->target) == 0);
}

struct result {
    int end;
    uint64_t entries, bytes, hash;
    struct err err;
};

static void note(struct result *r, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        r->hash = (r->hash ^ ((const uint8_t *) data)[i]) * 1099511628211u;
}

static void run(char *in, size_t size, size_t step, bool fix, struct result *r)
{
    static struct tar tar;
    size_t at = 0;
    bool open = false;

    memset(&tar, 0, sizeof tar);
    memset(r, 0, sizeof *r);
    for (;;) {
        size_t n = size - at < step ? size - at : step, used;
        struct slice data = { 0 };
        int event;

        if (fix && tar.state == TAR_AT_HEAD && tar.have == 0 && size - at >= TAR_BLOCK)
            fix_sum(in + at);
        /* One block at a time, so that each header is put right before it is read. */
        if (fix && n > TAR_BLOCK - at % TAR_BLOCK)
            n = TAR_BLOCK - at % TAR_BLOCK;
        event = tar_read(&tar, in + at, n, &used, &data, &r->err);
        if (event < 0) {
            r->end = -1;
            must(r->err.msg[0] && r->err.kind != ERR_INTERNAL);
            return;
        }
        must(used <= n && (event != TAR_MORE || used == n));
        at += used;
        if (event == TAR_ENTRY) {
            must(!open);
            check_path(tar.entry.path);
            if (tar.entry.type == TAR_SAME)
                check_path(tar.entry.target);
            write_again(&tar.entry);
            note(r, tar.entry.path, strlen(tar.entry.path) + 1);
            note(r, tar.entry.target, strlen(tar.entry.target) + 1);
            r->entries++;
        }
        must(event != TAR_DATA || (open && data.len > 0));
        note(r, data.at, data.len);
        r->bytes += data.len;
        open = event == TAR_ENTRY || (open && event != TAR_ENTRY_END);
        if (event == TAR_MORE && at == size) {
            r->end = tar_read_end(&tar, &r->err) == 0 ? 1 : -1;
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    struct result fast, slow, whole;

    memcpy(copy, data, size);
    run(copy, size, TAR_BLOCK, true, &fast);
    run(copy, size, 7, false, &slow);
    run(copy, size, size + 1, false, &whole);
    must(fast.end == slow.end && fast.entries == slow.entries && fast.bytes == slow.bytes &&
         fast.hash == slow.hash && strcmp(fast.err.msg, slow.err.msg) == 0);
    must(fast.end == whole.end && fast.entries == whole.entries && fast.hash == whole.hash);
    free(copy);
    return 0;
}
