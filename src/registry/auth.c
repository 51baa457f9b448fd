#include "registry/auth.h"

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

/* A key of config.json may be a host or an old URL of it. */
static bool is_for(const char *key, const char *host)
{
    static const char old_default[] = "https://index.docker.io/v1/";
    const char *at = key;

    if (strcmp(host, "docker.io") == 0 && strcmp(key, old_default) == 0)
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

int auth_find(const char *config, size_t len, const char *host, char ret[AUTH_MAX], struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(config, len, 0, &why), *entry;
    const char *key;
    int rc = 0;

    ret[0] = '\0';
    if (!root)
        return err_set(err, ERR_INVALID, "config.json is not JSON: %.100s", why.text);
    json_object_foreach(json_object_get(root, "auths"), key,
                        entry) if (rc == 0 && !ret[0] && is_for(key, host)) rc =
        keep_auth(entry, ret, err);
    if (rc == 0 && !ret[0] &&
        (json_object_get(json_object_get(root, "credHelpers"), host) ||
         (json_object_get(root, "credsStore") &&
          json_object_get(json_object_get(root, "auths"), host))))
        rc = err_set(err, ERR_UNSUPPORTED,
                     "the credentials for %.100s are in a helper program, which is not supported; "
                     "'docker login' without one writes them to config.json",
                     host);
    json_decref(root);
    return rc;
}
