/* tar.h - archives, read as they arrive and written as they go: ustar, pax, and GNU's long names.
 *
 * A reader hands out entries whose paths are safe to be used below a directory: relative, without "." and "..", one
 * slash between parts. What cannot be kept so is refused with the entry's name: absolute paths,
 * "..", hard links to such, devices, FIFOs, sparse files. A link may point anywhere, since it is never followed.
 *
 * A reader with `layer` set reads a layer of a container image, where more is usual: leading slashes and "./" are dropped, modes have
 * all twelve bits, devices and FIFOs are entries of their own type, the root itself is an entry with the path "", and
 * extended attributes are kept. ".." is refused there, too.
 *
 * Owns:    nothing. A reader has one size, whatever the archive; TAR_* are its limits. */
#ifndef COVE_HTTP_TAR_H
#define COVE_HTTP_TAR_H

#include "base/err.h"
#include "http/slice.h"

#include <sys/types.h>

#define TAR_BLOCK       512u
#define TAR_PATH_MAX    4096u  /* with its NUL */
#define TAR_PAX_MAX     32768u /* bytes of one extended header */
#define TAR_ENTRIES_MAX 1000000u

enum tar_type {
    TAR_FILE,
    TAR_DIR,
    TAR_LINK,
    TAR_SAME, /* another name of a file */
    TAR_NODE, /* a device or a FIFO; in layers only */
};

struct tar_entry {
    char path[TAR_PATH_MAX];
    char target[TAR_PATH_MAX]; /* TAR_LINK: as it is; TAR_SAME: a path like `path`; else "" */
    enum tar_type type;
    uint32_t mode, uid, gid; /* mode: 0777 at most, 07777 in layers */
    uint64_t size;           /* of TAR_FILE; else 0 */
    int64_t mtime;           /* seconds */
};

enum tar_event {
    TAR_MORE,      /* all of the input was used */
    TAR_ENTRY,     /* tar->entry is one */
    TAR_DATA,      /* a piece of its content, not empty */
    TAR_ENTRY_END, /* its content is whole; behind every entry, whatever its type */
    TAR_END,       /* the archive is whole; zeros may follow, and are to be read on */
};

enum tar_state {
    TAR_AT_HEAD,
    TAR_AT_EXTRA, /* the content of a header for the next entry */
    TAR_AT_DATA,
    TAR_AT_PADDING,
    TAR_AT_ZEROS, /* behind the end */
};

struct tar { /* all zero: before the first byte */
    enum tar_state state;
    bool layer; /* set by the caller, before the first byte */
    struct tar_entry entry;
    uint64_t entries;
    uint64_t left;    /* of data, extra or padding */
    unsigned padding; /* behind the data */
    bool open;        /* an entry was handed out, its end was not */
    char block[TAR_BLOCK];
    size_t have; /* of block, or of extra */
    char extra_type;
    char extra[TAR_PAX_MAX];
    /* what extra headers said of the next entry */
    char next_path[TAR_PATH_MAX], next_target[TAR_PATH_MAX];
    uint64_t next_size;
    int64_t next_mtime, next_uid, next_gid;
    bool has_path, has_target, has_size, has_mtime, has_uid, has_gid;
    /* Extended attributes of the entry, for tar_xattr(); of layers only. */
    char xattrs[TAR_PAX_MAX];
    size_t xattrs_len, next_xattrs_len;
};

/* The entry's extended attributes, one after the other: *at is 0 for the first. Valid until the next TAR_ENTRY. */
bool tar_xattr(const struct tar *tar, size_t *at, struct slice *ret_name, struct slice *ret_value);

/* Reads on: an event, or -1 (ERR_INVALID, ERR_TOO_BIG, ERR_UNSUPPORTED), and then the reader is no longer to be used.
 * ret_used: how much of the input was read; ret_data: of TAR_DATA, a slice of the input. */
int tar_read(struct tar *tar, const char *in, size_t len, size_t *ret_used, struct slice *ret_data,
             struct err *err);
/* Behind TAR_ENTRY: the entry's content is not wanted. Returns how many bytes of input the caller has to leave out. */
uint64_t tar_skip(struct tar *tar);
/* The input ended: 0 if that is where it may. */
int tar_read_end(const struct tar *tar, struct err *err);

/* The head of an entry, in whole blocks: what to send before `size` bytes and tar_padding() zeros. Paths are
 * written as they are. */
#define TAR_HEAD_MAX (TAR_BLOCK * 20)
ssize_t tar_put_head(char *out, size_t size, const struct tar_entry *entry, struct err *err);
unsigned tar_padding(uint64_t size);
/* Behind the last entry: this many zeros. */
#define TAR_END_SIZE (2 * TAR_BLOCK)

#endif
