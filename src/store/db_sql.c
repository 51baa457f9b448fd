#include "store/db.h"

/* Version 1. Later ones are made of it by db_upgrades: user_version says what a file has. */
const char db_schema[] =
    "CREATE TABLE tenants("
    "  name TEXT PRIMARY KEY, created_ms INT NOT NULL, sandboxes INT NOT NULL,"
    "  cpu_milli INT NOT NULL, memory_bytes INT NOT NULL, disk_bytes INT NOT NULL,"
    "  creates_per_s INT NOT NULL, requests_per_s INT NOT NULL, streams INT NOT NULL"
    ") WITHOUT ROWID;"
    "CREATE TABLE keys("
    "  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, hash BLOB NOT NULL, tenant TEXT NOT NULL,"
    "  scope INT NOT NULL, label TEXT NOT NULL, created_ms INT NOT NULL, expires_ms INT NOT NULL,"
    "  revoked_ms INT NOT NULL, last_used_ms INT NOT NULL);"
    "CREATE INDEX keys_by_tenant ON keys(tenant);"
    "CREATE TABLE sandboxes("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    "  name TEXT NOT NULL, template TEXT NOT NULL, metadata TEXT NOT NULL,"
    "  created_ms INT NOT NULL, deadline_ms INT NOT NULL, on_timeout INT NOT NULL,"
    "  idempotency_key TEXT NOT NULL, cpu_milli INT NOT NULL, memory_bytes INT NOT NULL,"
    "  disk_bytes INT NOT NULL);"
    "CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes(tenant, name) WHERE name <> '';"
    "CREATE UNIQUE INDEX sandboxes_by_idempotency ON sandboxes(tenant, idempotency_key)"
    "  WHERE idempotency_key <> '';"
    "CREATE INDEX sandboxes_by_tenant ON sandboxes(tenant);"
    "CREATE TABLE secrets(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE audit("
    "  seq INTEGER PRIMARY KEY, time_ms INT NOT NULL, tenant TEXT NOT NULL, user_id TEXT NOT NULL,"
    "  sandbox_id TEXT NOT NULL, action TEXT NOT NULL, outcome TEXT NOT NULL,"
    "  request_id TEXT NOT NULL, peer TEXT NOT NULL, code_hash TEXT NOT NULL,"
    "  resource_usage TEXT NOT NULL, security_events TEXT NOT NULL, detail TEXT NOT NULL,"
    "  duration_ms INT NOT NULL, exit_code INT NOT NULL, hash BLOB NOT NULL);"
    "CREATE INDEX audit_by_tenant ON audit(tenant);"
    "CREATE INDEX audit_by_sandbox ON audit(sandbox_id) WHERE sandbox_id <> '';"
    "CREATE TABLE chain("
    "  id INTEGER PRIMARY KEY CHECK (id = 1), anchor_seq INT NOT NULL, anchor_hash BLOB NOT NULL,"
    "  head_seq INT NOT NULL, head_hash BLOB NOT NULL);"
    "INSERT INTO chain VALUES(1, 0, zeroblob(32), 0, zeroblob(32));"
    "INSERT INTO tenants VALUES('local', strftime('%s','now') * 1000, 0, 0, 0, 0, 0, 0, 0);"
    "PRAGMA application_id = 0x636f7665;"
    "PRAGMA user_version = 1;";

#define CHANGED(row)                                                                               \
    " INSERT INTO private_changes(tenant, seq)"                                                    \
    "  SELECT " row ".tenant, coalesce(max(seq), 0) + 1 FROM private_changes WHERE true"           \
    "  ON CONFLICT(tenant) DO UPDATE SET seq = excluded.seq; "

/* What network_proxy.c keeps of a proxy. Not every text is JSON: "" is none. */
#define SEAL_LOGINS(table, text)                                                                   \
    "UPDATE " table " SET " text " = json_remove(json_set(" text ", '$.proxy.login',"              \
    "   seal('proxy/' || json_extract(" text ", '$.proxy.type') || '/' ||"                         \
    "        json_extract(" text ", '$.proxy.address'),"                                           \
    "        json_extract(" text ", '$.proxy.username') || char(10) ||"                            \
    "        coalesce(json_extract(" text ", '$.proxy.password'), ''))),"                          \
    "   '$.proxy.username', '$.proxy.password')"                                                   \
    " WHERE CASE WHEN json_valid(" text ")"                                                        \
    "   THEN json_extract(" text ", '$.proxy.username') END IS NOT NULL;"

/* From version n + 1 to n + 2, each in the transaction that brings a file up to date. What is new has a default, so that
 * a server of the version before, if one still runs, keeps using the same file. */
const char *const db_upgrades[DB_VERSION - 1] = {
    "ALTER TABLE tenants ADD COLUMN stored_bytes INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN request_hash TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 2;",
    /* Environments may be long, and only commands need them: not in the records that everybody reads. */
    "CREATE TABLE environments(id TEXT PRIMARY KEY, env TEXT NOT NULL) WITHOUT ROWID;"
    "PRAGMA user_version = 3;",
    "CREATE TABLE networks(id TEXT PRIMARY KEY, rules TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TRIGGER networks_end AFTER DELETE ON sandboxes"
    "  BEGIN DELETE FROM networks WHERE id = old.id; END;"
    "PRAGMA user_version = 4;",
    "CREATE TABLE previews(id TEXT PRIMARY KEY, generation INT NOT NULL, rules TEXT NOT NULL) "
    "WITHOUT ROWID;"
    "CREATE TRIGGER previews_end AFTER DELETE ON sandboxes"
    "  BEGIN DELETE FROM previews WHERE id = old.id; END;"
    "PRAGMA user_version = 5;",
    /* The number in private_changes grows with every change of anybody's: who remembers it learns which tenants have
     * changed since. `last` is the number that was given out last, here for networks, there for members. */
    "CREATE TABLE private_networks("
    "  tenant TEXT NOT NULL, name TEXT NOT NULL, created_ms INT NOT NULL, number INT NOT NULL,"
    "  last INT NOT NULL DEFAULT 0, PRIMARY KEY(tenant, name)) WITHOUT ROWID;"
    "CREATE TABLE private_members("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, network TEXT NOT NULL,"
    "  sandbox TEXT NOT NULL, alias TEXT NOT NULL, number INT NOT NULL, ports TEXT NOT NULL,"
    "  joined_ms INT NOT NULL, UNIQUE(tenant, network, sandbox), UNIQUE(tenant, network, alias));"
    "CREATE INDEX private_by_sandbox ON private_members(sandbox);"
    "CREATE TABLE private_changes(tenant TEXT PRIMARY KEY, seq INT NOT NULL,"
    "  last INT NOT NULL DEFAULT 254) WITHOUT ROWID;"
    "CREATE INDEX private_by_change ON private_changes(seq);"
    "CREATE TRIGGER private_sandbox_end AFTER DELETE ON sandboxes"
    "  BEGIN DELETE FROM private_members WHERE sandbox = old.id; END;"
    "CREATE TRIGGER private_tenant_end AFTER DELETE ON tenants"
    "  BEGIN DELETE FROM private_networks WHERE tenant = old.name; END;"
    /* clang-format off */
    "CREATE TRIGGER private_network_end AFTER DELETE ON private_networks BEGIN"
    "  DELETE FROM private_members WHERE tenant = old.tenant AND network = old.name;"
    CHANGED("old") "END;"
    "CREATE TRIGGER private_network_add AFTER INSERT ON private_networks BEGIN" CHANGED("new")
    "  UPDATE private_changes SET last = new.number WHERE tenant = new.tenant; END;"
    "CREATE TRIGGER private_member_end AFTER DELETE ON private_members BEGIN" CHANGED("old") "END;"
    "CREATE TRIGGER private_member_add AFTER INSERT ON private_members BEGIN" CHANGED("new") "END;"
    "CREATE TRIGGER private_member_set AFTER UPDATE ON private_members BEGIN" CHANGED("new") "END;"
    "PRAGMA user_version = 6;",
    /* clang-format on */
    /* The login of a proxy apart from the rules, which are shown. */
    "CREATE TABLE network_defaults(kind TEXT NOT NULL, name TEXT NOT NULL, rules TEXT NOT NULL,"
    "  login TEXT NOT NULL, PRIMARY KEY(kind, name)) WITHOUT ROWID;"
    "CREATE TRIGGER network_defaults_end AFTER DELETE ON tenants"
    "  BEGIN DELETE FROM network_defaults WHERE kind = 'tenant' AND name = old.name; END;"
    "PRAGMA user_version = 7;",
    /* Which sandbox has which volume, in the order in which they are mounted. */
    "CREATE TABLE volumes(id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL,"
    "  bytes INT NOT NULL, inodes INT NOT NULL, created_ms INT NOT NULL) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX volumes_by_name ON volumes(tenant, name);"
    "CREATE TABLE volume_uses(sandbox TEXT NOT NULL, place INT NOT NULL, volume TEXT NOT NULL,"
    "  path TEXT NOT NULL, read_only INT NOT NULL, PRIMARY KEY(sandbox, place)) WITHOUT ROWID;"
    "CREATE INDEX volume_uses_by_volume ON volume_uses(volume);"
    "CREATE TRIGGER volume_uses_end AFTER DELETE ON sandboxes"
    "  BEGIN DELETE FROM volume_uses WHERE sandbox = old.id; END;"
    "PRAGMA user_version = 8;",
    "CREATE TABLE pools(template TEXT NOT NULL, root INT NOT NULL, memory_bytes INT NOT NULL,"
    "  disk_bytes INT NOT NULL, disk_inodes INT NOT NULL, cpu_milli INT NOT NULL,"
    "  processes INT NOT NULL, open_files INT NOT NULL, ptys INT NOT NULL, ready INT NOT NULL,"
    "  target INT NOT NULL, least INT NOT NULL, most INT NOT NULL, hits INT NOT NULL,"
    "  misses INT NOT NULL, updated_ms INT NOT NULL);"
    "CREATE TABLE pool_rules(template TEXT PRIMARY KEY, least INT NOT NULL, most INT NOT NULL)"
    "  WITHOUT ROWID;"
    "PRAGMA user_version = 9;",
    /* Tenants' secrets, and what each sandbox has to do with them: sealed (seal.h). */
    "CREATE TABLE vault("
    "  tenant TEXT NOT NULL, name TEXT NOT NULL, hosts TEXT NOT NULL, sealed TEXT NOT NULL,"
    "  created_ms INT NOT NULL, updated_ms INT NOT NULL, PRIMARY KEY(tenant, name)) WITHOUT ROWID;"
    "CREATE TABLE vault_changes(id INTEGER PRIMARY KEY CHECK (id = 1), count INT NOT NULL);"
    "INSERT INTO vault_changes VALUES(1, 0);"
    "CREATE TRIGGER vault_end AFTER DELETE ON tenants"
    "  BEGIN DELETE FROM vault WHERE tenant = old.name; END;"
    "CREATE TRIGGER vault_removed AFTER DELETE ON vault"
    "  BEGIN UPDATE vault_changes SET count = count + 1; END;"
    "CREATE TRIGGER vault_added AFTER INSERT ON vault"
    "  BEGIN UPDATE vault_changes SET count = count + 1; END;"
    "CREATE TRIGGER vault_changed AFTER UPDATE ON vault"
    "  BEGIN UPDATE vault_changes SET count = count + 1; END;"
    "CREATE TABLE hidden(id TEXT PRIMARY KEY, sealed TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TRIGGER hidden_end AFTER DELETE ON sandboxes"
    "  BEGIN DELETE FROM hidden WHERE id = old.id; END;"
    "PRAGMA user_version = 10;",
    /* How a sandbox sleeps, when it is to, and what it was given to live; and saved ones. What is long of a snapshot is
     * in a table of its own, as environments are. */
    "ALTER TABLE sandboxes ADD COLUMN tier INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN tier_aim INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN paused_by INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN paused_ms INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN image_bytes INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN image_memory INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN timeout_ms INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN idle_pause_ms INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN idle_disk_ms INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN auto_resume INT NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN forgets INT NOT NULL DEFAULT 0;"
    "CREATE TABLE snapshots("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    "  name TEXT NOT NULL, sandbox TEXT NOT NULL, template TEXT NOT NULL, metadata TEXT NOT NULL,"
    "  created_ms INT NOT NULL, state INT NOT NULL, memory INT NOT NULL, bytes INT NOT NULL);"
    "CREATE UNIQUE INDEX snapshots_by_name ON snapshots(tenant, name) WHERE name <> '';"
    "CREATE INDEX snapshots_by_tenant ON snapshots(tenant);"
    "CREATE TABLE snapshots_kept("
    "  id TEXT PRIMARY KEY, env TEXT NOT NULL, network TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TRIGGER snapshots_end AFTER DELETE ON snapshots"
    "  BEGIN DELETE FROM snapshots_kept WHERE id = old.id; END;"
    "PRAGMA user_version = 11;",
    "CREATE TABLE warm("
    "  template TEXT PRIMARY KEY, image TEXT NOT NULL, start TEXT NOT NULL, ready TEXT NOT NULL,"
    "  modules TEXT NOT NULL, made_ms INT NOT NULL, bytes INT NOT NULL) WITHOUT ROWID;"
    "PRAGMA user_version = 12;",
    /* A snapshot has what its sandbox had of secrets and volumes, under its own id. */
    "CREATE TRIGGER snapshots_end_more AFTER DELETE ON snapshots BEGIN"
    "  DELETE FROM hidden WHERE id = old.id; DELETE FROM volume_uses WHERE sandbox = old.id; END;"
    "PRAGMA user_version = 13;",
    /* Logins of proxies were in the open. */
    /* clang-format off */
    SEAL_LOGINS("networks", "rules")
    SEAL_LOGINS("snapshots_kept", "network")
    "UPDATE network_defaults SET login = seal('login/' || kind || '/' || name, login)"
    "  WHERE login <> '';"
    "PRAGMA user_version = 14;",
    /* clang-format on */
    /* What was in it is of use for ten minutes. */
    "DROP TABLE pools;"
    "CREATE TABLE pools(template TEXT NOT NULL, root INT NOT NULL, memory_bytes INT NOT NULL,"
    "  disk_bytes INT NOT NULL, disk_inodes INT NOT NULL, cpu_milli INT NOT NULL,"
    "  processes INT NOT NULL, open_files INT NOT NULL, ptys INT NOT NULL, ready INT NOT NULL,"
    "  target INT NOT NULL, least INT NOT NULL, most INT NOT NULL, hits INT NOT NULL,"
    "  misses INT NOT NULL, updated_ms INT NOT NULL, warm INT NOT NULL);"
    "PRAGMA user_version = 15;",
    "ALTER TABLE tenants ADD COLUMN images INT NOT NULL DEFAULT 1000;"
    "UPDATE tenants SET images = 0 WHERE name = 'local';"
    "PRAGMA user_version = 16;",
    /* What a tenant's sandboxes must at least have; and pools of each. */
    "ALTER TABLE tenants ADD COLUMN isolation INT NOT NULL DEFAULT 0;"
    "ALTER TABLE pools ADD COLUMN isolation INT NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 17;",
    /* Templates that tenants build. A snapshot of theirs stays while a build or a step speaks of it. */
    "CREATE TABLE templates("
    "  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, public INT NOT NULL,"
    "  created_ms INT NOT NULL, updated_ms INT NOT NULL) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX templates_by_name ON templates(tenant, name);"
    "CREATE TABLE builds("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, template TEXT NOT NULL,"
    "  tenant TEXT NOT NULL, state INT NOT NULL, reason TEXT NOT NULL, step TEXT NOT NULL,"
    "  sandbox TEXT NOT NULL, snapshot TEXT NOT NULL, tags TEXT NOT NULL, cpu_milli INT NOT NULL,"
    "  memory_bytes INT NOT NULL, disk_bytes INT NOT NULL, created_ms INT NOT NULL,"
    "  ended_ms INT NOT NULL, settings TEXT NOT NULL);"
    "CREATE INDEX builds_by_template ON builds(template);"
    "CREATE INDEX builds_by_snapshot ON builds(snapshot);"
    "CREATE TABLE template_tags("
    "  template TEXT NOT NULL, tag TEXT NOT NULL, build TEXT NOT NULL, created_ms INT NOT NULL,"
    "  PRIMARY KEY(template, tag)) WITHOUT ROWID;"
    "CREATE TABLE build_steps("
    "  tenant TEXT NOT NULL, key TEXT NOT NULL, snapshot TEXT NOT NULL, bytes INT NOT NULL,"
    "  used_ms INT NOT NULL, PRIMARY KEY(tenant, key)) WITHOUT ROWID;"
    "CREATE INDEX build_steps_by_snapshot ON build_steps(snapshot);"
    "CREATE TRIGGER templates_end AFTER DELETE ON templates BEGIN"
    "  DELETE FROM builds WHERE template = old.id; DELETE FROM template_tags WHERE template = "
    "old.id; END;"
    "CREATE TRIGGER builds_end AFTER DELETE ON builds"
    "  BEGIN DELETE FROM template_tags WHERE build = old.id; END;"
    "CREATE TRIGGER tenants_end_templates AFTER DELETE ON tenants BEGIN"
    "  DELETE FROM templates WHERE tenant = old.name; DELETE FROM build_steps WHERE tenant = "
    "old.name; END;"
    "PRAGMA user_version = 18;",
    /* Images of tenants. A row stays without its tenant, until the template that it names is removed from the host. */
    "CREATE TABLE pulled("
    "  name TEXT PRIMARY KEY, tenant TEXT NOT NULL, digest TEXT NOT NULL, source TEXT NOT NULL,"
    "  bytes INT NOT NULL, created_ms INT NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX pulled_by_tenant ON pulled(tenant);"
    "PRAGMA user_version = 19;",
};

#define TENANT                                                                                     \
    "name, created_ms, sandboxes, cpu_milli, memory_bytes, disk_bytes, creates_per_s, "            \
    "requests_per_s, streams, stored_bytes, images, isolation"
#define PULLED "name, tenant, digest, source, bytes, created_ms"
#define KEY    "id, tenant, label, scope, created_ms, expires_ms, revoked_ms, last_used_ms"
#define SANDBOX                                                                                    \
    "seq, id, tenant, name, template, metadata, created_ms, deadline_ms, on_timeout, "             \
    "idempotency_key, cpu_milli, memory_bytes, disk_bytes, request_hash, tier, tier_aim, "         \
    "paused_by, paused_ms, image_bytes, image_memory, timeout_ms, idle_pause_ms, idle_disk_ms, "   \
    "auto_resume, forgets, EXISTS(SELECT 1 FROM volume_uses WHERE sandbox = sandboxes.id)"
#define SNAPSHOT                                                                                   \
    "seq, id, tenant, name, sandbox, template, metadata, created_ms, state, memory, bytes"

#define PRIVATE_NETWORK                                                                            \
    "name, created_ms, number, (SELECT count(*) FROM private_members m "                           \
    "WHERE m.tenant = n.tenant AND m.network = n.name)"
#define PRIVATE_MEMBER                                                                             \
    "m.network, m.sandbox, m.alias, m.ports, n.number, m.number, m.joined_ms, m.seq "              \
    "FROM private_members m JOIN private_networks n ON n.tenant = m.tenant AND n.name = m.network"
#define TEMPLATE "id, tenant, name, public, created_ms, updated_ms"
#define BUILD                                                                                      \
    "id, template, tenant, state, reason, step, sandbox, snapshot, tags, cpu_milli, "              \
    "memory_bytes, disk_bytes, created_ms, ended_ms"
#define TEMPLATE_USED                                                                              \
    "(EXISTS (SELECT 1 FROM builds b WHERE b.snapshot = s.id) OR "                                 \
    "EXISTS (SELECT 1 FROM build_steps c WHERE c.snapshot = s.id))"
#define WARM   "template, image, start, ready, modules, made_ms, bytes"
#define VOLUME "id, tenant, name, bytes, inodes, created_ms"
#define VOLUME_USE                                                                                 \
    "sandbox, volume, coalesce((SELECT name FROM volumes WHERE id = volume), ''), path, "          \
    "read_only FROM volume_uses "

/* clang-format off */
const char *const db_sql[SQL_COUNT] = {
    /* IMMEDIATE: the lock is taken where waiting for it is possible. */
    [SQL_BEGIN]              = "BEGIN IMMEDIATE",
    [SQL_COMMIT]             = "COMMIT",
    [SQL_ROLLBACK]           = "ROLLBACK",
    [SQL_SAVE]               = "SAVEPOINT job",
    [SQL_SAVE_UNDO]          = "ROLLBACK TO job",
    [SQL_SAVE_DONE]          = "RELEASE job",
    [SQL_SECRET_ADD]         = "INSERT OR IGNORE INTO secrets VALUES(?, ?)",
    [SQL_SECRET_GET]         = "SELECT value FROM secrets WHERE name = ?",
    [SQL_TENANT_ADD]         = "INSERT INTO tenants(" TENANT ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_TENANT_SET]         = "UPDATE tenants SET sandboxes = ?2, cpu_milli = ?3, "
                               "memory_bytes = ?4, disk_bytes = ?5, creates_per_s = ?6, "
                               "requests_per_s = ?7, streams = ?8, stored_bytes = ?9, images = ?10, "
                               "isolation = ?11 "
                               "WHERE name = ?1",
    [SQL_TENANT_GET]         = "SELECT " TENANT " FROM tenants WHERE name = ?",
    [SQL_TENANT_LIST]        = "SELECT " TENANT " FROM tenants ORDER BY name",
    [SQL_TENANT_HOLDS]       = "SELECT (SELECT count(*) FROM sandboxes WHERE tenant = ?1), "
                               "(SELECT count(*) FROM snapshots WHERE tenant = ?1)",
    /* 3: on disk, or on its way there. */
    [SQL_TENANT_IMAGES]      = "SELECT (SELECT count(*) FROM snapshots WHERE tenant = ?1) + "
                               "(SELECT count(*) FROM sandboxes WHERE tenant = ?1 AND (tier = 3 OR tier_aim = 3))",
    [SQL_TENANT_REMOVE]      = "DELETE FROM tenants WHERE name = ?",
    [SQL_TENANT_KEYS_REMOVE] = "DELETE FROM keys WHERE tenant = ?",
    [SQL_KEY_ADD]            = "INSERT INTO keys(id, hash, tenant, scope, label, created_ms, "
                               "expires_ms, revoked_ms, last_used_ms) VALUES(?,?,?,?,?,?,?,0,0)",
    [SQL_KEY_FIND]           = "SELECT " KEY ", hash FROM keys WHERE id = ?",
    [SQL_KEY_LIST]           = "SELECT " KEY " FROM keys WHERE ?1 = '' OR tenant = ?1 "
                               "ORDER BY seq DESC",
    [SQL_KEY_REVOKE]         = "UPDATE keys SET revoked_ms = "
                               "CASE revoked_ms WHEN 0 THEN ?2 ELSE revoked_ms END WHERE id = ?1",
    /* "<>" as well: after a clock jumped back, the time of use follows it. */
    [SQL_KEY_USED]           = "UPDATE keys SET last_used_ms = ?2 WHERE id = ?1 AND "
                               "(last_used_ms < ?2 - 60000 OR last_used_ms > ?2 + 60000)",
    [SQL_SANDBOX_ADD]        = "INSERT INTO sandboxes(id, tenant, name, template, metadata, "
                               "created_ms, deadline_ms, on_timeout, idempotency_key, cpu_milli, "
                               "memory_bytes, disk_bytes, request_hash, timeout_ms, idle_pause_ms, "
                               "idle_disk_ms, auto_resume, forgets) "
                               "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_SANDBOX_GET]        = "SELECT " SANDBOX " FROM sandboxes WHERE id = ?1 "
                               "AND (?2 = '' OR tenant = ?2)",
    [SQL_SANDBOX_BY_NAME]    = "SELECT " SANDBOX " FROM sandboxes "
                               "WHERE name = ?1 AND name <> '' AND tenant = ?2",
    [SQL_SANDBOX_BY_IDEMPOTENCY] = "SELECT " SANDBOX " FROM sandboxes "
                               "WHERE idempotency_key = ?1 AND idempotency_key <> '' AND tenant = ?2",
    [SQL_SANDBOX_SET_DEADLINE] = "UPDATE sandboxes SET deadline_ms = ?2, on_timeout = ?3 "
                               "WHERE id = ?1",
    [SQL_SANDBOX_SHIFT]      = "UPDATE sandboxes SET created_ms = max(created_ms + ?1, 0), deadline_ms = "
                               "CASE deadline_ms WHEN 0 THEN 0 ELSE max(deadline_ms + ?1, 1) END, paused_ms = "
                               "CASE paused_ms WHEN 0 THEN 0 ELSE max(paused_ms + ?1, 1) END",
    [SQL_SANDBOX_SET_METADATA] = "UPDATE sandboxes SET metadata = ?2 WHERE id = ?1",
    [SQL_SANDBOX_SET_SLEEP]  = "UPDATE sandboxes SET tier = ?2, tier_aim = ?3, paused_by = ?4, "
                               "paused_ms = ?5, image_bytes = ?6, image_memory = ?7 WHERE id = ?1",
    [SQL_SANDBOX_RENEW]      = "UPDATE sandboxes SET created_ms = ?2, deadline_ms = ?3 WHERE id = ?1",
    [SQL_SANDBOX_REMOVE_OLD] = "DELETE FROM sandboxes WHERE id = ?1 AND created_ms = ?2",
    [SQL_SANDBOX_REMOVE]     = "DELETE FROM sandboxes WHERE id = ?",
    [SQL_SANDBOX_LIST]       = "SELECT " SANDBOX " FROM sandboxes WHERE (?1 = '' OR tenant = ?1) "
                               "AND (?2 = 0 OR seq < ?2) ORDER BY seq DESC LIMIT ?3",
    [SQL_ENV_ADD]            = "INSERT INTO environments VALUES(?, ?)",
    [SQL_ENV_GET]            = "SELECT env FROM environments WHERE id = ?",
    [SQL_ENV_REMOVE]         = "DELETE FROM environments WHERE id = ?",
    [SQL_USAGE]              = "SELECT count(*), total(cpu_milli), total(memory_bytes), "
                               "total(disk_bytes) FROM sandboxes WHERE tenant = ? AND tier <> 3",
    [SQL_SNAPSHOT_ADD]       = "INSERT INTO snapshots(id, tenant, name, sandbox, template, metadata, "
                               "created_ms, state, memory, bytes) VALUES(?,?,?,?,?,?,?,?,?,0)",
    [SQL_SNAPSHOT_KEEP]      = "INSERT INTO snapshots_kept VALUES(?, ?, ?)",
    [SQL_SNAPSHOT_BYTES]     = "UPDATE snapshots SET bytes = ?2 WHERE id = ?1",
    [SQL_SNAPSHOT_READY]     = "UPDATE snapshots SET name = ?2, state = ?3, bytes = ?4, memory = ?5 "
                               "WHERE id = ?1",
    [SQL_SNAPSHOT_UNNAME]    = "UPDATE snapshots SET name = '' WHERE tenant = ?1 AND name = ?2",
    [SQL_SNAPSHOT_GET]       = "SELECT " SNAPSHOT " FROM snapshots WHERE id = ?1 "
                               "AND (?2 = '' OR tenant = ?2)",
    [SQL_SNAPSHOT_BY_NAME]   = "SELECT " SNAPSHOT " FROM snapshots "
                               "WHERE name = ?1 AND name <> '' AND tenant = ?2",
    [SQL_SNAPSHOT_KEPT]      = "SELECT env, network FROM snapshots_kept WHERE id = ?",
    [SQL_SNAPSHOT_LIST]      = "SELECT " SNAPSHOT " FROM snapshots WHERE (?1 = '' OR tenant = ?1) "
                               "AND (?2 = 0 OR seq < ?2) ORDER BY seq DESC LIMIT ?3",
    [SQL_SNAPSHOT_REMOVE]    = "DELETE FROM snapshots WHERE id = ?",
    [SQL_NETWORK_SET]        = "INSERT OR REPLACE INTO networks VALUES(?, ?)",
    [SQL_NETWORK_GET]        = "SELECT rules FROM networks WHERE id = ?",
    [SQL_NETWORK_LIST]       = "SELECT id, rules FROM networks",
    [SQL_NETWORK_DEFAULT_SET] = "INSERT OR REPLACE INTO network_defaults VALUES(?, ?, ?, ?)",
    [SQL_NETWORK_DEFAULT_GET] = "SELECT rules, login FROM network_defaults WHERE kind = ? AND name = ?",
    [SQL_NETWORK_DEFAULT_REMOVE] = "DELETE FROM network_defaults WHERE kind = ? AND name = ?",
    [SQL_PREVIEW_SET]        = "INSERT INTO previews VALUES(?1, 0, ?2) "
                               "ON CONFLICT(id) DO UPDATE SET rules = ?2",
    /* Of a sandbox that ended meanwhile nothing is kept: its id finds no record. */
    [SQL_PREVIEW_ROLL]       = "INSERT INTO previews SELECT id, 1, '' FROM sandboxes WHERE id = ?1 "
                               "ON CONFLICT(id) DO UPDATE SET generation = generation + 1",
    [SQL_PREVIEW_GET]        = "SELECT generation, rules FROM previews WHERE id = ?",
    [SQL_PRIVATE_ADD]        = "INSERT INTO private_networks(tenant, name, created_ms, number) VALUES(?,?,?,?)",
    [SQL_PRIVATE_GET]        = "SELECT " PRIVATE_NETWORK " FROM private_networks n WHERE tenant = ? AND name = ?",
    [SQL_PRIVATE_LIST]       = "SELECT " PRIVATE_NETWORK " FROM private_networks n WHERE tenant = ? ORDER BY name",
    [SQL_PRIVATE_REMOVE]     = "DELETE FROM private_networks WHERE tenant = ? AND name = ?",
    [SQL_PRIVATE_COUNT]      = "SELECT count(*) FROM private_networks WHERE tenant = ?",
    [SQL_PRIVATE_LAST]       = "SELECT coalesce((SELECT last FROM private_changes WHERE tenant = ?), 254)",
    [SQL_PRIVATE_NUMBERS]    = "SELECT number FROM private_networks WHERE tenant = ?",
    [SQL_PRIVATE_SANDBOX]    = "SELECT name FROM sandboxes WHERE id = ? AND tenant = ?",
    [SQL_PRIVATE_ALIAS]      = "SELECT 1 FROM private_members WHERE tenant = ? AND network = ? AND alias = ? AND sandbox <> ?",
    [SQL_PRIVATE_JOINS]      = "SELECT count(*) FROM private_members WHERE tenant = ? AND sandbox = ?",
    [SQL_PRIVATE_MEMBER_ADD] = "INSERT INTO private_members(tenant, network, sandbox, alias, number, ports, joined_ms) "
                               "VALUES(?,?,?,?,?,?,?)",
    [SQL_PRIVATE_MEMBER_SET] = "UPDATE private_members SET alias = ?4, ports = ?5 "
                               "WHERE tenant = ?1 AND network = ?2 AND sandbox = ?3",
    [SQL_PRIVATE_MEMBER_NOTE] = "UPDATE private_networks SET last = ?3 WHERE tenant = ?1 AND name = ?2",
    [SQL_PRIVATE_MEMBER_GET] = "SELECT " PRIVATE_MEMBER " WHERE m.tenant = ? AND m.network = ? AND m.sandbox = ?",
    [SQL_PRIVATE_MEMBER_REMOVE] = "DELETE FROM private_members WHERE tenant = ? AND network = ? AND sandbox = ?",
    [SQL_PRIVATE_MEMBER_LAST] = "SELECT last FROM private_networks WHERE tenant = ? AND name = ?",
    [SQL_PRIVATE_MEMBER_NUMBERS] = "SELECT number FROM private_members WHERE tenant = ? AND network = ?",
    [SQL_PRIVATE_MEMBERS]    = "SELECT " PRIVATE_MEMBER " WHERE m.tenant = ?1 AND (?2 = '' OR m.network = ?2) "
                               "ORDER BY m.network, m.seq",
    [SQL_PRIVATE_CHANGED]    = "SELECT tenant, seq FROM private_changes WHERE seq > ? ORDER BY seq",
    [SQL_VOLUME_ADD]         = "INSERT INTO volumes(" VOLUME ") VALUES(?,?,?,?,?,?)",
    [SQL_VOLUME_GET]         = "SELECT " VOLUME " FROM volumes WHERE tenant = ?1 "
                               "AND (name = ?2 OR id = ?2) ORDER BY name = ?2 DESC LIMIT 1",
    [SQL_VOLUME_LIST]        = "SELECT " VOLUME " FROM volumes WHERE ?1 = '' OR tenant = ?1 "
                               "ORDER BY tenant, name",
    [SQL_VOLUME_REMOVE]      = "DELETE FROM volumes WHERE id = ?",
    [SQL_VOLUME_USAGE]       = "SELECT count(*), total(bytes) FROM volumes WHERE tenant = ?",
    [SQL_VOLUME_USE_ADD]     = "INSERT INTO volume_uses VALUES(?,?,?,?,?)",
    [SQL_VOLUME_USES_OF]     = "SELECT " VOLUME_USE "WHERE sandbox = ? ORDER BY place",
    [SQL_VOLUME_USERS]       = "SELECT " VOLUME_USE "WHERE volume = ? ORDER BY sandbox",
    [SQL_POOLS_CLEAR]        = "DELETE FROM pools",
    [SQL_POOL_ADD]           = "INSERT INTO pools VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_POOL_LIST]          = "SELECT * FROM pools ORDER BY template, root, memory_bytes, warm",
    [SQL_POOL_RULE_SET]      = "INSERT OR REPLACE INTO pool_rules VALUES(?, ?, ?)",
    [SQL_POOL_RULE_REMOVE]   = "DELETE FROM pool_rules WHERE template = ?",
    [SQL_POOL_RULE_LIST]     = "SELECT template, least, most FROM pool_rules ORDER BY template",
    [SQL_WARM_SET]           = "INSERT OR REPLACE INTO warm VALUES(?, ?, ?, ?, ?, ?, ?)",
    [SQL_WARM_REMOVE]        = "DELETE FROM warm WHERE template = ?",
    [SQL_WARM_GET]           = "SELECT " WARM " FROM warm WHERE template = ?",
    [SQL_WARM_LIST]          = "SELECT " WARM " FROM warm ORDER BY template",
    [SQL_TEMPLATE_ADD]        = "INSERT INTO templates(" TEMPLATE ") VALUES(?,?,?,?,?,?)",
    [SQL_TEMPLATE_COUNT]      = "SELECT count(*) FROM templates WHERE tenant = ?",
    [SQL_TEMPLATE_OWN]        = "SELECT " TEMPLATE " FROM templates WHERE tenant = ?1 AND (name = ?2 OR id = ?2)",
    [SQL_TEMPLATE_PUBLIC]     = "SELECT " TEMPLATE " FROM templates WHERE public = 1 AND (name = ?1 OR id = ?1) ORDER BY created_ms LIMIT 1",
    [SQL_TEMPLATE_LIST]       = "SELECT " TEMPLATE " FROM templates WHERE tenant = ?1 OR public = 1 ORDER BY tenant <> ?1, name",
    [SQL_TEMPLATE_PUBLISH]    = "UPDATE templates SET public = ?2 WHERE id = ?1",
    [SQL_TEMPLATE_REMOVE]     = "DELETE FROM templates WHERE id = ?",
    [SQL_BUILD_ADD]           = "INSERT INTO builds(" BUILD ", settings) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,'')",
    [SQL_BUILD_GET]           = "SELECT " BUILD " FROM builds WHERE tenant = ?1 AND id = ?2",
    [SQL_BUILD_LIST]          = "SELECT " BUILD " FROM builds WHERE tenant = ?1 AND (?2 = '' OR template = ?2) ORDER BY seq DESC LIMIT ?3",
    [SQL_BUILD_OPEN]          = "SELECT " BUILD " FROM builds WHERE ended_ms = 0 OR sandbox <> ''",
    [SQL_BUILD_SET]           = "UPDATE builds SET state = ?2, reason = ?3, step = ?4, sandbox = ?5, snapshot = ?6, ended_ms = ?7 WHERE id = ?1",
    [SQL_BUILD_SETTINGS]      = "UPDATE builds SET settings = ?2 WHERE id = ?1",
    [SQL_BUILD_SETTINGS_GET]  = "SELECT settings FROM builds WHERE id = ?",
    [SQL_BUILD_UPDATED]       = "UPDATE templates SET updated_ms = ?2 WHERE id = ?1",
    [SQL_BUILD_OLD]           = "SELECT " BUILD " FROM builds b WHERE template = ?1 AND ended_ms > 0 AND sandbox = '' AND NOT EXISTS "
                               "(SELECT 1 FROM template_tags t WHERE t.build = b.id) ORDER BY seq DESC LIMIT -1 OFFSET ?2",
    [SQL_BUILD_REMOVE]        = "DELETE FROM builds WHERE id = ?",
    [SQL_TAG_SET]             = "INSERT OR REPLACE INTO template_tags VALUES(?,?,?,?)",
    [SQL_TAGS_SET]            = "INSERT OR REPLACE INTO template_tags SELECT ?1, value, ?2, ?3 FROM json_each(?4)",
    [SQL_TAG_GET]             = "SELECT " BUILD " FROM builds WHERE id = (SELECT build FROM template_tags WHERE template = ?1 AND tag = ?2)",
    [SQL_TAG_REMOVE]          = "DELETE FROM template_tags WHERE template = ? AND tag = ?",
    [SQL_TAG_LIST]            = "SELECT t.tag, t.build, t.created_ms, s.bytes, CASE WHEN json_valid(b.settings) THEN json_extract(b.settings, '$.from') END"
                                " FROM template_tags t LEFT JOIN builds b ON b.id = t.build LEFT JOIN snapshots s ON s.id = b.snapshot"
                                " WHERE t.template = ? ORDER BY t.tag",
    [SQL_STEP_ADD]            = "INSERT OR REPLACE INTO build_steps VALUES(?,?,?,?,?)",
    [SQL_STEP_GET]            = "SELECT snapshot FROM build_steps WHERE tenant = ? AND key = ?",
    [SQL_STEP_USED]           = "UPDATE build_steps SET used_ms = ?3 WHERE tenant = ?1 AND key = ?2",
    [SQL_STEP_LIST]           = "SELECT key, snapshot, bytes FROM build_steps WHERE tenant = ? ORDER BY used_ms DESC",
    [SQL_STEP_REMOVE]         = "DELETE FROM build_steps WHERE tenant = ? AND key = ?",
    [SQL_PULLED_ADD]          = "INSERT INTO pulled(" PULLED ") VALUES(?,?,?,?,?,?)",
    [SQL_PULLED_SET]          = "UPDATE pulled SET digest = ?2, bytes = ?3 WHERE name = ?1",
    [SQL_PULLED_LIST]         = "SELECT " PULLED " FROM pulled WHERE ?1 = '' OR tenant = ?1 ORDER BY created_ms DESC",
    [SQL_PULLED_IDLE]         = "SELECT " PULLED " FROM pulled WHERE (?1 = '' OR tenant = ?1) AND NOT EXISTS "
                               "(SELECT 1 FROM snapshots s WHERE s.template = pulled.name)",
    [SQL_PULLED_USAGE]        = "SELECT count(*), total(bytes) FROM pulled WHERE tenant = ?",
    [SQL_PULLED_REMOVE]       = "DELETE FROM pulled WHERE name = ?",
    [SQL_TEMPLATE_IMAGE_USED] = "SELECT 1 FROM snapshots s WHERE s.id = ? AND " TEMPLATE_USED,
    [SQL_TEMPLATE_IMAGES_UNUSED] = "SELECT id FROM snapshots s WHERE state = 3 AND NOT " TEMPLATE_USED,
    [SQL_VAULT_SET]          = "INSERT INTO vault VALUES(?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO UPDATE "
                               "SET hosts = ?3, sealed = ?4, updated_ms = ?5",
    [SQL_VAULT_GET]          = "SELECT name, hosts, created_ms, updated_ms, sealed FROM vault "
                               "WHERE tenant = ? AND name = ?",
    [SQL_VAULT_COUNT]        = "SELECT count(*) FROM vault WHERE tenant = ? AND name <> ?",
    [SQL_VAULT_LIST]         = "SELECT name, hosts, created_ms, updated_ms FROM vault "
                               "WHERE tenant = ? ORDER BY name",
    [SQL_VAULT_REMOVE]       = "DELETE FROM vault WHERE tenant = ? AND name = ?",
    [SQL_VAULT_STAMP]        = "SELECT count FROM vault_changes",
    [SQL_HIDDEN_SET]         = "INSERT OR REPLACE INTO hidden VALUES(?, ?)",
    [SQL_HIDDEN_GET]         = "SELECT sealed FROM hidden WHERE id = ?",
    [SQL_HIDDEN_LIST]        = "SELECT hidden.id, tenant FROM hidden JOIN sandboxes ON "
                               "sandboxes.id = hidden.id WHERE ?1 = '' OR tenant = ?1",
    [SQL_CHAIN_GET]          = "SELECT anchor_seq, anchor_hash, head_seq, head_hash FROM chain",
    [SQL_CHAIN_HEAD]         = "UPDATE chain SET head_seq = ?, head_hash = ?",
    [SQL_CHAIN_ANCHOR]       = "UPDATE chain SET anchor_seq = ?, anchor_hash = ?",
    [SQL_AUDIT_ADD]          = "INSERT INTO audit VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_AUDIT_WALK]         = "SELECT * FROM audit ORDER BY seq",
    /* The last one before the first that is kept: times may go back, seqs do not. */
    [SQL_AUDIT_CUT]          = "SELECT coalesce((SELECT min(seq) - 1 FROM audit "
                               "WHERE time_ms >= ?1), (SELECT head_seq FROM chain))",
    [SQL_AUDIT_HASH]         = "SELECT hash FROM audit WHERE seq = ?",
    [SQL_AUDIT_PRUNE]        = "DELETE FROM audit WHERE seq <= ?",
    [SQL_SIZE]               = "SELECT (p.page_count - f.freelist_count) * s.page_size FROM "
                               "pragma_page_count p, pragma_freelist_count f, pragma_page_size s",
    [SQL_QUICK_CHECK]        = "PRAGMA quick_check(1)",
};
/* clang-format on */
