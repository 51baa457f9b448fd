#include "backup/manifest.h"

#include "base/own.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIRST     "cove-backup 1\n"
#define CODE      "code "
#define CODE_LINE (sizeof CODE - 1 + 2 * SHA256_LEN + 1)
#define WORDS_MAX 5

/* ---- paths ---- */

static bool is_file_name(const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > 64 || text[0] == '.')
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

static bool is_disk(const char *text)
{
    return strlen(text) == 17 && text[0] == 'd' && strspn(text + 1, "0123456789abcdef") == 16;
}

/* A name that is ok() without its ending. */
static bool has_ending(const char *text, const char *ending, bool (*ok)(const char *))
{
    size_t len = strlen(text), end = strlen(ending);
    char name[BACKUP_PATH_MAX];

    if (len <= end || strcmp(text + len - end, ending) != 0)
        return false;
    (void) snprintf(name, sizeof name, "%.*s", (int) (len - end), text);
    return ok(name);
}

static bool is_volume_id(const char *text)
{
    return strlen(text) == 21 && text[0] == 'v' &&
           strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789") == 20;
}

static bool is_volume(const char *text)
{
    return has_ending(text, ".img", is_volume_id);
}

static bool is_tree(const char *text)
{
    return has_ending(text, ".tar", name_ok);
}

/* One part of a path: that text, or what the function takes. */
struct part {
    const char *text;
    bool (*ok)(const char *text);
};

static const struct part path_forms[][4] = {
    { { "server", NULL }, { "cove.db", NULL } },
    { { "images", NULL }, { NULL, id_ok }, { "meta", NULL } },
    { { "images", NULL }, { NULL, id_ok }, { "memory", NULL }, { NULL, is_file_name } },
    { { "disks", NULL }, { NULL, is_disk } },
    { { "volumes", NULL }, { NULL, is_volume } },
    { { "agents", NULL }, { NULL, is_file_name } },
    { { "templates", NULL }, { NULL, name_ok }, { "manifest", NULL } },
    { { "templates", NULL }, { NULL, name_ok }, { NULL, is_tree } },
};

static bool fits(const struct part *form, char *const *parts, size_t count)
{
    for (size_t i = 0; i < 4; i++) {
        bool wanted = form[i].text || form[i].ok;

        if (wanted != (i < count))
            return false;
        if (wanted && !(form[i].text ? strcmp(form[i].text, parts[i]) == 0 : form[i].ok(parts[i])))
            return false;
    }
    return true;
}

bool backup_manifest_path_ok(const char *path)
{
    char copy[BACKUP_PATH_MAX], *parts[4];
    size_t count = 0;

    if (strlen(path) >= sizeof copy)
        return false;
    (void) snprintf(copy, sizeof copy, "%s", path);
    for (char *part = copy, *next; part; part = next) {
        next = strchr(part, '/');
        if (next)
            *next++ = '\0';
        if (count == ARRAY_LEN(parts))
            return false;
        parts[count++] = part;
    }
    for (size_t i = 0; i < ARRAY_LEN(path_forms); i++)
        if (fits(path_forms[i], parts, count))
            return true;
    return false;
}

/* ---- lists ---- */

void backup_manifest_init(struct backup_manifest *m)
{
    memset(m, 0, sizeof *m);
}

void backup_manifest_done(struct backup_manifest *m)
{
    free(m->files);
    free(m->trees);
    backup_manifest_init(m);
}

/* Room for one more of `size` bytes; the list may move. */
static int grow(void *list, size_t *room, size_t count, size_t most, size_t size, struct err *err)
{
    void **at = list, *more;
    size_t want = *room ? *room * 2 : 64;

    if (count < *room)
        return 0;
    if (count >= most)
        return err_set(err, ERR_TOO_BIG, "the backup has more than %zu entries of a kind", most);
    more = reallocarray(*at, want, size);
    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for the list of a backup's files");
    *at = more;
    *room = want;
    return 0;
}

int backup_manifest_add_file(struct backup_manifest *m, const struct backup_file *file,
                             struct err *err)
{
    if (grow(&m->files, &m->file_room, m->file_count, BACKUP_FILES_MAX, sizeof *m->files, err) < 0)
        return -1;
    m->files[m->file_count++] = *file;
    return 0;
}

int backup_manifest_add_tree(struct backup_manifest *m, const struct backup_tree *tree,
                             struct err *err)
{
    if (grow(&m->trees, &m->tree_room, m->tree_count, BACKUP_TREES_MAX, sizeof *m->trees, err) < 0)
        return -1;
    m->trees[m->tree_count++] = *tree;
    return 0;
}

void backup_manifest_drop_file(struct backup_manifest *m, const char *path)
{
    for (size_t i = 0; i < m->file_count; i++)
        if (strcmp(m->files[i].path, path) == 0)
            m->files[i--] = m->files[--m->file_count];
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct backup_file *) a)->path, ((const struct backup_file *) b)->path);
}

struct backup_file *backup_manifest_find(struct backup_manifest *m, const char *path)
{
    struct backup_file key;

    if (strlen(path) >= sizeof key.path || m->file_count == 0)
        return NULL;
    (void) snprintf(key.path, sizeof key.path, "%s", path);
    return bsearch(&key, m->files, m->file_count, sizeof *m->files, by_path);
}

int backup_manifest_sort(struct backup_manifest *m, struct err *err)
{
    if (m->file_count)
        qsort(m->files, m->file_count, sizeof *m->files, by_path);
    for (size_t i = 1; i < m->file_count; i++)
        if (strcmp(m->files[i - 1].path, m->files[i].path) == 0)
            return err_set(err, ERR_INVALID, "the manifest has '%s' twice", m->files[i].path);
    return 0;
}

uint64_t backup_manifest_stored(const struct backup_manifest *m)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < m->file_count; i++)
        sum += m->files[i].stored;
    return sum;
}

uint64_t backup_manifest_size(const struct backup_manifest *m)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < m->file_count; i++)
        sum += m->files[i].size;
    return sum;
}

/* ---- writing ---- */

static void put_files(const struct backup_manifest *m, FILE *out)
{
    char hex[SHA256_HEX];

    for (size_t i = 0; i < m->tree_count; i++)
        (void) fprintf(out, "tree %s %s %" PRIu64 "\n", m->trees[i].template, m->trees[i].root,
                       m->trees[i].inode);
    for (size_t i = 0; i < m->file_count; i++) {
        const struct backup_file *f = &m->files[i];

        sha256_hex(f->digest, SHA256_LEN, hex);
        (void) fprintf(out, "file %o %" PRIu64 " %" PRIu64 " %s %s\n", (unsigned) f->mode, f->size,
                       f->stored, hex, f->path);
    }
}

int backup_manifest_write(const struct backup_manifest *m, const unsigned char key[SHA256_LEN],
                          char **ret, size_t *ret_len, struct err *err)
{
    unsigned char code[SHA256_LEN];
    char hex[SHA256_HEX], *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for the manifest");
    (void) fprintf(out, FIRST "made %" PRIu64 "\nversion %s\nstore %" PRIu64 "\nkeys %s\n",
                   m->made_ms, m->version, m->store, m->keys);
    if (m->sealed_cost)
        (void) fprintf(out, "sealed %" PRIu64 " %s %s\n", m->sealed_cost, m->sealed_salt,
                       m->sealed_box);
    put_files(m, out);
    if (fflush(out) == 0) {
        sha256_hmac(key, SHA256_LEN, text, len, code);
        sha256_hex(code, sizeof code, hex);
        (void) fprintf(out, CODE "%s\n", hex);
    }
    if (ferror(out) | fclose(out)) {
        free(text);
        return err_set(err, ERR_NO_MEMORY, "no memory for the manifest");
    }
    *ret = text;
    *ret_len = len;
    return 0;
}

/* ---- parsing ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool get_hex(const char *text, unsigned char *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

        if (low < 0)
            return false;
        out[i] = (unsigned char) (high << 4 | low);
    }
    return text[2 * count] == '\0';
}

static bool get_hex_text(const char *text, char *out, size_t size)
{
    size_t len = strlen(text);

    if (len == 0 || len >= size || len % 2 || strspn(text, "0123456789abcdef") != len)
        return false;
    memcpy(out, text, len + 1);
    return true;
}

static bool get_number(const char *text, uint64_t *ret)
{
    struct err ignored;

    return parse_u64(text, ret, &ignored) == 0 && *ret <= INT64_MAX;
}

typedef bool take_line(struct backup_manifest *m, char *const *words, struct err *err);

static bool take_made(struct backup_manifest *m, char *const *words, struct err *err)
{
    (void) err;
    return get_number(words[0], &m->made_ms);
}

static bool take_version(struct backup_manifest *m, char *const *words, struct err *err)
{
    (void) err;
    (void) snprintf(m->version, sizeof m->version, "%s", words[0]);
    return is_file_name(words[0]) && strcmp(m->version, words[0]) == 0;
}

static bool take_store(struct backup_manifest *m, char *const *words, struct err *err)
{
    (void) err;
    return get_number(words[0], &m->store);
}

static bool take_keys(struct backup_manifest *m, char *const *words, struct err *err)
{
    (void) err;
    return get_hex_text(words[0], m->keys, sizeof m->keys);
}

static bool take_sealed(struct backup_manifest *m, char *const *words, struct err *err)
{
    (void) err;
    return get_number(words[0], &m->sealed_cost) && m->sealed_cost > 0 &&
           get_hex_text(words[1], m->sealed_salt, sizeof m->sealed_salt) &&
           get_hex_text(words[2], m->sealed_box, sizeof m->sealed_box);
}

static bool take_tree(struct backup_manifest *m, char *const *words, struct err *err)
{
    struct backup_tree tree;

    if (!name_ok(words[0]) || !name_ok(words[1]) || !get_number(words[2], &tree.inode))
        return false;
    (void) snprintf(tree.template, sizeof tree.template, "%s", words[0]);
    (void) snprintf(tree.root, sizeof tree.root, "%s", words[1]);
    return backup_manifest_add_tree(m, &tree, err) == 0;
}

static bool take_file(struct backup_manifest *m, char *const *words, struct err *err)
{
    struct backup_file file = { .mode = 0 };
    struct err ignored;

    if (parse_mode(words[0], &file.mode, &ignored) < 0 || file.mode > 0777 ||
        !get_number(words[1], &file.size) || !get_number(words[2], &file.stored) ||
        file.stored > file.size || !get_hex(words[3], file.digest, SHA256_LEN) ||
        !backup_manifest_path_ok(words[4]))
        return false;
    (void) snprintf(file.path, sizeof file.path, "%s", words[4]);
    return backup_manifest_add_file(m, &file, err) == 0;
}

static const struct {
    const char *name;
    size_t words; /* behind the name */
    bool many;
    bool needed;
    take_line *take;
} lines[] = {
    { "made", 1, false, true, take_made },      { "version", 1, false, true, take_version },
    { "store", 1, false, true, take_store },    { "keys", 1, false, true, take_keys },
    { "sealed", 3, false, false, take_sealed }, { "tree", 3, true, false, take_tree },
    { "file", 5, true, false, take_file },
};

/* Words between single blanks; 0: there are other blanks, or too many. */
static size_t split(char *line, char *words[WORDS_MAX + 1])
{
    size_t count = 0;

    for (char *word = line, *next; word; word = next) {
        next = strchr(word, ' ');
        if (next)
            *next++ = '\0';
        if (!word[0] || count == WORDS_MAX + 1)
            return 0;
        words[count++] = word;
    }
    return count;
}

static int parse_line(struct backup_manifest *m, char *line, unsigned number, unsigned *seen,
                      struct err *err)
{
    char *words[WORDS_MAX + 1];
    size_t count = split(line, words);

    *err = (struct err){ .kind = ERR_NONE };
    for (size_t i = 0; count > 0 && i < ARRAY_LEN(lines); i++) {
        if (strcmp(lines[i].name, words[0]) != 0)
            continue;
        if (count != lines[i].words + 1 || (!lines[i].many && *seen & 1u << i) ||
            !lines[i].take(m, words + 1, err))
            break;
        *seen |= 1u << i;
        return 0;
    }
    return err->kind != ERR_NONE
               ? -1
               : err_set(err, ERR_INVALID, "line %u of the manifest is invalid", number);
}

/* Where the line with the code begins; NULL: the text is no manifest. */
static const char *find_code(const char *text, size_t len)
{
    const char *code = len > CODE_LINE ? text + len - CODE_LINE : NULL;

    return code && code[-1] == '\n' && strncmp(code, CODE, sizeof CODE - 1) == 0 &&
                   text[len - 1] == '\n'
               ? code
               : NULL;
}

static int parse_lines(struct backup_manifest *m, char *text, struct err *err)
{
    unsigned number = 1, seen = 0;

    for (char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n');
        *next++ = '\0'; /* the text ends with one */
        number++;
        if (parse_line(m, line, number, &seen, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (lines[i].needed && !(seen & 1u << i))
            return err_set(err, ERR_INVALID, "the manifest has no line '%s'", lines[i].name);
    return backup_manifest_sort(m, err);
}

int backup_manifest_parse(const char *text, size_t len, struct backup_manifest *ret,
                          struct err *err)
{
    const char *code = find_code(text, len);
    size_t first = sizeof FIRST - 1;
    auto_free char *copy = NULL;
    struct backup_manifest m;

    if (len > BACKUP_BYTES_MAX)
        return err_set(err, ERR_TOO_BIG, "the manifest is too large");
    if (strnlen(text, len) != len || len < first || strncmp(text, FIRST, first) != 0 || !code ||
        (size_t) (code - text) < first)
        return err_set(err, ERR_INVALID, "this is no backup of cove, or of a later version");
    copy = strndup(text + first, (size_t) (code - text) - first);
    if (!copy)
        return err_set(err, ERR_NO_MEMORY, "no memory for the manifest");
    backup_manifest_init(&m);
    if (parse_lines(&m, copy, err) < 0) {
        backup_manifest_done(&m);
        return -1;
    }
    *ret = m;
    return 0;
}

int backup_manifest_check(const char *text, size_t len, const unsigned char key[SHA256_LEN],
                          struct err *err)
{
    const char *code = find_code(text, len);
    unsigned char want[SHA256_LEN], got[SHA256_LEN];
    char hex[SHA256_HEX];

    if (code) {
        sha256_hmac(key, SHA256_LEN, text, (size_t) (code - text), want);
        (void) snprintf(hex, sizeof hex, "%.*s", (int) sizeof hex - 1, code + sizeof CODE - 1);
        if (get_hex(hex, got, sizeof got) && same_secret(want, got, sizeof want))
            return 0;
    }
    return err_set(err, ERR_DENIED, "the manifest was changed since the backup was made");
}
