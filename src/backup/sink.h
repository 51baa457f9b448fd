/* sink.h - where a backup goes: a directory, or one file that is a tar archive compressed with zstd.
 *
 * Both are written under another name (PATH.part) and get theirs when everything in them is on disk for good. An archive ends with a frame of its own for the
 * manifest, and a skippable frame that says where that one begins, so that a reader has the manifest first; `tar` reads it as any other.
 *
 *   frames: tar entries … | frame: entry "manifest", end of the archive | skippable frame: "covebkup", offset
 *
 * Owns:    PATH.part, until sink_finish.
 * Callers: the verb backup. */
#ifndef COVE_BACKUP_SINK_H
#define COVE_BACKUP_SINK_H

#include "backup/manifest.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SINK_ENDING       ".tar.zst" /* of a path that is to be an archive */
#define SINK_PART         ".part"
#define SINK_TRAILER      24u
#define SINK_TRAILER_SKIP 0x184d2a5cu /* the skippable frame's own number */
#define SINK_TRAILER_WORD "covebkup"

struct sink;

bool sink_is_archive(const char *path);

/* ERR_EXISTS: there is something of that name already. stop: asked now and then; true ends the work with ERR_STATE. */
int sink_open(const char *path, bool (*stop)(void), struct sink **ret, struct err *err);
/* Removes what was not finished. Accepts NULL. */
void sink_close(struct sink *sink);
/* A directory that is on the same file system as the backup, for files of the caller's own. */
const char *sink_place(const struct sink *sink);

/* One file of exactly `size` bytes: begin, write and zeros in order, end. */
int sink_begin(struct sink *sink, const char *path, uint32_t mode, uint64_t size, struct err *err);
int sink_write(struct sink *sink, const void *data, size_t len, struct err *err);
int sink_zeros(struct sink *sink, uint64_t len, struct err *err);
/* ERR_STATE: there were fewer bytes. */
int sink_end(struct sink *sink, struct backup_file *ret, struct err *err);
/* The one that was begun is given up: it stays what it is, and no manifest may name it. */
int sink_give_up(struct sink *sink, struct err *err);
/* It is in no manifest: a directory has it no longer, of an archive no reader takes it. */
void sink_drop(struct sink *sink, const char *path);
/* Of a regular file, all of it; holes are not read. */
int sink_copy(struct sink *sink, int from_fd, const char *path, uint32_t mode,
              struct backup_file *ret, struct err *err);

int sink_finish(struct sink *sink, const char *manifest, size_t len, struct err *err);
/* What was written so far: of an archive, compressed. */
uint64_t sink_bytes(const struct sink *sink);

#endif
