#include "agent/core/user.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MOST (1024u * 1024u)
#define LINE_MOST 2048u

/* Decimal digits only, at most 2^32 - 2: all ones means "no change" to chown and setresuid. */
static bool parse_id(const char *text, size_t len, uint32_t *ret)
{
    uint64_t value = 0;

    if (len == 0 || len > 10)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t) (text[i] - '0');
    }
    if (value >= UINT32_MAX)
        return false;
    *ret = (uint32_t) value;
    return true;
}

static bool copy(char *out, size_t size, const char *text, size_t len)
{
    if (len >= size)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

struct part {
    const char *text;
    size_t len;
};

/* Exactly `count` parts between colons, and no control byte anywhere. */
static bool split(const char *line, size_t len, struct part *parts, size_t count)
{
    size_t n = 0, from = 0;

    for (size_t i = 0; i <= len; i++) {
        if (i < len && (unsigned char) line[i] < ' ')
            return false;
        if (i < len && line[i] != ':')
            continue;
        if (n == count)
            return false;
        parts[n++] = (struct part){ line + from, i - from };
        from = i + 1;
    }
    return n == count && parts[0].len > 0;
}

bool user_parse_passwd(const char *line, size_t len, struct user *ret)
{
    struct user user = { .uid = 0 };
    struct part p[7];

    if (!split(line, len, p, ARRAY_LEN(p)) ||
        !copy(user.name, sizeof user.name, p[0].text, p[0].len) ||
        !parse_id(p[2].text, p[2].len, &user.uid) || !parse_id(p[3].text, p[3].len, &user.gid) ||
        !copy(user.home, sizeof user.home, p[5].text, p[5].len) ||
        !copy(user.shell, sizeof user.shell, p[6].text, p[6].len))
        return false;
    *ret = user;
    return true;
}

static bool is_member(const struct part *members, const char *name)
{
    size_t want = strlen(name);

    for (size_t i = 0, from = 0; i <= members->len; i++) {
        if (i < members->len && members->text[i] != ',')
            continue;
        if (i - from == want && memcmp(members->text + from, name, want) == 0)
            return true;
        from = i + 1;
    }
    return false;
}

void user_parse_group(const char *line, size_t len, struct user *user)
{
    struct part p[4];
    uint32_t gid;

    if (!split(line, len, p, ARRAY_LEN(p)) || !parse_id(p[2].text, p[2].len, &gid) ||
        gid == user->gid || !is_member(&p[3], user->name) || user->group_count == USER_GROUPS_MAX)
        return;
    for (uint32_t i = 0; i < user->group_count; i++)
        if (user->groups[i] == gid)
            return;
    user->groups[user->group_count++] = gid;
}

/* True from a callback ends the walk. */
typedef bool line_fn(const char *line, size_t len, void *data);

/* Every line that fits, of at most FILE_MOST bytes; a longer line is skipped whole. Returns whether
 * a callback said so, or -1 with errno when the file cannot be read. */
static int each_line(const char *etc, const char *file, line_fn *fn, void *data)
{
    char path[256], buf[LINE_MOST];
    auto_close int fd = -1;
    struct stat st;
    size_t have = 0, total = 0;
    bool skip = false;

    (void) snprintf(path, sizeof path, "%s/%s", etc, file);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    while (total < FILE_MOST) {
        ssize_t n = read(fd, buf + have, sizeof buf - have);
        size_t from = 0;

        if (n < 0)
            return -1;
        if (n == 0)
            return have > 0 && !skip ? fn(buf, have, data) : 0;
        have += (size_t) n;
        total += (size_t) n;
        for (char *nl; (nl = memchr(buf + from, '\n', have - from));
             from = (size_t) (nl - buf) + 1) {
            if (!skip && fn(buf + from, (size_t) (nl - buf) - from, data))
                return 1;
            skip = false;
        }
        memmove(buf, buf + from, have - from);
        have -= from;
        if (have == sizeof buf) {
            skip = true;
            have = 0;
        }
    }
    return 0;
}

struct passwd_search {
    const char *name; /* or NULL: by number */
    uint32_t id;
    struct user user;
};

static bool match_passwd(const char *line, size_t len, void *data)
{
    struct passwd_search *search = data;

    return user_parse_passwd(line, len, &search->user) &&
           (search->name ? strcmp(search->user.name, search->name) == 0
                         : search->user.uid == search->id);
}

static bool add_group(const char *line, size_t len, void *data)
{
    user_parse_group(line, len, data);
    return false;
}

int user_find(const char *etc, const char *name, bool root_allowed, struct user *ret,
              struct err *err)
{
    struct passwd_search search = { .name = name };
    int found = each_line(etc, "passwd", match_passwd, &search);

    /* A sandbox without a passwd file still has its root: nothing else could repair it. */
    if (found < 0 && strcmp(name, "root") == 0) {
        search.user = (struct user){ .name = "root", .home = "/root", .shell = "/bin/sh" };
        found = 1;
    }
    if (found < 0)
        return err_sys(err, errno, "user '%s': %s/passwd", name, etc);
    if (!found)
        return err_set(err, ERR_NO_USER, "no user '%s' in the sandbox", name);
    if (search.user.uid == 0 && !root_allowed)
        return err_set(err, ERR_NO_ROOT, "this sandbox was made without root");
    /* No group file means no further groups. */
    (void) each_line(etc, "group", add_group, &search.user);
    *ret = search.user;
    return 0;
}

struct group_search {
    const char *name; /* or NULL: by number */
    uint32_t gid;
    char found[USER_NAME_MAX];
};

static bool match_group(const char *line, size_t len, void *data)
{
    struct group_search *search = data;
    struct part p[4];
    uint32_t gid;

    if (!split(line, len, p, ARRAY_LEN(p)) || !parse_id(p[2].text, p[2].len, &gid) ||
        !copy(search->found, sizeof search->found, p[0].text, p[0].len))
        return false;
    if (search->name ? strcmp(search->found, search->name) != 0 : gid != search->gid)
        return false;
    search->gid = gid;
    return true;
}

bool user_name_of(const char *etc, uint32_t uid, char *out, size_t size)
{
    struct passwd_search search = { .id = uid };

    return each_line(etc, "passwd", match_passwd, &search) > 0 &&
           copy(out, size, search.user.name, strlen(search.user.name));
}

bool user_group_name_of(const char *etc, uint32_t gid, char *out, size_t size)
{
    struct group_search search = { .gid = gid };

    return each_line(etc, "group", match_group, &search) > 0 &&
           copy(out, size, search.found, strlen(search.found));
}

bool user_uid_of(const char *etc, const char *name, uint32_t *ret_uid)
{
    struct passwd_search search = { .name = name };

    if (each_line(etc, "passwd", match_passwd, &search) <= 0)
        return false;
    *ret_uid = search.user.uid;
    return true;
}

bool user_gid_of(const char *etc, const char *name, uint32_t *ret_gid)
{
    struct group_search search = { .name = name };

    if (each_line(etc, "group", match_group, &search) <= 0)
        return false;
    *ret_gid = search.gid;
    return true;
}

static int find_id(const char *etc, const char *what, const char *text, uint32_t *ret_id,
                   bool (*look)(const char *, const char *, uint32_t *), struct err *err)
{
    if (!text)
        *ret_id = UINT32_MAX;
    else if (!look(etc, text, ret_id) && !parse_id(text, strlen(text), ret_id))
        return err_set(err, ERR_NO_USER, "no %s '%s'", what, text);
    return 0;
}

int user_owner_of(const char *etc, const char *owner, const char *group, uint32_t *ret_uid,
                  uint32_t *ret_gid, struct err *err)
{
    return find_id(etc, "user", owner, ret_uid, user_uid_of, err) < 0
               ? -1
               : find_id(etc, "group", group, ret_gid, user_gid_of, err);
}

uint32_t user_group_of(const char *etc, uint32_t uid)
{
    struct passwd_search search = { .id = uid };

    return each_line(etc, "passwd", match_passwd, &search) > 0 ? search.user.gid : uid;
}
