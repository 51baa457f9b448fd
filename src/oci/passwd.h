/* passwd.h - users and groups of an image, as text: found, added; pure, fuzzed. The text is hostile. */
#ifndef COVE_OCI_PASSWD_H
#define COVE_OCI_PASSWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PASSWD_MAX (256u * 1024) /* of one file */

struct passwd_user {
    char name[33];
    uint32_t uid, gid;
    char home[256];
};

/* Lines that are not whole are passed over. */
bool passwd_by_name(const char *text, const char *name, struct passwd_user *ret);
bool passwd_by_id(const char *text, uint32_t uid, struct passwd_user *ret);
/* Whether a group file has this name or number. */
bool passwd_has_group(const char *text, const char *name, uint32_t gid);
/* Whether an id is in either file, as a user or a group. */
bool passwd_id_free(const char *passwd, const char *group, uint32_t id);

#endif
