/* filesystem_watch.h - what happens below a directory, in the words of envd.
 *
 * Callers: filesystem_watch.c (WatchDir), filesystem_watchers.c (CreateWatcher and its kin). */
#ifndef COVE_SURFACE_E2B_FILESYSTEM_WATCH_H
#define COVE_SURFACE_E2B_FILESYSTEM_WATCH_H

#include "surface/e2b/files.h"

struct fs_watch {
    struct stream stream;
    char *root;     /* as the sandbox resolved it: names in events are relative to it */
    bool recursive; /* of the request, as the next */
    bool entries;
    struct err trouble; /* how it ended; ERR_NONE: it continues */
};
#define FS_WATCH_NONE ((struct fs_watch){ .stream = { .fd = -1 } })

/* By a request's path, recursive and includeEntry. ERR_NO_PATH, or ERR_NOT_DIR. */
int fs_watch_open(struct exchange *x, json_t *in, struct fs_watch *ret, struct err *err);
void fs_watch_close(struct fs_watch *watch);

/* Without waiting: up to two events {"name","type","entry"?} for what happened next, appended to the array. 1; 0: nothing
 * happened; -1: ERR_NO_PATH when the directory is gone, ERR_PROTOCOL when events were lost. */
int fs_watch_poll(struct fs_watch *watch, json_t *events, struct err *err);

#endif
