#include "http/tar.h"

#include "base/own.h"

#include <inttypes.h>
#include <string.h>

#define SIZE_MOST  077777777777 /* eleven octal digits */
#define ID_MOST    07777777
#define NAME_FIELD 100u

unsigned tar_padding(uint64_t size)
{
    return (unsigned) ((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

/* A text cut to its field, which need not end with a NUL. */
static void put_text(char *field, size_t size, const char *text)
{
    memcpy(field, text, strnlen(text, size));
}

/* One block. What does not fit was said by an extended header before. */
static void put_block(char out[TAR_BLOCK], char type, const char *name, const char *target,
                      const struct tar_entry *e, uint64_t size)
{
    int64_t mtime = e->mtime < 0 || e->mtime > SIZE_MOST ? 0 : e->mtime;
    unsigned sum = 0;

    memset(out, 0, TAR_BLOCK);
    put_text(out, NAME_FIELD, name);
    (void) snprintf(out + 100, 8, "%07o", (unsigned) e->mode & 07777);
    (void) snprintf(out + 108, 8, "%07o", e->uid > ID_MOST ? 0u : (unsigned) e->uid);
    (void) snprintf(out + 116, 8, "%07o", e->gid > ID_MOST ? 0u : (unsigned) e->gid);
    (void) snprintf(out + 124, 12, "%011" PRIo64, size > SIZE_MOST ? 0 : size);
    (void) snprintf(out + 136, 12, "%011" PRIo64, (uint64_t) mtime);
    memset(out + 148, ' ', 8);
    out[156] = type;
    put_text(out + 157, NAME_FIELD, target);
    memcpy(out + 257, "ustar\00000", 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char) out[i];
    (void) snprintf(out + 148, 8, "%06o", sum);
}

/* "23 path=some/where\n", whose number counts its own digits. Returns the length. */
static size_t put_record(char *out, size_t size, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;

    while (rest + (size_t) snprintf(NULL, 0, "%zu", len) > len)
        len++;
    if (len < size)
        (void) snprintf(out, size, "%zu %s=%s\n", len, key, value);
    return len;
}

struct pax {
    char *text;
    size_t len, size;
};

static void add(struct pax *pax, const char *key, const char *value)
{
    size_t room = pax->len < pax->size ? pax->size - pax->len : 0;

    pax->len += put_record(pax->text + pax->len, room, key, value);
}

static void add_number(struct pax *pax, const char *key, int64_t value)
{
    char text[24];

    (void) snprintf(text, sizeof text, "%" PRId64, value);
    add(pax, key, text);
}

ssize_t tar_put_head(char *out, size_t size, const struct tar_entry *e, struct err *err)
{
    static const char types[] = {
        [TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_LINK] = '2', [TAR_SAME] = '1'
    };
    struct pax pax = { .text = out + TAR_BLOCK };
    char path[TAR_PATH_MAX + 1];
    size_t used = 0;

    if (size < 3 * TAR_BLOCK)
        return err_set(err, ERR_INTERNAL, "no room for a header");
    pax.size = size - 2 * TAR_BLOCK;
    (void) snprintf(path, sizeof path, "%s%s", e->path, e->type == TAR_DIR ? "/" : "");
    if (strlen(path) > NAME_FIELD)
        add(&pax, "path", path);
    if (strlen(e->target) > NAME_FIELD)
        add(&pax, "linkpath", e->target);
    if (e->size > SIZE_MOST)
        add_number(&pax, "size", (int64_t) e->size);
    if (e->mtime < 0 || e->mtime > SIZE_MOST)
        add_number(&pax, "mtime", e->mtime);
    if (pax.len + tar_padding(pax.len) > pax.size)
        return err_set(err, ERR_INTERNAL, "no room for a header");
    if (pax.len > 0) {
        put_block(out, 'x', "@PaxHeader", "", &(struct tar_entry){ .mode = 0644 }, pax.len);
        memset(pax.text + pax.len, 0, tar_padding(pax.len));
        used = TAR_BLOCK + pax.len + tar_padding(pax.len);
    }
    put_block(out + used, types[e->type], path, e->target, e, e->size);
    return (ssize_t) (used + TAR_BLOCK);
}
