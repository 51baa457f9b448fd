#include "base/host.h"
#include "base/io.h"
#include "base/own.h"
#include "cli/listing.h"
#include "cli/report.h"
#include "cli/substore.h"
#include "cli/subverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct secret_values {
    const char *tenant, *file;
    bool json;
};

#define HOSTS_MOST 16
#define AT(field)  offsetof(struct secret_values, field)

/* clang-format off */
static const struct option set_options[] = {
    { 0, "tenant",    OPTION_TEXT, AT(tenant), "NAME",  COMPLETE_NONE, "whose it is (local)" },
    { 0, "from-file", OPTION_TEXT, AT(file),   "FILE",  COMPLETE_FILE, "where the value is (standard input)" },
};
static const struct option ls_options[] = {
    { 0, "tenant",    OPTION_TEXT, AT(tenant), "NAME",  COMPLETE_NONE, "whose they are (local)" },
    { 0, "json",      OPTION_FLAG, AT(json),   NULL,    COMPLETE_NONE, "as JSON" },
};
static const struct option rm_options[] = {
    { 0, "tenant",    OPTION_TEXT, AT(tenant), "NAME",  COMPLETE_NONE, "whose it is (local)" },
};

static int secret_set(int argc, char **argv);
static int secret_ls(int argc, char **argv);
static int secret_rm(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "set", .synopsis = "[OPTION…] NAME HOST…", .summary = "keep a value for these hosts, in the place of any before",
      .options = set_options, .option_count = ARRAY_LEN(set_options), .run = secret_set },
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "list secrets; their values are never shown",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = secret_ls },
    { .name = "rm", .synopsis = "[OPTION…] NAME", .summary = "forget one, also for sandboxes that run",
      .options = rm_options, .option_count = ARRAY_LEN(rm_options), .run = secret_rm },
};

const struct verb secret_verb = {
    .name = "secret",
    .synopsis = "set|ls|rm …",
    .summary = "secrets that sandboxes use and never see",
    .details =
        "A HOST is a name (api.example.com), all names below one (*.example.com), each perhaps with\n"
        "a port: over HTTPS. With http:// before it: in plain HTTP. A running server takes changes\n"
        "up within seconds.",
    .command_at = 1,
    .run = verb_secret,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

/* All of it, without the line break that editors and echo leave at its end. */
static ssize_t read_value(const char *path, char *out, size_t size, struct err *err)
{
    auto_close int own = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int fd = path ? own : STDIN_FILENO;
    size_t len = 0;
    ssize_t n = 1;

    if (fd < 0)
        return err_sys(err, errno, "open %s", path);
    while (len < size && n > 0) {
        n = read(fd, out + len, size - len);
        if (n < 0)
            return err_sys(err, errno, "read the value");
        len += (size_t) n;
    }
    if (len == size)
        return err_set(err, ERR_TOO_BIG, "a secret has %d bytes at most", STORE_VALUE_MAX);
    if (len > 0 && out[len - 1] == '\n')
        len--;
    if (len > 0 && out[len - 1] == '\r')
        len--;
    return (ssize_t) len;
}

/* The texts as a JSON array: names and ports need no quoting. */
static int hosts_text(char *const *hosts, int count, char *out, size_t size, struct err *err)
{
    size_t len = (size_t) snprintf(out, size, "[");
    struct host_rule checked;

    for (int i = 0; i < count && len < size; i++) {
        if (host_rule_parse(hosts[i], &checked, err) < 0)
            return -1;
        len += (size_t) snprintf(out + len, size - len, "%s\"%s\"", i ? "," : "", hosts[i]);
    }
    if (len + 1 < size)
        len += (size_t) snprintf(out + len, size - len, "]");
    return len < size ? 0 : err_set(err, ERR_TOO_BIG, "the hosts of a secret are too long");
}

static int set(const struct secret_values *values, const char *name, char *const *hosts, int count,
               struct err *err)
{
    char value[STORE_VALUE_MAX + 3], list[STORE_HOSTS_MAX];
    auto_store struct store *store = NULL;
    ssize_t len;
    int r = -1;

    if (hosts_text(hosts, count, list, sizeof list, err) < 0)
        return -1;
    len = read_value(values->file, value, sizeof value, err);
    if (len >= 0 && subverb_store(&store, err) == 0 &&
        store_vault_set(store, values->tenant, name, list, value, (size_t) len, err) == 0 &&
        subverb_audit(store, values->tenant, "secret.set", name, err) == 0)
        r = 0;
    explicit_bzero(value, sizeof value);
    return r;
}

static int secret_set(int argc, char **argv)
{
    struct secret_values values = { .tenant = STORE_LOCAL_TENANT };
    struct err err = { 0 };
    char **operands;
    int count, code;

    code = subverb_parse(&secret_verb, "set", argc, argv, &values, "a name, and a host,", 2,
                         1 + HOSTS_MOST, &operands, &count);
    if (code >= 0)
        return code;
    return set(&values, operands[0], operands + 1, count - 1, &err) < 0 ? report_error(&err)
                                                                        : report_end(0);
}

static int secret_rm(int argc, char **argv)
{
    struct secret_values values = { .tenant = STORE_LOCAL_TENANT };
    auto_store struct store *store = NULL;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&secret_verb, "rm", argc, argv, &values, "the name", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0 ||
        store_vault_remove(store, values.tenant, names[0], &err) < 0 ||
        subverb_audit(store, values.tenant, "secret.remove", names[0], &err) < 0)
        return report_error(&err);
    return report_end(0);
}

/* ["a","b"] → a, b: what was checked has no quotes in it. */
static void hosts_plain(const char *json, char *out, size_t size)
{
    size_t len = 0;

    for (; *json && len + 2 < size; json++) {
        if (*json == ',')
            out[len++] = ',', out[len++] = ' ';
        else if (!strchr("[]\" ", *json))
            out[len++] = *json;
    }
    out[len] = '\0';
}

static int list_one(void *arg, const struct store_vault *secret, struct err *err)
{
    char hosts[STORE_HOSTS_MAX], when[64];
    struct listing *l = arg;

    (void) err;
    hosts_plain(secret->hosts, hosts, sizeof hosts);
    if (l->form == LISTING_JSON) {
        json_out_object(&l->json, NULL);
        json_out_text(&l->json, "name", secret->name);
        json_out_text(&l->json, "hosts", hosts);
        json_out_number(&l->json, "created_ms", secret->created_ms);
        json_out_number(&l->json, "updated_ms", secret->updated_ms);
        json_out_end(&l->json);
        return 0;
    }
    table_cell(&l->table, "%s", secret->name);
    table_cell(&l->table, "%s", subverb_when(when, sizeof when, secret->updated_ms));
    table_cell(&l->table, "%s", hosts);
    return 0;
}

static int secret_ls(int argc, char **argv)
{
    static const char *const headings[] = { "NAME", "SET", "HOSTS" };
    struct secret_values values = { .tenant = STORE_LOCAL_TENANT };
    auto_store struct store *store = NULL;
    struct listing l;
    struct err err = { 0 };
    char **names;
    int count, code;

    code = subverb_parse(&secret_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (subverb_store(&store, &err) < 0)
        return report_error(&err);
    listing_init(&l, listing_form_of(values.json), ARRAY_LEN(headings), headings);
    if (listing_end(&l, store_vault_list(store, values.tenant, list_one, &l, &err)) < 0)
        return report_error(&err);
    return report_end(0);
}

int verb_secret(int argc, char **argv)
{
    return subverbs_run(&secret_verb, argc, argv);
}
