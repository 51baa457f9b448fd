#include "store/private.h"

#include "base/own.h"
#include "store/own.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

bool private_label_ok(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len < PRIVATE_LABEL_MAX && text[0] != '-' && text[len - 1] != '-' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int private_port_add(struct private_member *member, uint64_t port, struct err *err)
{
    if (port < 1 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "a port is a number from 1 to 65535");
    for (size_t i = 0; i < member->port_count; i++)
        if (member->ports[i] == port)
            return 0;
    if (member->port_count == PRIVATE_PORTS)
        return err_set(err, ERR_TOO_BIG, "more than %d ports", PRIVATE_PORTS);
    member->ports[member->port_count++] = (uint16_t) port;
    return 0;
}

int private_ports_parse(const char *text, struct private_member *ret, struct err *err)
{
    return parse_port_list(text, ret->ports, PRIVATE_PORTS, &ret->port_count, err);
}

void private_ports_print(const struct private_member *member, char out[PRIVATE_PORTS_TEXT])
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < member->port_count; i++)
        at += (size_t) snprintf(out + at, PRIVATE_PORTS_TEXT - at, "%s%u", i > 0 ? "," : "",
                                member->ports[i]);
}

/* ---- rows ---- */

static void read_network(sqlite3_stmt *stmt, struct private_network *ret)
{
    db_copy(stmt, 0, ret->name, sizeof ret->name);
    ret->created_ms = db_number(stmt, 1);
    ret->number = (unsigned) db_number(stmt, 2);
    ret->members = db_number(stmt, 3);
}

static void read_member(sqlite3_stmt *stmt, struct private_member *ret)
{
    struct err ignored;

    db_copy(stmt, 0, ret->network, sizeof ret->network);
    db_copy(stmt, 1, ret->sandbox, sizeof ret->sandbox);
    db_copy(stmt, 2, ret->alias, sizeof ret->alias);
    if (private_ports_parse(db_text(stmt, 3), ret, &ignored) < 0)
        ret->port_count = 0; /* what cannot be read lets no peer in */
    ret->network_number = (unsigned) db_number(stmt, 4);
    ret->number = (unsigned) db_number(stmt, 5);
    ret->joined_ms = db_number(stmt, 6);
    ret->seq = db_number(stmt, 7);
}

static int no_network(const char *name, struct err *err)
{
    return err_set(err, ERR_NO_PATH, "there is no network '%.63s'", name);
}

/* One row of one number, or -1. */
static int count(struct db *db, enum sql which, const char *a, const char *b, uint64_t *ret,
                 struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, which, err);

    if (!stmt)
        return -1;
    if (b)
        db_bind(stmt, "tt", a, b);
    else
        db_bind(stmt, "t", a);
    if (db_step(db, stmt, err) != 1)
        return -1;
    *ret = db_number(stmt, 0);
    (void) sqlite3_reset(stmt);
    return 0;
}

static int network_in(struct db *db, const char *tenant, const char *name,
                      struct private_network *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_PRIVATE_GET, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "tt", tenant, name);
    rc = db_step(db, stmt, err);
    if (rc == 1)
        read_network(stmt, ret);
    (void) sqlite3_reset(stmt);
    return rc == 1 ? 0 : rc == 0 ? no_network(name, err) : -1;
}

/* The first free number behind `last`, around the end. -1: none. */
static int next_number(const bool used[PRIVATE_NUMBER_MOST + 1], unsigned last, unsigned least)
{
    for (unsigned i = 1; i <= PRIVATE_NUMBER_MOST + 1; i++) {
        unsigned number = (last + i) % (PRIVATE_NUMBER_MOST + 1);

        if (number >= least && !used[number])
            return (int) number;
    }
    return -1;
}

/* last: the number of the newest. */
static int pick_number(struct db *db, enum sql which, const char *tenant, const char *network,
                       unsigned last, unsigned least, unsigned *ret, struct err *err)
{
    bool used[PRIVATE_NUMBER_MOST + 1] = { false };
    sqlite3_stmt *stmt = db_stmt(db, which, err);
    int rc, number;

    if (!stmt)
        return -1;
    if (network)
        db_bind(stmt, "tt", tenant, network);
    else
        db_bind(stmt, "t", tenant);
    while ((rc = db_step(db, stmt, err)) == 1)
        if (db_number(stmt, 0) <= PRIVATE_NUMBER_MOST)
            used[db_number(stmt, 0)] = true;
    if (rc < 0)
        return -1;
    number = next_number(used, last, least);
    if (number < 0)
        return err_set(err, ERR_TOO_MANY, "no number is free");
    *ret = (unsigned) number;
    return 0;
}

/* ---- networks ---- */

struct naming {
    const char *tenant, *name;
    bool made;
};

static int make(struct db *db, void *arg, struct err *err)
{
    struct naming *n = arg;
    struct private_network network;
    uint64_t networks, last;
    unsigned number;

    n->made = false;
    if (network_in(db, n->tenant, n->name, &network, err) == 0)
        return 0;
    if (err->kind != ERR_NO_PATH ||
        count(db, SQL_PRIVATE_COUNT, n->tenant, NULL, &networks, err) < 0)
        return -1;
    if (networks >= PRIVATE_NETWORKS)
        return err_set(err, ERR_TOO_MANY, "a tenant has %d networks at most", PRIVATE_NETWORKS);
    if (count(db, SQL_PRIVATE_LAST, n->tenant, NULL, &last, err) < 0 ||
        pick_number(db, SQL_PRIVATE_NUMBERS, n->tenant, NULL, (unsigned) last, 0, &number, err) < 0)
        return -1;
    n->made = true;
    return db_run(db, err, SQL_PRIVATE_ADD, "ttii", n->tenant, n->name, (int64_t) store_now_ms(),
                  (int64_t) number);
}

int store_private_make(struct store *store, const char *tenant, const char *name, bool *ret_made,
                       struct err *err)
{
    struct naming n = { tenant, name, false };

    if (!private_label_ok(name))
        return err_set(err, ERR_INVALID,
                       "name: 1 to 63 of a-z, 0-9 and '-', '-' neither first nor last");
    if (store_write(store, make, &n, err) < 0)
        return -1;
    *ret_made = n.made;
    return 0;
}

static int remove_network(struct db *db, void *arg, struct err *err)
{
    const struct naming *n = arg;

    if (db_run(db, err, SQL_PRIVATE_REMOVE, "tt", n->tenant, n->name) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1 ? 0 : no_network(n->name, err);
}

int store_private_remove(struct store *store, const char *tenant, const char *name, struct err *err)
{
    struct naming n = { tenant, name, false };

    return store_write(store, remove_network, &n, err);
}

int store_private_get(struct store *store, const char *tenant, const char *name,
                      struct private_network *ret, struct err *err)
{
    struct db db;
    int rc;

    if (reader_take(store, &db, err) < 0)
        return -1;
    rc = network_in(&db, tenant, name, ret, err);
    reader_give(store, &db);
    return rc;
}

int store_private_list(struct store *store, const char *tenant, store_private_each *each, void *arg,
                       struct err *err)
{
    struct private_network network;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_PRIVATE_LIST, err);
    if (stmt)
        db_bind(stmt, "t", tenant);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_network(stmt, &network);
        if (each(arg, &network, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}

/* ---- members ---- */

struct joining {
    const char *tenant;
    const struct private_member *join;
    struct private_member *ret;
};

static int member_in(struct db *db, const char *tenant, const char *network, const char *sandbox,
                     struct private_member *ret, struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_PRIVATE_MEMBER_GET, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "ttt", tenant, network, sandbox);
    rc = db_step(db, stmt, err);
    if (rc == 1)
        read_member(stmt, ret);
    (void) sqlite3_reset(stmt);
    return rc;
}

/* The alias that was asked for, or else what the sandbox is called. */
static int choose_alias(struct db *db, const char *tenant, const struct private_member *join,
                        char out[PRIVATE_LABEL_MAX], struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_PRIVATE_SANDBOX, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "tt", join->sandbox, tenant);
    rc = db_step(db, stmt, err);
    if (rc == 0)
        return err_set(err, ERR_NO_SANDBOX, "there is no sandbox '%.63s'", join->sandbox);
    if (rc < 0)
        return -1;
    db_copy(stmt, 0, out, PRIVATE_LABEL_MAX);
    (void) sqlite3_reset(stmt);
    if (join->alias[0])
        (void) strcpy(out, join->alias);
    else if (!private_label_ok(out))
        (void) strcpy(out, join->sandbox);
    return 0;
}

static int check_room(struct db *db, const char *tenant, const struct private_member *join,
                      const struct private_network *network, struct err *err)
{
    uint64_t joins;

    if (network->members >= PRIVATE_MEMBERS)
        return err_set(err, ERR_TOO_MANY, "a network has %d members at most", PRIVATE_MEMBERS);
    if (count(db, SQL_PRIVATE_JOINS, tenant, join->sandbox, &joins, err) < 0)
        return -1;
    return joins < PRIVATE_JOINS
               ? 0
               : err_set(err, ERR_TOO_MANY, "a sandbox is in %d networks at most", PRIVATE_JOINS);
}

static int check_alias(struct db *db, const char *tenant, const struct private_member *member,
                       struct err *err)
{
    sqlite3_stmt *stmt = db_stmt(db, SQL_PRIVATE_ALIAS, err);
    int rc;

    if (!stmt)
        return -1;
    db_bind(stmt, "tttt", tenant, member->network, member->alias, member->sandbox);
    rc = db_step(db, stmt, err);
    (void) sqlite3_reset(stmt);
    return rc == 1 ? err_set(err, ERR_NAME_TAKEN, "another member of '%s' is called '%s'",
                             member->network, member->alias)
                   : rc;
}

int private_join_in(struct db *db, const char *tenant, const struct private_member *join,
                    struct private_member *ret, struct err *err)
{
    struct private_member member = *join, before;
    char ports[PRIVATE_PORTS_TEXT];
    struct private_network network;
    uint64_t last;
    int known;

    if (network_in(db, tenant, join->network, &network, err) < 0 ||
        choose_alias(db, tenant, join, member.alias, err) < 0 ||
        check_alias(db, tenant, &member, err) < 0)
        return -1;
    private_ports_print(join, ports);
    known = member_in(db, tenant, join->network, join->sandbox, &before, err);
    if (known < 0)
        return -1;
    if (known == 0 &&
        (check_room(db, tenant, join, &network, err) < 0 ||
         count(db, SQL_PRIVATE_MEMBER_LAST, tenant, join->network, &last, err) < 0 ||
         pick_number(db, SQL_PRIVATE_MEMBER_NUMBERS, tenant, join->network, (unsigned) last, 1,
                     &member.number, err) < 0 ||
         db_run(db, err, SQL_PRIVATE_MEMBER_ADD, "ttttiti", tenant, join->network, join->sandbox,
                member.alias, (int64_t) member.number, ports, (int64_t) store_now_ms()) < 0 ||
         db_run(db, err, SQL_PRIVATE_MEMBER_NOTE, "tti", tenant, join->network,
                (int64_t) member.number) < 0))
        return -1;
    if (known == 1 && db_run(db, err, SQL_PRIVATE_MEMBER_SET, "ttttt", tenant, join->network,
                             join->sandbox, member.alias, ports) < 0)
        return -1;
    return member_in(db, tenant, join->network, join->sandbox, ret, err) == 1 ? 0 : -1;
}

static int join_in(struct db *db, void *arg, struct err *err)
{
    const struct joining *j = arg;

    return private_join_in(db, j->tenant, j->join, j->ret, err);
}

int store_private_join(struct store *store, const char *tenant, const struct private_member *join,
                       struct private_member *ret, struct err *err)
{
    struct private_member member;
    struct joining j = { tenant, join, &member };

    if (join->alias[0] && !private_label_ok(join->alias))
        return err_set(err, ERR_INVALID,
                       "alias: 1 to 63 of a-z, 0-9 and '-', '-' neither first nor last");
    if (store_write(store, join_in, &j, err) < 0)
        return -1;
    *ret = member;
    return 0;
}

struct leaving {
    const char *tenant, *network, *sandbox;
};

static int leave(struct db *db, void *arg, struct err *err)
{
    const struct leaving *l = arg;

    if (db_run(db, err, SQL_PRIVATE_MEMBER_REMOVE, "ttt", l->tenant, l->network, l->sandbox) < 0)
        return -1;
    return sqlite3_changes(db->handle) == 1
               ? 0
               : err_set(err, ERR_NO_PATH, "sandbox '%.63s' is not in a network '%.63s'",
                         l->sandbox, l->network);
}

int store_private_leave(struct store *store, const char *tenant, const char *network,
                        const char *sandbox, struct err *err)
{
    struct leaving l = { tenant, network, sandbox };

    return store_write(store, leave, &l, err);
}

int store_private_members(struct store *store, const char *tenant, const char *network,
                          store_private_member_each *each, void *arg, struct err *err)
{
    struct private_member member;
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_PRIVATE_MEMBERS, err);
    if (stmt)
        db_bind(stmt, "tt", tenant, network);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        read_member(stmt, &member);
        if (each(arg, &member, err) < 0) {
            rc = -1;
            break;
        }
    }
    reader_give(store, &db);
    return rc;
}

/* ---- changes ---- */

int store_private_changed(struct store *store, uint64_t *seq, store_private_tenant_each *each,
                          void *arg, struct err *err)
{
    char tenant[STORE_TENANT_MAX];
    sqlite3_stmt *stmt;
    struct db db;
    int rc = -1;

    if (reader_take(store, &db, err) < 0)
        return -1;
    stmt = db_stmt(&db, SQL_PRIVATE_CHANGED, err);
    if (stmt)
        db_bind(stmt, "i", (int64_t) *seq);
    while (stmt && (rc = db_step(&db, stmt, err)) == 1) {
        db_copy(stmt, 0, tenant, sizeof tenant);
        if (each(arg, tenant, err) < 0) {
            rc = -1;
            break;
        }
        *seq = db_number(stmt, 1);
    }
    reader_give(store, &db);
    return rc;
}
