#include "direct/network_option.h"

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "egress/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOGIN_FILE_MAX 1024
#define NO_DEFAULT     "none"

static int add_rules(struct reach *rules, const struct option_list *list, bool deny,
                     struct err *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (reach_add(rules, deny, list->items[i], err) < 0)
            return err_wrap(err, "--%s", deny ? "deny" : "allow");
    return 0;
}

/* "user:password" and a line end; the first colon divides. */
static int read_login(const char *path, struct upstream *upstream, struct err *err)
{
    auto_close int opened = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : opened, r;
    char text[LOGIN_FILE_MAX], *colon;
    size_t len = 0;
    ssize_t n = 0;

    if (fd < 0)
        return err_sys(err, errno, "--proxy-login: open %s", path);
    while (len < sizeof text - 1 && (n = read(fd, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t) n;
    if (n < 0)
        return err_sys(err, errno, "--proxy-login: read %s", path);
    text[len] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    colon = strchr(text, ':');
    if (!colon)
        return err_set(err, ERR_INVALID, "--proxy-login: not user:password");
    *colon = '\0';
    r = upstream_set_login(upstream, text, colon + 1, err);
    explicit_bzero(text, sizeof text);
    return r < 0 ? err_wrap(err, "--proxy-login") : 0;
}

static void put_list(struct json_out *json, const char *name, const struct reach_rule *rules,
                     size_t count)
{
    json_out_array(json, name);
    for (size_t i = 0; i < count; i++) {
        char text[REACH_TEXT_MAX];

        reach_rule_print(&rules[i], text);
        json_out_text(json, NULL, text);
    }
    json_out_end(json);
}

/* What network_from_text of the server reads. */
static char *rules_text(const struct reach *rules)
{
    char address[UPSTREAM_ADDRESS_MAX], *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct json_out json;

    if (!out)
        return NULL;
    json_out_init(&json, out);
    json.one_line = true;
    json_out_object(&json, NULL);
    json_out_text(&json, "mode", reach_mode_name(rules->mode));
    put_list(&json, "allow", rules->allow, rules->allow_count);
    put_list(&json, "deny", rules->deny, rules->deny_count);
    if (rules->upstream.kind != UPSTREAM_NONE) {
        upstream_address(&rules->upstream, address);
        json_out_object(&json, "proxy");
        json_out_text(&json, "type", upstream_kind_name(rules->upstream.kind));
        json_out_text(&json, "address", address);
        json_out_bool(&json, "trusted", true);
        json_out_end(&json);
    }
    json_out_end(&json);
    if (json_out_finish(&json) < 0 || fclose(out) != 0) {
        free(text);
        return NULL;
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static int read_rules(const struct network_values *values, struct reach *rules, struct err *err)
{
    if (reach_mode_parse(values->mode, &rules->mode, err) < 0)
        return err_wrap(err, "--network");
    if (add_rules(rules, &values->allow, false, err) < 0 ||
        add_rules(rules, &values->deny, true, err) < 0)
        return -1;
    if (values->proxy && upstream_parse(values->proxy, &rules->upstream, err) < 0)
        return err_wrap(err, "--proxy");
    if (values->login && !values->proxy)
        return err_set(err, ERR_USAGE, "--proxy-login needs --proxy");
    return values->login ? read_login(values->login, &rules->upstream, err) : 0;
}

int network_values_read(const struct network_values *values, struct network_default *ret,
                        struct err *err)
{
    auto_free struct reach *rules = calloc(1, sizeof *rules);
    bool more = values->allow.count > 0 || values->deny.count > 0 || values->proxy || values->login;

    *ret = (struct network_default){ .given = values->mode != NULL };
    if (!values->mode && more)
        return err_set(err, ERR_USAGE, "rules and proxies need --network MODE");
    if (values->mode && strcmp(values->mode, NO_DEFAULT) == 0 && more)
        return err_set(err, ERR_USAGE, "--network none has no rules and no proxy");
    if (!values->mode || strcmp(values->mode, NO_DEFAULT) == 0)
        return 0;
    if (!rules)
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    if (read_rules(values, rules, err) < 0)
        return -1;
    ret->rules = rules_text(rules);
    if (rules->upstream.user[0] &&
        asprintf(&ret->login, "%s\n%s", rules->upstream.user, rules->upstream.password) < 0)
        ret->login = NULL;
    if (!ret->rules || (rules->upstream.user[0] && !ret->login)) {
        network_default_done(ret);
        return err_set(err, ERR_NO_MEMORY, "no memory for rules");
    }
    explicit_bzero(rules, sizeof *rules);
    return 0;
}

void network_default_done(struct network_default *what)
{
    if (what->login)
        explicit_bzero(what->login, strlen(what->login));
    free(what->login);
    free(what->rules);
    what->login = what->rules = NULL;
}

int network_default_store(struct store *store, enum store_network_kind kind, const char *name,
                          const struct network_default *what, struct err *err)
{
    return what->given ? store_network_default_set(store, kind, name, what->rules, what->login, err)
                       : 0;
}

const char *network_default_mode(struct store *store, enum store_network_kind kind,
                                 const char *name, char out[16])
{
    auto_free char *rules = NULL;
    struct err ignored;

    (void) strcpy(out, "-");
    if (store_network_default_get(store, kind, name, &rules, NULL, &ignored) == 0 && rules)
        (void) sscanf(rules, " { \"mode\" : \"%15[a-z]\"", out);
    return out;
}
