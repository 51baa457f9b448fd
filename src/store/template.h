/* template.h - templates that tenants build: names, builds, tags, and the steps that need not run again.
 *
 * A build of a template has a snapshot in the state STORE_SNAPSHOT_TEMPLATE; so has a step that is kept. A snapshot may be spoken of
 * by several builds and steps; store_template_image_used says whether it still is.
 *
 * Callers: server/ops, server/build. */
#ifndef COVE_STORE_TEMPLATE_H
#define COVE_STORE_TEMPLATE_H

#include "store/store.h"

#define STORE_TEMPLATES_MAX   100 /* of one tenant */
#define STORE_BUILD_ID_MAX    37  /* of a UUID, with the NUL */
#define STORE_TAG_MAX         64
#define STORE_TAGS_MAX        2048 /* of the JSON text of a build's tags */
#define STORE_DEFAULT_TAG     "default"
#define STORE_TAGS_OF_ONE_MAX 100 /* tags of one template */

struct store_template {
    char id[ID_LEN + 1];
    char tenant[STORE_TENANT_MAX];
    char name[STORE_NAME_MAX]; /* unique in its tenant */
    bool is_public;            /* for every tenant that has none of that name */
    uint64_t created_ms, updated_ms;
};

/* ERR_EXISTS, ERR_TOO_MANY. */
int store_template_add(struct store *store, const struct store_template *template, struct err *err);
/* By name or id: the tenant's own, else (not `own`) one that is public. ERR_NO_TEMPLATE. */
int store_template_find(struct store *store, const char *tenant, const char *name, bool own,
                        struct store_template *ret, struct err *err);
typedef int store_template_each(void *arg, const struct store_template *template, struct err *err);
/* What the tenant may use: its own by name, then the public ones. */
int store_template_list(struct store *store, const char *tenant, store_template_each *each,
                        void *arg, struct err *err);
int store_template_publish(struct store *store, const char *id, bool is_public, struct err *err);
/* With its builds and tags. */
int store_template_remove(struct store *store, const char *id, struct err *err);

/* The numbers are in the store. */
enum store_build_state {
    STORE_BUILD_NEW, /* its steps are still to come */
    STORE_BUILD_WAITING,
    STORE_BUILD_RUNNING,
    STORE_BUILD_READY,
    STORE_BUILD_FAILED,
    STORE_BUILD_CANCELLED
};

struct store_build {
    char id[STORE_BUILD_ID_MAX];
    char template[ID_LEN + 1]; /* the template's id */
    char tenant[STORE_TENANT_MAX];
    int state;
    char reason[ERR_MSG_MAX];  /* why it failed */
    char step[16];             /* the step that failed: "base", "1" …, "finalize" */
    char sandbox[ID_LEN + 1];  /* that it runs in, and is to be removed; "": none */
    char snapshot[ID_LEN + 1]; /* what it has so far, and in the end the result; "": none */
    char tags[STORE_TAGS_MAX]; /* a JSON array: tags that it gets when it is ready */
    uint64_t cpu_milli, memory_bytes,
        disk_bytes;                /* at least, of sandboxes made of it; 0: not said */
    uint64_t created_ms, ended_ms; /* ended 0: not yet */
};

int store_build_add(struct store *store, const struct store_build *build, struct err *err);
/* ERR_NO_PATH "there is no build '…'". */
int store_build_get(struct store *store, const char *tenant, const char *id,
                    struct store_build *ret, struct err *err);
typedef int store_build_each(void *arg, const struct store_build *build, struct err *err);
/* Newest first; template NULL: any. */
int store_build_list(struct store *store, const char *tenant, const char *template, uint64_t limit,
                     store_build_each *each, void *arg, struct err *err);
/* Of all tenants: those that did not end, or have a sandbox that is to be removed. */
int store_build_open(struct store *store, store_build_each *each, void *arg, struct err *err);
/* state, reason, step, sandbox, snapshot, ended_ms. */
int store_build_set(struct store *store, const struct store_build *build, struct err *err);
/* The same, and it is the template's from now on: its settings (a JSON text) and its tags. ERR_NO_TEMPLATE: the template was
 * removed meanwhile. */
int store_build_ready(struct store *store, const struct store_build *build, const char *settings,
                      struct err *err);
/* The caller's to free. */
int store_build_settings(struct store *store, const char *id, char **ret, struct err *err);
/* Builds of a template that ended and have no tag, all but the newest `keep`. */
int store_build_old(struct store *store, const char *template, uint64_t keep,
                    store_build_each *each, void *arg, struct err *err);
int store_build_remove(struct store *store, const char *id, struct err *err);

/* The build that has a tag of the template. ERR_NO_TEMPLATE. */
int store_tag_get(struct store *store, const char *template, const char *tag,
                  struct store_build *ret, struct err *err);
/* ERR_TOO_MANY. */
int store_tag_set(struct store *store, const char *template, const char *tag, const char *build,
                  struct err *err);
/* ERR_NO_PATH without one. */
int store_tag_remove(struct store *store, const char *template, const char *tag, struct err *err);
struct store_tag {
    const char *tag, *build; /* borrowed, as all texts here */
    const char *from;        /* what the build began with; "": unknown */
    uint64_t created_ms, bytes;
};
typedef int store_tag_each(void *arg, const struct store_tag *tag, struct err *err);
int store_tag_list(struct store *store, const char *template, store_tag_each *each, void *arg,
                   struct err *err);

/* ---- steps that need not run again ---- */

int store_step_add(struct store *store, const char *tenant, const char *key, const char *snapshot,
                   uint64_t bytes, struct err *err);
/* 1: there is one, and it was used now; 0. */
int store_step_get(struct store *store, const char *tenant, const char *key,
                   char ret_snapshot[ID_LEN + 1], struct err *err);
typedef int store_step_each(void *arg, const char *key, const char *snapshot, uint64_t bytes,
                            struct err *err);
/* Used last first. */
int store_step_list(struct store *store, const char *tenant, store_step_each *each, void *arg,
                    struct err *err);
int store_step_remove(struct store *store, const char *tenant, const char *key, struct err *err);

/* Whether a build or a step speaks of it: 1, 0. */
int store_template_image_used(struct store *store, const char *snapshot, struct err *err);
/* Snapshots of templates that none speaks of. */
typedef int store_template_image_each(void *arg, const char *snapshot, struct err *err);
int store_template_images_unused(struct store *store, store_template_image_each *each, void *arg,
                                 struct err *err);

#endif
