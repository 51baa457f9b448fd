#include "base/own.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define HOSTS_MOST 16
#define VALUE_MOST 65536 /* the server takes less, and says so */

struct secret_values {
    const char *tenant, *file;
    bool json;
};

#define AT(field) offsetof(struct secret_values, field)

/* clang-format off */
#define TENANT_OPTION { 0, "tenant", OPTION_TEXT, AT(tenant), "NAME", COMPLETE_NONE, "of that tenant: for the operator (your own)" }

static const struct option set_options[] = {
    TENANT_OPTION,
    { 0, "from-file", OPTION_TEXT, AT(file), "FILE", COMPLETE_FILE, "where the value is (standard input)" },
};
static const struct option ls_options[] = {
    TENANT_OPTION,
    { 0, "json", OPTION_FLAG, AT(json), NULL, COMPLETE_NONE, "as JSON" },
};
static const struct option rm_options[] = { TENANT_OPTION };

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
        "a port: over HTTPS. With http:// before it: in plain HTTP. Changes count at once.",
    .command_at = 1,
    .run = verb_secret,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

int verb_secret(int argc, char **argv)
{
    return subverbs_run(&secret_verb, argc, argv);
}

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
        return err_set(err, ERR_TOO_BIG, "the value of a secret is too long");
    if (len > 0 && out[len - 1] == '\n')
        len--;
    if (len > 0 && out[len - 1] == '\r')
        len--;
    return (ssize_t) len;
}

static int set(const struct secret_values *values, const char *name, char *const *hosts, int count,
               struct err *err)
{
    auto_free char *value = malloc(VALUE_MOST);
    json_t *body, *list = json_array();
    ssize_t len = value ? read_value(values->file, value, VALUE_MOST, err)
                        : err_set(err, ERR_NO_MEMORY, "no memory");

    if (len < 0 || server_act_for(values->tenant, err) < 0) {
        json_decref(list);
        return -1;
    }
    for (int i = 0; i < count; i++)
        (void) json_array_append_new(list, json_string(hosts[i]));
    body = json_pack("{s:o, s:s%}", "hosts", list, "value", value, (size_t) len);
    explicit_bzero(value, VALUE_MOST);
    if (!body)
        return err_set(err, ERR_INVALID, "the value of a secret is UTF-8 text");
    return server_ask("PUT", body, NULL, err, "/v1/secrets/%s", name);
}

static int secret_set(int argc, char **argv)
{
    struct secret_values values = { .tenant = NULL };
    struct err err;
    char **operands;
    int count, code;

    code = subverb_parse(&secret_verb, "set", argc, argv, &values, "a name, or a host,", 2,
                         1 + HOSTS_MOST, &operands, &count);
    if (code >= 0)
        return code;
    return set(&values, operands[0], operands + 1, count - 1, &err) < 0 ? report_error(&err)
                                                                        : report_end(0);
}

static int secret_rm(int argc, char **argv)
{
    struct secret_values values = { .tenant = NULL };
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&secret_verb, "rm", argc, argv, &values, "the name", 1, 1, &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 ||
        server_ask("DELETE", NULL, NULL, &err, "/v1/secrets/%s", names[0]) < 0)
        return report_error(&err);
    return report_end(0);
}

static void put_row(struct table *table, json_t *secret)
{
    char hosts[1024] = "", when[64];
    size_t i, len = 0;
    json_t *host;

    json_array_foreach(json_object_get(secret, "hosts"), i, host)
    {
        if (len < sizeof hosts)
            len += (size_t) snprintf(hosts + len, sizeof hosts - len, "%s%s", i ? ", " : "",
                                     json_string_value(host));
    }
    table_cell(table, "%s", show_text(secret, "name"));
    table_cell(table, "%s", subverb_when(when, sizeof when, show_time(secret, "updated")));
    table_cell(table, "%s", hosts);
}

static int secret_ls(int argc, char **argv)
{
    static const char *const headings[] = { "NAME", "SET", "HOSTS" };
    struct secret_values values = { .tenant = NULL };
    json_t *answer = NULL;
    struct err err;
    char **names;
    int count, code;

    code = subverb_parse(&secret_verb, "ls", argc, argv, &values, "", 0, 0, &names, &count);
    if (code >= 0)
        return code;
    if (server_act_for(values.tenant, &err) < 0 ||
        server_ask("GET", NULL, &answer, &err, "/v1/secrets") < 0)
        return report_error(&err);
    show_list(json_incref(json_object_get(answer, "secrets")), values.json, ARRAY_LEN(headings),
              headings, put_row);
    json_decref(answer);
    return report_end(0);
}
