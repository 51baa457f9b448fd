/* recipe.h - what built templates are made of: one table.
 *
 * A recipe is a Debian suite, packages, and shell steps that run at the end of the installation
 * with the tree as $1. Two hashes follow from it: what the packages and steps give can be cached
 * under recipe_cache_key, and a template is up to date when its manifest has recipe_hash. */
#ifndef COVE_TEMPLATE_RECIPE_H
#define COVE_TEMPLATE_RECIPE_H

#include <stddef.h>

#define RECIPE_HASH_MAX 17
#define RECIPE_ENV_MAX  8

struct recipe {
    const char *name;
    const char *description;
    const char *suite;
    const char *packages; /* separated by blanks */
    const char *steps;    /* POSIX shell; any failing command fails the build */
    const char *env[RECIPE_ENV_MAX];
    const char *user;          /* NULL: user; with the id 1000 and a home of this name */
    const char *modules;       /* of python, for its memory image; NULL: none */
    const char *start, *ready; /* of `cove template warm`; NULL: none */
    unsigned free_mib;         /* space that building takes */
};

extern const struct recipe recipes[];
extern const size_t recipe_count;

/* NULL: there is none of that name. */
const struct recipe *recipe_find(const char *name);

void recipe_cache_key(const struct recipe *recipe, char out[RECIPE_HASH_MAX]);
void recipe_hash(const struct recipe *recipe, char out[RECIPE_HASH_MAX]);

#endif
