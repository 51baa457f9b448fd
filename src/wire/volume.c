#include "wire/volume.h"

#include "base/own.h"

#include <string.h>

bool volume_id_ok(const char *text)
{
    if (text[0] != 'v' || strlen(text) != VOLUME_ID_LEN)
        return false;
    for (const char *c = text + 1; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9')))
            return false;
    return true;
}

uint64_t volume_inodes_default(uint64_t bytes)
{
    return bytes / (2 * VOLUME_INODE_BYTES);
}

int volume_size_check(uint64_t bytes, uint64_t inodes, struct err *err)
{
    if (bytes < VOLUME_BYTES_LEAST || bytes > VOLUME_BYTES_MOST || bytes % VOLUME_MIB)
        return err_set(err, ERR_LIMIT, "size: whole MiB are needed, %llu to %llu",
                       VOLUME_BYTES_LEAST / VOLUME_MIB, VOLUME_BYTES_MOST / VOLUME_MIB);
    if (inodes < VOLUME_INODES_LEAST || inodes > bytes / VOLUME_INODE_BYTES)
        return err_set(err, ERR_LIMIT, "inodes: %llu to %llu for that size", VOLUME_INODES_LEAST,
                       bytes / VOLUME_INODE_BYTES);
    return 0;
}

/* Whether path is `top` or below it. */
static bool is_in(const char *path, const char *top)
{
    size_t len = strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]);
}

int volume_path_check(const char *path, struct err *err)
{
    static const char *const kept[] = { "/proc", "/sys", "/dev" };
    size_t len = strlen(path);

    if (path[0] != '/' || len < 2 || len >= VOLUME_PATH_MAX)
        return err_set(err, ERR_INVALID, "path: absolute, 2 to %d bytes", VOLUME_PATH_MAX - 1);
    for (const char *c = path; *c; c++)
        if ((unsigned char) *c < ' ' || *c == 0x7f)
            return err_set(err, ERR_INVALID, "path: control characters are not allowed");
    for (const char *at = path; *at; at += 1 + strcspn(at + 1, "/")) {
        size_t part = strcspn(at + 1, "/");

        if (part == 0 || (part == 1 && at[1] == '.') || (part == 2 && !strncmp(at + 1, "..", 2)))
            return err_set(err, ERR_INVALID, "path: empty parts, '.' and '..' are not allowed");
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (is_in(path, kept[i]))
            return err_set(err, ERR_INVALID, "path: nothing can be mounted in %s", kept[i]);
    return 0;
}

size_t volume_use_count(const struct volume_use uses[VOLUMES_MAX])
{
    size_t count = 0;

    while (count < VOLUMES_MAX && uses[count].volume[0])
        count++;
    return count;
}

/* Ends within its array, with nothing behind the end. */
static bool text_ends(const char *text, size_t size)
{
    size_t len = strnlen(text, size);

    for (size_t i = len; i < size; i++)
        if (text[i])
            return false;
    return len < size;
}

static int check_use(const struct volume_use *use, struct err *err)
{
    if (!text_ends(use->volume, sizeof use->volume) || !text_ends(use->path, sizeof use->path))
        return err_set(err, ERR_PROTOCOL, "a text of a volume does not end");
    if (!volume_id_ok(use->volume))
        return err_set(err, ERR_INVALID, "volume: not an id ('v' and 20 of a-z, 0-9)");
    if (use->flags & ~VOLUME_READ_ONLY || use->reserved)
        return err_set(err, ERR_INVALID, "volume: unknown bits");
    return volume_path_check(use->path, err);
}

int volume_uses_check(const struct volume_use uses[VOLUMES_MAX], struct err *err)
{
    static const struct volume_use none;
    size_t count = volume_use_count(uses);

    for (size_t i = 0; i < VOLUMES_MAX; i++) {
        if (i >= count) {
            if (memcmp(&uses[i], &none, sizeof none) != 0)
                return err_set(err, ERR_PROTOCOL, "a volume after the last one");
            continue;
        }
        if (check_use(&uses[i], err) < 0)
            return -1;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(uses[i].volume, uses[j].volume) == 0)
                return err_set(err, ERR_INVALID, "volume: the same one twice");
            if (is_in(uses[i].path, uses[j].path) || is_in(uses[j].path, uses[i].path))
                return err_set(err, ERR_INVALID, "path: one is in the other");
        }
    }
    return 0;
}
