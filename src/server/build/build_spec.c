#include "server/build/build_own.h"

#include "base/own.h"
#include "server/form/form.h"
#include "server/net/network_rules.h"

#include <ctype.h>
#include <string.h>

#define EXEC_MAX   100
#define ENV_MAX    200
#define MOUNTS_MAX 16
#define IMAGE_MAX  511 /* of the name of one in a registry */
#define TAG_MAX    128
#define WORDS_MAX  250 /* of a command: ENTRYPOINT and CMD together fit agent/entrypoint.c */

/* How many arguments each may have. */
static const struct {
    const char *name;
    size_t least, most;
    bool changes;
} types[] = {
    [STEP_RUN] = { "RUN", 1, 2, true },
    [STEP_COPY] = { "COPY", 2, 4, true },
    [STEP_ENV] = { "ENV", 2, 1000, false },
    [STEP_WORKDIR] = { "WORKDIR", 1, 1, false },
    [STEP_USER] = { "USER", 1, 1, false },
    [STEP_ENTRYPOINT] = { "ENTRYPOINT", 0, WORDS_MAX, false },
    [STEP_CMD] = { "CMD", 0, WORDS_MAX, false },
    [STEP_LABEL] = { "LABEL", 2, 1000, false },
    [STEP_EXPOSE] = { "EXPOSE", 1, 100, false },
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

bool variable_ok(const char *name)
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

    if (step->stage < 0 && (!step->files || !build_hash_ok(step->files)))
        return bad_step(caller, number, "COPY needs files: 64 hex digits that name an upload", err);
    if (step->stage < 0 && copy_source(step_arg(step, 0), source, err) < 0)
        return bad_step(caller, number, "the source of COPY leads out of the files", err);
    if (step->stage >= 0 && (step_arg(step, 0)[0] != '/' || !step_arg(step, 0)[1]))
        return bad_step(caller, number, "the source of COPY from a stage is a path below '/'", err);
    if (owner[0] && !owner_ok(owner))
        return bad_step(caller, number, "the owner is USER or USER:GROUP", err);
    if (mode[0] && parse_mode(mode, &bits, err) < 0)
        return bad_step(caller, number, "the mode is an octal number", err);
    return 0;
}

static bool texts_ok(const json_t *array, size_t most)
{
    json_t *item;
    size_t i;

    if (!json_is_array(array) || json_array_size(array) == 0 || json_array_size(array) > most)
        return false;
    json_array_foreach(array, i, item)
    {
        if (!json_is_string(item) || json_string_length(item) > BUILD_TEXT_MAX ||
            strlen(json_string_value(item)) != json_string_length(item))
            return false;
    }
    return true;
}

static bool env_ok(const json_t *env)
{
    const char *name;
    json_t *value;

    if (!json_is_object(env) || json_object_size(env) > ENV_MAX)
        return false;
    json_object_foreach((json_t *) env, name, value)
    {
        if (!variable_ok(name) || !json_is_string(value) ||
            json_string_length(value) > BUILD_TEXT_MAX ||
            strlen(json_string_value(value)) != json_string_length(value))
            return false;
    }
    return true;
}

static const char *const mount_names[] = { "secret", "cache", "tmpfs", NULL };

/* clang-format off */
struct mount_body {
    const char *type, *id, *target, *env, *mode, *uid, *gid;
};
#define MOUNT_AT(field) offsetof(struct mount_body, field)
static const struct form_field mount_fields[] = {
    { "type", FORM_TEXT, .at = MOUNT_AT(type), .help = "what it is", .needed = true, .choices = mount_names },
    { "id", FORM_TEXT, .at = MOUNT_AT(id), .help = "of a secret or a cache" },
    { "target", FORM_TEXT, .at = MOUNT_AT(target), .help = "an absolute path" },
    { "env", FORM_TEXT, .at = MOUNT_AT(env), .help = "of a secret: a variable that has it" },
    { "mode", FORM_TEXT, .at = MOUNT_AT(mode), .help = "an octal number" },
    { "uid", FORM_TEXT, .at = MOUNT_AT(uid), .help = "its owner" },
    { "gid", FORM_TEXT, .at = MOUNT_AT(gid), .help = "its group" },
};
/* clang-format on */
static const struct form mount_form = FORM_OF(mount_fields);

static int check_run(struct caller *caller, const struct build_step *step, const json_t *secrets,
                     size_t number, struct err *err)
{
    json_t *mount;
    size_t i;

    if (json_array_size(step->args) == 2 && step_arg(step, 1)[0] && !user_ok(step_arg(step, 1)))
        return bad_step(caller, number, "not a user's name", err);
    if (step->exec && !texts_ok(step->exec, EXEC_MAX))
        return bad_step(caller, number, "exec: 1 to 100 texts are needed", err);
    if (step->env && !env_ok(step->env))
        return bad_step(caller, number, "env: up to 200 variables with texts are needed", err);
    if (step->cwd && (step->cwd[0] != '/' || strlen(step->cwd) >= PATH_MAX))
        return bad_step(caller, number, "cwd: an absolute path is needed", err);
    if (step->mounts &&
        (!json_is_array(step->mounts) || json_array_size(step->mounts) > MOUNTS_MAX))
        return bad_step(caller, number, "mounts: up to 16 objects are needed", err);
    json_array_foreach((json_t *) step->mounts, i, mount)
    {
        struct mount_body body = { .type = NULL };
        const char *why;
        char within[60];

        if (!json_is_object(mount))
            return bad_step(caller, number, "mounts: up to 16 objects are needed", err);
        (void) snprintf(within, sizeof within, "steps[%zu].mounts[%zu].", number, i);
        if (form_read_within(caller, within, mount, &mount_form, &body, err) < 0)
            return -1;
        why = mount_check(mount, secrets);
        if (why)
            return bad_step(caller, number, why, err);
    }
    return 0;
}

static int check_step(struct caller *caller, const struct build_step *step, const json_t *secrets,
                      size_t number, struct err *err)
{
    if (step->type == STEP_COPY)
        return check_copy(caller, step, number, err);
    if (step->type == STEP_RUN)
        return check_run(caller, step, secrets, number, err);
    if (step->type == STEP_USER && !user_ok(step_arg(step, 0)))
        return bad_step(caller, number, "not a user's name", err);
    if (step->type == STEP_WORKDIR && !step_arg(step, 0)[0])
        return bad_step(caller, number, "WORKDIR needs a path", err);
    if (step->type != STEP_ENV && step->type != STEP_LABEL)
        return 0;
    if (json_array_size(step->args) % 2)
        return bad_step(caller, number, "names and values in turn are needed", err);
    for (size_t i = 0; step->type == STEP_ENV && i < json_array_size(step->args); i += 2)
        if (!variable_ok(step_arg(step, i)))
            return bad_step(caller, number, "not a variable's name", err);
    return 0;
}

struct step_body {
    const char *type, *files, *cwd;
    json_t *args, *exec, *env, *mounts;
    uint64_t stage;
    bool force;
};
#define STEP_AT(field) offsetof(struct step_body, field)
#define NO_STAGE       UINT64_MAX

/* In the order of enum step_type. */
static const char *const type_names[] = { "RUN",        "COPY", "ENV",   "WORKDIR", "USER",
                                          "ENTRYPOINT", "CMD",  "LABEL", "EXPOSE",  NULL };
_Static_assert(ARRAY_LEN(type_names) == STEP_TYPES + 1, "every type has a name");
/* clang-format off */
static const struct form_field step_fields[] = {
    { "type", FORM_TEXT, .at = STEP_AT(type), .help = "what it does; docs/templates.md", .needed = true, .choices = type_names },
    { "args", FORM_ARRAY, .at = STEP_AT(args), .help = "by its type", .needed = true },
    { "files", FORM_TEXT, .at = STEP_AT(files), .help = "of COPY: the name of an upload" },
    { "filesHash", FORM_TEXT, .at = STEP_AT(files) },
    { "stage", FORM_COUNT, .at = STEP_AT(stage), 0, BUILD_STAGES_MAX, "of COPY, in place of files: the number of a stage before this one" },
    { "exec", FORM_ARRAY, .at = STEP_AT(exec), 0, EXEC_MAX, "of RUN: the words of the command; without them a login shell runs args[0]" },
    { "env", FORM_OBJECT, .at = STEP_AT(env), .help = "of RUN: variables of this command alone" },
    { "cwd", FORM_TEXT, .at = STEP_AT(cwd), .help = "of RUN: its directory" },
    { "mounts", FORM_ARRAY, .at = STEP_AT(mounts), 0, MOUNTS_MAX, "of RUN: what is there while the command runs, and not in the template", .items = &mount_form },
    { "force", FORM_BOOL, .at = STEP_AT(force), .help = "this step and those behind it run though they are known", .fallback = "false" },
};
/* clang-format on */
static const struct form step_form = FORM_OF(step_fields, .open = true);

static int read_step(struct caller *caller, json_t *item, size_t number, size_t stages,
                     const json_t *secrets, struct build_step *ret, struct err *err)
{
    struct step_body body = { .stage = NO_STAGE };
    char within[40];
    size_t i = 0;

    if (!json_is_object(item))
        return bad_step(caller, number, "must be an object", err);
    (void) snprintf(within, sizeof within, "steps[%zu].", number);
    if (form_read_within(caller, within, item, &step_form, &body, err) < 0)
        return -1;
    if (body.stage != NO_STAGE && body.stage >= stages)
        return bad_step(caller, number, "stage: the number of a stage before it is needed", err);
    while (strcmp(types[i].name, body.type) != 0)
        i++;
    *ret = (struct build_step){ .type = (enum step_type) i,
                                .args = body.args,
                                .files = body.files,
                                .stage = body.stage == NO_STAGE ? -1 : (int) body.stage,
                                .exec = body.exec,
                                .env = body.env,
                                .mounts = body.mounts,
                                .cwd = body.cwd,
                                .force = body.force };
    return read_args(caller, ret->args, ret, number, err) < 0
               ? -1
               : check_step(caller, ret, secrets, number, err);
}

struct body {
    const char *from, *image, *archive, *archive_tag, *start, *ready;
    json_t *registry, *steps, *stages, *secrets, *network;
    bool force;
    uint64_t step_ms;
};
#define AT(field) offsetof(struct body, field)

struct stage_body {
    const char *from;
    json_t *steps;
};
static const struct form_field stage_fields[] = {
    { "from", FORM_TEXT, .at = offsetof(struct stage_body, from), .help = "as of the build",
      .needed = true },
    { "steps", FORM_ARRAY, .at = offsetof(struct stage_body, steps), .help = "as of the build",
      .items = &step_form },
};
static const struct form stage_form = FORM_OF(stage_fields);

struct registry_body {
    const char *username, *password;
};
static const struct form_field registry_fields[] = {
    { "username", FORM_TEXT, .at = offsetof(struct registry_body, username), 0, 256, "of a login",
      .needed = true },
    { "password", FORM_TEXT, .at = offsetof(struct registry_body, password), 0, 5600,
      "of the login, or a token", .needed = true },
};
static const struct form registry_form = FORM_OF(registry_fields);

/* clang-format off */
static const struct form_field fields[] = {
    { "from", FORM_TEXT, .at = AT(from), .help = "a template that was built, or is installed; or an image, which is pulled if it is neither", .fallback = "base" },
    { "image", FORM_TEXT, .at = AT(image), 0, IMAGE_MAX, "in place of from: an image of a registry, [HOST/]PATH[:TAG][@DIGEST]" },
    { "archive", FORM_TEXT, .at = AT(archive), .help = "in place of from: the name of an upload, an image as docker save or OCI archives have it" },
    { "archive_tag", FORM_TEXT, .at = AT(archive_tag), 0, TAG_MAX, "which image of the archive, if there are several" },
    { "registry", FORM_OBJECT, .at = AT(registry), .help = "credentials for the registry of the image; used for this build, and kept nowhere", .items = &registry_form },
    { "steps", FORM_ARRAY, .at = AT(steps), 0, BUILD_STEPS_MAX, "run one after the other", .items = &step_form },
    { "stages", FORM_ARRAY, .at = AT(stages), 0, BUILD_STAGES_MAX, "what steps of COPY are from; one runs only where its files are needed", .items = &stage_form },
    { "secrets", FORM_OBJECT, .at = AT(secrets), .help = "by id, in base64; for mounts of RUN, and kept nowhere" },
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

/* Behind the stages that are there already. */
static int add_stage(struct caller *caller, struct build_spec *spec, const char *from,
                     const json_t *steps, struct err *err)
{
    struct build_stage *stage = &spec->stages[spec->stage_count];
    size_t count = json_array_size(steps);

    *stage = (struct build_stage){ .from = from ? from : "base", .before = spec->steps };
    if (spec->steps + count > BUILD_STEPS_MAX)
        return form_bad(caller, err, "steps", "at most %d", BUILD_STEPS_MAX);
    stage->steps = calloc(count + 1, sizeof *stage->steps);
    if (!stage->steps)
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    spec->stage_count++;
    spec->steps += count;
    for (; stage->count < count; stage->count++)
        if (read_step(caller, json_array_get(steps, stage->count), stage->before + stage->count,
                      spec->stage_count - 1, spec->secrets, &stage->steps[stage->count], err) < 0)
            return -1;
    return 0;
}

static int add_stages(struct caller *caller, struct build_spec *spec, const json_t *stages,
                      struct err *err)
{
    json_t *item;
    size_t i;

    json_array_foreach(stages, i, item)
    {
        struct stage_body body = { .from = NULL };
        char within[40];

        if (!json_is_object(item))
            return form_bad(caller, err, "stages", "objects are needed");
        (void) snprintf(within, sizeof within, "stages[%zu].", i);
        if (form_read_within(caller, within, item, &stage_form, &body, err) < 0 ||
            add_stage(caller, spec, body.from, body.steps, err) < 0)
            return -1;
    }
    return 0;
}

/* What the last stage stands on. */
static int read_image(struct caller *caller, json_t *body, const struct body *said,
                      struct build_spec *spec, struct err *err)
{
    struct build_stage *stage = &spec->stages[spec->stage_count - 1];
    struct registry_body login = { .username = NULL };

    if ((said->image != NULL) + (said->archive != NULL) +
            json_is_string(json_object_get(body, "from")) >
        1)
        return form_bad(caller, err, "from", "one of from, image and archive");
    if (said->archive && !build_hash_ok(said->archive))
        return form_bad(caller, err, "archive", "64 hex digits are needed");
    if (said->archive_tag && !said->archive)
        return form_bad(caller, err, "archive_tag", "of an archive alone");
    if (said->registry &&
        form_read_within(caller, "registry.", said->registry, &registry_form, &login, err) < 0)
        return -1;
    spec->username = login.username;
    spec->password = login.password;
    stage->image = said->image != NULL;
    stage->archive = said->archive;
    stage->archive_tag = said->archive_tag;
    if (said->image)
        stage->from = said->image;
    if (said->archive)
        stage->from = "an archive";
    return 0;
}

int spec_read(struct caller *caller, json_t *body, bool e2b, struct build_spec **ret,
              struct err *err)
{
    struct body said = { .from = NULL };
    struct build_spec *spec;

    if (form_read(caller, body, &build_form, &said, err) < 0)
        return -1;
    if (said.secrets && secrets_check(said.secrets))
        return form_bad(caller, err, "secrets", "%s", secrets_check(said.secrets));
    spec = calloc(1, sizeof *spec);
    if (spec)
        spec->stages = calloc(json_array_size(said.stages) + 1, sizeof *spec->stages);
    if (!spec || !spec->stages) {
        free(spec);
        return err_set(err, ERR_NO_MEMORY, "no memory for a build");
    }
    spec->body = json_incref(body);
    spec->start = said.start;
    spec->ready = said.ready;
    spec->secrets = said.secrets;
    spec->force = said.force;
    spec->e2b = e2b;
    spec->step_ms = said.step_ms;
    spec->network = said.network;
    if (add_stages(caller, spec, said.stages, err) < 0 ||
        add_stage(caller, spec, said.from, said.steps, err) < 0 ||
        read_image(caller, body, &said, spec, err) < 0) {
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
    for (size_t i = 0; i < spec->stage_count; i++)
        free(spec->stages[i].steps);
    free(spec->stages);
    free(spec);
}
