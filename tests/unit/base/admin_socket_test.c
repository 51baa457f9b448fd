#include "base/admin_socket.h"

#include "base/own.h"
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct admin_rule rule = { .group = 500, .never = { 601, 602, ADMIN_NOBODY } };

static void users_without_the_group_are_refused(void)
{
    const gid_t others[] = { 4, 27, 501 };

    CHECK(!admin_allows(&rule, 1000, 1000, NULL, 0));
    CHECK(!admin_allows(&rule, 1000, 0, others, ARRAY_LEN(others)));
    CHECK(!admin_allows(&rule, 65534, 65534, NULL, 0));
}

static void programs_of_ours_and_sandboxes_are_refused_also_as_members(void)
{
    const gid_t member[] = { 500 };

    CHECK(!admin_allows(&rule, 601, 500, member, 1));
    CHECK(!admin_allows(&rule, 602, 500, member, 1));
    CHECK(!admin_allows(&rule, ADMIN_ID_MAX, 500, member, 1));
    CHECK(!admin_allows(&rule, ADMIN_ID_MAX + 65536, 500, member, 1));
    CHECK(!admin_allows(&rule, ADMIN_NOBODY, 500, member, 1));
}

static void without_a_group_there_is_only_root(void)
{
    const struct admin_rule root = { .group = ADMIN_ROOT,
                                     .never = { ADMIN_NOBODY, ADMIN_NOBODY, ADMIN_NOBODY } };
    const gid_t groups[] = { 0 };

    CHECK(!admin_allows(&root, 1000, 0, groups, 1));
    CHECK(admin_allows(&root, 0, 0, NULL, 0));
}

static void root_and_members_are_administrators(void)
{
    const gid_t groups[] = { 4, 500 };

    CHECK(admin_allows(&rule, 0, 1000, NULL, 0));
    CHECK(admin_allows(&rule, 1000, 500, NULL, 0));
    CHECK(admin_allows(&rule, 1000, 1000, groups, ARRAY_LEN(groups)));
}

static void a_socket_replaces_what_an_earlier_server_left(void)
{
    char dir[] = "/tmp/cove-admin.XXXXXX", path[64];
    int first = -1, second = -1, client = -1;
    struct stat st;
    struct err err;

    CHECK(mkdtemp(dir) != NULL);
    (void) snprintf(path, sizeof path, "%s/" ADMIN_SOCKET, dir);
    CHECK(admin_connect(dir, &client, &err) == -1 && err.kind == ERR_UNAVAILABLE);
    CHECK(admin_listen(dir, ADMIN_ROOT, &first, &err) == 0);
    CHECK(stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0600);
    own_close(&first);
    CHECK(admin_connect(dir, &client, &err) == -1 && err.kind == ERR_UNAVAILABLE);
    CHECK(strstr(err.msg, "cove up") != NULL);
    CHECK(admin_listen(dir, getgid() ? getgid() : 1, &second, &err) == 0 || geteuid() != 0);
    if (second >= 0) {
        CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0660);
        CHECK(admin_connect(dir, &client, &err) == 0);
    }
    own_close(&client);
    own_close(&second);
    CHECK(unlink(path) == 0 || second < 0);
    CHECK(rmdir(dir) == 0);
}

CHECK_MAIN(T(users_without_the_group_are_refused),
           T(programs_of_ours_and_sandboxes_are_refused_also_as_members),
           T(without_a_group_there_is_only_root), T(root_and_members_are_administrators),
           T(a_socket_replaces_what_an_earlier_server_left))
