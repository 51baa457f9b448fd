/* glob.h - patterns of file names: ** * ? [a-z] {a,b}.
 *
 * A pattern is split at its slashes into parts; "**" is a part that stands for any number of
 * directories. Braces are taken apart first, so that one pattern may become many; all of them are
 * followed at once as a set of states, one step per name. So a walk looks into no directory that
 * cannot hold a match, nothing is found twice, and no pattern takes exponential time: a step costs
 * at most states x name x part.
 *
 * Names with a leading dot match only a part that begins with a dot, unless `hidden`. "?" and
 * [ranges] are of UTF-8 characters; an invalid byte counts as one. A trailing slash means
 * directories only. Compiling and matching are pure; fuzzed.
 *
 * Callers: worker.c (glob_run), grep.c (file names to search). */
#ifndef COVE_AGENT_WORKER_GLOB_H
#define COVE_AGENT_WORKER_GLOB_H

#include "agent/worker/worker.h"

#include <stdbool.h>

#define GLOB_STATES    2048 /* parts of all alternatives together */
#define GLOB_WORDS     (GLOB_STATES / 64)
#define GLOB_PATTERNS  1000 /* alternatives that braces may make */
#define GLOB_MATCH     1u
#define GLOB_MATCH_DIR 2u /* a match if it is a directory */
#define GLOB_MORE      4u /* something below may match */

struct glob;

struct glob_set {
    uint64_t bits[GLOB_WORDS];
};

int glob_new(const char *pattern, bool hidden, struct glob **ret, struct err *err);
void glob_free(struct glob *glob);

/* Words of a set that this pattern uses. */
size_t glob_words(const struct glob *glob);

void glob_start(const struct glob *glob, struct glob_set *ret);

/* The states behind `name`; returns GLOB_* flags. Through a link "**" does not go. */
unsigned glob_step(const struct glob *glob, const uint64_t *from, const char *name, bool link,
                   struct glob_set *ret);

/* A whole relative path that is no directory. */
bool glob_match(const struct glob *glob, const char *path);

/* The operation GLOB. */
int glob_run(struct worker *w, struct err *err);

#endif
