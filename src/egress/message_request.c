/* What coved says to the gateway. */
#include "egress/message_own.h"

#include <stdlib.h>
#include <string.h>

#define HOST_ROWS_MOST 16384
#define PEM_MOST       65536

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for a message to the gateway");
}

/* A text as it is, in memory of its own. NULL stays NULL. */
static int take_text(char **ret, const char *text, struct err *err)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? no_memory(err) : 0;
}

/* ---- CONFIG ---- */

struct config_record {
    const char *version, *servers[EGRESS_SERVERS], *ranges, *proxy_ranges, *authorities;
    uint64_t connections, connects, bytes, idle_ms, questions, shares[EGRESS_SHARES];
    uint32_t server_port;
};

#define AT(field) offsetof(struct config_record, field)
static const struct field config_fields[] = {
    { 1, "version", FIELD_TEXT, AT(version), 32 },
    { 2, "server", FIELD_TEXT, AT(servers[0]), IP_TEXT_MAX },
    { 3, "server", FIELD_TEXT, AT(servers[1]), IP_TEXT_MAX },
    { 4, "server", FIELD_TEXT, AT(servers[2]), IP_TEXT_MAX },
    { 5, "server_port", FIELD_U32, AT(server_port), UINT16_MAX },
    { 6, "proxy_ranges", FIELD_TEXT, AT(proxy_ranges), EGRESS_RANGES_MAX },
    { 7, "authorities", FIELD_TEXT, AT(authorities), 0 },
    { 8, "connections", FIELD_U64, AT(connections), 0 },
    { 9, "connects_per_s", FIELD_U64, AT(connects), 0 },
    { 10, "bytes_per_s", FIELD_U64, AT(bytes), 0 },
    { 11, "idle_ms", FIELD_U64, AT(idle_ms), 0 },
    { 12, "questions_per_s", FIELD_U64, AT(questions), 0 },
    { 13, "ranges", FIELD_TEXT, AT(ranges), EGRESS_RANGES_MAX },
    { 14, "share_of_connections", FIELD_U64, AT(shares[EGRESS_CONNECTIONS]), 0 },
    { 15, "share_of_lookups", FIELD_U64, AT(shares[EGRESS_LOOKUPS]), 0 },
    { 16, "share_of_handshakes", FIELD_U64, AT(shares[EGRESS_HANDSHAKES]), 0 },
};
#undef AT
_Static_assert(EGRESS_SERVERS == 3 && EGRESS_SHARES == 3, "every server and share has a field");

int message_put_config(struct message_out *out, uint64_t serial, const struct egress_config *c,
                       struct err *err)
{
    struct config_record record = {
        .version = COVE_VERSION,
        .servers = { c->servers[0], c->servers[1], c->servers[2] },
        .server_port = c->server_port,
        .proxy_ranges = c->proxy_ranges,
        .authorities = c->authorities,
        .connections = c->limits.connections,
        .connects = c->limits.connects_per_s,
        .bytes = c->limits.bytes_per_s,
        .idle_ms = c->limits.idle_ms,
        .questions = c->limits.questions_per_s,
        .ranges = c->ranges,
    };

    memcpy(record.shares, c->shares, sizeof record.shares);

    return message_put(out, MESSAGE_CONFIG, 0, serial, TABLE(config_fields), &record, err);
}

int message_get_config(const void *body, size_t len, struct egress_config *c, struct err *err)
{
    struct config_record record;
    char *authorities;

    if (record_decode(config_fields, ARRAY_LEN(config_fields), &record, body, len, err) < 0)
        return -1;
    if (!record.version || strcmp(record.version, COVE_VERSION) != 0)
        return err_set(err, ERR_PROTOCOL, "coved and cove-gateway are of different versions");
    c->limits = (struct egress_limits){ .connections = record.connections,
                                        .connects_per_s = record.connects,
                                        .bytes_per_s = record.bytes,
                                        .idle_ms = record.idle_ms,
                                        .questions_per_s = record.questions };
    c->server_port = (uint16_t) record.server_port;
    memcpy(c->shares, record.shares, sizeof c->shares);
    for (size_t i = 0; i < EGRESS_SERVERS; i++)
        if (message_copy(c->servers[i], IP_TEXT_MAX, record.servers[i], "server", err) < 0)
            return -1;
    if (message_copy(c->proxy_ranges, sizeof c->proxy_ranges, record.proxy_ranges, "proxy_ranges",
                     err) < 0 ||
        message_copy(c->ranges, sizeof c->ranges, record.ranges, "ranges", err) < 0 ||
        take_text(&authorities, record.authorities, err) < 0)
        return -1;
    c->authorities = authorities;
    return 0;
}

/* ---- secrets: rows of a SET ---- */

struct host_record {
    uint32_t flags, port;
    const char *name;
};
enum { HOST_BELOW = 1, HOST_PLAIN = 2, HOST_TLS = 4, HOST_ALL = 7 };

#define AT(field) offsetof(struct host_record, field)
static const struct field host_fields[] = {
    { 1, "flags", FIELD_U32, AT(flags), HOST_ALL },
    { 2, "port", FIELD_U32, AT(port), UINT16_MAX },
    { 3, "host", FIELD_TEXT, AT(name), HOST_MAX },
};
#undef AT

static int put_host(struct message_out *out, const struct host_rule *host, struct err *err)
{
    struct host_record record = { .flags = (host->below ? HOST_BELOW : 0u) |
                                           (host->plain ? HOST_PLAIN : 0u) |
                                           (host->tls ? HOST_TLS : 0u),
                                  .port = host->port,
                                  .name = host->name };

    return message_put_row(out, TABLE(host_fields), &record, err);
}

/* 1: no more. */
static int get_host(struct bytes *rest, struct host_rule *ret, struct err *err)
{
    struct host_record record;
    int r = message_get_row(rest, TABLE(host_fields), &record, err);

    if (r != 0)
        return r;
    *ret = (struct host_rule){ .below = record.flags & HOST_BELOW,
                               .plain = record.flags & HOST_PLAIN,
                               .tls = record.flags & HOST_TLS,
                               .port = (uint16_t) record.port };
    return message_copy(ret->name, sizeof ret->name, record.name, "host", err);
}

/* A secret with its hosts, or a header with its one. */
struct put_in_record {
    const char *name, *placeholder, *value;
    struct bytes hosts;
};

#define AT(field) offsetof(struct put_in_record, field)
static const struct field put_in_fields[] = {
    { 1, "name", FIELD_TEXT, AT(name), REWRITE_NAME_MAX + REWRITE_HEADER_MAX },
    { 2, "placeholder", FIELD_TEXT, AT(placeholder), REWRITE_PLACEHOLDER_MAX },
    { 3, "value", FIELD_TEXT, AT(value), 0 },
    { 4, "hosts", FIELD_BYTES, AT(hosts), HOST_ROWS_MOST },
};
#undef AT

static int put_secret(struct message_out *out, const struct rewrite_secret *secret, struct err *err)
{
    struct put_in_record record = { secret->name, secret->placeholder, secret->value, { NULL, 0 } };
    struct message_out hosts = { .data = NULL };
    int r = 0;

    for (size_t i = 0; r == 0 && i < secret->host_count; i++)
        r = put_host(&hosts, &secret->hosts[i], err);
    record.hosts = (struct bytes){ hosts.data, (uint32_t) hosts.len };
    if (r == 0)
        r = message_put_row(out, TABLE(put_in_fields), &record, err);
    message_out_done(&hosts);
    return r;
}

static int put_header(struct message_out *out, const struct rewrite_header *header, struct err *err)
{
    struct put_in_record record = { header->name, NULL, header->value, { NULL, 0 } };
    struct message_out host = { .data = NULL };
    int r = put_host(&host, &header->host, err);

    record.hosts = (struct bytes){ host.data, (uint32_t) host.len };
    if (r == 0)
        r = message_put_row(out, TABLE(put_in_fields), &record, err);
    message_out_done(&host);
    return r;
}

/* Without a value it is one that is no longer there: what holds its place is never sent out. */
static int get_secret(struct bytes *rest, struct rewrite_secret *ret, struct err *err)
{
    struct put_in_record record;
    int r;

    if (message_get_row(rest, TABLE(put_in_fields), &record, err) != 0 ||
        message_copy(ret->name, sizeof ret->name, record.name, "name", err) < 0 ||
        message_copy(ret->placeholder, sizeof ret->placeholder, record.placeholder, "placeholder",
                     err) < 0 ||
        take_text(&ret->value, record.value, err) < 0)
        return -1;
    if (!ret->name[0] || !ret->placeholder[0])
        return err_set(err, ERR_PROTOCOL, "a secret without a name or a placeholder");
    do {
        struct host_rule host;

        r = get_host(&record.hosts, &host, err);
        if (r == 0 && ret->host_count == REWRITE_HOSTS_MAX)
            return err_set(err, ERR_PROTOCOL, "more hosts than a secret can have");
        if (r == 0)
            ret->hosts[ret->host_count++] = host;
    } while (r == 0);
    return r < 0 ? -1 : 0;
}

static int get_header(struct bytes *rest, struct rewrite_header *ret, struct err *err)
{
    struct put_in_record record;

    if (message_get_row(rest, TABLE(put_in_fields), &record, err) != 0 ||
        message_copy(ret->name, sizeof ret->name, record.name, "name", err) < 0)
        return -1;
    if (!record.value || get_host(&record.hosts, &ret->host, err) != 0)
        return err_set(err, ERR_PROTOCOL, "a header without a host or a value");
    return take_text(&ret->value, record.value, err);
}

void message_secrets_free(struct message_secrets *secrets)
{
    if (!secrets)
        return;
    rewrite_free(secrets->rewrite);
    if (secrets->key)
        explicit_bzero(secrets->key, strlen(secrets->key));
    free(secrets->key);
    free(secrets->cert);
    free(secrets);
}

/* ---- SET ---- */

struct set_record {
    const char *sandbox, *tenant, *proxy_host, *proxy_user, *proxy_password, *cert, *key;
    uint32_t mode, allow_wins, proxy_kind, proxy_trusted, proxy_port, has_secrets;
    struct texts allow, deny;
    struct bytes secrets, headers;
};

#define RULES_MOST (REACH_MAX * REACH_TEXT_MAX)
#define AT(field)  offsetof(struct set_record, field)
static const struct field set_fields[] = {
    { 1, "sandbox", FIELD_TEXT, AT(sandbox), EGRESS_ID_MAX },
    { 2, "mode", FIELD_U32, AT(mode), REACH_MODES - 1 },
    { 3, "allow_wins", FIELD_U32, AT(allow_wins), 1 },
    { 4, "allow", FIELD_LIST, AT(allow), RULES_MOST },
    { 5, "deny", FIELD_LIST, AT(deny), RULES_MOST },
    { 6, "proxy_kind", FIELD_U32, AT(proxy_kind), UPSTREAM_KINDS - 1 },
    { 7, "proxy_trusted", FIELD_U32, AT(proxy_trusted), 1 },
    { 8, "proxy_port", FIELD_U32, AT(proxy_port), UINT16_MAX },
    { 9, "proxy_host", FIELD_TEXT, AT(proxy_host), UPSTREAM_HOST_MAX },
    { 10, "proxy_user", FIELD_TEXT, AT(proxy_user), UPSTREAM_LOGIN_MAX },
    { 11, "proxy_password", FIELD_TEXT, AT(proxy_password), UPSTREAM_LOGIN_MAX },
    { 12, "has_secrets", FIELD_U32, AT(has_secrets), 1 },
    { 13, "cert", FIELD_TEXT, AT(cert), PEM_MOST },
    { 14, "key", FIELD_TEXT, AT(key), PEM_MOST },
    { 15, "secrets", FIELD_BYTES, AT(secrets), 0 },
    { 16, "headers", FIELD_BYTES, AT(headers), 0 },
    { 17, "tenant", FIELD_TEXT, AT(tenant), EGRESS_ID_MAX },
};
#undef AT

/* Rules as the texts that they were made from. */
static int put_rules(struct message_out *out, const struct reach_rule *rules, size_t count,
                     struct texts *ret, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!message_room(out, REACH_TEXT_MAX))
            return no_memory(err);
        reach_rule_print(&rules[i], (char *) out->data + out->len);
        out->len += strlen((char *) out->data + out->len) + 1;
    }
    *ret = (struct texts){ .data = (char *) out->data, .len = (uint32_t) out->len };
    return 0;
}

static int put_secrets(struct message_out rows[2], const struct message_secrets *secrets,
                       struct set_record *record, struct err *err)
{
    const struct rewrite *rewrite = secrets->rewrite;

    for (size_t i = 0; i < rewrite->secret_count; i++)
        if (put_secret(&rows[0], &rewrite->secrets[i], err) < 0)
            return -1;
    for (size_t i = 0; i < rewrite->header_count; i++)
        if (put_header(&rows[1], &rewrite->headers[i], err) < 0)
            return -1;
    record->has_secrets = 1;
    record->cert = secrets->cert;
    record->key = secrets->key;
    record->secrets = (struct bytes){ rows[0].data, (uint32_t) rows[0].len };
    record->headers = (struct bytes){ rows[1].data, (uint32_t) rows[1].len };
    return 0;
}

int message_put_set(struct message_out *out, uint64_t serial, const char *sandbox,
                    const char *tenant, const struct reach *rules,
                    const struct message_secrets *secrets, bool with_sockets, struct err *err)
{
    struct message_out parts[4] = { { .data = NULL } };
    const struct upstream *up = &rules->upstream;
    struct set_record record = {
        .sandbox = sandbox,
        .tenant = tenant,
        .mode = rules->mode,
        .allow_wins = rules->allow_wins,
        .proxy_kind = up->kind,
        .proxy_trusted = up->trusted,
        .proxy_port = up->port,
        .proxy_host = up->host[0] ? up->host : NULL,
        .proxy_user = up->user[0] ? up->user : NULL,
        .proxy_password = up->password[0] ? up->password : NULL,
    };
    int r = put_rules(&parts[0], rules->allow, rules->allow_count, &record.allow, err);

    if (r == 0)
        r = put_rules(&parts[1], rules->deny, rules->deny_count, &record.deny, err);
    if (r == 0 && secrets)
        r = put_secrets(&parts[2], secrets, &record, err);
    if (r == 0)
        r = message_put(out, MESSAGE_SET, with_sockets ? EGRESS_FDS : 0, serial, TABLE(set_fields),
                        &record, err);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        message_out_done(&parts[i]);
    return r;
}

static int get_rules(const struct texts *texts, bool deny, struct reach *ret, struct err *err)
{
    for (const char *at = texts_next(texts, NULL); at; at = texts_next(texts, at))
        if (reach_add(ret, deny, at, err) < 0)
            return -1;
    return 0;
}

static int get_upstream(const struct set_record *record, struct upstream *ret, struct err *err)
{
    ret->kind = (enum upstream_kind) record->proxy_kind;
    ret->trusted = record->proxy_trusted;
    ret->port = (uint16_t) record->proxy_port;
    return message_copy(ret->host, sizeof ret->host, record->proxy_host, "proxy_host", err) < 0 ||
                   message_copy(ret->user, sizeof ret->user, record->proxy_user, "proxy_user",
                                err) < 0
               ? -1
               : message_copy(ret->password, sizeof ret->password, record->proxy_password,
                              "proxy_password", err);
}

static int get_rewrite(struct set_record *record, struct rewrite *rewrite, struct err *err)
{
    for (size_t i = 0; i < rewrite->secret_count; i++)
        if (get_secret(&record->secrets, &rewrite->secrets[i], err) < 0)
            return -1;
    for (size_t i = 0; i < rewrite->header_count; i++)
        if (get_header(&record->headers, &rewrite->headers[i], err) < 0)
            return -1;
    return record->secrets.len || record->headers.len
               ? err_set(err, ERR_PROTOCOL, "a row is cut off")
               : 0;
}

static struct message_secrets *get_secrets(struct set_record *record, struct err *err)
{
    size_t secrets = message_count_rows(record->secrets);
    size_t headers = message_count_rows(record->headers);
    struct message_secrets *ret = calloc(1, sizeof *ret);

    if (secrets > REWRITE_SECRETS_MAX || headers > REWRITE_HEADERS_MAX)
        err_set(err, ERR_PROTOCOL, "more secrets or headers than a sandbox can have");
    else if (!record->cert != !record->key)
        err_set(err, ERR_PROTOCOL, "a certificate without its key");
    else if (!ret || !(ret->rewrite = rewrite_new(secrets, headers)))
        (void) no_memory(err);
    else if (get_rewrite(record, ret->rewrite, err) == 0 &&
             take_text(&ret->cert, record->cert, err) == 0 &&
             take_text(&ret->key, record->key, err) == 0)
        return ret;
    message_secrets_free(ret);
    return NULL;
}

int message_get_set(const void *body, size_t len, struct message_set *ret, struct err *err)
{
    struct set_record record;

    if (record_decode(set_fields, ARRAY_LEN(set_fields), &record, body, len, err) < 0)
        return -1;
    ret->secrets = NULL;
    ret->rules.mode = (enum reach_mode) record.mode;
    ret->rules.allow_wins = record.allow_wins;
    ret->rules.allow_count = ret->rules.deny_count = 0;
    if (!record.sandbox ||
        message_copy(ret->sandbox, sizeof ret->sandbox, record.sandbox, "sandbox", err) < 0 ||
        message_copy(ret->tenant, sizeof ret->tenant, record.tenant, "tenant", err) < 0 ||
        get_upstream(&record, &ret->rules.upstream, err) < 0 ||
        get_rules(&record.allow, false, &ret->rules, err) < 0 ||
        get_rules(&record.deny, true, &ret->rules, err) < 0)
        return record.sandbox ? -1 : err_set(err, ERR_PROTOCOL, "sandbox: missing");
    if (record.has_secrets && !(ret->secrets = get_secrets(&record, err)))
        return -1;
    return 0;
}

/* ---- DROP, OPEN, COUNTS ---- */

struct sandbox_record {
    const char *sandbox;
};
static const struct field sandbox_fields[] = {
    { 1, "sandbox", FIELD_TEXT, offsetof(struct sandbox_record, sandbox), EGRESS_ID_MAX },
};

int message_put_ask_for(struct message_out *out, enum message_kind kind, uint64_t serial,
                        const char *sandbox, struct err *err)
{
    struct sandbox_record record = { sandbox };

    return message_put(out, kind, 0, serial, TABLE(sandbox_fields), &record, err);
}

int message_get_sandbox(const void *body, size_t len, char ret[EGRESS_ID_MAX], struct err *err)
{
    struct sandbox_record record;

    if (record_decode(sandbox_fields, ARRAY_LEN(sandbox_fields), &record, body, len, err) < 0)
        return -1;
    return record.sandbox ? message_copy(ret, EGRESS_ID_MAX, record.sandbox, "sandbox", err)
                          : err_set(err, ERR_PROTOCOL, "sandbox: missing");
}

/* ---- RANGES ---- */

struct ranges_record {
    const char *ranges;
};
static const struct field ranges_fields[] = {
    { 1, "ranges", FIELD_TEXT, offsetof(struct ranges_record, ranges), EGRESS_RANGES_MAX },
};

int message_put_ranges(struct message_out *out, uint64_t serial, const char *ranges,
                       struct err *err)
{
    struct ranges_record record = { ranges };

    return message_put(out, MESSAGE_RANGES, 0, serial, TABLE(ranges_fields), &record, err);
}

int message_get_ranges(const void *body, size_t len, char ret[EGRESS_RANGES_MAX], struct err *err)
{
    struct ranges_record record;

    if (record_decode(ranges_fields, ARRAY_LEN(ranges_fields), &record, body, len, err) < 0)
        return -1;
    return message_copy(ret, EGRESS_RANGES_MAX, record.ranges, "ranges", err);
}
