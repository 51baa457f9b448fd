#include "cli/api/network_rules.h"

#include "base/own.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define LOGIN_FILE_MAX 1024
#define NO_DEFAULT     "none"

/* "user:password" and a line end; the first colon divides. */
static int put_login(const char *path, json_t *proxy, struct err *err)
{
    auto_close int opened = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : opened, r = 0;
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
    if (json_object_set_new(proxy, "username", json_string(text)) < 0 ||
        json_object_set_new(proxy, "password", json_string(colon + 1)) < 0)
        r = err_set(err, ERR_INVALID, "--proxy-login: not UTF-8");
    explicit_bzero(text, sizeof text);
    return r;
}

int network_proxy_put(const char *proxy, const char *login, json_t *network, struct err *err)
{
    const char *address = proxy ? strstr(proxy, "://") : NULL;
    json_t *json;

    if (!proxy)
        return login ? err_set(err, ERR_USAGE, "--proxy-login needs --proxy") : 0;
    if (!address)
        return err_set(err, ERR_INVALID,
                       "--proxy: http://HOST:PORT or socks5://HOST:PORT is needed");
    json =
        json_pack("{s:s%, s:s}", "type", proxy, (size_t) (address - proxy), "address", address + 3);
    if (!json || json_object_set_new(network, "proxy", json) < 0)
        return err_set(err, ERR_INVALID, "--proxy: not UTF-8");
    return login ? put_login(login, json, err) : 0;
}

int network_ports_put(const char *option, const char *text, json_t *ports, struct err *err)
{
    auto_free char *copy = strdup(text);
    char *rest = copy, *one;

    while (rest && (one = strsep(&rest, ","))) {
        uint64_t port;

        if (parse_u64(one, &port, err) < 0 || port < 1 || port > UINT16_MAX)
            return err_set(err, ERR_INVALID, "--%s: '%.20s': ports are numbers from 1 to 65535",
                           option, one);
        (void) json_array_append_new(ports, json_integer((json_int_t) port));
    }
    return 0;
}

static int put_list(const char *name, const struct option_list *list, json_t *network,
                    struct err *err)
{
    json_t *array = json_array();

    (void) json_object_set_new(network, name, array);
    for (size_t i = 0; i < list->count; i++)
        if (json_array_append_new(array, json_string(list->items[i])) < 0)
            return err_set(err, ERR_INVALID, "--%s: not UTF-8", name);
    return 0;
}

int network_rules_put(const struct network_rules *rules, json_t *body, struct err *err)
{
    bool more = rules->allow.count > 0 || rules->deny.count > 0 || rules->proxy || rules->login;
    json_t *network;

    if (!rules->mode)
        return more ? err_set(err, ERR_USAGE, "rules and proxies need --network MODE") : 0;
    if (strcmp(rules->mode, NO_DEFAULT) == 0) {
        (void) json_object_set_new(body, "network", json_null());
        return more ? err_set(err, ERR_USAGE, "--network none has no rules and no proxy") : 0;
    }
    network = json_pack("{s:s}", "mode", rules->mode);
    if (!network || json_object_set_new(body, "network", network) < 0)
        return err_set(err, ERR_INVALID, "--network: not UTF-8");
    return put_list("allow", &rules->allow, network, err) < 0 ||
                   put_list("deny", &rules->deny, network, err) < 0
               ? -1
               : network_proxy_put(rules->proxy, rules->login, network, err);
}
