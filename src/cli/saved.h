/* saved.h - sandboxes that are paused to disk and snapshots, for the verbs that know of them.
 *
 * What the command line makes has no owner: its owner is "". What belongs to a tenant of the server keeps its
 * tenant, as the server's store says, if there is one. The keeper lets root do both.
 *
 * Owns:    nothing.
 * Callers: kill, pause, resume, ps, create, snapshot, fork, gc; all that take a sandbox, for saved_resolve. */
#ifndef COVE_CLI_SAVED_H
#define COVE_CLI_SAVED_H

#include "cli/common.h"
#include "cli/verbs.h"
#include "client/image.h"
#include "client/sandbox.h"
#include "store/store.h"

/* Sandboxes, and behind them those that are paused to disk: paused, and without a pid. The caller's to free. */
int saved_list(struct link *link, struct keeper_sandbox **ret, size_t *ret_count, struct err *err);
/* All images; none where nothing can be saved. */
int saved_images(struct link *link, struct keeper_image **ret, size_t *ret_count, struct err *err);

/* One that is paused to disk, by id or name. ERR_NO_SANDBOX. */
int saved_find(struct link *link, const char *sandbox, struct keeper_image *ret, struct err *err);
/* A snapshot by id; or by name, if only one tenant of the server has one of that name. ERR_NO_IMAGE. */
int saved_snapshot(struct link *link, const char *snapshot, struct keeper_image *ret,
                   struct err *err);
/* A new sandbox of an image, as it was. */
int saved_load(struct link *link, const struct keeper_image *image, struct keeper_sandbox *ret,
               struct err *err);
/* *ret NULL: this state directory has none. */
int saved_store(struct store **ret, struct err *err);
/* Whose it is: the tenant of the server's record, or "". */
void saved_owner(const char *sandbox, char ret[KEEPER_NAME_MAX]);

/* The beginning of an id, at least SAVED_PREFIX_LEAST characters, becomes the whole id if only one sandbox has it. What
 * is a whole id, or a name, or without an owner stays as it is. ERR_USAGE: several have it. *name may be another string
 * afterwards, which is never freed: it is an operand. */
#define SAVED_PREFIX_LEAST 5
int saved_resolve(struct link *link, char **name, struct err *err);

/* The id that the server has for a name, in its place; as it was where the server does not run or does not know it. */
void saved_id_of(char *name, size_t size);

/* A step for each sandbox that is named, or for all that saved_list has. Continues after a failure; returns the first
 * one's exit code. */
typedef int saved_step(struct link *link, const char *sandbox, void *context, struct err *err);
int saved_each(const struct verb *verb, bool all, char **names, int count, saved_step *step,
               void *context);

#endif
