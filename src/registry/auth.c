#include "registry/auth.h"

#include "base/base64.h"
#include "base/own.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- challenges ---- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t,");
}

/* key="value" or key=value; NULL: damaged. Longer values than there is room for are refused. */
static const char *parameter(const char *at, char *key, size_t key_size, char *value, size_t size)
{
    size_t len = strcspn(at, "= \t,\""), n = 0;

    if (len == 0 || len >= key_size || at[len] != '=')
        return NULL;
    memcpy(key, at, len);
    key[len] = '\0';
    at += len + 1;
    if (*at != '"') {
        len = strcspn(at, " \t,");
        if (len >= size)
            return NULL;
        memcpy(value, at, len);
        value[len] = '\0';
        return at + len;
    }
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        if (n + 1 >= size || (unsigned char) *at < 0x20)
            return NULL;
        value[n++] = *at;
    }
    value[n] = '\0';
    return *at == '"' ? at + 1 : NULL;
}

static int keep(struct challenge *ret, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *field;
        size_t size;
    } rows[] = { { "realm", ret->realm, sizeof ret->realm },
                 { "service", ret->service, sizeof ret->service },
                 { "scope", ret->scope, sizeof ret->scope } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcasecmp(key, rows[i].key) == 0 &&
            (size_t) snprintf(rows[i].field, rows[i].size, "%s", value) >= rows[i].size)
            return -1;
    return 0;
}

int challenge_parse(const char *text, struct challenge *ret, struct err *err)
{
    char key[32], value[600];
    bool bearer = strncasecmp(text, "Bearer ", 7) == 0;

    memset(ret, 0, sizeof *ret);
    ret->basic = strncasecmp(text, "Basic", 5) == 0 && (text[5] == ' ' || !text[5]);
    if (ret->basic)
        return 0;
    if (!bearer)
        return err_set(err, ERR_UNSUPPORTED,
                       "the registry asks for an unknown kind of login: %.40s", text);
    for (const char *at = skip_blanks(text + 7); *at; at = skip_blanks(at)) {
        at = parameter(at, key, sizeof key, value, sizeof value);
        if (!at || keep(ret, key, value) < 0)
            return err_set(err, ERR_PROTOCOL, "the registry's question for a login is damaged");
    }
    if (!ret->realm[0])
        return err_set(err, ERR_PROTOCOL, "the registry does not say where to log in");
    return 0;
}

/* ---- config.json ---- */

/* The default registry has an old name there. */
static const char *docker_name(const char *host)
{
    return strcmp(host, "docker.io") == 0 ? "https://index.docker.io/v1/" : host;
}

/* A key of config.json may be a host or an old URL of it. */
static bool is_for(const char *key, const char *host)
{
    const char *at = key;

    if (strcmp(key, docker_name(host)) == 0)
        return true;
    if (strncmp(at, "https://", 8) == 0)
        at += 8;
    else if (strncmp(at, "http://", 7) == 0)
        at += 7;
    return strncmp(at, host, strlen(host)) == 0 &&
           (at[strlen(host)] == '\0' || at[strlen(host)] == '/');
}

static int keep_auth(const json_t *entry, char ret[AUTH_MAX], struct err *err)
{
    const char *auth = json_string_value(json_object_get(entry, "auth"));

    if (json_is_string(json_object_get(entry, "identitytoken")))
        return err_set(
            err, ERR_UNSUPPORTED,
            "config.json has an identity token for the registry, which is not supported");
    if (!auth)
        return 0;
    if (strlen(auth) >= AUTH_MAX ||
        strspn(auth, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") !=
            strlen(auth))
        return err_set(err, ERR_INVALID, "config.json has invalid credentials for the registry");
    memcpy(ret, auth, strlen(auth) + 1);
    return 0;
}

/* Part of a program's name, and never a path. */
static int keep_helper(const json_t *name, const char *host, struct auth_found *ret,
                       struct err *err)
{
    const char *text = json_string_value(name);
    size_t len = text ? strlen(text) : 0;

    if (len == 0)
        return 0;
    if (len >= sizeof ret->helper || text[0] == '.' || text[0] == '-' ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != len)
        return err_set(err, ERR_INVALID, "config.json names an invalid helper program");
    (void) snprintf(ret->helper, sizeof ret->helper, "%s", text);
    (void) snprintf(ret->server, sizeof ret->server, "%s", docker_name(host));
    return 0;
}

/* As docker: a helper of this registry, then what is written there, then the helper of all registries. */
static int find(const json_t *root, const char *host, struct auth_found *ret, struct err *err)
{
    const json_t *helpers = json_object_get(root, "credHelpers");
    const json_t *own = json_object_get(helpers, docker_name(host));
    const char *key;
    json_t *entry;
    int rc = keep_helper(own ? own : json_object_get(helpers, host), host, ret, err);

    if (rc < 0 || ret->helper[0])
        return rc;
    json_object_foreach(json_object_get(root, "auths"), key,
                        entry) if (rc == 0 && !ret->basic[0] && is_for(key, host)) rc =
        keep_auth(entry, ret->basic, err);
    return rc < 0 || ret->basic[0]
               ? rc
               : keep_helper(json_object_get(root, "credsStore"), host, ret, err);
}

int auth_find(const char *config, size_t len, const char *host, struct auth_found *ret,
              struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(config, len, 0, &why);
    int rc;

    memset(ret, 0, sizeof *ret);
    if (!root)
        return err_set(err, ERR_INVALID, "config.json is not JSON: %.100s", why.text);
    rc = find(root, host, ret, err);
    json_decref(root);
    return rc;
}

int auth_helper_read(const char *text, size_t len, char ret[AUTH_MAX], struct err *err)
{
    json_t *root = json_loadb(text, len, 0, NULL);
    const char *user = json_string_value(json_object_get(root, "Username"));
    const char *secret = json_string_value(json_object_get(root, "Secret"));
    char pair[AUTH_MAX];
    int n = user && secret ? snprintf(pair, sizeof pair, "%s:%s", user, secret) : -1, rc = 0;

    ret[0] = '\0';
    if (n < 0)
        rc = err_set(err, ERR_PROTOCOL, "the answer has no Username and Secret");
    else if (strcmp(user, "<token>") == 0)
        rc = err_set(err, ERR_UNSUPPORTED,
                     "the answer is an identity token, which is not supported");
    else if (strchr(user, ':') || (size_t) n >= sizeof pair || BASE64_SIZE((size_t) n) > AUTH_MAX)
        rc = err_set(err, ERR_INVALID, "the answer has an invalid Username, or is too long");
    else
        base64_put(ret, (const uint8_t *) pair, (size_t) n);
    explicit_bzero(pair, sizeof pair);
    json_decref(root);
    return rc;
}
