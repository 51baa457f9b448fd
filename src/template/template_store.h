/* template_store.h - the templates of a state directory, on disk.
 *
 *   <state>/templates/<name>/manifest         says which directory beside it is the tree
 *   <state>/templates/<name>/root-<n>/        the tree, or an image's file; older ones stay while sandboxes use them
 *   <state>/templates/<name>/root-<n>.<i>     the files below an image's own: 1 is the lowest
 *   <state>/templates/.build-<name>.<pid>/    being made
 *   <state>/templates/.lock-<name>            flock: one maker of a template at a time
 *
 * Owns:    that layout. A template exists when its manifest does; a new version of it
 *          exists from the moment the manifest is renamed over the old one.
 * Callers: the template verb, template_host.c, template_build.c.
 * Never:   removes a tree that a sandbox may have mounted. */
#ifndef COVE_TEMPLATE_TEMPLATE_STORE_H
#define COVE_TEMPLATE_TEMPLATE_STORE_H

#include "base/err.h"
#include "template/maker.h"
#include "template/manifest.h"

#include <stdbool.h>
#include <stddef.h>

#define TEMPLATE_PATH     "/opt/cove/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define TEMPLATE_NAME_MAX 64

#define TEMPLATE_BELOW_NAME 80

struct template_entry {
    char name[TEMPLATE_NAME_MAX];
    struct manifest manifest;
    struct err problem; /* kind ERR_NONE: the manifest is good */
};

/* Makes <state>/templates where it is missing. ret_fd is the templates directory. */
int template_store_open(const char *state, int *ret_fd, struct err *err);
/* Only looks: ERR_NO_TEMPLATE when there is no such state. */
int template_store_look(const char *state, int *ret_fd, struct err *err);

/* Sorted by name, for the caller to free. */
int template_list(int store_fd, struct template_entry **ret, size_t *ret_count, struct err *err);

/* The template's directory and manifest; ERR_NO_TEMPLATE. ret_fd may be NULL. */
int template_find(int store_fd, const char *name, struct manifest *ret, int *ret_fd,
                  struct err *err);

/* What a sandbox gets that asks for none: `base` if present, else `host`. NULL: there is none. */
const char *template_default(int store_fd);

/* How many sandboxes stand on it. ERR_UNAVAILABLE when that cannot be known: there are sandboxes,
 * but no keeper to ask. */
int template_users(const char *state, const char *name, size_t *ret_count, struct err *err);

/* Waits for other makers of this template, saying so once. -1 also when interrupted. */
int template_lock(const struct template_maker *maker, int store_fd, const char *name, int *ret_fd,
                  struct err *err);

/* An empty directory to make a template in; leftovers of makers that died are removed. Needs
 * the lock. ret_name is for template_publish or tree_remove. */
int template_build_dir(int store_fd, const char *name, char *ret_name, size_t size, int *ret_fd,
                       struct err *err);

/* The name of a file below the one that is called `root`; i is 0 for the lowest. */
void template_below_name(char ret[TEMPLATE_BELOW_NAME], const char *root, size_t i);

/* Moves <build>/root, and what is below that, into place and makes it the template's tree; sets manifest->root and created.
 * Needs the lock. Trees of older versions go when no sandbox uses them. */
int template_publish(const struct template_maker *maker, const char *state, int store_fd,
                     const char *name, const char *build, struct manifest *manifest,
                     struct err *err);

/* Needs the lock. Refuses (ERR_STATE) while sandboxes use it. */
int template_remove(const char *state, int store_fd, const char *name, struct err *err);

/* Real directories where the keeper mounts things, a shell, and no symlink among them. */
int template_check_tree(int root_fd, uint32_t kind, struct err *err);

/* cove-agent as <root>/opt/cove/bin/sudo (its name when called makes it the client of the agent).
 */
int template_put_sudo(const struct template_maker *maker, int root_fd, struct err *err);

/* The same, and the kernels, for every built template that no sandbox uses: after an update of cove its sudo and the
 * agent, its kernels and the server must again be of one version. */
int template_refresh_sudo(const struct template_maker *maker, const char *state, int store_fd,
                          struct err *err);

#endif
