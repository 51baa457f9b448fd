#include "server/build/build_own.h"

#include "base/own.h"
#include "base/sha256.h"
#include "server/form/form.h"
#include "server/net/network_rules.h"

#include <ctype.h>
#include <string.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* How many arguments each may have. */
static const struct {
    const char *name;
    size_t least, most;
    bool changes;
} types[] = {
    [STEP_RUN] = { "RUN", 1, 2, true },     [STEP_COPY] = { "COPY", 2, 4, true },
    [STEP_ENV] = { "ENV", 2, 1000, false }, [STEP_WORKDIR] = { "WORKDIR", 1, 1, false },
    [STEP_USER] = { "USER", 1, 1, false },
};
_Static_assert(ARRAY_LEN(types) == STEP_TYPES, "every type has a row");

const char *step_name(enum step_type type)
{
    return types[type].name;
}

bool step_changes(const struct build_step *step)
{
    return types[step->type].changes;
}

const char *step_arg(const struct build_step *step, size_t index)
{
    const char *text = json_string_value(json_array_get(step->args, index));

    return text ? text : "";
}

/* ---- reading ---- */

static int bad_step(struct caller *caller, size_t number, const char *why, struct err *err)
{
    char field[32];

    (void) snprintf(field, sizeof field, "steps[%zu]", number);
    return form_bad(caller, err, field, "%s", why);
}

static int read_args(struct caller *caller, const json_t *args, const struct build_step *step,
                     size_t number, struct err *err)
{
    json_t *arg;
    size_t i;

    if (json_array_size(args) < types[step->type].least ||
        json_array_size(args) > types[step->type].most)
        return bad_step(caller, number, "not the number of args that this type has", err);
    json_array_foreach(args, i, arg)
    {
        if (!json_is_string(arg) || strlen(json_string_value(arg)) != json_string_length(arg))
            return bad_step(caller, number, "args are texts without NUL", err);
        if (json_string_length(arg) > BUILD_TEXT_MAX)
            return bad_step(caller, number, "an argument is longer than 65536 bytes", err);
    }
    return 0;
}

static bool user_ok(const char *user)
{
    size_t len = strspn(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    return len > 0 && len < 64 && !user[len] && user[0] != '-';
}

static bool owner_ok(const char *owner)
{
    const char *colon = strchr(owner, ':');
    char user[64];

    if (!colon)
        return user_ok(owner);
    if ((size_t) (colon - owner) >= sizeof user)
        return false;
    (void) snprintf(user, sizeof user, "%.*s", (int) (colon - owner), owner);
    return user_ok(user) && (!colon[1] || user_ok(colon + 1));
}

static bool variable_ok(const char *name)
{
    if (!isalpha((unsigned char) name[0]) && name[0] != '_')
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char) *name) && *name != '_')
            return false;
    return true;
}

static int check_copy(struct caller *caller, const struct build_step *step, size_t number,
                      struct err *err)
{
    const char *owner = step_arg(step, 2), *mode = step_arg(step, 3);
    char source[PATH_MAX];
    uint32_t bits;

    if (!step->files || !build_hash_ok(step->files))
        return bad_step(caller, number, "COPY needs files: 64 hex digits that name an upload", err);
    if (copy_source(step_arg(step, 0), source, err) < 0)
        return bad_step(caller, number, "the source of COPY leads out of the files", err);
    if (owner[0] && !owner_ok(owner))
        return bad_step(caller, number, "the owner is USER or USER:GROUP", err);
    if (mode[0] && parse_mode(mode, &bits, err) < 0)
        return bad_step(caller, number, "the mode is an octal number", err);
    return 0;
}

static int check_step(struct caller *caller, const struct build_step *step, size_t number,
                      struct err *err)
{
    if (step->type == STEP_COPY)
        return check_copy(caller, step, number, err);
    if (step->type == STEP_USER && !user_ok(step_arg(step, 0)))
        return bad_step(caller, number, "not a user's name", err);
    if (step->type == STEP_RUN && json_array_size(step->args) == 2 && step_arg(step, 1)[0] &&
        !user_ok(step_arg(step, 1)))
        return bad_step(caller, number, "not a user's name", err);
    if (step->type == STEP_WORKDIR && !step_arg(step, 0)[0])
        return bad_step(caller, number, "WORKDIR needs a path", err);
    if (step->type != STEP_ENV)
        return 0;
    if (json_array_size(step->args) % 2)
        return bad_step(caller, number, "ENV has names and values in turn", err);
    for (size_t i = 0; i < json_array_size(step->args); i += 2)
        if (!variable_ok(step_arg(step, i)))
            return bad_step(caller, number, "not a variable's name", err);
    return 0;
}

struct step_body {
    const char *type, *files;
    json_t *args;
    bool force;
};
#define STEP_AT(field) offsetof(struct step_body, field)

/* In the order of enum step_type. */
static const char *const type_names[] = { "RUN", "COPY", "ENV", "WORKDIR", "USER", NULL };
_Static_assert(ARRAY_LEN(type_names) == STEP_TYPES + 1, "every type has a name");

/* clang-format off */
static const struct form_field step_fields[] = {
    { "type", FORM_TEXT, .at = STEP_AT(type), .help = "what it does; docs/builds.md", .needed = true, .choices = type_names },
    { "args", FORM_ARRAY, .at = STEP_AT(args), .help = "by its type", .needed = true },
    { "files", FORM_TEXT, .at = STEP_AT(files), .help = "of COPY: the name of an upload" },
    { "filesHash", FORM_TEXT, .at = STEP_AT(files) },
    { "force", FORM_BOOL, .at = STEP_AT(force), .help = "this step and those behind it run though they are known", .fallback = "false" },
};
/* clang-format on */
static const struct form step_form = FORM_OF(step_fields, .open = true);

static int read_step(struct caller *caller, json_t *item, size_t number, struct build_step *ret,
                     struct err *err)
{
    struct step_body body = { .type = NULL };
    char within[40];
    size_t i = 0;

    if (!json_is_object(item))
        return bad_step(caller, number, "must be an object", err);
    (void) snprintf(within, sizeof within, "steps[%zu].", number);
    if (form_read_within(caller, within, item, &step_form, &body, err) < 0)
        return -1;
    while (strcmp(types[i].name, body.type) != 0)
        i++;
    *ret = (struct build_step){
        .type = (enum step_type) i, .args = body.args, .files = body.files, .force = body.force
    };
    return read_args(caller, ret->args, ret, number, err) < 0
               ? -1
               : check_step(caller, ret, number, err);
}

struct body {
    const char *from, *start, *ready;
    json_t *steps, *network;
    bool force;
    uint64_t step_ms;
};
#define AT(field) offsetof(struct body, field)

/* clang-format off */
static const struct form_field fields[] = {
    { "from", FORM_TEXT, .at = AT(from), .help = "a template that was built, or is installed", .fallback = "base" },
    { "steps", FORM_ARRAY, .at = AT(steps), 0, BUILD_STEPS_MAX, "run one after the other", .items = &step_form },
    { "start", FORM_TEXT, .at = AT(start), 0, BUILD_TEXT_MAX, "a command that runs in every sandbox made of it" },
    { "ready", FORM_TEXT, .at = AT(ready), 0, BUILD_TEXT_MAX,
      "succeeds when the start command is ready; without it, 20 s are waited" },
    { "force", FORM_BOOL, .at = AT(force), .help = "every step runs", .fallback = "false" },
    { "network", FORM_OBJECT, .at = AT(network), .help = "what the build may reach; docs/network.md", .items = &network_form },
    { "step_timeout", FORM_SECONDS, .at = AT(step_ms), 1000, BUILD_STEP_MS, "seconds that one step may take", .fallback = "3600" },
};
/* clang-format on */
_Static_assert(BUILD_STEP_MS == 3600000, "the default of step_timeout");
const struct form build_form = FORM_OF(fields);

int spec_read(struct caller *caller, json_t *body, bool e2b, struct build_spec **ret,
              struct err *err)
{
    struct body said = { .from = NULL };
    struct build_spec *spec;

    if (form_read(caller, body, &build_form, &said, err) < 0)
        return -1;
    spec = calloc(1, sizeof *spec);
    if (spec)
        spec->steps = calloc(json_array_size(said.steps) + 1, sizeof *spec->steps);
    if (!spec || !spec->steps) {
        free(spec);
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    }
    spec->body = json_incref(body);
    spec->from = said.from;
    spec->start = said.start;
    spec->ready = said.ready;
    spec->force = said.force;
    spec->e2b = e2b;
    spec->step_ms = said.step_ms;
    spec->network = said.network;
    for (; spec->count < json_array_size(said.steps); spec->count++)
        if (read_step(caller, json_array_get(said.steps, spec->count), spec->count,
                      &spec->steps[spec->count], err) < 0) {
            spec_free(spec);
            return -1;
        }
    *ret = spec;
    return 0;
}

void spec_free(struct build_spec *spec)
{
    if (!spec)
        return;
    json_decref(spec->body);
    free(spec->steps);
    free(spec);
}

/* ---- what steps say of those behind them ---- */

static void put_variable(const struct build_state *state, const char *name, size_t len, FILE *out)
{
    const json_t *value = json_object_getn(state->env, name, len);

    if (value)
        (void) fputs(json_string_value(value), out);
    else if (len == 4 && memcmp(name, "PATH", 4) == 0)
        (void) fputs(DEFAULT_PATH, out);
}

char *state_expand(const struct build_state *state, const char *text)
{
    size_t size = 0;
    char *result = NULL;
    FILE *out = open_memstream(&result, &size);

    if (!out)
        return NULL;
    while (*text) {
        bool braced = text[0] == '$' && text[1] == '{';
        const char *name = text + 1 + braced;
        size_t len = 0;

        while (text[0] == '$' && (isalnum((unsigned char) name[len]) || name[len] == '_'))
            len++;
        if (text[0] == '\\' && text[1] == '$') {
            (void) fputc('$', out);
            text += 2;
        } else if (len > 0 && (!braced || name[len] == '}')) {
            put_variable(state, name, len, out);
            text = name + len + braced;
        } else {
            (void) fputc(*text++, out);
        }
    }
    if (fclose(out) == 0)
        return result;
    free(result);
    return NULL;
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

int state_apply(struct build_state *state, const struct build_step *step, struct err *err)
{
    char path[PATH_MAX];

    if (step->type == STEP_USER)
        (void) snprintf(state->user, sizeof state->user, "%s", step_arg(step, 0));
    if (step->type == STEP_WORKDIR) {
        auto_free char *text = state_expand(state, step_arg(step, 0));

        if (!text)
            return err_set(err, ERR_NO_MEMORY, "no memory for a path");
        if (state_path(state, text, path, err) < 0)
            return -1;
        memcpy(state->workdir, path, sizeof path);
    }
    for (size_t i = 0; step->type == STEP_ENV && i < json_array_size(step->args); i += 2) {
        auto_free char *value = state_expand(state, step_arg(step, i + 1));

        if (!value || json_object_set_new(state->env, step_arg(step, i), json_string(value)) < 0)
            return err_set(err, ERR_NO_MEMORY, "no memory for the environment");
    }
    return 0;
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

void step_key(const char *before, const struct build_step *step, char out[KEY_MAX])
{
    struct sha256 hash;

    sha256_init(&hash);
    add(&hash, before);
    add(&hash, step_name(step->type));
    for (size_t i = 0; i < json_array_size(step->args); i++)
        add(&hash, step_arg(step, i));
    add(&hash, step->files ? step->files : "");
    finish(&hash, out);
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

/* An image's name is the name that it was installed under: the last part of its path, and its tag unless that is "latest". */
void installed_name(const char *image, char *out, size_t size)
{
    const char *slash = strrchr(image, '/'), *name = slash ? slash + 1 : image;
    size_t len = strcspn(name, "@");
    const char *colon = memchr(name, ':', len);

    if (colon && len == (size_t) (colon + 1 - name) + strlen("latest") &&
        strncmp(colon + 1, "latest", strlen("latest")) == 0)
        len = (size_t) (colon - name);
    (void) snprintf(out, size, "%.*s", (int) len, name);
    for (char *c = out; *c; c++)
        *c = *c == ':' ? '-' : *c >= 'A' && *c <= 'Z' ? (char) (*c - 'A' + 'a') : *c;
}
