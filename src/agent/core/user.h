/* user.h - who a command or a file operation runs as, from the sandbox's own /etc/passwd and
 * /etc/group.
 *
 * Strict: a line that is not whole is skipped, numbers are whole strings, an unknown user is an
 * error and never anybody else. Both files belong to the sandbox, so they are read as hostile:
 * regular files only, a bounded number of bytes, lines of bounded length.
 *
 * Callers: ops.c, spawn.c, workers. Never: caches; the sandbox's root may edit the files. */
#ifndef COVE_AGENT_CORE_USER_H
#define COVE_AGENT_CORE_USER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USER_NAME_MAX   64
#define USER_HOME_MAX   256
#define USER_SHELL_MAX  128
#define USER_GROUPS_MAX 32

struct user {
    char name[USER_NAME_MAX];
    uint32_t uid, gid;
    char home[USER_HOME_MAX];
    char shell[USER_SHELL_MAX];
    uint32_t groups[USER_GROUPS_MAX]; /* supplementary, without gid */
    uint32_t group_count;
};

/* One line of /etc/passwd, without its newline. False: not whole, or a part that is too long. */
bool user_parse_passwd(const char *line, size_t len, struct user *ret);

/* One line of /etc/group: adds its gid when `user->name` is a member and there is room. */
void user_parse_group(const char *line, size_t len, struct user *user);

/* ERR_NO_USER when there is none; ERR_NO_ROOT when it has uid 0 and root is not allowed. `etc` is
 * the directory with passwd and group. */
int user_find(const char *etc, const char *name, bool root_allowed, struct user *ret,
              struct err *err);

/* Names behind numbers, for replies: false where the file has none. `size` bytes at out. */
bool user_name_of(const char *etc, uint32_t uid, char *out, size_t size);
bool user_group_name_of(const char *etc, uint32_t gid, char *out, size_t size);

/* Numbers behind names (CHOWN): false where the file has none. */
bool user_uid_of(const char *etc, const char *name, uint32_t *ret_uid);
bool user_gid_of(const char *etc, const char *name, uint32_t *ret_gid);

/* Both for CHOWN and UNPACK: names, or else numbers. NULL is UINT32_MAX, which leaves an id as it is. ERR_NO_USER. */
int user_owner_of(const char *etc, const char *owner, const char *group, uint32_t *ret_uid,
                  uint32_t *ret_gid, struct err *err);
/* The group of an owner that came without one: that of the user's line, or the owner's own number. */
uint32_t user_group_of(const char *etc, uint32_t uid);

#endif
