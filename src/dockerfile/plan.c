#include "dockerfile/plan_own.h"

#include "base/own.h"
#include "dockerfile/words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define PLATFORM "linux/amd64"

/* What Docker knows without an ARG before FROM, and with an ARG without a value in a stage. */
static const struct {
    const char *name, *value;
} platform[] = {
    { "TARGETPLATFORM", PLATFORM }, { "BUILDPLATFORM", PLATFORM }, { "TARGETOS", "linux" },
    { "BUILDOS", "linux" },         { "TARGETARCH", "amd64" },     { "BUILDARCH", "amd64" },
    { "TARGETVARIANT", "" },        { "BUILDVARIANT", "" },
};

static const char *platform_value(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(platform); i++)
        if (strcmp(platform[i].name, name) == 0)
            return platform[i].value;
    return NULL;
}

/* ---- variables ---- */

struct scope {
    struct planner *p;
    const struct stage *stage;
};

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static const char *get(void *arg, const char *name)
{
    const struct scope *scope = arg;
    const char *value;

    if (!scope->stage) {
        value = text_of(scope->p->global, name);
        return value ? value : platform_value(name);
    }
    value = text_of(scope->stage->env, name);
    if (!value)
        value = text_of(scope->stage->base_env, name);
    return value ? value : text_of(scope->stage->args, name);
}

int plan_expand(struct planner *p, const struct stage *stage, const char *text, char **ret,
                struct err *err)
{
    struct scope scope = { p, stage };

    return words_expand(text, p->file->escape, get, &scope, ret, err);
}

int plan_expand_doc(struct planner *p, const struct stage *stage, const char *text, char **ret,
                    struct err *err)
{
    struct scope scope = { p, stage };

    return words_expand_text(text, p->file->escape, get, &scope, ret, err);
}

bool plan_is_variable(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return len > 0 && !name[len] && !isdigit((unsigned char) name[0]);
}

/* One NAME or NAME=DEFAULT. */
static int declare(struct planner *p, struct stage *stage, const char *word, struct err *err)
{
    json_t *args = stage ? stage->args : p->global;
    auto_free char *name = NULL, *value = NULL;
    const char *given, *equals = strchr(word, '=');

    name = equals ? strndup(word, (size_t) (equals - word)) : strdup(word);
    if (!name || !plan_is_variable(name))
        return err_set(err, ERR_INVALID, "ARG: '%.60s' is not a variable's name", word);
    given = text_of(p->wish->args, name);
    if (given)
        (void) json_object_set_new(p->used, name, json_true());
    if (!given && equals) {
        if (plan_expand(p, stage, equals + 1, &value, err) < 0)
            return -1;
        given = value;
    }
    if (!given && stage)
        given = text_of(p->global, name);
    if (!given)
        given = platform_value(name);
    (void) json_object_set_new(args, name, given ? json_string(given) : json_null());
    return 0;
}

int plan_arg(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
             struct err *err)
{
    json_t *words, *word;
    int r = words_split(line->rest, p->file->escape, &words, err);
    size_t i;

    if (r < 0)
        return dockerfile_at(err, line->number);
    json_array_foreach(words, i, word)
    {
        if (r == 0)
            r = declare(p, stage, json_string_value(word), err);
    }
    json_decref(words);
    return r < 0 ? dockerfile_at(err, line->number) : 0;
}

/* ---- small things ---- */

const char *plan_flag(const struct dockerfile_line *line, const char *name)
{
    json_t *flag;
    size_t i;

    json_array_foreach(line->flags, i, flag)
    {
        if (strcmp(json_string_value(json_array_get(flag, 0)), name) == 0)
            return json_string_value(json_array_get(flag, 1));
    }
    return NULL;
}

char *plan_join(const struct stage *stage, const char *path)
{
    char *text = NULL;

    if (path[0] == '/')
        return strdup(path);
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (strcmp(path, ".") == 0)
        path = "";
    if (asprintf(&text, "%s%s%s", stage->workdir, strcmp(stage->workdir, "/") == 0 ? "" : "/",
                 path) < 0)
        return NULL;
    return text;
}

char *plan_literal(const char *text)
{
    char *out = malloc(2 * strlen(text) + 1), *to = out;

    for (; out && *text; text++) {
        if (*text == '$')
            *to++ = '\\';
        *to++ = *text;
    }
    if (out)
        *to = '\0';
    return out;
}

void plan_step(struct stage *stage, unsigned line, json_t *take_step)
{
    (void) json_array_append_new(stage->lines, json_integer(line));
    (void) json_array_append_new(stage->steps, take_step);
}

int plan_find(const struct planner *p, const char *name, size_t before)
{
    char *end;
    unsigned long number = strtoul(name, &end, 10);

    for (size_t i = before; i > 0; i--)
        if (p->stages[i - 1].name[0] && strcasecmp(p->stages[i - 1].name, name) == 0)
            return (int) i - 1;
    return isdigit((unsigned char) name[0]) && !*end && number < before ? (int) number : -1;
}

/* ---- stages ---- */

static void stage_done(struct stage *stage)
{
    free(stage->name);
    free(stage->from);
    free(stage->user);
    free(stage->workdir);
    json_decref(stage->steps);
    json_decref(stage->lines);
    json_decref(stage->env);
    json_decref(stage->base_env);
    json_decref(stage->args);
    json_decref(stage->shell);
}

static int check_platform(struct planner *p, const struct dockerfile_line *line, struct err *err)
{
    const char *flag = plan_flag(line, "platform");
    auto_free char *text = NULL;

    if (!flag)
        return 0;
    if (plan_expand(p, NULL, flag, &text, err) < 0)
        return dockerfile_at(err, line->number);
    return strcmp(text, PLATFORM) == 0 || strcmp(text, "linux") == 0
               ? 0
               : dockerfile_bad(err, line->number,
                                "the platform '%.40s' is not supported: " PLATFORM " is", text);
}

/* FROM image [AS name] */
static int read_from(struct planner *p, size_t at, struct err *err)
{
    const struct dockerfile_line *line = &p->file->lines[at];
    struct stage *more = realloc(p->stages, (p->count + 1) * sizeof *more), *stage;
    json_t *words = NULL;
    size_t count;
    int r = 0;

    if (!more)
        return err_set(err, ERR_NO_MEMORY, "no memory for a stage");
    p->stages = more;
    stage = &p->stages[p->count];
    *stage = (struct stage){ .line = line->number, .first = at + 1, .parent = -1, .number = -1 };
    p->count++;
    if (words_split(line->rest, p->file->escape, &words, err) < 0)
        return dockerfile_at(err, line->number);
    count = json_array_size(words);
    if (count != 1 &&
        (count != 3 || strcasecmp(json_string_value(json_array_get(words, 1)), "as") != 0))
        r = dockerfile_bad(err, line->number, "FROM is 'FROM IMAGE' or 'FROM IMAGE AS NAME'");
    stage->name = strdup(count == 3 ? json_string_value(json_array_get(words, 2)) : "");
    if (r == 0 &&
        plan_expand(p, NULL, json_string_value(json_array_get(words, 0)), &stage->from, err) < 0)
        r = dockerfile_at(err, line->number);
    json_decref(words);
    if (r < 0 || check_platform(p, line, err) < 0)
        return -1;
    if (!stage->name)
        return err_set(err, ERR_NO_MEMORY, "no memory for a stage");
    if (!stage->from[0])
        return dockerfile_bad(err, line->number, "FROM: its variable has no value");
    if (isdigit((unsigned char) stage->name[0]) ||
        (stage->name[0] && plan_find(p, stage->name, p->count - 1) >= 0))
        return dockerfile_bad(err, line->number, "'%.40s' is not a new name for a stage",
                              stage->name);
    stage->parent = plan_find(p, stage->from, p->count - 1);
    return 0;
}

static int find_stages(struct planner *p, struct err *err)
{
    for (size_t i = 0; i < p->file->count; i++) {
        const struct dockerfile_line *line = &p->file->lines[i];

        if (line->word == WORD_FROM) {
            if (read_from(p, i, err) < 0)
                return -1;
        } else if (p->count == 0 && line->word != WORD_ARG) {
            return dockerfile_bad(err, line->number, "%s before the first FROM",
                                  dockerfile_word_name(line->word));
        } else if (p->count == 0 && plan_arg(p, NULL, line, err) < 0) {
            return -1;
        }
        if (p->count > 0)
            p->stages[p->count - 1].last = i + 1;
    }
    return p->count > 0 ? 0 : err_set(err, ERR_INVALID, "line 1: there is no FROM");
}

/* Marks the stage and those that it needs. Each needs only those before it. */
static void need(struct planner *p, size_t target)
{
    p->stages[target].needed = true;
    for (size_t i = target + 1; i > 0; i--) {
        struct stage *stage = &p->stages[i - 1];

        if (!stage->needed)
            continue;
        if (stage->parent >= 0)
            p->stages[stage->parent].needed = true;
        for (size_t n = stage->first; n < stage->last; n++) {
            const char *from =
                p->file->lines[n].word == WORD_COPY ? plan_flag(&p->file->lines[n], "from") : NULL;
            int source = from ? plan_find(p, from, i - 1) : -1;

            if (source >= 0)
                p->stages[source].needed = p->stages[source].copied = true;
        }
    }
}

/* What a stage begins with. */
static int begin_stage(struct planner *p, struct stage *stage, struct err *err)
{
    const struct stage *parent = stage->parent >= 0 ? &p->stages[stage->parent] : NULL;
    json_t *facts = NULL;

    if (parent) {
        free(stage->from);
        stage->from = strdup(parent->from);
        stage->steps = json_copy(parent->steps);
        stage->lines = json_copy(parent->lines);
        stage->env = json_deep_copy(parent->env);
        stage->args = json_deep_copy(parent->args);
        stage->base_env = json_incref(parent->base_env);
        stage->shell = json_incref(parent->shell);
        stage->user = strdup(parent->user);
        stage->workdir = strdup(parent->workdir);
        stage->own_cmd = parent->own_cmd;
    } else {
        if (p->wish->base(p->wish->arg, stage->from, &facts, err) < 0)
            return dockerfile_at(err, stage->line);
        stage->steps = json_array();
        stage->lines = json_array();
        stage->env = json_object();
        stage->args = json_object();
        stage->base_env = json_incref(json_object_get(facts, "env"));
        stage->shell = json_pack("[s, s]", "/bin/sh", "-c");
        stage->user = strdup(text_of(facts, "user") ? text_of(facts, "user") : "root");
        stage->workdir = strdup(text_of(facts, "workdir") ? text_of(facts, "workdir") : "/");
        json_decref(facts);
    }
    return stage->from && stage->user && stage->workdir
               ? 0
               : err_set(err, ERR_NO_MEMORY, "no memory for a stage");
}

/* ---- instructions ---- */

static int (*const translate[WORD_COUNT])(struct planner *p, struct stage *stage,
                                          const struct dockerfile_line *line, struct err *err) = {
    [WORD_RUN] = plan_run,     [WORD_COPY] = plan_copy,       [WORD_ADD] = plan_copy,
    [WORD_ENV] = plan_env,     [WORD_WORKDIR] = plan_workdir, [WORD_USER] = plan_user,
    [WORD_SHELL] = plan_shell, [WORD_CMD] = plan_command,     [WORD_ENTRYPOINT] = plan_command,
    [WORD_LABEL] = plan_env,   [WORD_EXPOSE] = plan_expose,
};

static int fill_stage(struct planner *p, struct stage *stage, struct err *err)
{
    if (begin_stage(p, stage, err) < 0)
        return -1;
    for (size_t i = stage->first; i < stage->last; i++) {
        const struct dockerfile_line *line = &p->file->lines[i];

        if (line->word == WORD_FROM)
            continue; /* of the next stage */
        if (line->word == WORD_ARG ? plan_arg(p, stage, line, err) < 0
                                   : translate[line->word](p, stage, line, err) < 0)
            return strncmp(err->msg, "line ", 5) == 0 ? -1 : dockerfile_at(err, line->number);
    }
    return 0;
}

/* ---- the body ---- */

static void put_steps(struct planner *p, json_t *into, const struct stage *stage)
{
    (void) json_object_set_new(into, "from", json_string(stage->from));
    (void) json_object_set(into, "steps", stage->steps);
    (void) json_array_extend(p->plan->lines, stage->lines);
}

static void note_unused(struct planner *p)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *) p->wish->args, name, value)
    {
        if (!json_object_get(p->used, name))
            (void) json_array_append_new(p->plan->unused, json_string(name));
    }
}

static int make(struct planner *p, struct err *err)
{
    json_t *stages = json_object_get(p->plan->body, "stages");
    int target;

    if (find_stages(p, err) < 0)
        return -1;
    target = p->wish->target ? plan_find(p, p->wish->target, p->count) : (int) p->count - 1;
    if (target < 0)
        return err_set(err, ERR_INVALID, "there is no stage '%.60s'", p->wish->target);
    need(p, (size_t) target);
    for (size_t i = 0; i <= (size_t) target; i++) {
        struct stage *stage = &p->stages[i];

        if (stage->needed && fill_stage(p, stage, err) < 0)
            return -1;
        if (stage->copied) {
            stage->number = (int) json_array_size(stages);
            (void) json_array_append_new(stages, json_object());
        }
    }
    for (size_t i = 0; i < (size_t) target; i++)
        if (p->stages[i].number >= 0)
            put_steps(p, json_array_get(stages, (size_t) p->stages[i].number), &p->stages[i]);
    put_steps(p, p->plan->body, &p->stages[target]);
    note_unused(p);
    return 0;
}

int plan_make(const struct dockerfile *file, const struct plan_wish *wish, struct plan *ret,
              struct err *err)
{
    struct plan plan = { .body = json_pack("{s:[]}", "stages"),
                         .lines = json_array(),
                         .unused = json_array() };
    struct planner p = {
        .file = file, .wish = wish, .plan = &plan, .global = json_object(), .used = json_object()
    };
    int r = make(&p, err);

    for (size_t i = 0; i < p.count; i++)
        stage_done(&p.stages[i]);
    free(p.stages);
    json_decref(p.global);
    json_decref(p.used);
    if (r < 0)
        plan_done(&plan);
    else
        *ret = plan;
    return r;
}

void plan_done(struct plan *plan)
{
    for (size_t i = 0; i < plan->copy_count; i++) {
        json_decref(plan->copies[i].step);
        json_decref(plan->copies[i].sources);
        json_decref(plan->copies[i].docs);
    }
    free(plan->copies);
    json_decref(plan->body);
    json_decref(plan->lines);
    json_decref(plan->unused);
    *plan = (struct plan){ .body = NULL };
}
