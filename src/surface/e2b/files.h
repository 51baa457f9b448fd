/* files.h - files of a sandbox as envd has them: whose, by which path, and what is said of each.
 *
 * envd runs as root in its sandbox and acts in a user's name. So do these: root's rights where the sandbox has root, and
 * what is made is the user's. Paths are resolved inside, never here.
 *
 * Callers: envd_*.c, filesystem_*.c. */
#ifndef COVE_SURFACE_E2B_FILES_H
#define COVE_SURFACE_E2B_FILES_H

#include "surface/e2b/e2b.h"

#define E2B_ATTR_PREFIX "user.e2b." /* extended attributes that are a file's metadata */

/* `user` NULL or "": the sandbox's own. `path` NULL or "": the working directory, which is the user's home; "~" and "~/x"
 * are in it, too; "~other" is refused. Texts are borrowed. */
int e2b_file(struct exchange *x, const char *user, const char *path, struct ops_file *ret,
             struct err *err);

/* EntryInfo, of an entry that was asked for with AGENT_NOFOLLOW and AGENT_RESOLVE. */
json_t *e2b_entry_json(const struct agent_reply *entry);
/* The attributes as an object; NULL when there are none. */
json_t *e2b_metadata_json(const struct texts *attrs);
/* Behind the last slash, as JSON. */
json_t *e2b_name_json(const char *path);

#endif
