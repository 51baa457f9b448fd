/* ops_template.h - templates that tenants built: names, tags, who may use and who may change them.
 *
 * A template is a name of a tenant's; each build of it has an id, and tags name builds: NAME is NAME:default. A create finds the
 * tenant's own templates first, then those that are published, then those that are installed on the host. Builds
 * themselves are of server/build.
 *
 * Callers: surfaces, server/build. */
#ifndef COVE_SERVER_OPS_OPS_TEMPLATE_H
#define COVE_SERVER_OPS_OPS_TEMPLATE_H

#include "server/ops/ops.h"

#define OPS_TAG_MAX      64
#define OPS_BUILD_ID_MAX 37
/* A template that was built may say by a label which isolation its sandboxes have. */
#define OPS_LABEL_ISOLATION "cove.isolation"

struct ops_template_ref {
    char name[OPS_NAME_MAX];
    char tag[OPS_TAG_MAX]; /* "default" where none was said */
};
/* Pure: NAME[:TAG]. */
bool ops_template_ref_ok(const char *text);
int ops_template_ref_read(const char *text, struct ops_template_ref *ret, struct err *err);

struct ops_template {
    char id[ID_LEN + 1];
    char name[OPS_NAME_MAX];
    bool own, is_public;
    uint64_t created_ms, updated_ms;
};
struct ops_tag {
    char tag[OPS_TAG_MAX];
    char build[OPS_BUILD_ID_MAX];
    char from[2 * OPS_NAME_MAX]; /* what the build began with; "": unknown */
    uint64_t created_ms, bytes;
};

/* By name or id: one that the caller may use. ERR_NO_TEMPLATE. */
int ops_template_get(struct ops *ops, const char *name, struct ops_template *ret, struct err *err);
/* The caller's own, which is made if it is not there. */
int ops_template_make(struct ops *ops, const char *name, struct ops_template *ret, struct err *err);
typedef int ops_template_each(void *arg, const struct ops_template *template, struct err *err);
int ops_template_list(struct ops *ops, ops_template_each *each, void *arg, struct err *err);
/* Those of the host, which every tenant may name; *ret is the caller's to free. ret_default: the one of a create that names none. */
int ops_template_installed(struct ops *ops, char (**ret)[KEEPER_NAME_MAX], size_t *ret_count,
                           char ret_default[KEEPER_NAME_MAX], struct err *err);
/* Which version of one is installed. ERR_NO_TEMPLATE. */
int ops_template_about(struct ops *ops, const char *name, struct keeper_template *ret,
                       struct err *err);
/* The caller's own. Sandboxes that were made of it continue. */
int ops_template_delete(struct ops *ops, const char *name, struct err *err);
/* For every tenant, or for its own again: administrators of `local` only. */
int ops_template_publish(struct ops *ops, const char *name, bool is_public, struct err *err);

typedef int ops_tag_each(void *arg, const struct ops_tag *tag, struct err *err);
int ops_template_tags(struct ops *ops, const char *name, ops_tag_each *each, void *arg,
                      struct err *err);
/* tags become names of the build that `ref` means; ret_build: its id. The caller's own template. */
int ops_template_tag(struct ops *ops, const struct ops_template_ref *ref, const char *const *tags,
                     size_t count, char ret_build[OPS_BUILD_ID_MAX], struct err *err);
/* ERR_INVALID for "default". */
int ops_template_untag(struct ops *ops, const char *name, const char *tag, struct err *err);
/* What a template of the caller's says of its commands and how it was made: an object, the caller's to json_decref. */
int ops_template_settings(struct ops *ops, const struct ops_template_ref *ref, json_t **ret,
                          struct err *err);

/* ---- for server/build ---- */

/* Drops a snapshot of a template that nothing speaks of any more; another stays. */
void ops_template_drop(struct app *app, const char *snapshot);
struct ops_save_template {
    bool memory;
    /* Of files alone: with so many bytes on its disk, the sandbox is sealed. It ends, and its disk is the snapshot's: nothing is
     * copied. 0: always; UINT64_MAX: never. */
    uint64_t seal_from;
    char id[ID_LEN + 1]; /* of the snapshot: filled in, as the others */
    uint64_t bytes;
    bool sealed;
};
/* A snapshot that is in no list. */
int ops_template_save(struct ops *ops, const char *sandbox, struct ops_save_template *save,
                      struct err *err);

#endif
