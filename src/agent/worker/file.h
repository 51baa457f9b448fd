/* file.h - one file or directory: stat, read, write, mkdir.
 *
 * Nothing here waits on a FIFO, device or socket: a file is opened O_NONBLOCK and looked at before a
 * byte is moved, and only regular files are read and written. Content streams through one frame's
 * buffer whatever the size.
 *
 * Callers: worker.c. */
#ifndef COVE_AGENT_WORKER_FILE_H
#define COVE_AGENT_WORKER_FILE_H

#include "agent/worker/worker.h"

int file_stat(struct worker *w, struct err *err);
int file_read(struct worker *w, struct err *err);
int file_write(struct worker *w, struct err *err);
int file_mkdir(struct worker *w, struct err *err);

/* For others: a regular file, opened without ever waiting; ERR_IS_DIR, ERR_NOT_FILE. `path` is for
 * the message. */
int file_open_regular(int dirfd, const char *name, int flags, const char *path, struct err *err);

/* REPLY with the entry at path, links followed; `extra` is put in its flags, `count` beside it. */
int file_reply_entry(struct worker *w, const char *path, uint32_t extra, uint64_t count,
                     struct err *err);

#endif
