/* source.h - a backup that is read: the manifest first, then every file in it, each compared with its digest.
 *
 * What is read may be damaged, or made by an enemy: nothing is written that the manifest does not name, names are
 * those that backup_manifest_path_ok() takes, and what does not fit is ERR_INVALID with a sentence.
 *
 * Owns:    the open backup.
 * Callers: the verb restore. */
#ifndef COVE_BACKUP_SOURCE_H
#define COVE_BACKUP_SOURCE_H

#include "backup/manifest.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source;

/* A directory, or an archive. */
int source_open(const char *path, struct source **ret, struct err *err);
/* Accepts NULL. */
void source_close(struct source *source);

/* The manifest's text, NUL-terminated; the caller's to free. */
int source_manifest(struct source *source, char **ret, size_t *ret_len, struct err *err);

struct unpack {
    struct backup_manifest *manifest; /* sorted; files are marked as seen */
    int dir_fd;                       /* where the files go; -1: nowhere, they are only verified */
    bool (*stop)(void);
    void (*progress)(void *arg, uint64_t bytes); /* so far */
    void *arg;
};

/* Every file of the manifest into the directory, with its mode, whole or not at all. */
int source_unpack(struct source *source, const struct unpack *unpack, struct err *err);

#endif
