/* A header is a block of fixed fields; "x", "L" and "K" are entries whose content says more of the next one. Numbers
 * are octal text, or, by GNU, base 256. Fields are not trusted to end with a NUL. */
#include "http/tar.h"

#include "base/own.h"

#include <inttypes.h>
#include <string.h>

struct tar_head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2], owner[32], group[32], major[8], minor[8], prefix[155], spare[12];
};
_Static_assert(sizeof(struct tar_head) == TAR_BLOCK, "a header is one block");

/* ---- fields ---- */

static struct slice text_of(const char *field, size_t size)
{
    return (struct slice){ field, strnlen(field, size) };
}

/* Base 256: the first bit says so, the second is the sign. */
static bool number_256(const unsigned char *field, size_t size, int64_t *ret)
{
    bool negative = field[0] & 0x40;
    uint64_t value = negative ? UINT64_MAX : 0;

    for (size_t i = 0; i < size; i++) {
        unsigned char byte = i == 0 ? (field[0] & 0x3f) | (negative ? 0xc0 : 0) : field[i];

        if (size - i > 8 && byte != (negative ? 0xff : 0))
            return false;
        value = value << 8 | byte;
    }
    if ((value >> 63) != negative)
        return false;
    *ret = (int64_t) value;
    return true;
}

static bool number_of(const char *field, size_t size, int64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;

    if ((unsigned char) field[0] & 0x80)
        return number_256((const unsigned char *) field, size, ret);
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t) (field[i] - '0');
    for (; i < size; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return false;
    *ret = (int64_t) value; /* twelve octal digits at most */
    return true;
}

static bool sum_ok(const struct tar_head *head)
{
    const unsigned char *bytes = (const unsigned char *) head;
    int64_t want, sum = 0, signed_sum = 0; /* some old programs added signed bytes */

    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool in_sum = i >= offsetof(struct tar_head, sum) && i < offsetof(struct tar_head, type);
        unsigned char byte = in_sum ? ' ' : bytes[i];

        sum += byte;
        signed_sum += (signed char) byte;
    }
    return number_of(head->sum, sizeof head->sum, &want) && (want == sum || want == signed_sum);
}

/* ---- paths ---- */

static int refuse(const char *path, enum err_kind kind, const char *why, struct err *err)
{
    return err_set(err, kind, "the archive's entry '%.100s': %s", path, why);
}

/* Looked at before it is changed: the message shows it as it came. */
static int check_parts(const char *path, const char *whose, bool layer, struct err *err)
{
    if (path[0] == '/' && !layer)
        return refuse(whose, ERR_INVALID, "an absolute path", err);
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");

        if (len == 2 && at[0] == '.' && at[1] == '.')
            return refuse(whose, ERR_INVALID, "a path with '..'", err);
        if (len > 255)
            return refuse(whose, ERR_INVALID, "a name of more than 255 bytes", err);
        at += len + (at[len] == '/');
    }
    return 0;
}

/* In place: what a directory can be asked for, or -1. "" is the directory itself. */
static int tidy(char *path, const char *whose, bool layer, struct err *err)
{
    char *out = path;

    if (check_parts(path, whose, layer, err) < 0)
        return -1;
    for (char *in = path; *in;) {
        size_t len = strcspn(in, "/");
        bool more = in[len] == '/';

        if (len > 0 && !(len == 1 && in[0] == '.')) {
            if (out != path)
                *out++ = '/';
            memmove(out, in, len);
            out += len;
        }
        in += len + more;
    }
    *out = '\0';
    return 0;
}

static int keep_path(char out[TAR_PATH_MAX], struct slice path, struct err *err)
{
    if (path.len >= TAR_PATH_MAX)
        return err_set(err, ERR_TOO_BIG, "the archive has a path of more than %u bytes",
                       TAR_PATH_MAX - 1);
    if (!slice_copy(path, out, TAR_PATH_MAX))
        return err_set(err, ERR_INVALID, "the archive has a path with a NUL");
    return 0;
}

/* ---- headers for the next entry ---- */

/* "1700000000.123": whole seconds are kept. */
static bool seconds_of(struct slice text, int64_t *ret)
{
    bool negative = text.len > 0 && text.at[0] == '-';
    struct slice whole = { text.at + negative, text.len - negative }, before;
    uint64_t value;

    if (slice_cut(&whole, '.', &before))
        whole = before;
    if (!slice_number(whole, &value))
        return false;
    *ret = negative ? -(int64_t) value : (int64_t) value;
    return true;
}

#define XATTR_KEY "SCHILY.xattr."

/* Each as its name, its value and two lengths before both. There is room: a record of the header was longer. */
static void keep_xattr(struct tar *tar, struct slice key, struct slice value)
{
    uint32_t len[2] = { (uint32_t) (key.len - strlen(XATTR_KEY)), (uint32_t) value.len };
    size_t at = tar->next_xattrs_len, all = sizeof len + len[0] + len[1];

    if (all > sizeof tar->xattrs - at)
        return; /* of a second extended header for the same entry */
    memcpy(tar->xattrs + at, len, sizeof len);
    memcpy(tar->xattrs + at + sizeof len, key.at + strlen(XATTR_KEY), len[0]);
    memcpy(tar->xattrs + at + sizeof len + len[0], value.at, len[1]);
    tar->next_xattrs_len += all;
}

bool tar_xattr(const struct tar *tar, size_t *at, struct slice *ret_name, struct slice *ret_value)
{
    uint32_t len[2];

    if (*at >= tar->xattrs_len)
        return false;
    memcpy(len, tar->xattrs + *at, sizeof len);
    *ret_name = (struct slice){ tar->xattrs + *at + sizeof len, len[0] };
    *ret_value = (struct slice){ tar->xattrs + *at + sizeof len + len[0], len[1] };
    *at += sizeof len + len[0] + len[1];
    return true;
}

static int pax_id(struct slice value, int64_t *ret, bool *ret_has, struct err *err)
{
    uint64_t number;

    if (!slice_number(value, &number) || number > INT64_MAX)
        return err_set(err, ERR_INVALID, "the archive has an invalid owner");
    *ret = (int64_t) number;
    *ret_has = true;
    return 0;
}

static int pax_record(struct tar *tar, struct slice key, struct slice value, struct err *err)
{
    if (key.len >= 11 && memcmp(key.at, "GNU.sparse.", 11) == 0)
        return err_set(err, ERR_UNSUPPORTED, "the archive has sparse files; make it without them");
    if (tar->extra_type == 'g')
        return 0; /* of all entries: nothing there is for us */
    if (slice_is(key, "path")) {
        tar->has_path = true;
        return keep_path(tar->next_path, value, err);
    }
    if (slice_is(key, "linkpath")) {
        tar->has_target = true;
        return keep_path(tar->next_target, value, err);
    }
    if (slice_is(key, "size")) {
        tar->has_size = slice_number(value, &tar->next_size);
        return tar->has_size ? 0 : err_set(err, ERR_INVALID, "the archive has an invalid size");
    }
    if (slice_is(key, "mtime")) {
        tar->has_mtime = seconds_of(value, &tar->next_mtime);
        return tar->has_mtime ? 0 : err_set(err, ERR_INVALID, "the archive has an invalid time");
    }
    if (!tar->layer)
        return 0;
    if (slice_is(key, "uid"))
        return pax_id(value, &tar->next_uid, &tar->has_uid, err);
    if (slice_is(key, "gid"))
        return pax_id(value, &tar->next_gid, &tar->has_gid, err);
    if (key.len > strlen(XATTR_KEY) && memcmp(key.at, XATTR_KEY, strlen(XATTR_KEY)) == 0)
        keep_xattr(tar, key, value);
    return 0;
}

/* "23 path=some/where\n" each; the number counts all of it. */
static int pax_records(struct tar *tar, struct err *err)
{
    struct slice rest = { tar->extra, tar->have };

    while (rest.len > 0) {
        struct slice digits, record = rest, key;
        uint64_t len;

        if (!slice_cut(&record, ' ', &digits) || !slice_number(digits, &len) || len > rest.len ||
            len < digits.len + 3 || rest.at[len - 1] != '\n')
            return err_set(err, ERR_INVALID, "the archive has a damaged extended header");
        record.len = (size_t) len - digits.len - 2;
        if (!slice_cut(&record, '=', &key) || key.len == 0)
            return err_set(err, ERR_INVALID, "the archive has a damaged extended header");
        if (pax_record(tar, key, record, err) < 0)
            return -1;
        rest.at += len;
        rest.len -= (size_t) len;
    }
    return 0;
}

static int take_extra(struct tar *tar, struct err *err)
{
    struct slice text = text_of(tar->extra, tar->have);

    if (tar->extra_type == 'L') {
        tar->has_path = true;
        return keep_path(tar->next_path, text, err);
    }
    if (tar->extra_type == 'K') {
        tar->has_target = true;
        return keep_path(tar->next_target, text, err);
    }
    return pax_records(tar, err);
}

/* ---- entries ---- */

static int entry_type(const struct tar_head *head, const char *path, bool layer, enum tar_type *ret,
                      struct err *err)
{
    size_t len = strlen(path);

    if (layer && (head->type == '3' || head->type == '4' || head->type == '6')) {
        *ret = TAR_NODE;
        return 0;
    }

    switch (head->type) {
    case '0':
    case '\0':
    case '7':
        *ret = len > 0 && path[len - 1] == '/' ? TAR_DIR : TAR_FILE; /* the oldest tars say it so */
        return 0;
    case '1':
        *ret = TAR_SAME;
        return 0;
    case '2':
        *ret = TAR_LINK;
        return 0;
    case '5':
        *ret = TAR_DIR;
        return 0;
    case '3':
    case '4':
        return refuse(path, ERR_INVALID, "a device", err);
    case '6':
        return refuse(path, ERR_INVALID, "a FIFO", err);
    case 'S':
        return refuse(path, ERR_UNSUPPORTED, "a sparse file; make the archive without them", err);
    }
    return refuse(path, ERR_UNSUPPORTED, "neither a file, a directory nor a link", err);
}

static int entry_path(struct tar *tar, const struct tar_head *head, struct err *err)
{
    struct slice name = text_of(head->name, sizeof head->name);
    struct slice prefix = text_of(head->prefix, sizeof head->prefix);
    bool posix = memcmp(head->magic, "ustar", 6) == 0;

    if (tar->has_path)
        memcpy(tar->entry.path, tar->next_path, TAR_PATH_MAX);
    else
        (void) snprintf(tar->entry.path, TAR_PATH_MAX, "%.*s%s%.*s", posix ? (int) prefix.len : 0,
                        prefix.at, posix && prefix.len > 0 ? "/" : "", (int) name.len, name.at);
    if (tar->has_target)
        memcpy(tar->entry.target, tar->next_target, TAR_PATH_MAX);
    else
        (void) snprintf(tar->entry.target, TAR_PATH_MAX, "%.*s",
                        (int) strnlen(head->link, sizeof head->link), head->link);
    if (entry_type(head, tar->entry.path, tar->layer, &tar->entry.type, err) < 0)
        return -1;
    return tidy(tar->entry.path, tar->entry.path, tar->layer, err);
}

static int entry_target(struct tar_entry *entry, bool layer, struct err *err)
{
    if (entry->type != TAR_LINK && entry->type != TAR_SAME) {
        entry->target[0] = '\0';
        return 0;
    }
    if (entry->type == TAR_SAME && tidy(entry->target, entry->path, layer, err) < 0)
        return -1;
    if (!entry->target[0])
        return refuse(entry->path, ERR_INVALID, "a link to nothing", err);
    return 0;
}

static int entry_numbers(struct tar *tar, const struct tar_head *head, struct err *err)
{
    struct tar_entry *e = &tar->entry;
    int64_t mode, uid, gid, size, mtime;

    if (!number_of(head->mode, sizeof head->mode, &mode) ||
        !number_of(head->uid, sizeof head->uid, &uid) ||
        !number_of(head->gid, sizeof head->gid, &gid) ||
        !number_of(head->size, sizeof head->size, &size) ||
        !number_of(head->mtime, sizeof head->mtime, &mtime) || size < 0)
        return refuse(e->path, ERR_INVALID, "a damaged number in its header", err);
    uid = tar->has_uid ? tar->next_uid : uid;
    gid = tar->has_gid ? tar->next_gid : gid;
    e->mode = (uint32_t) mode & (tar->layer ? 07777 : 0777);
    e->uid = uid < 0 || uid > UINT32_MAX ? 0 : (uint32_t) uid;
    e->gid = gid < 0 || gid > UINT32_MAX ? 0 : (uint32_t) gid;
    e->mtime = tar->has_mtime ? tar->next_mtime : mtime;
    e->size = tar->has_size ? tar->next_size : (uint64_t) size;
    if (e->size > INT64_MAX - TAR_BLOCK)
        return refuse(e->path, ERR_TOO_BIG, "too large", err);
    if (e->type != TAR_FILE)
        e->size = 0; /* some say the size of what a link leads to; there is no content */
    return 0;
}

static void forget_extra(struct tar *tar)
{
    tar->has_path = tar->has_target = tar->has_size = tar->has_mtime = false;
    tar->has_uid = tar->has_gid = false;
    tar->xattrs_len = tar->next_xattrs_len;
    tar->next_xattrs_len = 0;
}

static int begin_extra(struct tar *tar, const struct tar_head *head, struct err *err)
{
    int64_t size;

    if (!number_of(head->size, sizeof head->size, &size) || size < 0)
        return err_set(err, ERR_INVALID, "the archive has a damaged extended header");
    if ((uint64_t) size > sizeof tar->extra)
        return err_set(err, ERR_TOO_BIG, "the archive has an extended header of more than %u bytes",
                       TAR_PAX_MAX);
    if (++tar->entries > TAR_ENTRIES_MAX)
        return err_set(err, ERR_TOO_BIG, "the archive has more than %u entries", TAR_ENTRIES_MAX);
    if (tar->next_xattrs_len == 0)
        tar->xattrs_len = 0; /* the buffer is the next entry's now */
    tar->extra_type = head->type == 'X' ? 'x' : head->type;
    tar->left = (uint64_t) size;
    tar->padding = tar_padding(tar->left);
    tar->have = 0;
    tar->state = TAR_AT_EXTRA;
    return TAR_MORE;
}

/* A whole header block: TAR_ENTRY, TAR_MORE, TAR_END, or -1. */
static int take_head(struct tar *tar, struct err *err)
{
    static const char zeros[TAR_BLOCK];
    struct tar_head head;

    memcpy(&head, tar->block, sizeof head);
    tar->have = 0;
    if (memcmp(tar->block, zeros, TAR_BLOCK) == 0) {
        if (tar->has_path || tar->has_target || tar->has_size || tar->has_mtime)
            return err_set(err, ERR_INVALID, "the archive ended early");
        tar->state = TAR_AT_ZEROS;
        return TAR_END;
    }
    if (!sum_ok(&head))
        return err_set(err, ERR_INVALID, "not a tar archive, or a damaged one");
    if (head.type != '\0' && strchr("xXgLK", head.type))
        return begin_extra(tar, &head, err);
    if (++tar->entries > TAR_ENTRIES_MAX)
        return err_set(err, ERR_TOO_BIG, "the archive has more than %u entries", TAR_ENTRIES_MAX);
    if (entry_path(tar, &head, err) < 0 || entry_numbers(tar, &head, err) < 0 ||
        entry_target(&tar->entry, tar->layer, err) < 0)
        return -1;
    forget_extra(tar);
    tar->left = tar->entry.size;
    tar->padding = tar_padding(tar->left);
    tar->state = TAR_AT_DATA;
    if (!tar->entry.path[0]) { /* the directory itself, as "./": it is there already */
        if (tar->entry.type != TAR_DIR)
            return err_set(err, ERR_INVALID, "the archive has an entry without a name");
        if (!tar->layer)
            return TAR_MORE;
    }
    tar->open = true;
    return TAR_ENTRY;
}

/* ---- reading ---- */

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t) a : b;
}

/* One state's worth of input. */
static int advance(struct tar *tar, struct slice in, size_t *ret_used, struct slice *ret_data,
                   struct err *err)
{
    size_t n;

    switch (tar->state) {
    case TAR_AT_HEAD:
        n = least(TAR_BLOCK - tar->have, in.len);
        memcpy(tar->block + tar->have, in.at, n);
        tar->have += n;
        *ret_used = n;
        return tar->have == TAR_BLOCK ? take_head(tar, err) : TAR_MORE;
    case TAR_AT_EXTRA:
        n = least(tar->left, in.len);
        memcpy(tar->extra + tar->have, in.at, n);
        tar->have += n;
        tar->left -= n;
        *ret_used = n;
        if (tar->left > 0)
            return TAR_MORE;
        tar->state = TAR_AT_PADDING;
        return take_extra(tar, err) < 0 ? -1 : TAR_MORE;
    case TAR_AT_DATA:
        n = least(tar->left, in.len);
        tar->left -= n;
        *ret_used = n;
        *ret_data = (struct slice){ in.at, n };
        if (tar->left == 0)
            tar->state = TAR_AT_PADDING;
        return n > 0 ? TAR_DATA : TAR_MORE;
    case TAR_AT_PADDING:
        n = least(tar->padding, in.len);
        tar->padding -= (unsigned) n;
        *ret_used = n;
        if (tar->padding == 0) {
            tar->state = TAR_AT_HEAD;
            tar->have = 0;
        }
        return TAR_MORE;
    case TAR_AT_ZEROS:
        for (n = 0; n < in.len; n++)
            if (in.at[n])
                return err_set(err, ERR_INVALID, "something follows the end of the archive");
        *ret_used = n;
        return TAR_MORE;
    }
    return err_set(err, ERR_INTERNAL, "a tar reader without a state");
}

int tar_read(struct tar *tar, const char *in, size_t len, size_t *ret_used, struct slice *ret_data,
             struct err *err)
{
    size_t used = 0;

    for (;;) {
        size_t n = 0;
        int event;

        if (tar->open && tar->state == TAR_AT_DATA && tar->left == 0)
            tar->state = TAR_AT_PADDING;
        if (tar->open && tar->state == TAR_AT_PADDING) {
            tar->open = false;
            *ret_used = used;
            return TAR_ENTRY_END;
        }
        if (used == len) {
            *ret_used = used;
            return TAR_MORE;
        }
        event = advance(tar, (struct slice){ in + used, len - used }, &n, ret_data, err);
        used += n;
        if (event != TAR_MORE) {
            *ret_used = used;
            return event;
        }
    }
}

uint64_t tar_skip(struct tar *tar)
{
    uint64_t bytes = tar->left + tar->padding;

    tar->left = tar->padding = 0;
    tar->have = 0;
    tar->open = false;
    tar->state = TAR_AT_HEAD;
    return bytes;
}

int tar_read_end(const struct tar *tar, struct err *err)
{
    if (tar->state == TAR_AT_ZEROS)
        return 0;
    return err_set(err, ERR_INVALID, "the archive ended early");
}
