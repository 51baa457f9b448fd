#include "server/app/config.h"

#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "base/prefix.h"
#include "client/sandbox.h"
#include "egress/may_name.h"
#include "server/app/pool_rules.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define DEFAULT_FILE "/etc/cove/coved.conf"
#define FILE_MAX     65536
#define NAME_SIZE    64

#define AT(field) offsetof(struct config, field), sizeof(((struct config *) 0)->field)

/* clang-format off */
const struct setting settings[] = {
    { "state",           SETTING_TEXT,     AT(state),           "/var/lib/cove", 0, 0, AT_START,
      "the keeper's state directory" },
    { "listen",          SETTING_TEXT,     AT(listen),          "127.0.0.1:8000", 0, 0, AT_START,
      "address and port; [::1]:8000 for IPv6" },
    { "admin_group",     SETTING_TEXT,     AT(admin_group),     "", 0, 0, AT_START,
      "group whose members may use STATE/cove.sock, as root may ('cove up --group' sets it)" },
    { "domain",          SETTING_TEXT,     AT(domain),          "localhost", 0, 0, LIVE,
      "names that Host may have, besides the address itself: this and all below it" },
    { "public_domain",   SETTING_TEXT,     AT(public_domain),   "", 0, 0, LIVE,
      "what SDKs are told: {port}-{id} before it is the name of a port; may have a port of its own" },
    { "tls_listen",      SETTING_TEXT,     AT(tls_listen),      "", 0, 0, AT_START,
      "a second address, for HTTPS alone; listen is then plain HTTP" },
    { "tls_cert",        SETTING_TEXT,     AT(tls_cert),        "", 0, 0, LIVE,
      "certificate chain, PEM; with tls_key, HTTPS instead of HTTP" },
    { "tls_key",         SETTING_TEXT,     AT(tls_key),         "", 0, 0, LIVE,
      "private key, PEM" },
    { "proxy_protocol",  SETTING_BOOL,     AT(proxy_protocol),  "no", 0, 0, LIVE,
      "every connection begins with a PROXY preamble (version 1 or 2) that says who the client is" },
    { "proxy_from",      SETTING_PREFIXES, AT(proxy_from),      "127.0.0.0/8, ::1", 0, 0, LIVE,
      "addresses of the proxies: with proxy_protocol, only these may connect" },
    { "threads",         SETTING_COUNT,    AT(threads),         "512", 4, 4096, LIVE,
      "requests served at once; more get 503" },
    { "connections",     SETTING_COUNT,    AT(connections),     "8000", 16, 1000000, LIVE,
      "open connections, idle ones included" },
    { "stalled",         SETTING_COUNT,    AT(stalled),         "1000", 4, 16384, LIVE,
      "clients that may stall at once; more of them get one second instead of stall_timeout" },
    { "idle",            SETTING_DURATION, AT(idle_ms),         "75s", 1000, 86400000, LIVE,
      "how long a connection may be without a request" },
    { "head_timeout",    SETTING_DURATION, AT(head_ms),         "10s", 100, 600000, LIVE,
      "how long a request's head may take" },
    { "stall_timeout",   SETTING_DURATION, AT(body_stall_ms),   "60s", 100, 3600000, LIVE,
      "how long a body or an answer may stall" },
    { "relay_idle",      SETTING_DURATION, AT(relay_idle_ms),   "10m", 100, 86400000, LIVE,
      "how long an exchange with a port of a sandbox may stall" },
    { "visitor_timeout", SETTING_DURATION, AT(visitor_ms),      "60s", 100, 86400000, LIVE,
      "the same before an answer begins, for visitors of a public port who show neither token nor key" },
    { "relay_most",      SETTING_COUNT,    AT(relay_most),      "128", 1, 4096, LIVE,
      "exchanges with the ports of one sandbox at once, half of them for visitors; more get 429" },
    { "sandbox_timeout", SETTING_DURATION, AT(sandbox_timeout_ms), "5m", 1000, 86400000, LIVE,
      "lifetime of a sandbox that was made without one" },
    { "sandbox_timeout_most", SETTING_DURATION, AT(sandbox_timeout_most_ms), "24h", 1000, 31536000000, LIVE,
      "greatest lifetime that can be asked for at once" },
    { "pause_hot_bytes", SETTING_COUNT,    AT(pause_hot_bytes), "33554432", 0, 1099511627776, LIVE,
      "a pause that names no tier leaves sandboxes with less memory in use than this in memory at first" },
    { "pause_disk_after", SETTING_DURATION, AT(pause_disk_after_ms), "60s", 0, 31536000000, LIVE,
      "how long they stay there before they are moved to disk; 0s: they stay" },
    { "idle_pause",      SETTING_DURATION, AT(idle_pause_ms),   "0s", 0, 31536000000, LIVE,
      "pause sandboxes that were idle for so long, if their create did not say; 0s: never" },
    { "idle_disk",       SETTING_DURATION, AT(idle_disk_ms),    "0s", 0, 31536000000, LIVE,
      "move those to disk that were idle for so long, if their create did not say; 0s: never" },
    { "image_compress_after", SETTING_DURATION, AT(image_compress_after_ms), "0s", 0, 31536000000, LIVE,
      "compress the memory of images that were not used for so long; 0s: never" },
    { "snapshot_days",   SETTING_COUNT,    AT(snapshot_days),   "0", 0, 36500, LIVE,
      "days that snapshots are kept; 0: for ever" },
    { "paused_days",     SETTING_COUNT,    AT(paused_days),     "0", 0, 36500, LIVE,
      "days that paused sandboxes without a deadline are kept; 0: for ever" },
    { "policy",          SETTING_TEXT,     AT(policy),          "standard", 0, 0, AT_START,
      "rules for commands: minimal, standard, development or open" },
    { "e2b_policy",      SETTING_TEXT,     AT(e2b_policy),      "open", 0, 0, AT_START,
      "the same, for sandboxes that E2B's SDKs make, and for builds" },
    { "isolation",       SETTING_ISOLATION, AT(isolation),      "jail", 0, 0, LIVE,
      "what isolates a sandbox from the host if its create says nothing: jail, gvisor or vm" },
    { "policy_share",    SETTING_COUNT,    AT(policy_share),    "25", 1, 100, LIVE,
      "percent of the processors that analyses of one tenant's commands may use; more get 429" },
    { "user_requests",   SETTING_COUNT,    AT(user_requests),   "0", 0, 1000000000, LIVE,
      "requests of one user of a tenant in user_window; more get 429; 0: no limit" },
    { "user_window",     SETTING_DURATION, AT(user_window_ms),  "60s", 1000, 86400000, LIVE,
      "how long the window of user_requests is" },
    { "network",         SETTING_BOOL,     AT(network),         "yes", 0, 0, AT_START,
      "sandboxes may have a network, through the gateway; no: none has one" },
    { "gateway",         SETTING_TEXT,     AT(gateway),         "", 0, 0, AT_START,
      "directory of the socket of a running cove-gateway; empty: coved starts one itself" },
    { "network_dns",     SETTING_PREFIXES, AT(network_dns),     "", 0, 0, AT_START,
      "name servers that sandboxes' questions go to, up to 3; empty: those of /etc/resolv.conf" },
    { "network_ranges",  SETTING_RANGES,   AT(network_ranges),  "", 0, 0, LIVE,
      "addresses that are not public, and that rules of tenants may name all the same; empty: none" },
    { "network_proxy_ranges", SETTING_RANGES, AT(network_proxy_ranges), "", 0, 0, AT_START,
      "addresses that are not public, at which proxies that tenants name may be; empty: none" },
    { "network_ca",      SETTING_TEXT,     AT(network_ca),      "", 0, 0, AT_START,
      "PEM file of authorities that count for hosts of secrets, beside those of this host" },
    { "sandbox_ca",      SETTING_TEXT,     AT(sandbox_ca),      "", 0, 0, AT_START,
      "PEM file of authorities that new sandboxes trust, beside those of their template" },
    { "network_connections", SETTING_COUNT, AT(network_connections), "256", 1, 10000, AT_START,
      "connections out of one sandbox at once" },
    { "network_connects", SETTING_COUNT,   AT(network_connects), "100", 1, 10000, AT_START,
      "new connections out of one sandbox in a second" },
    { "network_bytes",   SETTING_COUNT,    AT(network_bytes),   "0", 0, 100000000000, AT_START,
      "bytes through the gateway for one sandbox in a second, both ways; 0: no limit" },
    { "network_idle",    SETTING_DURATION, AT(network_idle_ms), "10m", 1000, 86400000, AT_START,
      "how long a connection out of a sandbox may stall" },
    { "network_all_connections", SETTING_COUNT, AT(network_all_connections), "0", 0, 1000000, AT_START,
      "connections out of all sandboxes at once, shared fairly between tenants; 0: what descriptors allow" },
    { "network_all_lookups", SETTING_COUNT, AT(network_all_lookups), "1024", 0, 1000000, AT_START,
      "look-ups of names for all sandboxes at once, shared fairly; 0: no limit" },
    { "network_all_handshakes", SETTING_COUNT, AT(network_all_handshakes), "500", 0, 1000000, AT_START,
      "TLS handshakes for secrets of all sandboxes in a second, shared fairly; 0: no limit" },
    { "registry",        SETTING_BOOL,     AT(registry),        "yes", 0, 0, LIVE,
      "tenants may pull images from registries" },
    { "registry_hosts",  SETTING_HOSTS,    AT(registry_hosts),  "", 0, 0, LIVE,
      "registries, HOST[:PORT], that tenants may pull from though their addresses are not public; http://HOST: without TLS" },
    { "registry_mirrors", SETTING_MIRRORS, AT(registry_mirrors), "", 0, 0, LIVE,
      "HOST=https://MIRROR, …: a registry that is asked before the one of that name; also by 'cove template pull' of root" },
    { "registry_proxy",  SETTING_HOSTS,    AT(registry_proxy),  "", 0, 0, LIVE,
      "HTTP proxy, HOST:PORT, by which registries are asked; empty: none" },
    { "registry_timeout", SETTING_DURATION, AT(registry_timeout_ms), "1h", 1000, 86400000, LIVE,
      "how long the download of one image may take" },
    { "build_upload",    SETTING_SIZE,     AT(build_upload),    "4G", 1 << 20, 1ull << 40, LIVE,
      "bytes of one upload of a tenant for builds: the files of a COPY, or an image's archive" },
    { "build_uploads",   SETTING_SIZE,     AT(build_uploads),   "8G", 1 << 20, 1ull << 50, LIVE,
      "bytes of all uploads of one tenant, which are kept for a day after their last use" },
    { "pool",            SETTING_POOL,     AT(pool),            "*:0-16", 0, 0, LIVE,
      "sandboxes to make ahead, TEMPLATE:MIN-MAX, …; * is every other template; off: none" },
    { "pool_memory",     SETTING_SIZE,     AT(pool_memory),     "256M", 0, 1ull << 50, LIVE,
      "memory that sandboxes made ahead may use together" },
    { "audit_days",      SETTING_COUNT,    AT(audit_days),      "365", 0, 36500, LIVE,
      "days that audit records are kept; 0: for ever" },
    { "audit_bytes",     SETTING_SIZE,     AT(audit_bytes),     "1G", 0, 1ull << 50, LIVE,
      "size of the store beyond which the oldest audit records are forgotten; 0: no limit" },
    { "local",           SETTING_BOOL,     AT(local),           "yes", 0, 0, LIVE,
      "requests from loopback need no key: they are the tenant 'local'" },
    { "verbose",         SETTING_BOOL,     AT(verbose),         "no", 0, 0, LIVE,
      "log every request" },
};
/* clang-format on */
const size_t setting_count = ARRAY_LEN(settings);

static int set_bool(bool *field, const char *text, struct err *err)
{
    static const char *const yes[] = { "yes", "true", "on", "1" };
    static const char *const no[] = { "no", "false", "off", "0" };

    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *field = strcmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "'%.40s' is neither yes nor no", text);
}

static int set_number(const struct setting *s, uint64_t *field, const char *text, struct err *err)
{
    uint64_t value;
    int rc = s->type == SETTING_DURATION ? parse_duration_ms(text, &value, err)
             : s->type == SETTING_SIZE   ? parse_size(text, &value, err)
                                         : parse_u64(text, &value, err);

    if (rc < 0)
        return -1;
    if (value < s->least || value > s->most)
        return err_set(err, ERR_INVALID, "not between %" PRIu64 " and %" PRIu64, s->least, s->most);
    *field = value;
    return 0;
}

/* HOST[:PORT], perhaps with a scheme. */
static bool is_host(const char *text, size_t len, bool scheme)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
    size_t skip = len > 8 && strncmp(text, "https://", 8) == 0  ? 8
                  : len > 7 && strncmp(text, "http://", 7) == 0 ? 7
                                                                : 0;

    return len > skip && (!scheme || skip > 0) && strspn(text + skip, letters) >= len - skip;
}

static int check_hosts(const char *list, bool mirrors, struct err *err)
{
    for (size_t len; *(list += strspn(list, ", ")); list += len) {
        const char *to;

        len = strcspn(list, ", ");
        to = mirrors ? memchr(list, '=', len) : NULL;
        if (mirrors ? !to || !is_host(list, (size_t) (to - list), false) ||
                          !is_host(to + 1, len - (size_t) (to + 1 - list), true)
                    : !is_host(list, len, false))
            return err_set(err, ERR_INVALID,
                           mirrors ? "'%.*s' is not HOST=https://MIRROR"
                                   : "'%.*s' is not HOST:PORT",
                           (int) (len < 60 ? len : 60), list);
    }
    return 0;
}

static int set_value(struct config *config, const struct setting *s, const char *text,
                     struct err *err)
{
    void *field = (char *) config + s->offset;
    uint32_t isolation;
    struct pool_rules rules;

    switch (s->type) {
    case SETTING_POOL:
        if (pool_rules_parse(text, &rules, err) < 0)
            return -1;
        goto text;
    case SETTING_PREFIXES:
        if (prefix_list_check(text, err) < 0)
            return -1;
        goto text;
    case SETTING_RANGES:
        if (may_name_check_ranges(text, err) < 0)
            return -1;
        goto text;
    case SETTING_HOSTS:
    case SETTING_MIRRORS:
        if (check_hosts(text, s->type == SETTING_MIRRORS, err) < 0)
            return -1;
        goto text;
    case SETTING_ISOLATION:
        if (isolation_parse(text, &isolation, err) < 0)
            return -1;
        goto text;
    case SETTING_TEXT:
    text:
        if (strlen(text) >= s->size)
            return err_set(err, ERR_INVALID, "longer than %zu", s->size - 1);
        memcpy(field, text, strlen(text) + 1);
        return 0;
    case SETTING_COUNT:
    case SETTING_DURATION:
    case SETTING_SIZE:
        return set_number(s, field, text, err);
    case SETTING_BOOL:
        return set_bool(field, text, err);
    }
    return err_set(err, ERR_INTERNAL, "a setting without a type");
}

static const struct setting *find_setting(const char *name, struct err *err)
{
    for (size_t i = 0; i < setting_count; i++)
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    err_set(err, ERR_INVALID, "there is no setting '%.60s'", name);
    return NULL;
}

int config_set(struct config *config, const char *name, const char *text, struct err *err)
{
    const struct setting *setting = find_setting(name, err);

    if (!setting)
        return -1;
    if (set_value(config, setting, text, err) == 0)
        return 0;
    err->kind = ERR_INVALID;
    return err_wrap(err, "%s", name);
}

static char *trim(char *text)
{
    char *end;

    while (isspace((unsigned char) *text))
        text++;
    end = text + strlen(text);
    while (end > text && isspace((unsigned char) end[-1]))
        *--end = '\0';
    return text;
}

int config_parse(struct config *config, char *text, struct err *err)
{
    int number = 0;

    for (char *line = text, *next; line; line = next) {
        char *end = strchr(line, '\n'), *value;

        next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        number++;
        line = trim(line);
        if (!line[0] || line[0] == '#')
            continue;
        value = strchr(line, '=');
        if (!value)
            return err_set(err, ERR_INVALID, "line %d: not 'name = value'", number);
        *value++ = '\0';
        if (config_set(config, trim(line), trim(value), err) < 0)
            return err_wrap(err, "line %d", number);
    }
    return 0;
}

static int load_file(struct config *config, const char *path, bool must, struct err *err)
{
    auto_free char *text = malloc(FILE_MAX);
    ssize_t n;

    if (!text)
        return err_set(err, ERR_NO_MEMORY, "read %s", path);
    n = io_read_text(AT_FDCWD, path, text, FILE_MAX);
    if (n < 0 && errno == ENOENT && !must)
        return 0;
    if (n < 0)
        return err_set(err, ERR_USAGE, "cannot read %s: %s", path, strerror(errno));
    if (n == FILE_MAX - 1)
        return err_set(err, ERR_TOO_BIG, "%s: more than %d bytes", path, FILE_MAX);
    if (config_parse(config, text, err) < 0)
        return err_wrap(err, "%s", path);
    return 0;
}

/* COVE_SANDBOX_TIMEOUT */
static void env_name(const char *name, char *out, size_t size)
{
    (void) snprintf(out, size, "COVE_%s", name);
    for (char *c = out; *c; c++)
        *c = (char) toupper((unsigned char) *c);
}

static int load_env(struct config *config, struct err *err)
{
    for (size_t i = 0; i < setting_count; i++) {
        char name[NAME_SIZE];
        const char *value;

        env_name(settings[i].name, name, sizeof name);
        value = getenv(name);
        if (value && config_set(config, settings[i].name, value, err) < 0)
            return err_wrap(err, "environment %s", name);
    }
    return 0;
}

/* --sandbox-timeout=5m or --sandbox-timeout 5m */
static int load_flag(struct config *config, char **argv, int *index, struct err *err)
{
    char name[NAME_SIZE];
    const char *flag = argv[*index] + 2, *value = strchr(flag, '=');
    size_t len = value ? (size_t) (value - flag) : strlen(flag);

    if (strncmp(argv[*index], "--", 2) != 0 || len >= sizeof name)
        return err_set(err, ERR_USAGE, "unknown option '%.60s'; see --help", argv[*index]);
    memcpy(name, flag, len);
    name[len] = '\0';
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    if (!find_setting(name, err)) { /* said before a value is missed */
        err->kind = ERR_USAGE;
        return err_wrap(err, "--%.60s", flag);
    }
    value = value ? value + 1 : argv[++*index];
    if (!value)
        return err_set(err, ERR_USAGE, "--%.60s: its value is missing", flag);
    if (config_set(config, name, value, err) < 0) {
        err->kind = ERR_USAGE;
        return err_wrap(err, "--%.60s", flag);
    }
    return 0;
}

static void print_value(const struct setting *s, const void *field, FILE *out)
{
    const uint64_t *number = field;

    switch (s->type) {
    case SETTING_POOL:
    case SETTING_PREFIXES:
    case SETTING_RANGES:
    case SETTING_ISOLATION:
    case SETTING_HOSTS:
    case SETTING_MIRRORS:
    case SETTING_TEXT:
        (void) fputs(field, out);
        return;
    case SETTING_COUNT:
    case SETTING_SIZE:
        (void) fprintf(out, "%" PRIu64, *number);
        return;
    case SETTING_DURATION:
        (void) fprintf(out, "%" PRIu64 "%s", *number % 1000 ? *number : *number / 1000,
                       *number % 1000 ? "ms" : "s");
        return;
    case SETTING_BOOL:
        (void) fputs(*(const bool *) field ? "yes" : "no", out);
        return;
    }
}

void config_show(const struct config *config, FILE *out)
{
    for (size_t i = 0; i < setting_count; i++) {
        (void) fprintf(out, "%s = ", settings[i].name);
        print_value(&settings[i], (const char *) config + settings[i].offset, out);
        (void) fputc('\n', out);
    }
}

void config_help(FILE *out)
{
    (void) fputs(
        "usage: coved [--config FILE] [--check-config | --show-config] [--SETTING VALUE ...]\n\n"
        "Settings: as flags, as COVE_NAME in the environment, or as 'name = value' lines in\n"
        "the configuration file (default " DEFAULT_FILE ").\n\n",
        out);
    for (size_t i = 0; i < setting_count; i++)
        (void) fprintf(out, "  %-22s %s%s (%s)\n", settings[i].name,
                       settings[i].change == LIVE ? "" : "* ", settings[i].help,
                       settings[i].fallback[0] ? settings[i].fallback : "none");
    (void) fputs(
        "\nSIGHUP reads all of them again, and the certificate. Those with * need a restart.\n",
        out);
}

/* The file of --config; NULL: none is given. */
static const char *given_file(int argc, char **argv)
{
    const char *file = NULL;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--config") == 0)
            file = argv[++i];
    return file;
}

const char *config_path(int argc, char **argv)
{
    const char *file = given_file(argc, argv);

    return file ? file : DEFAULT_FILE;
}

int config_load(struct config *config, int argc, char **argv, bool *ret_check, struct err *err)
{
    const char *file = given_file(argc, argv);
    bool show = false;

    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < setting_count; i++)
        if (config_set(config, settings[i].name, settings[i].fallback, err) < 0)
            return -1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            config_help(stdout);
            exit(0);
        }
        if (strcmp(argv[i], "--version") == 0) {
            (void) puts("coved " COVE_VERSION);
            exit(0);
        }
        if (strcmp(argv[i], "--sample-config") == 0 || strcmp(argv[i], "--man") == 0) {
            config_text(stdout, argv[i][2] == 'm');
            exit(0);
        }
    }
    if (load_file(config, file ? file : DEFAULT_FILE, file != NULL, err) < 0 ||
        load_env(config, err) < 0)
        return -1;
    for (int i = 1; i < argc && argv[i]; i++) {
        if (strcmp(argv[i], "--config") == 0)
            i++;
        else if (strcmp(argv[i], "--check-config") == 0)
            *ret_check = true;
        else if (strcmp(argv[i], "--show-config") == 0)
            show = true;
        else if (load_flag(config, argv, &i, err) < 0)
            return -1;
    }
    if (!config->tls_cert[0] != !config->tls_key[0])
        return err_set(err, ERR_USAGE, "tls_cert and tls_key go together");
    if (config->tls_listen[0] && !config->tls_cert[0])
        return err_set(err, ERR_USAGE, "tls_listen needs tls_cert and tls_key");
    if (show) {
        config_show(config, stdout);
        exit(fflush(stdout) == 0 ? 0 : 1);
    }
    return 0;
}

void config_adopt(struct config *running, const struct config *fresh, config_told *told)
{
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *s = &settings[i];
        void *old = (char *) running + s->offset;
        const void *new = (const char *) fresh + s->offset;
        /* Texts by what they say: what is behind the NUL is not the setting. */
        bool text = s->type == SETTING_TEXT || s->type == SETTING_PREFIXES ||
                    s->type == SETTING_RANGES || s->type == SETTING_POOL ||
                    s->type == SETTING_ISOLATION;

        if (text ? strcmp(old, new) == 0 : memcmp(old, new, s->size) == 0)
            continue;
        if (s->change == LIVE)
            memcpy(old, new, s->size);
        told(s);
    }
}
