/* template_build.h - makes a template from a recipe, with Debian's own tools.
 *
 * Owns:    the cache (COVE_CACHE, or /var/cache/cove): debs/ with downloaded packages, trees/ with
 *          finished trees, one archive per recipe. Both may be deleted at any time.
 * Callers: the template verb. Needs root: packages bring files of many owners, and their
 *          scripts run in the tree (chroot, in namespaces of their own: child.h).
 * Never:   a half-made template: it exists when it is whole (template_store.h). */
#ifndef COVE_TEMPLATE_TEMPLATE_BUILD_H
#define COVE_TEMPLATE_TEMPLATE_BUILD_H

#include "base/err.h"
#include "template/maker.h"
#include "template/recipe.h"

#include <stdbool.h>
#include <stdint.h>

#define TEMPLATE_CACHE_DEFAULT "/var/cache/cove"

struct template_build_options {
    bool rebuild;  /* from packages, also when the template or an archive of it is there */
    bool no_cache; /* neither reads nor leaves anything in the cache */
};

struct template_build_result {
    bool was_there;  /* nothing to do */
    bool from_cache; /* from an archive */
    uint64_t bytes, files;
    uint64_t wall_ms;
    int signal; /* that interrupted it, or 0 */
};

int template_build(const struct template_maker *maker, const char *state,
                   const struct recipe *recipe, const struct template_build_options *options,
                   struct template_build_result *ret, struct err *err);

#endif
