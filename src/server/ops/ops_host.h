/* ops_host.h - what the store knows about this host, for verbs that root runs on it: templates that are installed, what nothing
 * needs any more, and a copy of the store for a backup.
 *
 * The files of templates are root's, and cove-host makes and removes them; their records are the server's. Each operation
 * refuses a caller below SCOPE_OPERATOR. Answers are JSON as /v1 has it; the reference is the caller's to give back.
 *
 * Callers: surface/v1. */
#ifndef COVE_SERVER_OPS_OPS_HOST_H
#define COVE_SERVER_OPS_OPS_HOST_H

#include "server/ops/ops.h"

/* ---- templates ---- */

#define OPS_COMMAND_MAX 2048 /* of a memory image, with the NUL */

/* Those that are installed, and those that have a memory image. */
int ops_host_templates(struct ops *ops, json_t **ret, struct err *err);
/* ERR_NO_TEMPLATE: it is not installed, and no record mentions it. */
int ops_host_template(struct ops *ops, const char *name, json_t **ret, struct err *err);

/* It was made, or rebuilt: how, in one word, and from what. Its memory image is of no use any more: *ret_cooled says whether
 * it had one. ERR_NO_TEMPLATE: it is not installed. */
int ops_host_made(struct ops *ops, const char *name, const char *how, const char *from,
                  bool *ret_cooled, struct err *err);
/* Its files are gone: nothing about it is remembered. */
int ops_host_gone(struct ops *ops, const char *name, bool *ret_cooled, struct err *err);

/* A memory image that the keeper has of the template. */
struct ops_host_warm {
    const char *image, *start, *ready, *modules; /* each but the image may be NULL */
};
/* What is absent stays as it is. */
struct ops_host_change {
    bool network_given, warm_given;
    const struct reach *network;      /* NULL: none any more */
    const struct ops_host_warm *warm; /* likewise */
};
/* ERR_NO_IMAGE: there is no such image, or it is of something else. */
int ops_host_change(struct ops *ops, const char *name, const struct ops_host_change *change,
                    json_t **ret, struct err *err);

/* ---- what nothing needs any more ---- */

#define OPS_GC_NEVER UINT64_MAX

struct ops_gc {
    bool dry_run;
    uint64_t older_ms;    /* snapshots that are older go, too; 0: none */
    uint64_t compress_ms; /* images that were not used for so long take less room; OPS_GC_NEVER */
};
struct ops_gc_item {
    const char *kind, *id, *action,
        *reason; /* "snapshot", "sandbox", "volume", "record"; "remove", "compress" */
    uint64_t freed;
    const struct err *failure; /* NULL: it was done, or would be */
};
/* item NULL: there is nothing to say yet. -1 ends it. */
typedef int ops_gc_each(void *arg, const struct ops_gc_item *item, struct err *err);
/* *ret_seen: how many things were looked at. */
int ops_gc(struct ops *ops, const struct ops_gc *gc, ops_gc_each *each, void *arg,
           uint64_t *ret_seen, struct err *err);

/* ---- a copy of the store ---- */

/* A file of <state>/server, which root reads and removes; with the whole of the audit chain up to now. */
int ops_host_copy(struct ops *ops, const char **ret_file, struct err *err);

#endif
