/* RUN: its three forms, and its mounts. */
#include "base/own.h"
#include "base/parse.h"
#include "dockerfile/plan_own.h"

#include <string.h>

#define MOUNTS_MAX 16

/* What a build argument may be called without an ARG. */
static const char *const proxies[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
                                       "FTP_PROXY",  "ftp_proxy",  "NO_PROXY",    "no_proxy",
                                       "ALL_PROXY",  "all_proxy" };

/* ---- mounts ---- */

/* `keys` have a blank around each. */
static const struct mount_type {
    const char *name, *keys;
} mount_types[] = {
    { "secret", " type id target dst destination required mode uid gid env " },
    { "cache", " type id target dst destination sharing mode uid gid " },
    { "tmpfs", " type target dst destination " },
};

static bool among(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; *at; at++)
        if (*at == ' ' && strncmp(at + 1, word, len) == 0 && at[1 + len] == ' ')
            return len > 0;
    return false;
}

/* key=value,key=value into an object; "target" is called so whatever its name was. */
static int read_keys(const char *text, json_t *keys, struct err *err)
{
    while (*text) {
        size_t len = strcspn(text, ","), name = strcspn(text, "=,");
        auto_free char *key = strndup(text, name);
        bool valued = text[name] == '=';

        if (!key)
            return err_set(err, ERR_NO_MEMORY, "no memory for a mount");
        if (json_object_get(keys, key))
            return err_set(err, ERR_INVALID, "--mount: %.40s is there twice", key);
        (void) json_object_set_new(keys, key,
                                   valued ? json_stringn(text + name + 1, len - name - 1)
                                          : json_string("true"));
        text += len;
        text += *text == ',';
    }
    return 0;
}

static const char *key_of(const json_t *keys, const char *name)
{
    return json_string_value(json_object_get(keys, name));
}

static int check_keys(const struct mount_type *type, const json_t *keys, struct err *err)
{
    static const char *const numbers[] = { "uid", "gid" };
    const char *key, *mode = key_of(keys, "mode"), *sharing = key_of(keys, "sharing");
    uint64_t number;
    uint32_t bits;
    json_t *value;

    json_object_foreach((json_t *) keys, key, value)
    {
        if (!among(type->keys, key))
            return err_set(err, ERR_INVALID, "--mount=type=%s: '%.40s' is not supported",
                           type->name, key);
    }
    if (mode && parse_mode(mode, &bits, err) < 0)
        return err_set(err, ERR_INVALID, "--mount: mode is an octal number");
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (key_of(keys, numbers[i]) &&
            (parse_u64(key_of(keys, numbers[i]), &number, err) < 0 || number > 65535))
            return err_set(err, ERR_INVALID, "--mount: %s is a number up to 65535", numbers[i]);
    if (sharing && !among(" shared private locked ", sharing))
        return err_set(err, ERR_INVALID, "--mount: sharing is shared, private or locked");
    return 0;
}

static const char *target_of(const json_t *keys)
{
    static const char *const names[] = { "target", "dst", "destination" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (key_of(keys, names[i]))
            return key_of(keys, names[i]);
    return NULL;
}

/* A mount as the engine takes it; *ret NULL: a secret that is not there and need not be. */
static int make_mount(struct planner *p, struct stage *stage, const struct mount_type *type,
                      const json_t *keys, json_t **ret, struct err *err)
{
    const char *id = key_of(keys, "id"), *target = target_of(keys),
               *need = key_of(keys, "required");
    bool secret = strcmp(type->name, "secret") == 0;
    auto_free char *path = NULL;
    const char *slash;

    *ret = NULL;
    if (!target && !secret)
        return err_set(err, ERR_INVALID, "--mount=type=%s needs a target", type->name);
    slash = target ? strrchr(target, '/') : NULL;
    if (secret && !id)
        id = slash ? slash + 1 : target;
    if (secret && (!id || !id[0]))
        return err_set(err, ERR_INVALID, "--mount=type=secret needs an id");
    if (secret && !json_object_get(p->wish->secrets, id))
        return need && strcmp(need, "true") == 0
                   ? err_set(err, ERR_INVALID,
                             "the secret '%.60s' is not given (--secret id=%.60s)", id, id)
                   : 0;
    if (target)
        path = plan_join(stage, target);
    else if (asprintf(&path, "/run/secrets/%s", id) < 0)
        path = NULL;
    if (!path)
        return err_set(err, ERR_NO_MEMORY, "no memory for a mount");
    *ret = json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:s*}", "type", type->name, "target", path, "id",
                     secret || id              ? id
                     : type == &mount_types[1] ? path
                                               : NULL,
                     "mode", key_of(keys, "mode"), "uid", key_of(keys, "uid"), "gid",
                     key_of(keys, "gid"));
    if (*ret && key_of(keys, "env")) {
        (void) json_object_set_new(*ret, "env", json_string(key_of(keys, "env")));
        if (!target) /* in the environment alone */
            (void) json_object_del(*ret, "target");
    }
    return 0;
}

static int read_mount(struct planner *p, struct stage *stage, const char *text, json_t *mounts,
                      struct err *err)
{
    auto_free char *value = NULL;
    json_t *keys = json_object(), *mount = NULL;
    const char *name;
    size_t i = 0;
    int r = plan_expand(p, stage, text, &value, err);

    if (r == 0)
        r = read_keys(value, keys, err);
    name = key_of(keys, "type") ? key_of(keys, "type") : "bind";
    while (i < ARRAY_LEN(mount_types) && strcmp(mount_types[i].name, name) != 0)
        i++;
    if (r == 0 && i == ARRAY_LEN(mount_types))
        r = err_set(err, ERR_INVALID,
                    "--mount=type=%.40s is not supported: secret, cache and tmpfs are", name);
    if (r == 0)
        r = check_keys(&mount_types[i], keys, err);
    if (r == 0)
        r = make_mount(p, stage, &mount_types[i], keys, &mount, err);
    json_decref(keys);
    if (r == 0 && mount)
        (void) json_array_append_new(mounts, mount);
    return r;
}

static int read_mounts(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                       json_t *mounts, struct err *err)
{
    json_t *flag;
    size_t i;

    json_array_foreach(line->flags, i, flag)
    {
        const char *name = json_string_value(json_array_get(flag, 0));
        const char *value = json_string_value(json_array_get(flag, 1));

        if (strcmp(name, "network") == 0 && strcmp(value, "default") != 0)
            return err_set(
                err, ERR_INVALID,
                "--network=%.40s is not supported: a build has one network for all steps", value);
        if (strcmp(name, "mount") == 0 && read_mount(p, stage, value, mounts, err) < 0)
            return -1;
    }
    return json_array_size(mounts) <= MOUNTS_MAX
               ? 0
               : err_set(err, ERR_INVALID, "more than %d mounts", MOUNTS_MAX);
}

/* ---- the command ---- */

/* The text for the shell. A heredoc alone is the script itself; others are part of the command, as in a shell. */
static int shell_text(const struct dockerfile_line *line, char **ret, struct err *err)
{
    size_t size = 0;
    FILE *out;

    if (line->doc_count == 1 && strncmp(line->rest, "<<", 2) == 0 &&
        !line->rest[strcspn(line->rest, " \t")]) {
        if (strncmp(line->docs[0].text, "#!", 2) == 0)
            return err_set(err, ERR_INVALID,
                           "a heredoc with '#!' is not supported: name the program, as in "
                           "RUN python3 <<EOF");
        *ret = strdup(line->docs[0].text);
        return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a command");
    }
    out = open_memstream(ret, &size);
    if (!out)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    (void) fputs(line->rest, out);
    for (size_t i = 0; i < line->doc_count; i++)
        (void) fprintf(out, "\n%s%s", line->docs[i].text, line->docs[i].name);
    return fclose(out) == 0 ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a command");
}

/* Values of ARG are in the environment of RUN, where no ENV has the name. */
static json_t *run_env(const struct planner *p, const struct stage *stage)
{
    json_t *env = json_object(), *value;
    const char *name;

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++)
        if ((value = json_object_get(p->wish->args, proxies[i]))) {
            (void) json_object_set(env, proxies[i], value);
            (void) json_object_set_new(p->used, proxies[i], json_true());
        }
    json_object_foreach(stage->args, name, value)
    {
        if (json_is_string(value) && !json_object_get(stage->env, name) &&
            !json_object_get(stage->base_env, name))
            (void) json_object_set(env, name, value);
    }
    return env;
}

int plan_run(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
             struct err *err)
{
    auto_free char *text = NULL;
    json_t *mounts = json_array(), *exec = NULL;
    int r = read_mounts(p, stage, line, mounts, err);

    if (r == 0)
        r = shell_text(line, &text, err);
    if (r == 0 && strlen(text) > DOCKERFILE_TEXT_MAX)
        r = err_set(err, ERR_INVALID, "a command longer than %d bytes", DOCKERFILE_TEXT_MAX);
    if (r == 0 && line->exec && json_array_size(line->exec) == 0)
        r = err_set(err, ERR_INVALID, "RUN: an empty list");
    if (r < 0) {
        json_decref(mounts);
        return -1;
    }
    exec = line->exec ? json_incref(line->exec) : json_copy(stage->shell);
    if (!line->exec)
        (void) json_array_append_new(exec, json_string(text));
    plan_step(stage, line->number,
              json_pack("{s:s, s:[s, s], s:o, s:o, s:s, s:o}", "type", "RUN", "args", text,
                        stage->user, "exec", exec, "env", run_env(p, stage), "cwd", stage->workdir,
                        "mounts", mounts));
    return 0;
}
