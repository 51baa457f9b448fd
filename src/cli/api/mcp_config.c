/* cove mcp config|init: what MCP clients need to start `cove mcp`. */
#include "cli/api/mcp.h"

#include "base/io.h"
#include "base/own.h"
#include "cli/api/show.h"
#include "cli/report.h"
#include "cli/subverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct client {
    const char *name;
    const char *key; /* where servers are in its file */
    bool typed;      /* says "type": "stdio" */
    bool home;       /* path begins there; else here */
    const char *path;
} clients[] = {
    { "claude-code", "mcpServers", true, false, ".mcp.json" },
    { "claude-desktop", "mcpServers", false, true, ".config/Claude/claude_desktop_config.json" },
    { "vscode", "servers", true, false, ".vscode/mcp.json" },
    { "cursor", "mcpServers", false, true, ".cursor/mcp.json" },
};

static const struct client *find_client(const char *name, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    (void) err_set(err, ERR_USAGE,
                   "mcp: unknown client '%.60s': claude-code, claude-desktop, vscode or cursor",
                   name);
    return NULL;
}

/* {"command": "/usr/bin/cove", "args": ["--server", URL, "mcp"]} */
static int entry_of(const struct client *client, json_t **ret, struct err *err)
{
    static const struct {
        const char *variable, *option;
    } kept[] = { { "COVE_SERVER", "--server" },
                 { "COVE_STATE", "--state" },
                 { "COVE_CACERT", "--cacert" } };
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    json_t *args, *entry;

    if (len < 0)
        return err_sys(err, errno, "find this program");
    program[len] = '\0';
    args = json_array();
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        const char *value = getenv(kept[i].variable);

        if (!value || !value[0] || (i == 1 && getenv("COVE_SERVER")))
            continue;
        (void) json_array_append_new(args, json_string(kept[i].option));
        (void) json_array_append_new(args, json_string(value));
    }
    (void) json_array_append_new(args, json_string("mcp"));
    entry = json_object();
    if (client->typed)
        (void) json_object_set_new(entry, "type", json_string("stdio"));
    (void) json_object_set_new(entry, "command", json_string(program));
    (void) json_object_set_new(entry, "args", args);
    *ret = entry;
    return 0;
}

int mcp_config(int argc, char **argv)
{
    const struct client *client;
    struct err err;
    json_t *entry;
    char **operands;
    int count, unused, code;

    code = subverb_parse(&mcp_verb, "config", argc, argv, &unused, "a client", 1, 1, &operands,
                         &count);
    if (code >= 0)
        return code;
    client = find_client(operands[0], &err);
    if (!client || entry_of(client, &entry, &err) < 0)
        return report_error(&err);
    show_json(json_pack("{s:{s:o}}", client->key, "cove", entry));
    return report_end(0);
}

/* ---- init ---- */

static int path_of(const struct client *client, char out[PATH_MAX], struct err *err)
{
    const char *home = getenv("HOME");

    if (client->home && (!home || home[0] != '/'))
        return err_set(err, ERR_USAGE, "mcp: HOME is not set");
    if (snprintf(out, PATH_MAX - 16, "%s%s%s", client->home ? home : "", client->home ? "/" : "",
                 client->path) >= PATH_MAX - 16)
        return err_set(err, ERR_USAGE, "mcp: the path of the configuration is too long");
    return 0;
}

/* An absent file is an empty object. *ret_mode: of the file that is written in its place. */
static int read_config(const char *path, json_t **ret, mode_t *ret_mode, struct err *err)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    json_error_t why;
    struct stat st;

    *ret_mode = 0644;
    if (fd < 0 && errno == ENOENT)
        return (*ret = json_object()) ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for %s", path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "read %s", path);
    *ret_mode = st.st_mode & 0777;
    *ret = st.st_size == 0 ? json_object() : json_loadfd(fd, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(*ret))
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return err_set(err, ERR_INVALID,
                   "%s is not a plain JSON object, and was left as it is: add by hand what 'cove "
                   "mcp config' prints",
                   path);
}

/* Under another name first: a crash leaves the old file or the new one. */
static int write_config(char *path, json_t *config, mode_t mode, struct err *err)
{
    auto_free char *text = json_dumps(config, JSON_INDENT(2));
    auto_close int fd = -1;
    char fresh[PATH_MAX + 16];

    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(path, 0755);
        *slash = '/';
    }
    (void) snprintf(fresh, sizeof fresh, "%s.%ld", path, (long) getpid());
    fd = text ? open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode) : -1;
    if (fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && io_write_all(fd, "\n", 1) == 0 &&
        fsync(fd) == 0 && rename(fresh, path) == 0)
        return 0;
    err_sys(err, errno, "write %s", path);
    (void) unlink(fresh);
    return -1;
}

static int add_entry(const struct client *client, char *path, struct err *err)
{
    json_t *config = NULL, *servers, *entry = NULL;
    mode_t mode;
    int r = read_config(path, &config, &mode, err);

    if (r == 0)
        r = entry_of(client, &entry, err);
    servers = r == 0 ? json_object_get(config, client->key) : NULL;
    if (r == 0 && !servers) {
        servers = json_object();
        (void) json_object_set_new(config, client->key, servers);
    }
    if (r == 0 && !json_is_object(servers))
        r = err_set(err, ERR_INVALID, "%s: %s is not an object; the file was left as it is", path,
                    client->key);
    if (r == 0) {
        (void) json_object_set(servers, "cove", entry);
        r = write_config(path, config, mode, err);
    }
    json_decref(entry);
    json_decref(config);
    return r;
}

int mcp_init(int argc, char **argv)
{
    const struct client *client;
    char path[PATH_MAX];
    struct err err;
    char **operands;
    int count, unused, code;

    code =
        subverb_parse(&mcp_verb, "init", argc, argv, &unused, "a client", 1, 1, &operands, &count);
    if (code >= 0)
        return code;
    client = find_client(operands[0], &err);
    if (!client || path_of(client, path, &err) < 0 || add_entry(client, path, &err) < 0)
        return report_error(&err);
    printf("%s: 'cove' is set up for %s; restart it to use the tools\n", path, client->name);
    return report_end(0);
}
