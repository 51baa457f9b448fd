/* What steps say of those behind them, and the keys of steps. Pure. */
#include "server/build/build_own.h"

#include "base/own.h"
#include "base/sha256.h"

#include <ctype.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define ENV_BYTES    (1u << 20) /* of all variables of a template */

/* ---- what steps say of those behind them ---- */

static const char *variable(const struct build_state *state, const char *name, size_t len)
{
    const json_t *value = json_object_getn(state->env, name, len);

    if (value)
        return json_string_value(value);
    return len == 4 && memcmp(name, "PATH", 4) == 0 ? DEFAULT_PATH : "";
}

/* What is at `text`, as *ret_len bytes; returns what is behind it. */
static const char *expand_one(const struct build_state *state, const char *text, const char **ret,
                              size_t *ret_len)
{
    bool braced = text[0] == '$' && text[1] == '{';
    const char *name = text + 1 + braced;
    size_t len = 0;

    while (text[0] == '$' && (isalnum((unsigned char) name[len]) || name[len] == '_'))
        len++;
    if (len > 0 && (!braced || name[len] == '}')) {
        *ret = variable(state, name, len);
        *ret_len = strlen(*ret);
        return name + len + braced;
    }
    *ret = text + (text[0] == '\\' && text[1] == '$');
    *ret_len = 1;
    return *ret + 1;
}

char *state_expand(const struct build_state *state, const char *text, struct err *err)
{
    size_t size = 0, made = 0, len;
    auto_free char *result = NULL;
    FILE *out = open_memstream(&result, &size);
    const char *part;

    while (out && *text && made <= BUILD_TEXT_MAX) {
        text = expand_one(state, text, &part, &len);
        made += len;
        (void) fwrite(part, 1, len, out);
    }
    if (!out || fclose(out) != 0) {
        err_set(err, ERR_NO_MEMORY, "no memory for a value");
        return NULL;
    }
    if (made > BUILD_TEXT_MAX) {
        err_set(err, ERR_TOO_BIG, "with its variables, a value is longer than %d bytes",
                BUILD_TEXT_MAX);
        return NULL;
    }
    return take_ptr(&result);
}

int state_path(const struct build_state *state, const char *path, char out[PATH_MAX],
               struct err *err)
{
    const char *home = state->workdir[0] ? state->workdir : "/";
    int n = path[0] == '/' ? snprintf(out, PATH_MAX, "%s", path)
                           : snprintf(out, PATH_MAX, "%s/%s", strcmp(home, "/") == 0 ? "" : home,
                                      strcmp(path, ".") == 0 ? "" : path);

    return n < PATH_MAX ? 0
                        : err_set(err, ERR_INVALID, "a path is longer than %d bytes", PATH_MAX - 1);
}

int state_init(struct build_state *state)
{
    *state = (struct build_state){ .env = json_object(),
                                   .labels = json_object(),
                                   .ports = json_array() };
    return state->env && state->labels && state->ports ? 0 : -1;
}

void state_done(struct build_state *state)
{
    json_decref(state->env);
    json_decref(state->labels);
    json_decref(state->ports);
    json_decref(state->entrypoint);
    json_decref(state->cmd);
}

/* What is said of the template and changes nothing for the steps. */
static void apply_facts(struct build_state *state, const struct build_step *step)
{
    json_t **words = step->type == STEP_ENTRYPOINT ? &state->entrypoint : &state->cmd;

    if (step->type == STEP_ENTRYPOINT || step->type == STEP_CMD) {
        json_decref(*words);
        *words = json_incref((json_t *) step->args);
    }
    for (size_t i = 0; step->type == STEP_LABEL && i < json_array_size(step->args); i += 2)
        (void) json_object_set(state->labels, step_arg(step, i), json_array_get(step->args, i + 1));
    if (step->type == STEP_EXPOSE)
        (void) json_array_extend(state->ports, (json_t *) step->args);
}

/* Variables can be made of others, so a short request can say a lot. */
static int check_env(const struct build_state *state, struct err *err)
{
    size_t bytes = 0;
    const char *name;
    json_t *value;

    json_object_foreach(state->env, name, value) bytes += strlen(name) + json_string_length(value);
    return bytes <= ENV_BYTES
               ? 0
               : err_set(err, ERR_TOO_BIG, "the variables of the template are longer than %u bytes",
                         ENV_BYTES);
}

int state_apply(struct build_state *state, const struct build_step *step, struct err *err)
{
    char path[PATH_MAX];

    apply_facts(state, step);
    if (step->type == STEP_USER)
        (void) snprintf(state->user, sizeof state->user, "%s", step_arg(step, 0));
    if (step->type == STEP_WORKDIR) {
        auto_free char *text = state_expand(state, step_arg(step, 0), err);

        if (!text || state_path(state, text, path, err) < 0)
            return -1;
        memcpy(state->workdir, path, sizeof path);
    }
    for (size_t i = 0; step->type == STEP_ENV && i < json_array_size(step->args); i += 2) {
        auto_free char *value = state_expand(state, step_arg(step, i + 1), err);

        if (!value)
            return -1;
        if (json_object_set_new(state->env, step_arg(step, i), json_string(value)) < 0)
            return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    }
    return step->type == STEP_ENV ? check_env(state, err) : 0;
}

/* ---- keys ---- */

static void add(struct sha256 *hash, const char *text)
{
    uint64_t len = strlen(text);

    sha256_add(hash, &len, sizeof len); /* so that no two lists of texts are one */
    sha256_add(hash, text, len);
}

static void finish(struct sha256 *hash, char out[KEY_MAX])
{
    unsigned char sum[SHA256_LEN];

    sha256_done(hash, sum);
    sha256_hex(sum, sizeof sum, out);
}

void key_begin(const char *tenant, const char *from, const struct build_state *state,
               char out[KEY_MAX])
{
    auto_free char *env = json_dumps(state->env, JSON_COMPACT | JSON_SORT_KEYS);
    struct sha256 hash;

    sha256_init(&hash);
    add(&hash, "cove-build-1");
    add(&hash, tenant);
    add(&hash, from);
    add(&hash, env ? env : "");
    add(&hash, state->user);
    add(&hash, state->workdir);
    finish(&hash, out);
}

static void add_json(struct sha256 *hash, const char *name, const json_t *value)
{
    auto_free char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (text) {
        add(hash, name);
        add(hash, text);
    }
}

void step_key(const char *before, const struct build_step *step, const char *source,
              char out[KEY_MAX])
{
    struct sha256 hash;

    sha256_init(&hash);
    add(&hash, before);
    add(&hash, step_name(step->type));
    for (size_t i = 0; i < json_array_size(step->args); i++)
        add(&hash, step_arg(step, i));
    add(&hash, step->files ? step->files : "");
    add_json(&hash, "exec", step->exec);
    add_json(&hash, "env", step->env);
    add_json(&hash, "mounts", step->mounts);
    if (step->cwd)
        add(&hash, step->cwd);
    if (source[0])
        add(&hash, source);
    finish(&hash, out);
}

static void key_of(const char *const *texts, size_t count, char out[KEY_MAX])
{
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < count; i++)
        add(&hash, texts[i]);
    finish(&hash, out);
}

void export_key(const char *source, const char *path, char out[KEY_MAX])
{
    key_of((const char *const[]){ "cove-export-2", source, path }, 3, out);
}

void mount_key(const char *tenant, const char *id, char out[KEY_MAX])
{
    key_of((const char *const[]){ "cove-cache-1", tenant, id }, 3, out);
}

int copy_source(const char *source, char out[PATH_MAX], struct err *err)
{
    size_t len, glob;
    char *at;

    source += strspn(source, "/");
    while (strncmp(source, "./", 2) == 0)
        source += 2;
    len = strlen(source);
    glob = strcspn(source, "*?[{");
    if (len >= PATH_MAX)
        return err_set(err, ERR_INVALID, "a path is too long");
    memcpy(out, source, len + 1);
    if (glob < len) {
        out[glob] = '\0';
        at = strrchr(out, '/');
        out[at ? at - out : 0] = '\0';
    }
    if (!out[0])
        (void) strcpy(out, ".");
    for (const char *part = out; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
            return err_set(err, ERR_INVALID, "a path with '..'");
    return 0;
}
