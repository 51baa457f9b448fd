/* manifest.h - what a backup says of itself: a text of lines, signed.
 *
 *   cove-backup 1
 *   made 1763328000123                          milliseconds since 1970
 *   version 0.1.0                               of the cove that made it
 *   store 16                                    version of the store's schema
 *   keys 1f2e…                                  which keys open its secrets and images: keys.h
 *   sealed 17 SALT BOX                          those keys, under a passphrase; may be missing
 *   tree base root-6afb4d2ba8282 131074         of a template: name, directory, inode that images know it by
 *   file 600 SIZE STORED DIGEST images/…/meta   mode, size, bytes that are not zeros: content.h
 *   code 9c41…                                  HMAC over all lines before it
 *
 * A path is one of a few forms (path_forms in manifest.c); others are refused, so that nothing of a backup is ever written elsewhere.
 *
 * Owns:    its lists, on the heap.
 * Callers: the verbs backup and restore. Parsing is pure, and fuzzed. */
#ifndef COVE_BACKUP_MANIFEST_H
#define COVE_BACKUP_MANIFEST_H

#include "base/err.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKUP_PATH_MAX  192
#define BACKUP_BYTES_MAX (256u << 20)
#define BACKUP_FILES_MAX 1000000u
#define BACKUP_TREES_MAX 1000u
#define BACKUP_KEYS_HEX  33  /* with the NUL */
#define BACKUP_SALT_HEX  65  /* with the NUL */
#define BACKUP_BOX_HEX   257 /* with the NUL */

struct backup_file {
    char path[BACKUP_PATH_MAX];
    uint32_t mode;
    bool seen; /* the reader's: it was unpacked */
    uint64_t size, stored;
    unsigned char digest[SHA256_LEN];
};

struct backup_tree {
    char template[64], root[64];
    uint64_t inode;
};

struct backup_manifest {
    uint64_t made_ms, store;
    char version[32];
    char keys[BACKUP_KEYS_HEX];
    uint64_t sealed_cost; /* 0: the keys are not in it */
    char sealed_salt[BACKUP_SALT_HEX], sealed_box[BACKUP_BOX_HEX];
    struct backup_file *files;
    struct backup_tree *trees;
    size_t file_count, file_room, tree_count, tree_room;
};

void backup_manifest_init(struct backup_manifest *manifest);
void backup_manifest_done(struct backup_manifest *manifest);

/* Whether a file of that path can be part of a backup. */
bool backup_manifest_path_ok(const char *path);

int backup_manifest_add_file(struct backup_manifest *manifest, const struct backup_file *file,
                             struct err *err);
int backup_manifest_add_tree(struct backup_manifest *manifest, const struct backup_tree *tree,
                             struct err *err);
/* Of one that was added, which is gone then. */
void backup_manifest_drop_file(struct backup_manifest *manifest, const char *path);
/* Sorted first: backup_manifest_sort, or backup_manifest_parse. NULL: there is none. */
struct backup_file *backup_manifest_find(struct backup_manifest *manifest, const char *path);
/* ERR_INVALID: one path twice. */
int backup_manifest_sort(struct backup_manifest *manifest, struct err *err);

/* The text, signed with `key`; the caller's to free. */
int backup_manifest_write(const struct backup_manifest *manifest,
                          const unsigned char key[SHA256_LEN], char **ret, size_t *ret_len,
                          struct err *err);

/* Of a text that may be anything. What it says is not to be believed before backup_manifest_check. */
int backup_manifest_parse(const char *text, size_t len, struct backup_manifest *ret,
                          struct err *err);
/* ERR_DENIED: it was signed with another key, or changed. */
int backup_manifest_check(const char *text, size_t len, const unsigned char key[SHA256_LEN],
                          struct err *err);

/* Bytes that all files take on disk, and their sizes together. */
uint64_t backup_manifest_stored(const struct backup_manifest *manifest);
uint64_t backup_manifest_size(const struct backup_manifest *manifest);

#endif
