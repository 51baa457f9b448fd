/* saved.h - what the keeper has: sandboxes, and those that are paused to disk.
 *
 * Owns:    nothing.
 * Callers: ps --keeper, kill --keeper. */
#ifndef COVE_CLI_SAVED_H
#define COVE_CLI_SAVED_H

#include "cli/common.h"
#include "cli/verbs.h"
#include "client/image.h"
#include "client/sandbox.h"

/* Sandboxes, and behind them those that are paused to disk: paused, and without a pid. The caller's to free. */
int saved_list(struct link *link, struct keeper_sandbox **ret, size_t *ret_count, struct err *err);
/* All images; none where nothing can be saved. */
int saved_images(struct link *link, struct keeper_image **ret, size_t *ret_count, struct err *err);

/* One that is paused to disk, by id or name. ERR_NO_SANDBOX. */
int saved_find(struct link *link, const char *sandbox, struct keeper_image *ret, struct err *err);
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
