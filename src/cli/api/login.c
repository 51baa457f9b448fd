/* login and context: servers that are known by name. */
#include "base/io.h"
#include "base/own.h"
#include "base/parse.h"
#include "cli/api/contexts.h"
#include "cli/api/server.h"
#include "cli/api/show.h"
#include "cli/common.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#define KEY_MOST 255

struct login_options {
    const char *name, *cacert;
    bool json;
};

#define AT(field) offsetof(struct login_options, field)

/* clang-format off */
static const struct option login_options[] = {
    { 0, "name",   OPTION_TEXT, AT(name),   "NAME", COMPLETE_NONE, "what the server is called in 'cove context' (its host)" },
    { 0, "cacert", OPTION_TEXT, AT(cacert), "FILE", COMPLETE_FILE, "authority of its certificate, PEM (those of this host)" },
};
static const struct option ls_options[] = {
    { 0, "json",   OPTION_FLAG, AT(json),   NULL,   COMPLETE_NONE, "as JSON, without the keys" },
};

static int context_ls(int argc, char **argv);
static int context_use(int argc, char **argv);
static int context_rm(int argc, char **argv);

static const struct verb subs[] = {
    { .name = "ls", .synopsis = "[OPTION…]", .summary = "list the servers that 'cove login' knows",
      .options = ls_options, .option_count = ARRAY_LEN(ls_options), .run = context_ls },
    { .name = "use", .synopsis = "NAME", .summary = "ask this server from now on; 'local': the one of this host", .run = context_use },
    { .name = "rm", .synopsis = "NAME", .summary = "forget a server and its key", .run = context_rm },
};

const struct verb login_verb = {
    .name = "login",
    .synopsis = "[OPTION…] URL",
    .summary = "remember a server and a key, and use them from now on",
    .details =
        "The key is asked for without echo, or read from stdin if stdin is no terminal. It is kept\n"
        "with mode 0600 in ~/.config/cove. 'cove context use local' goes back to the server of this host.\n\n"
        "  cove login https://cove.example.com\n"
        "  cove --server https://cove.example.com run -- uname -a",
    .options = login_options,
    .option_count = ARRAY_LEN(login_options),
    .run = verb_login,
};
const struct verb context_verb = {
    .name = "context",
    .synopsis = "ls|use|rm …",
    .summary = "which of several servers the verbs ask",
    .command_at = 1,
    .run = verb_context,
    .subs = subs,
    .sub_count = ARRAY_LEN(subs),
};
/* clang-format on */

/* A line, without echo where a person types it. */
static int read_key(char key[KEY_MOST + 1], struct err *err)
{
    bool person = isatty(STDIN_FILENO);
    struct termios before, quiet;
    size_t len = 0;
    ssize_t n = 1;

    if (person && tcgetattr(STDIN_FILENO, &before) == 0) {
        quiet = before;
        quiet.c_lflag &= (tcflag_t) ~ECHO;
        (void) fputs("Key: ", stderr);
        (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    while (len < KEY_MOST && (n = read(STDIN_FILENO, key + len, 1)) == 1 && key[len] != '\n')
        len++;
    key[len] = '\0';
    if (person) {
        (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        (void) fputc('\n', stderr);
    }
    if (n < 0)
        return err_sys(err, errno, "read the key");
    key[strcspn(key, "\r")] = '\0';
    return key[0] ? 0 : err_set(err, ERR_USAGE, "login: no key was given");
}

static int keep(const char *name, const char *url, const char *key, const char *cacert,
                struct err *err)
{
    json_t *contexts, *server;
    int r;

    if (contexts_read(&contexts, err) < 0)
        return -1;
    server = json_pack("{s:s, s:s, s:s*}", "url", url, "key", key, "cacert", cacert);
    (void) json_object_set_new(json_object_get(contexts, "servers"), name, server);
    (void) json_object_set_new(contexts, "current", json_string(name));
    r = contexts_write(contexts, err);
    json_decref(contexts);
    return r;
}

/* A key that the server does not take is not kept. */
static int try_key(const char *url, const char *key, const char *cacert, struct err *err)
{
    if (setenv("COVE_SERVER", url, 1) < 0 || setenv("COVE_KEY", key, 1) < 0 ||
        (cacert && setenv("COVE_CACERT", cacert, 1) < 0))
        return err_sys(err, errno, "set the server");
    return server_ask("GET", NULL, NULL, err, "/v1/sandboxes?limit=1");
}

static bool in_the_clear(const struct remote *remote)
{
    return remote->kind == REMOTE_HTTP && strcasecmp(remote->host, "localhost") != 0 &&
           strncmp(remote->host, "127.", 4) != 0 && strcmp(remote->host, "::1") != 0;
}

int verb_login(int argc, char **argv)
{
    struct login_options options = { .name = NULL };
    char key[KEY_MOST + 1], whole[PATH_MAX];
    const char *name, *cacert = NULL;
    struct remote remote = { .port = 0 };
    struct err err;
    char **operands;
    int count, code;

    code = common_parse(&login_verb, argc, argv, &options, &operands, &count);
    if (code >= 0)
        return code;
    if (count != 1)
        return count ? common_excess(&login_verb, operands[1])
                     : common_missing(&login_verb, "a URL");
    if (remote_parse(operands[0], &remote, &err) < 0)
        return report_error(&err);
    if (in_the_clear(&remote))
        report_note("%s is not encrypted: the key can be read on its way; use https://",
                    operands[0]);
    name = options.name ? options.name : remote.host;
    if (strcmp(name, "local") == 0)
        (void) err_set(&err, ERR_USAGE, "login: 'local' is the server of this host; use --name");
    else if (options.cacert && !(cacert = realpath(options.cacert, whole)))
        (void) err_set(&err, ERR_USAGE, "login: --cacert %.200s: %s", options.cacert,
                       strerror(errno));
    else if (read_key(key, &err) == 0 && try_key(operands[0], key, cacert, &err) == 0 &&
             keep(name, operands[0], key, cacert, &err) == 0) {
        printf("logged in to %s as '%s'\n", operands[0], name);
        return report_end(0);
    }
    return report_error(&err);
}

/* ---- context ---- */

int verb_context(int argc, char **argv)
{
    return subverbs_run(&context_verb, argc, argv);
}

static void put_row(struct table *table, const char *name, const char *url, bool current)
{
    char text[256];

    table_cell(table, "%s", current ? "*" : "");
    table_cell(table, "%s", report_text(text, sizeof text, name));
    table_cell(table, "%s", url);
}

static int context_ls(int argc, char **argv)
{
    static const char *const headings[] = { "", "NAME", "URL" };
    struct login_options options = { .name = NULL };
    json_t *contexts, *server, *list = json_array();
    const char *current, *name;
    struct table table;
    struct err err;
    char **operands;
    int count, code;

    code = subverb_parse(&context_verb, "ls", argc, argv, &options, "", 0, 0, &operands, &count);
    if (code >= 0)
        return code;
    if (contexts_read(&contexts, &err) < 0)
        return report_error(&err);
    current = json_string_value(json_object_get(contexts, "current"));
    table_init(&table, ARRAY_LEN(headings), headings);
    put_row(&table, "local", report_state(), !current);
    json_object_foreach(json_object_get(contexts, "servers"), name, server)
    {
        bool is = current && strcmp(current, name) == 0;

        put_row(&table, name, show_text(server, "url"), is);
        (void) json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "name", name, "url",
                                                     show_text(server, "url"), "current", is));
    }
    if (options.json)
        show_json(json_incref(list));
    else
        (void) table_print(&table, stdout);
    table_done(&table);
    json_decref(list);
    json_decref(contexts);
    return report_end(0);
}

/* remove: else it becomes the current one. */
static int change(const char *name, bool remove, struct err *err)
{
    json_t *contexts, *servers;
    const char *current;
    int r = 0;

    if (contexts_read(&contexts, err) < 0)
        return -1;
    servers = json_object_get(contexts, "servers");
    current = json_string_value(json_object_get(contexts, "current"));
    if (!json_object_get(servers, name) && (remove || strcmp(name, "local") != 0))
        r = err_set(err, ERR_USAGE, "there is no server '%.60s' (see 'cove context ls')", name);
    else if (!remove)
        (void) json_object_set_new(contexts, "current",
                                   strcmp(name, "local") == 0 ? json_null() : json_string(name));
    else {
        if (current && strcmp(current, name) == 0)
            (void) json_object_set_new(contexts, "current", json_null());
        (void) json_object_del(servers, name);
    }
    if (r == 0)
        r = contexts_write(contexts, err);
    json_decref(contexts);
    return r;
}

static int change_verb(const char *sub, bool remove, int argc, char **argv)
{
    struct login_options options = { .name = NULL };
    struct err err;
    char **operands;
    int count, code;

    code =
        subverb_parse(&context_verb, sub, argc, argv, &options, "a name", 1, 1, &operands, &count);
    if (code >= 0)
        return code;
    return change(operands[0], remove, &err) < 0 ? report_error(&err) : 0;
}

static int context_use(int argc, char **argv)
{
    return change_verb("use", false, argc, argv);
}

static int context_rm(int argc, char **argv)
{
    return change_verb("rm", true, argc, argv);
}
