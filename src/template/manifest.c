#include "template/manifest.h"

#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kind_names[] = {
    [MANIFEST_NONE] = "none",
    [MANIFEST_HOST] = "host",
    [MANIFEST_TREE] = "tree",
    [MANIFEST_IMAGE] = "image",
};

const char *manifest_kind_name(uint32_t kind)
{
    return kind < ARRAY_LEN(kind_names) ? kind_names[kind] : kind_names[MANIFEST_NONE];
}

size_t manifest_below_count(const struct manifest *manifest)
{
    return (strlen(manifest->below) + 1) / 65;
}

void manifest_below_at(const struct manifest *manifest, size_t i, char ret_key[65])
{
    (void) snprintf(ret_key, 65, "%.64s", manifest->below + i * 65);
}

static bool only_of(const char *text, const char *set)
{
    return text[0] && text[strspn(text, set)] == '\0';
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool is_root(const char *text)
{
    /* No leading dot: neither "..", nor a hidden directory. */
    return only_of(text, LOWER DIGIT ".-") && text[0] != '.' && text[0] != '-';
}

static bool is_user(const char *text)
{
    return only_of(text, LOWER UPPER DIGIT "_.-") && !strchr(DIGIT "-.", text[0]);
}

static bool is_path(const char *text)
{
    return text[0] == '/' && !strstr(text, "/../") && !strstr(text, "//");
}

static bool is_hex(const char *text)
{
    return only_of(text, DIGIT "abcdef");
}

static bool is_digest(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && is_hex(text + 7);
}

/* As many keys as there may be is what fits. */
static bool is_keys(const char *text)
{
    for (;; text += 65) {
        if (strspn(text, DIGIT "abcdef") != 64 || (text[64] && text[64] != ','))
            return false;
        if (!text[64])
            return true;
    }
}

static bool is_any(const char *text)
{
    (void) text;
    return true;
}

/* Text rows have a check and the size of their array; number rows have neither. */
static const struct key {
    const char *name;
    size_t offset, size;
    bool (*ok)(const char *text);
    bool required;
    const char *what; /* "is not ..." */
} keys[] = {
#define TEXT(field)   offsetof(struct manifest, field), sizeof(((struct manifest *) 0)->field)
#define NUMBER(field) offsetof(struct manifest, field), 0
    /* clang-format off */
    { "root",        TEXT(root),        is_root, true,  "a directory name of [a-z0-9.-]" },
    { "user",        TEXT(user),        is_user, true,  "a user name" },
    { "workdir",     TEXT(workdir),     is_path, true,  "an absolute path" },
    { "recipe",      TEXT(recipe),      is_hex,  false, "a hash" },
    { "description", TEXT(description), is_any,  false, "" },
    { "image",       TEXT(image),       is_any,  false, "" },
    { "digest",      TEXT(digest),      is_digest, false, "a digest" },
    { "layer",       TEXT(layer),       is_hex,  false, "a hash" },
    { "below",       TEXT(below),       is_keys, false, "a list of hashes" },
    { "entrypoint",  TEXT(entrypoint),  is_any,  false, "" },
    { "cmd",         TEXT(cmd),         is_any,  false, "" },
    { "created",     NUMBER(created),   NULL,    false, "a number" },
    { "bytes",       NUMBER(bytes),     NULL,    false, "a number" },
    { "files",       NUMBER(files),     NULL,    false, "a number" },
/* clang-format on */
#undef TEXT
#undef NUMBER
};

static uint64_t *number_of(struct manifest *manifest, const struct key *key)
{
    return (uint64_t *) (void *) ((char *) manifest + key->offset);
}

static char *text_of(struct manifest *manifest, const struct key *key)
{
    return (char *) manifest + key->offset;
}

static int set_key(struct manifest *manifest, const struct key *key, const char *value,
                   struct err *err)
{
    if (!key->ok)
        return parse_u64(value, number_of(manifest, key), err);
    if (strlen(value) >= key->size)
        return err_set(err, ERR_INVALID, "longer than %zu characters", key->size - 1);
    if (!key->ok(value))
        return err_set(err, ERR_INVALID, "'%.60s' is not %s", value, key->what);
    memcpy(text_of(manifest, key), value, strlen(value) + 1);
    return 0;
}

static int set_kind(struct manifest *manifest, const char *value, struct err *err)
{
    for (uint32_t i = MANIFEST_HOST; i < ARRAY_LEN(kind_names); i++)
        if (strcmp(value, kind_names[i]) == 0) {
            manifest->kind = i;
            return 0;
        }
    return err_set(err, ERR_INVALID, "'%.60s' is neither host, tree nor image", value);
}

static bool has_control(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            return true;
    return false;
}

int manifest_env(struct manifest *manifest, const char *pair, struct err *err)
{
    size_t name_len = strcspn(pair, "=");

    if (pair[name_len] != '=' || name_len == 0 || strchr(DIGIT, pair[0]) ||
        strspn(pair, LOWER UPPER DIGIT "_") < name_len)
        return err_set(err, ERR_INVALID, "'%.60s' is not NAME=VALUE", pair);
    if (has_control(pair))
        return err_set(err, ERR_INVALID, "has a control character");
    if (manifest->env_count == MANIFEST_ENV_MAX)
        return err_set(err, ERR_TOO_MANY, "more than %d of them", MANIFEST_ENV_MAX);
    if (strlen(pair) >= sizeof manifest->env_text - manifest->env_used)
        return err_set(err, ERR_TOO_BIG, "more than %d bytes together", MANIFEST_ENV_BYTES);
    manifest->env_at[manifest->env_count++] = (uint16_t) manifest->env_used;
    memcpy(manifest->env_text + manifest->env_used, pair, strlen(pair) + 1);
    manifest->env_used += strlen(pair) + 1;
    return 0;
}

int manifest_set(struct manifest *manifest, const char *line, struct err *err)
{
    size_t len = strcspn(line, "=");

    for (size_t i = 0; line[len] && !has_control(line) && i < ARRAY_LEN(keys); i++)
        if (strlen(keys[i].name) == len && memcmp(keys[i].name, line, len) == 0)
            return set_key(manifest, &keys[i], line + len + 1, err) < 0
                       ? err_wrap(err, "%s", keys[i].name)
                       : 0;
    return err_set(err, ERR_INVALID, "'%.60s' is not a line of a manifest", line);
}

/* `seen` has a bit per row of keys, and one more for kind. */
static int parse_line(struct manifest *manifest, char *line, uint32_t *seen, struct err *err)
{
    char *equals = strchr(line, '=');
    uint32_t bit = 1u << ARRAY_LEN(keys);
    const struct key *key = NULL;

    if (has_control(line))
        return err_set(err, ERR_INVALID, "has a control character");
    if (!equals)
        return err_set(err, ERR_INVALID, "'%.60s' is not key=value", line);
    *equals = '\0';
    if (strcmp(line, "env") == 0)
        return manifest_env(manifest, equals + 1, err) < 0 ? err_wrap(err, "env") : 0;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(line, keys[i].name) == 0) {
            key = &keys[i];
            bit = 1u << i;
        }
    if (!key && strcmp(line, "kind") != 0)
        return err_set(err, ERR_INVALID, "unknown key '%.40s' (made by a newer cove?)", line);
    if (*seen & bit)
        return err_set(err, ERR_INVALID, "%s is given twice", line);
    *seen |= bit;
    if ((key ? set_key(manifest, key, equals + 1, err) : set_kind(manifest, equals + 1, err)) < 0)
        return err_wrap(err, "%s", line);
    return 0;
}

int manifest_parse(struct manifest *ret, const char *text, struct err *err)
{
    auto_free struct manifest *manifest = calloc(1, sizeof *manifest);
    auto_free char *copy = strdup(text);
    uint32_t seen = 0;
    unsigned number = 0;

    if (!manifest || !copy)
        return err_set(err, ERR_NO_MEMORY, "no memory for a manifest");
    for (char *line = copy, *next; *line; line = next) {
        size_t len = strcspn(line, "\n");

        number++;
        next = line + len + (line[len] == '\n');
        if (line[len] == '\0') /* its writer ends every line: this one was cut */
            return err_set(err, ERR_INVALID, "line %u does not end", number);
        line[len] = '\0';
        if (parse_line(manifest, line, &seen, err) < 0)
            return err_wrap(err, "line %u", number);
    }
    if (manifest->kind == MANIFEST_NONE)
        return err_set(err, ERR_INVALID, "kind is missing");
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i].required && !(seen & (1u << i)))
            return err_set(err, ERR_INVALID, "%s is missing", keys[i].name);
    *ret = *manifest;
    return 0;
}

int manifest_read(int template_fd, struct manifest *ret, struct err *err)
{
    return manifest_read_at(template_fd, "manifest", ret, err);
}

int manifest_read_at(int dir_fd, const char *name, struct manifest *ret, struct err *err)
{
    auto_free char *text = malloc(MANIFEST_FILE_MAX);
    ssize_t len;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "no memory for a manifest");
    len = io_read_text(dir_fd, name, text, MANIFEST_FILE_MAX);
    if (len < 0)
        return err_sys(err, errno, "read manifest");
    if ((size_t) len == MANIFEST_FILE_MAX - 1 || strlen(text) != (size_t) len)
        return err_set(err, ERR_INVALID, "manifest: too long, or no text");
    if (manifest_parse(ret, text, err) < 0)
        return err_wrap(err, "manifest");
    return 0;
}

bool manifest_has_env(const struct manifest *manifest, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < manifest->env_count; i++) {
        const char *pair = manifest_env_at(manifest, i);

        if (strncmp(pair, name, len) == 0 && pair[len] == '=')
            return true;
    }
    return false;
}

/* A text with a line break would be read as more lines than one. */
static int check_texts(const struct manifest *manifest, struct err *err)
{
    struct manifest *fields = (struct manifest *) (uintptr_t) manifest; /* only read */

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i].ok && has_control(text_of(fields, &keys[i])))
            return err_set(err, ERR_INVALID, "%s: has a control character", keys[i].name);
    return 0;
}

static int format(FILE *out, const struct manifest *manifest)
{
    struct manifest *fields = (struct manifest *) (uintptr_t) manifest; /* only read */

    (void) fprintf(out, "kind=%s\n", manifest_kind_name(manifest->kind));
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct key *key = &keys[i];

        if (!key->ok)
            (void) fprintf(out, "%s=%" PRIu64 "\n", key->name, *number_of(fields, key));
        else if (text_of(fields, key)[0])
            (void) fprintf(out, "%s=%s\n", key->name, text_of(fields, key));
    }
    for (size_t i = 0; i < manifest->env_count; i++)
        (void) fprintf(out, "env=%s\n", manifest_env_at(manifest, i));
    return ferror(out) ? -1 : 0;
}

int manifest_write(int template_fd, const struct manifest *manifest, struct err *err)
{
    return manifest_write_at(template_fd, "manifest", manifest, err);
}

int manifest_write_at(int dir_fd, const char *name, const struct manifest *manifest,
                      struct err *err)
{
    char new_name[96];
    auto_free char *text = NULL;
    auto_free struct manifest *again = malloc(sizeof *again);
    auto_close int fd = -1;
    size_t len = 0;
    FILE *out;

    if (check_texts(manifest, err) < 0)
        return err_wrap(err, "write manifest");
    out = open_memstream(&text, &len);
    if (!out || !again || format(out, manifest) < 0 || fclose(out) != 0)
        return err_set(err, ERR_NO_MEMORY, "no memory for a manifest");
    if (manifest_parse(again, text, err) < 0)
        return err_wrap(err, "write manifest");
    (void) snprintf(new_name, sizeof new_name, "%s.new", name);
    fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || io_write_all(fd, text, len) < 0 || fsync(fd) < 0)
        return err_sys(err, errno, "write manifest");
    if (renameat(dir_fd, new_name, dir_fd, name) < 0 || fsync(dir_fd) < 0)
        return err_sys(err, errno, "put manifest in place");
    return 0;
}
