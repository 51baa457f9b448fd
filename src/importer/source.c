#include "importer/source.h"

#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"
#include "http/tar.h"
#include "importer/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WINDOW    65536u
#define HOPS_MAX  8
#define PACKED_IS "an archive that is compressed as a whole: decompress it first"

/* ---- the parent opens ---- */

int source_ask(const char *line, int *ret_fd, struct err *err)
{
    char text[OCI_NAME_MAX + 8];
    size_t fds = 0, len = strlen(line);
    int fd = -1;
    ssize_t n;

    if (io_send_fds(IMPORT_SOCKET, line, len, NULL, 0) != (ssize_t) len)
        return err_sys(err, errno, "ask for a file of the image");
    n = io_recv_fds(IMPORT_SOCKET, text, sizeof text - 1, &fd, 1, &fds);
    if (n <= 0)
        return err_set(err, ERR_UNAVAILABLE, "the parent is gone");
    text[n] = '\0';
    if (fds == 1 && text[0] == '+') {
        *ret_fd = fd;
        return 0;
    }
    own_close(&fd);
    return err_set(err, ERR_NO_PATH, "%s", text);
}

static int ask(const char *name, int *ret_fd, struct err *err)
{
    char line[OCI_NAME_MAX + 8];

    (void) snprintf(line, sizeof line, "o %s", name);
    return source_ask(line, ret_fd, err);
}

static int whole_file(int fd, struct blob *ret, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "look at a file of the image");
    *ret = (struct blob){ .fd = fd, .own = true, .size = (uint64_t) st.st_size };
    return 0;
}

/* ---- archives ---- */

static ssize_t read_at(int fd, void *out, size_t len, uint64_t at)
{
    ssize_t n;

    do
        n = pread(fd, out, len, (off_t) at);
    while (n < 0 && errno == EINTR);
    return n;
}

static int add_file(struct source *s, const struct tar_entry *e, uint64_t at, struct err *err)
{
    struct source_file *file;

    if ((e->type != TAR_FILE && e->type != TAR_LINK) || strlen(e->path) >= OCI_NAME_MAX ||
        strlen(e->target) >= OCI_NAME_MAX)
        return 0; /* no file of an image has such a name */
    if (s->count == SOURCE_FILES_MAX)
        return err_set(err, ERR_TOO_BIG, "the archive has more than %u files", SOURCE_FILES_MAX);
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct source_file *more = reallocarray(s->files, room, sizeof *more);

        if (!more)
            return err_set(err, ERR_NO_MEMORY, "no memory for the archive's contents");
        s->files = more;
        s->room = room;
    }
    file = &s->files[s->count++];
    memset(file, 0, sizeof *file);
    (void) strcpy(file->name, e->path);
    (void) strcpy(file->target, e->target);
    file->at = at;
    file->size = e->size;
    return 0;
}

static int check_packing(const char *head, size_t len, struct err *err)
{
    if (len >= 4 && (memcmp(head, "\x1f\x8b", 2) == 0 || memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0 ||
                     memcmp(head,
                            "\xfd"
                            "7zX",
                            4) == 0 ||
                     memcmp(head, "BZh", 3) == 0))
        return err_set(err, ERR_UNSUPPORTED, PACKED_IS);
    return 0;
}

/* Heads only: content is stepped over. */
static int list_archive(struct source *s, struct err *err)
{
    auto_free struct tar *tar = calloc(1, sizeof *tar);
    auto_free char *window = malloc(WINDOW);
    uint64_t at = 0;
    int event = TAR_MORE;

    if (!tar || !window)
        return err_set(err, ERR_NO_MEMORY, "no memory for the archive's contents");
    while (event != TAR_END) {
        ssize_t n = read_at(s->archive_fd, window, WINDOW, at);
        size_t used = 0;

        if (n < 0)
            return err_sys(err, errno, "read the archive");
        if (at == 0 && check_packing(window, (size_t) n, err) < 0)
            return -1;
        if (n == 0)
            return tar_read_end(tar, err);
        for (size_t done = 0; done < (size_t) n && event != TAR_END; done += used) {
            struct slice data;

            event = tar_read(tar, window + done, (size_t) n - done, &used, &data, err);
            if (event < 0)
                return -1;
            if (event == TAR_ENTRY) {
                uint64_t start = at + done + used;

                if (add_file(s, &tar->entry, start, err) < 0)
                    return -1;
                at = start + tar_skip(tar);
                break; /* the window begins again there */
            }
            if (done + used == (size_t) n)
                at += (size_t) n;
        }
    }
    return 0;
}

static const struct source_file *find_file(const struct source *s, const char *name)
{
    /* The last one counts, as when an archive is unpacked. */
    for (size_t i = s->count; i-- > 0;)
        if (strcmp(s->files[i].name, name) == 0)
            return &s->files[i];
    return NULL;
}

/* "a/layer.tar" with a link to "../b/layer.tar": docker save once wrote a layer that is there twice so. -1: it leads out. */
static int join(char *out, size_t size, const char *name, const char *target)
{
    const char *slash = strrchr(name, '/');
    size_t len = slash ? (size_t) (slash - name) : 0;

    memcpy(out, name, len);
    out[len] = '\0';
    while (strncmp(target, "../", 3) == 0) {
        char *last = strrchr(out, '/');

        if (!out[0])
            return -1;
        *(last ? last : out) = '\0';
        target += 3;
    }
    len = strlen(out);
    return (size_t) snprintf(out + len, size - len, "%s%s", len ? "/" : "", target) < size - len
               ? 0
               : -1;
}

static int find_in_archive(const struct source *s, const char *name, struct blob *ret,
                           struct err *err)
{
    char at[OCI_NAME_MAX], next[OCI_NAME_MAX];

    (void) snprintf(at, sizeof at, "%s", name);
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        const struct source_file *file = find_file(s, at);

        if (!file)
            break;
        if (!file->target[0]) {
            *ret = (struct blob){ .fd = s->archive_fd, .at = file->at, .size = file->size };
            return 0;
        }
        if (join(next, sizeof next, at, file->target) < 0)
            break;
        memcpy(at, next, sizeof at);
    }
    return err_set(err, ERR_NO_PATH, "the archive has no file '%.100s'", name);
}

/* ---- both ---- */

int source_open(struct source *s, bool archive, struct err *err)
{
    int fd = -1;

    *s = (struct source){ .archive_fd = -1 };
    if (!archive)
        return 0;
    return ask("", &fd, err) < 0 ? -1 : source_list(s, fd, err);
}

int source_list(struct source *s, int archive_fd, struct err *err)
{
    *s = (struct source){ .archive_fd = archive_fd };
    return list_archive(s, err);
}

void source_close(struct source *s)
{
    own_close(&s->archive_fd);
    free(s->files);
    s->files = NULL;
}

int source_find(struct source *s, const char *name, struct blob *ret, struct err *err)
{
    int fd = -1;

    if (s->archive_fd >= 0)
        return find_in_archive(s, name, ret, err);
    if (ask(name, &fd, err) < 0)
        return -1;
    if (whole_file(fd, ret, err) == 0)
        return 0;
    own_close(&fd);
    return -1;
}

void blob_close(struct blob *blob)
{
    if (blob->own)
        own_close(&blob->fd);
    blob->fd = -1;
}

char *blob_text(const struct blob *blob, size_t most, size_t *ret_len, char ret_hex[SHA256_HEX],
                struct err *err)
{
    unsigned char digest[SHA256_LEN];
    char *text;

    if (blob->size > most) {
        err_set(err, ERR_TOO_BIG, "a document of the image has more than %zu bytes", most);
        return NULL;
    }
    text = malloc((size_t) blob->size + 1);
    if (!text || read_at(blob->fd, text, (size_t) blob->size, blob->at) != (ssize_t) blob->size) {
        err_set(err, ERR_INVALID, "a document of the image ended early");
        free(text);
        return NULL;
    }
    text[blob->size] = '\0';
    sha256_of(text, (size_t) blob->size, digest);
    sha256_hex(digest, sizeof digest, ret_hex);
    *ret_len = (size_t) blob->size;
    return text;
}
