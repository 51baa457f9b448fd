#include "oci/passwd.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

#define FIELDS 7

/* The fields of a line, as far as there are any; false: fewer than `least`. */
static bool split(const char *line, size_t len, size_t least, const char *at[FIELDS],
                  size_t lens[FIELDS])
{
    size_t n = 0;

    for (const char *from = line, *end = line + len; n < FIELDS;
         from = at[n - 1] + lens[n - 1] + 1) {
        const char *colon;

        if (from > end)
            break;
        colon = memchr(from, ':', (size_t) (end - from));
        at[n] = from;
        lens[n++] = (size_t) ((colon ? colon : end) - from);
    }
    return n >= least;
}

static bool id_of(const char *at, size_t len, uint32_t *ret)
{
    char text[12];
    uint64_t value;
    struct err ignored;

    if (len == 0 || len >= sizeof text)
        return false;
    memcpy(text, at, len);
    text[len] = '\0';
    if (parse_u64(text, &value, &ignored) < 0 || value > 65535)
        return false;
    *ret = (uint32_t) value;
    return true;
}

static bool user_of(const char *line, size_t len, struct passwd_user *ret)
{
    const char *at[FIELDS];
    size_t lens[FIELDS];

    if (!split(line, len, FIELDS, at, lens) || lens[0] == 0 || lens[0] >= sizeof ret->name ||
        lens[5] >= sizeof ret->home || !id_of(at[2], lens[2], &ret->uid) ||
        !id_of(at[3], lens[3], &ret->gid))
        return false;
    (void) snprintf(ret->name, sizeof ret->name, "%.*s", (int) lens[0], at[0]);
    (void) snprintf(ret->home, sizeof ret->home, "%.*s", (int) lens[5], at[5]);
    return true;
}

/* NULL name: by the id. */
static bool find(const char *text, const char *name, uint32_t uid, struct passwd_user *ret)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        if (user_of(line, len, ret) && (name ? strcmp(ret->name, name) == 0 : ret->uid == uid))
            return true;
        line += len + (line[len] == '\n');
    }
    return false;
}

bool passwd_by_name(const char *text, const char *name, struct passwd_user *ret)
{
    return find(text, name, 0, ret);
}

bool passwd_by_id(const char *text, uint32_t uid, struct passwd_user *ret)
{
    return find(text, NULL, uid, ret);
}

bool passwd_has_group(const char *text, const char *name, uint32_t gid)
{
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n"), lens[FIELDS];
        const char *at[FIELDS];
        uint32_t id;

        if (split(line, len, 3, at, lens) &&
            ((lens[0] == strlen(name) && memcmp(at[0], name, lens[0]) == 0) ||
             (id_of(at[2], lens[2], &id) && id == gid)))
            return true;
        line += len + (line[len] == '\n');
    }
    return false;
}

bool passwd_id_free(const char *passwd, const char *group, uint32_t id)
{
    struct passwd_user ignored;

    /* No group has an empty name. */
    return !passwd_by_id(passwd, id, &ignored) && !passwd_has_group(group, "", id);
}
