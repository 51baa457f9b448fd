/* Private networks in the store: who may be in them, how many, and who gets which number. */
#include "base/own.h"
#include "store/private.h"

#include "check.h"

#include <unistd.h>

static char state[64];
static struct store *store;
static struct err err;

static void begin(void)
{
    (void) strcpy(state, "/tmp/cove-store.XXXXXX");
    if (!mkdtemp(state) || store_open(state, &store, &err) < 0) {
        printf("not ok - a store opens: %s\n", err.msg);
        exit(1);
    }
}

static void end(void)
{
    char command[128];

    store_close(store);
    store = NULL;
    (void) snprintf(command, sizeof command, "rm -rf %s", state);
    IGNORE(system(command));
}

static void box_id(int n, char out[ID_LEN + 1])
{
    (void) snprintf(out, ID_LEN + 1, "i%020d", n);
}

static void add_box(const char *tenant, int n, const char *name)
{
    struct store_sandbox sandbox = { .created_ms = 1 };

    box_id(n, sandbox.id);
    (void) strcpy(sandbox.tenant, tenant);
    (void) strcpy(sandbox.name, name);
    CHECK(store_sandbox_add(store, &sandbox, &err) == 0);
}

static int join(const char *tenant, const char *network, int n, const char *alias,
                struct private_member *ret)
{
    struct private_member wanted = { .port_count = 1, .ports = { 80 } };

    (void) strcpy(wanted.network, network);
    (void) strcpy(wanted.alias, alias);
    box_id(n, wanted.sandbox);
    return store_private_join(store, tenant, &wanted, ret, &err);
}

static int make(const char *tenant, const char *name)
{
    bool made;

    return store_private_make(store, tenant, name, &made, &err);
}

static int count_member(void *arg, const struct private_member *member, struct err *why)
{
    (void) member;
    (void) why;
    ++*(int *) arg;
    return 0;
}

static int members(const char *tenant, const char *network)
{
    int count = 0;

    CHECK(store_private_members(store, tenant, network, count_member, &count, &err) == 0);
    return count;
}

/* ---- words ---- */

static void labels_are_those_of_dns(void)
{
    static const char *const bad[] = { "", "-a", "a-", "A", "a.b", "a_b", "ä", "a b" };
    char longest[65];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!private_label_ok(bad[i]));
    memset(longest, 'a', sizeof longest);
    longest[64] = '\0';
    CHECK(!private_label_ok(longest));
    longest[63] = '\0';
    CHECK(private_label_ok(longest));
    CHECK(private_label_ok("a") && private_label_ok("0-1"));
}

static void ports_are_read_and_written(void)
{
    static const char *const bad[] = { "0", "65536", "80,", ",80", "80,,81", "x", "80 ", "-1" };
    struct private_member member = { .port_count = 0 };
    char text[PRIVATE_PORTS_TEXT];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(private_ports_parse(bad[i], &member, &err) == -1 && err.kind == ERR_INVALID);
    CHECK(private_ports_parse("80,443,80", &member, &err) == 0);
    private_ports_print(&member, text);
    CHECK_STR(text, "80,443");
    CHECK(private_ports_parse("", &member, &err) == 0 && member.port_count == 0);
    CHECK(private_ports_parse("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,"
                              "26,27,28,29,30,31,32,33",
                              &member, &err) == -1 &&
          err.kind == ERR_TOO_BIG);
}

/* ---- numbers of things ---- */

static void a_tenant_has_so_many_networks(void)
{
    char name[16];

    begin();
    for (int i = 0; i < PRIVATE_NETWORKS; i++) {
        (void) snprintf(name, sizeof name, "n%d", i);
        CHECK(make("local", name) == 0);
    }
    CHECK(make("local", "n0") == 0);
    CHECK(make("local", "more") == -1);
    CHECK_INT(err.kind, ERR_TOO_MANY);
    CHECK_STR(err.msg, "a tenant has 64 networks at most");
    CHECK(store_private_remove(store, "local", "n7", &err) == 0);
    CHECK(make("local", "more") == 0);
    end();
}

static void a_network_has_so_many_members(void)
{
    struct private_member member;

    begin();
    CHECK(make("local", "net") == 0);
    for (int i = 0; i <= PRIVATE_MEMBERS; i++)
        add_box("local", i, "");
    for (int i = 0; i < PRIVATE_MEMBERS; i++)
        CHECK(join("local", "net", i, "", &member) == 0);
    CHECK(join("local", "net", PRIVATE_MEMBERS, "", &member) == -1);
    CHECK_STR(err.msg, "a network has 200 members at most");
    CHECK(join("local", "net", 3, "three", &member) == 0);
    CHECK_STR(member.alias, "three");
    CHECK_INT(members("local", "net"), PRIVATE_MEMBERS);
    end();
}

static void a_sandbox_is_in_so_many_networks(void)
{
    struct private_member member;
    char name[16];

    begin();
    add_box("local", 1, "one");
    for (int i = 0; i <= PRIVATE_JOINS; i++) {
        (void) snprintf(name, sizeof name, "n%d", i);
        CHECK(make("local", name) == 0);
        CHECK(join("local", name, 1, "", &member) == (i < PRIVATE_JOINS ? 0 : -1));
    }
    CHECK_STR(err.msg, "a sandbox is in 8 networks at most");
    end();
}

/* ---- who ---- */

static void only_sandboxes_of_the_tenant_get_in(void)
{
    struct store_quotas none = { .sandboxes = 0 };
    struct private_member member;

    begin();
    CHECK(store_tenant_add(store, "other", &none, &err) == 0);
    add_box("local", 1, "");
    add_box("other", 2, "");
    CHECK(make("local", "net") == 0);
    CHECK(join("local", "net", 2, "", &member) == -1);
    CHECK_INT(err.kind, ERR_NO_SANDBOX);
    CHECK(join("other", "net", 2, "", &member) == -1);
    CHECK_INT(err.kind, ERR_NO_PATH);
    CHECK(join("local", "net", 1, "", &member) == 0);
    CHECK_STR(member.alias, member.sandbox);
    CHECK(store_private_remove(store, "other", "net", &err) == -1);
    end();
}

static void an_alias_is_one_members(void)
{
    struct private_member member;

    begin();
    add_box("local", 1, "db");
    add_box("local", 2, "my_box");
    CHECK(make("local", "net") == 0);
    CHECK(join("local", "net", 1, "", &member) == 0);
    CHECK_STR(member.alias, "db");
    CHECK(join("local", "net", 2, "db", &member) == -1);
    CHECK_INT(err.kind, ERR_NAME_TAKEN);
    CHECK(join("local", "net", 2, "", &member) == 0);
    CHECK_STR(member.alias, member.sandbox); /* no label, so the id */
    end();
}

static void a_number_rests_before_another_gets_it(void)
{
    struct private_member first, again, other;
    struct private_network before, after;

    begin();
    add_box("local", 1, "");
    add_box("local", 2, "");
    CHECK(make("local", "net") == 0);
    CHECK(join("local", "net", 1, "", &first) == 0);
    CHECK(store_private_leave(store, "local", "net", first.sandbox, &err) == 0);
    CHECK(store_private_leave(store, "local", "net", first.sandbox, &err) == -1);
    CHECK(join("local", "net", 2, "", &other) == 0);
    CHECK(join("local", "net", 1, "", &again) == 0);
    CHECK(other.number != first.number && again.number != first.number);
    CHECK(store_private_get(store, "local", "net", &before, &err) == 0);
    CHECK(store_private_remove(store, "local", "net", &err) == 0);
    CHECK(make("local", "net") == 0);
    CHECK(store_private_get(store, "local", "net", &after, &err) == 0);
    CHECK(before.number != after.number && after.members == 0);
    for (int i = 0; i < 300; i++) { /* around the end, and never 0 */
        CHECK(join("local", "net", 1, "", &again) == 0);
        CHECK(again.number >= 1 && again.number <= PRIVATE_NUMBER_MOST);
        CHECK(store_private_leave(store, "local", "net", again.sandbox, &err) == 0);
    }
    end();
}

/* ---- ends and changes ---- */

static void members_go_with_their_sandbox_and_networks_with_their_tenant(void)
{
    struct store_quotas none = { .sandboxes = 0 };
    struct private_network network;
    struct private_member member;

    begin();
    CHECK(store_tenant_add(store, "other", &none, &err) == 0);
    add_box("other", 1, "");
    CHECK(make("other", "net") == 0);
    CHECK(join("other", "net", 1, "", &member) == 0);
    CHECK(store_sandbox_remove(store, member.sandbox, &err) == 0);
    CHECK_INT(members("other", "net"), 0);
    CHECK(store_tenant_remove(store, "other", &err) == 0);
    CHECK(store_private_get(store, "other", "net", &network, &err) == -1);
    end();
}

static int count_tenant(void *arg, const char *tenant, struct err *why)
{
    (void) why;
    (void) tenant;
    ++*(int *) arg;
    return 0;
}

static int changed(uint64_t *seq)
{
    int count = 0;

    CHECK(store_private_changed(store, seq, count_tenant, &count, &err) == 0);
    return count;
}

static void whoever_remembers_learns_what_has_changed(void)
{
    struct store_quotas none = { .sandboxes = 0 };
    struct private_member member;
    uint64_t seq = 0;

    begin();
    CHECK(store_tenant_add(store, "other", &none, &err) == 0);
    CHECK_INT(changed(&seq), 0);
    CHECK(make("local", "net") == 0 && make("other", "net") == 0);
    CHECK_INT(changed(&seq), 2);
    CHECK_INT(changed(&seq), 0);
    add_box("local", 1, "");
    CHECK(join("local", "net", 1, "", &member) == 0);
    CHECK_INT(changed(&seq), 1);
    CHECK(join("local", "net", 1, "x", &member) == 0);
    CHECK_INT(changed(&seq), 1);
    CHECK(store_sandbox_remove(store, member.sandbox, &err) == 0);
    CHECK_INT(changed(&seq), 1);
    CHECK(store_private_remove(store, "local", "net", &err) == 0);
    CHECK_INT(changed(&seq), 1);
    seq = 0;
    CHECK_INT(changed(&seq), 2);
    end();
}

CHECK_MAIN(T(labels_are_those_of_dns), T(ports_are_read_and_written),
           T(a_tenant_has_so_many_networks), T(a_network_has_so_many_members),
           T(a_sandbox_is_in_so_many_networks), T(only_sandboxes_of_the_tenant_get_in),
           T(an_alias_is_one_members), T(a_number_rests_before_another_gets_it),
           T(members_go_with_their_sandbox_and_networks_with_their_tenant),
           T(whoever_remembers_learns_what_has_changed))
