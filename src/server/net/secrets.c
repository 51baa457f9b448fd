#include "server/net/secrets.h"

#include "base/own.h"
#include "base/sha256.h"
#include "egress/tls.h"
#include "server/form/form.h"
#include "store/seal.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PLACEHOLDER  "cove-secret-"
#define RANDOM_BYTES 16
#define ENV_MOST     (SECRETS_OF_SANDBOX + 8)

/* ---- names and hosts ---- */

int secrets_check_hosts(const json_t *hosts, size_t *ret_bad, struct err *err)
{
    struct host_rule host;

    *ret_bad = 0;
    if (json_array_size(hosts) == 0 || json_array_size(hosts) > REWRITE_HOSTS_MAX)
        return err_set(err, ERR_INVALID, "1 to %d hosts are needed", REWRITE_HOSTS_MAX);
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const char *text = json_string_value(json_array_get(hosts, i));

        *ret_bad = i;
        if (!text)
            return err_set(err, ERR_INVALID, "is not a text");
        if (host_rule_parse(text, &host, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- what is sealed with a sandbox ---- */

static json_t *hidden_of(struct app *app, const char *sandbox, struct err *err)
{
    json_t *json = NULL;
    char *text = NULL;
    size_t len = 0;

    if (store_hidden_get(app->store, sandbox, &text, &len, err) < 0)
        return NULL;
    err->kind = ERR_NONE;
    if (text && !(json = json_loadb(text, len, 0, NULL)))
        err_set(err, ERR_INTERNAL, "what was kept of the sandbox's secrets cannot be read");
    seal_wipe(text, len);
    return json;
}

static const json_t *find_entry(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *own = json_string_value(json_object_get(entry, "name"));

        if (own && strcmp(own, name) == 0)
            return entry;
    }
    return NULL;
}

/* Its placeholder, which is made if it has none yet. NULL: no memory, or nothing random. */
static const char *entry_for(json_t *list, const char *name, bool shown)
{
    const json_t *old = find_entry(list, name);
    unsigned char bytes[RANDOM_BYTES];
    char text[REWRITE_PLACEHOLDER_MAX] = PLACEHOLDER;
    json_t *entry;

    if (old)
        return json_string_value(json_object_get(old, "placeholder"));
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return NULL;
    sha256_hex(bytes, sizeof bytes, text + strlen(PLACEHOLDER));
    entry = json_pack("{s:s, s:s, s:b}", "name", name, "placeholder", text, "shown", shown);
    if (!entry || json_array_append_new(list, entry) < 0)
        return NULL;
    return json_string_value(json_object_get(entry, "placeholder"));
}

static int no_memory(struct err *err)
{
    return err_set(err, ERR_NO_MEMORY, "no memory for secrets");
}

/* ---- planning ---- */

static int has_secret(struct caller *caller, const char *name, struct err *err)
{
    struct store_vault *secret = malloc(sizeof *secret);
    char *value = NULL;
    size_t len = 0;
    int r = -1;

    if (!secret)
        return no_memory(err);
    if (!store_vault_name_ok(name))
        err_set(err, ERR_NO_PATH, "there is no secret '%.63s'", name);
    else
        r = store_vault_get(caller->app->store, caller->tenant, name, secret, &value, &len, err);
    seal_wipe(value, len);
    free(secret);
    return r;
}

static int plan_names(struct caller *caller, const json_t *names, json_t *list, struct err *err)
{
    if (json_array_size(names) > SECRETS_OF_SANDBOX)
        return form_bad(caller, err, "network.secrets", "more than %d", SECRETS_OF_SANDBOX);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        char field[64];

        (void) snprintf(field, sizeof field, "network.secrets[%zu]", i);
        if (!name)
            return form_bad(caller, err, field, "is not a text");
        if (has_secret(caller, name, err) < 0) {
            if (err->kind == ERR_NO_PATH)
                return form_bad(caller, err, field, "there is no secret '%.63s'", name);
            return -1;
        }
        if (!entry_for(list, name, true))
            return no_memory(err);
    }
    return 0;
}

/* "${e2b.secrets.NAME}" becomes a placeholder of its own. */
static int plan_value(struct caller *caller, const char *text, json_t *list, json_t **ret,
                      struct err *err)
{
    static const char begin[] = "${", secret[] = "e2b.secrets.";
    char out[2 * SECRETS_RULE_VALUE] = "", name[STORE_NAME_MAX];
    size_t len = 0;

    while (*text) {
        const char *mark = strstr(text, begin), *end = mark ? strchr(mark, '}') : NULL, *what;
        size_t plain = end ? (size_t) (mark - text) : strlen(text), name_len;

        if (len + plain + REWRITE_PLACEHOLDER_MAX >= sizeof out)
            return err_set(err, ERR_INVALID, "is too long");
        memcpy(out + len, text, plain);
        len += plain;
        out[len] = '\0';
        if (!end)
            break;
        what = mark + strlen(begin);
        name_len = (size_t) (end - what) - strlen(secret);
        if (strncmp(what, secret, strlen(secret)) != 0 || name_len >= sizeof name)
            return err_set(err, ERR_INVALID, "only ${e2b.secrets.NAME} can be put in");
        memcpy(name, what + strlen(secret), name_len);
        name[name_len] = '\0';
        if (has_secret(caller, name, err) < 0)
            return err->kind == ERR_NO_PATH
                       ? err_set(err, ERR_INVALID, "there is no secret '%.63s'", name)
                       : -1;
        mark = entry_for(list, name, false);
        if (!mark)
            return no_memory(err);
        (void) strcpy(out + len, mark);
        len += strlen(mark);
        text = end + 1;
    }
    *ret = json_string(out);
    return *ret ? 0 : no_memory(err);
}

static int plan_header(struct caller *caller, const char *host, const char *name,
                       const json_t *value, json_t *list, json_t *headers, struct err *err)
{
    const char *text = json_string_value(value);
    json_t *planned = NULL;

    if (!rewrite_header_ok(name))
        return err_set(err, ERR_INVALID, "'%.40s' is not a header that can be set", name);
    if (!text || strlen(text) > SECRETS_RULE_VALUE || !store_vault_value_ok(text, strlen(text)))
        return err_set(err, ERR_INVALID,
                       "the value of '%.40s' is not a text of 1 to %d bytes in one line", name,
                       SECRETS_RULE_VALUE);
    if (plan_value(caller, text, list, &planned, err) < 0)
        return -1;
    return json_array_append_new(headers, json_pack("{s:s, s:s, s:s, s:o}", "host", host, "name",
                                                    name, "asked", text, "value", planned)) < 0
               ? no_memory(err)
               : 0;
}

static int plan_rules(struct caller *caller, const json_t *rules, json_t *list, json_t *headers,
                      struct err *err)
{
    struct host_rule checked;
    const char *host, *name;
    json_t *set, *value;

    if (json_object_size(rules) > SECRETS_RULE_HOSTS)
        return form_bad(caller, err, "network.rules", "more than %d hosts", SECRETS_RULE_HOSTS);
    json_object_foreach((json_t *) rules, host, set)
    {
        if (host_rule_parse(host, &checked, err) < 0)
            goto bad;
        if (json_object_size(set) > SECRETS_RULE_MOST) {
            err_set(err, ERR_INVALID, "more than %d headers", SECRETS_RULE_MOST);
            goto bad;
        }
        json_object_foreach(set, name, value)
        {
            if (plan_header(caller, host, name, value, list, headers, err) < 0)
                goto bad;
        }
    }
    return 0;
bad:
    (void) err_wrap(err, "network.rules: %.60s", host);
    return caller_blame(caller, "network.rules", NULL, NULL);
}

static int add_env(struct secrets_plan *plan, const char *name, const char *value, struct err *err)
{
    if (plan->env_count == ENV_MOST ||
        asprintf(&plan->env[plan->env_count], "%s=%s", name, value) < 0)
        return no_memory(err);
    plan->env_count++;
    return 0;
}

/* What programs look at to find whom they trust: curl and what is built on OpenSSL, Node, Python's requests, git. */
static int plan_env(const json_t *list, bool root, struct secrets_plan *plan, struct err *err)
{
    static const char *const bundles[] = { "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                                           "GIT_SSL_CAINFO" };
    char path[64];

    plan->env = calloc(ENV_MOST, sizeof *plan->env);
    if (!plan->env)
        return no_memory(err);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);

        if (json_is_true(json_object_get(entry, "shown")) &&
            add_env(plan, json_string_value(json_object_get(entry, "name")),
                    json_string_value(json_object_get(entry, "placeholder")), err) < 0)
            return -1;
    }
    (void) snprintf(path, sizeof path, "%s/" SECRETS_BUNDLE, secrets_place(root));
    for (size_t i = 0; i < ARRAY_LEN(bundles); i++)
        if (add_env(plan, bundles[i], path, err) < 0)
            return -1;
    (void) snprintf(path, sizeof path, "%s/" SECRETS_AUTHORITY, secrets_place(root));
    return add_env(plan, "NODE_EXTRA_CA_CERTS", path, err);
}

bool secrets_wanted(const struct secrets_want *want)
{
    return json_array_size(want->names) > 0 || json_object_size(want->rules) > 0;
}

/* The parts of what is to be kept: new, or as they were. */
static json_t *plan_begin(const char *kept, struct err *err)
{
    char *cert = NULL, *key = NULL;
    json_t *all;

    if (kept) {
        all = json_loads(kept, 0, NULL);
        if (!all)
            err_set(err, ERR_INTERNAL, "what was kept of the snapshot's secrets cannot be read");
        return all;
    }
    if (!tls_ca_make(&cert, &key)) {
        err_set(err, ERR_INTERNAL, "a certificate authority cannot be made");
        return NULL;
    }
    all = json_pack("{s:[], s:[], s:s, s:s}", "secrets", "headers", "cert", cert, "key", key);
    free(cert);
    seal_wipe(key, strlen(key));
    if (!all)
        (void) no_memory(err);
    return all;
}

int secrets_plan(struct caller *caller, const struct secrets_want *want, bool root,
                 const char *kept, struct secrets_plan *ret, struct err *err)
{
    json_t *all = plan_begin(kept, err), *list = json_object_get(all, "secrets");
    json_t *headers = json_array();
    int r = -1;

    *ret = (struct secrets_plan){ .as_before = kept != NULL };
    if (!all || plan_names(caller, want->names, list, err) < 0 ||
        plan_rules(caller, want->rules, list, headers, err) < 0 ||
        plan_env(list, root, ret, err) < 0)
        goto end;
    if (json_array_size(list) > SECRETS_OF_SANDBOX) {
        r = form_bad(caller, err, "network.secrets", "more than %d with those of the snapshot",
                     SECRETS_OF_SANDBOX);
        goto end;
    }
    if (json_object_size(want->rules) > 0)
        (void) json_object_set(all, "headers", headers);
    ret->hidden = json_dumps(all, JSON_COMPACT);
    r = ret->hidden ? 0 : no_memory(err);
end:
    json_decref(all);
    json_decref(headers);
    if (r < 0)
        secrets_plan_done(ret);
    return r;
}

int secrets_plan_trust(bool root, struct secrets_plan *ret, struct err *err)
{
    *ret = (struct secrets_plan){ .hidden = NULL };
    if (plan_env(NULL, root, ret, err) == 0)
        return 0;
    secrets_plan_done(ret);
    return -1;
}

int secrets_kept(struct app *app, const char *id, char **ret, struct err *err)
{
    size_t len;

    return store_hidden_get(app->store, id, ret, &len, err);
}

void secrets_plan_done(struct secrets_plan *plan)
{
    for (size_t i = 0; i < plan->env_count; i++)
        free(plan->env[i]);
    free(plan->env);
    seal_wipe(plan->hidden, plan->hidden ? strlen(plan->hidden) : 0);
    *plan = (struct secrets_plan){ .hidden = NULL };
}

/* ---- for the gateway ---- */

static void fill_hosts(struct rewrite_secret *secret, const char *text)
{
    json_t *hosts = json_loads(text, 0, NULL), *item;
    struct err ignored;
    size_t i;

    json_array_foreach(hosts, i, item)
    {
        const char *host = json_string_value(item);

        if (host && secret->host_count < REWRITE_HOSTS_MAX &&
            host_rule_parse(host, &secret->hosts[secret->host_count], &ignored) == 0)
            secret->host_count++;
    }
    json_decref(hosts);
}

/* One that was removed has no value, and no host: its placeholder is refused everywhere. */
static int fill_secret(struct app *app, const char *tenant, const json_t *entry,
                       struct rewrite_secret *secret, struct err *err)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *mark = json_string_value(json_object_get(entry, "placeholder"));
    auto_free struct store_vault *kept = malloc(sizeof *kept);
    size_t len;

    if (!kept || !name || !mark)
        return no_memory(err);
    (void) snprintf(secret->name, sizeof secret->name, "%s", name);
    (void) snprintf(secret->placeholder, sizeof secret->placeholder, "%s", mark);
    if (store_vault_get(app->store, tenant, name, kept, &secret->value, &len, err) < 0)
        return err->kind == ERR_NO_PATH ? 0 : -1;
    fill_hosts(secret, kept->hosts);
    return 0;
}

/* Set whether the host is spoken to in the clear or not: it is the owner who wrote it. */
static int fill_header(const json_t *entry, struct rewrite_header *header, struct err *err)
{
    const char *host = json_string_value(json_object_get(entry, "host"));
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *value = json_string_value(json_object_get(entry, "value"));

    if (!host || !name || !value || host_rule_parse(host, &header->host, err) < 0)
        return err_set(err, ERR_INTERNAL, "a header that was kept cannot be read");
    header->host.plain = header->host.tls = true;
    (void) snprintf(header->name, sizeof header->name, "%s", name);
    header->value = strdup(value);
    return header->value ? 0 : no_memory(err);
}

static struct rewrite *rewrite_of(struct app *app, const char *tenant, const json_t *hidden,
                                  struct err *err)
{
    const json_t *list = json_object_get(hidden, "secrets");
    const json_t *headers = json_object_get(hidden, "headers");
    struct rewrite *rewrite = rewrite_new(json_array_size(list), json_array_size(headers));
    int r = rewrite ? 0 : no_memory(err);

    for (size_t i = 0; r == 0 && i < rewrite->secret_count; i++)
        r = fill_secret(app, tenant, json_array_get(list, i), &rewrite->secrets[i], err);
    for (size_t i = 0; r == 0 && i < rewrite->header_count; i++)
        r = fill_header(json_array_get(headers, i), &rewrite->headers[i], err);
    if (r == 0)
        return rewrite;
    rewrite_free(rewrite);
    return NULL;
}

/* Whether TLS has to be opened for any of them: only then the gateway gets the key that opens it. */
static bool needs_tls(const struct rewrite *rewrite)
{
    for (size_t i = 0; i < rewrite->secret_count; i++)
        for (size_t h = 0; h < rewrite->secrets[i].host_count; h++)
            if (rewrite->secrets[i].hosts[h].tls)
                return true;
    for (size_t i = 0; i < rewrite->header_count; i++)
        if (rewrite->headers[i].host.tls)
            return true;
    return false;
}

/* `rewrite` is taken in any case. */
static struct message_secrets *secrets_new(struct rewrite *rewrite, const json_t *hidden,
                                           struct err *err)
{
    const char *cert = json_string_value(json_object_get(hidden, "cert"));
    const char *key = json_string_value(json_object_get(hidden, "key"));
    struct message_secrets *secrets = calloc(1, sizeof *secrets);
    bool tls = cert && key && needs_tls(rewrite);

    if (!secrets) {
        rewrite_free(rewrite);
        (void) no_memory(err);
        return NULL;
    }
    secrets->rewrite = rewrite;
    if (!tls || ((secrets->cert = strdup(cert)) && (secrets->key = strdup(key))))
        return secrets;
    message_secrets_free(secrets);
    (void) no_memory(err);
    return NULL;
}

int secrets_load(struct app *app, const char *sandbox, struct message_secrets **ret,
                 struct err *err)
{
    json_t *hidden = hidden_of(app, sandbox, err);
    auto_free struct store_sandbox *record = malloc(sizeof *record);
    struct rewrite *rewrite = NULL;

    *ret = NULL;
    if (!hidden)
        return err->kind == ERR_NONE ? 0 : -1;
    if (!record)
        (void) no_memory(err);
    else if (store_sandbox_get(app->store, NULL, sandbox, record, err) == 0)
        rewrite = rewrite_of(app, record->tenant, hidden, err);
    if (rewrite)
        *ret = secrets_new(rewrite, hidden, err);
    json_decref(hidden);
    return *ret ? 0 : -1;
}

/* ---- showing and changing ---- */

json_t *secrets_names(struct app *app, const char *sandbox)
{
    struct err ignored;
    json_t *hidden = hidden_of(app, sandbox, &ignored), *names = NULL;
    const json_t *list = json_object_get(hidden, "secrets");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);

        if (!json_is_true(json_object_get(entry, "shown")))
            continue;
        if (!names)
            names = json_array();
        (void) json_array_append(names, json_object_get(entry, "name"));
    }
    json_decref(hidden);
    return names;
}

json_t *secrets_rules(struct app *app, const char *sandbox)
{
    struct err ignored;
    json_t *hidden = hidden_of(app, sandbox, &ignored), *rules = NULL;
    const json_t *headers = json_object_get(hidden, "headers");

    for (size_t i = 0; i < json_array_size(headers); i++) {
        const json_t *entry = json_array_get(headers, i);
        const char *host = json_string_value(json_object_get(entry, "host"));
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_t *set;

        if (!rules)
            rules = json_object();
        set = json_object_get(rules, host);
        if (!set) {
            set = json_object();
            (void) json_object_set_new(rules, host, set);
        }
        (void) json_object_set(set, name, json_object_get(entry, "asked"));
    }
    json_decref(hidden);
    return rules;
}

int secrets_set_rules(struct caller *caller, const char *sandbox, const json_t *rules,
                      struct err *err)
{
    json_t *hidden = hidden_of(caller->app, sandbox, err), *headers = json_array();
    char *text = NULL;
    int r = -1;

    if (!hidden && err->kind == ERR_NONE && json_object_size(rules) == 0)
        r = 0;
    else if (!hidden && err->kind == ERR_NONE)
        err_set(err, ERR_STATE, "headers can be set only in a sandbox that was made with some");
    else if (hidden &&
             plan_rules(caller, rules, json_object_get(hidden, "secrets"), headers, err) == 0) {
        (void) json_object_set(hidden, "headers", headers);
        text = json_dumps(hidden, JSON_COMPACT);
        r = text ? store_hidden_set(caller->app->store, sandbox, text, err) : no_memory(err);
    }
    seal_wipe(text, text ? strlen(text) : 0);
    json_decref(hidden);
    json_decref(headers);
    return r;
}
