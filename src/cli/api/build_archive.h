/* build_archive.h - files of a directory as an archive for COPY: hashed first, and sent if the server does not have them.
 *
 * Names, modes, links and contents are hashed, times are not: a fresh checkout is the same as the last one.
 *
 * Callers: build_context.c, which says which files. */
#ifndef COVE_CLI_API_BUILD_ARCHIVE_H
#define COVE_CLI_API_BUILD_ARCHIVE_H

#include "base/sha256.h"
#include "cli/api/build.h"

struct archive_entry {
    char *path; /* below the directory; NULL: text */
    char *as;   /* in the archive */
    const char *text;
};

struct archive {
    struct context *context;
    struct archive_entry *entries;
    size_t count, room;
};

/* Opens a path of the directory; never through a link, never out of it. -1 with errno. */
int context_below(int fd, const char *path, uint64_t flags);
/* raw: a file that is an archive itself, in place of the list; NULL: the list. hash: the name of the files on the server. */
int archive_send(const struct archive *list, const char *raw, char hash[SHA256_HEX],
                 struct err *err);

#endif
