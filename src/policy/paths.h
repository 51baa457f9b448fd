/* paths.h - paths as text: nothing here looks at a file system. */
#ifndef COVE_POLICY_PATHS_H
#define COVE_POLICY_PATHS_H

#include "policy/analysis.h"

/* Absolute, without . .. and doubled slashes, seen from the working directory; as it is when that
 * is not known or the path starts with something unknown. */
const char *path_resolve(struct analysis *an, const char *text);

/* * ? [set] and [!set] against all of text; * also matches '/'. Linear enough: two places are kept,
 * nothing recurses. */
bool glob_match(const char *pattern, const char *text);

/* Whether an absolute path is at or beneath a pattern such as "/etc/cron*" or, after any directory,
 * "** /.ssh" (written without the blank). A path that is itself a glob meets what it could expand
 * to, provided that it says something: "/etc/sh*" does, "/etc/ *" does not. */
bool path_meets(const char *pattern, const char *path, bool is_glob);

/* Looks like a path rather than like text, an option or a URL. */
bool path_like(const char *text);

/* The built-in rule on paths for this access; RULE_NONE when there is none. */
enum rule path_rule(struct analysis *an, const char *path, bool is_glob, enum policy_access access);

/* "/", "/etc", "/usr/lib" ... : whole trees that the system needs. */
bool path_is_system_tree(const char *path);
/* The home directory of anybody. */
bool path_is_home(const struct policy *policy, const char *path);

#endif
