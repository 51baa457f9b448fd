/* ENV, LABEL, WORKDIR, USER, SHELL, ENTRYPOINT, CMD and EXPOSE: what is said of the template and of the steps behind. */
#include "base/own.h"
#include "dockerfile/plan_own.h"
#include "dockerfile/words.h"

#include <string.h>

/* NAME=VALUE …, or NAME and all the rest as its value. pairs: names and values in turn. */
static int read_pairs(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                      json_t *pairs, struct err *err)
{
    json_t *words, *word;
    size_t i;
    int r = 0;

    if (words_split(line->rest, p->file->escape, &words, err) < 0)
        return -1;
    if (!strchr(json_string_value(json_array_get(words, 0)), '=')) {
        size_t len = strcspn(line->rest, " \t");
        auto_free char *value = NULL;

        json_decref(words);
        if (!line->rest[len])
            return err_set(err, ERR_INVALID, "'%.60s' has no value", line->rest);
        if (plan_expand(p, stage, line->rest + len + strspn(line->rest + len, " \t"), &value, err) <
            0)
            return -1;
        (void) json_array_append_new(pairs, json_stringn(line->rest, len));
        (void) json_array_append_new(pairs, json_string(value));
        return 0;
    }
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word), *equals = strchr(text, '=');
        auto_free char *raw = equals ? strndup(text, (size_t) (equals - text)) : NULL;
        auto_free char *name = NULL, *value = NULL;

        if (r < 0)
            break;
        if (!raw || !raw[0])
            r = err_set(err, ERR_INVALID, "'%.60s' is not NAME=VALUE", text);
        else if (plan_expand(p, stage, raw, &name, err) < 0 ||
                 plan_expand(p, stage, equals + 1, &value, err) < 0)
            r = -1;
        else if (json_array_append_new(pairs, json_string(name)) < 0 ||
                 json_array_append_new(pairs, json_string(value)) < 0)
            r = err_set(err, ERR_NO_MEMORY, "no memory for values");
    }
    json_decref(words);
    return r;
}

int plan_env(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
             struct err *err)
{
    json_t *pairs = json_array(), *args = json_array();
    int r = read_pairs(p, stage, line, pairs, err);

    for (size_t i = 0; r == 0 && i < json_array_size(pairs); i += 2) {
        const char *name = json_string_value(json_array_get(pairs, i));
        const char *value = json_string_value(json_array_get(pairs, i + 1));
        auto_free char *literal = line->word == WORD_ENV ? plan_literal(value) : strdup(value);

        if (line->word == WORD_ENV && !plan_is_variable(name))
            r = err_set(err, ERR_INVALID, "ENV: '%.60s' is not a variable's name", name);
        else if (!literal)
            r = err_set(err, ERR_NO_MEMORY, "no memory for values");
        if (r < 0)
            break;
        (void) json_array_append_new(args, json_string(name));
        (void) json_array_append_new(args, json_string(literal));
        if (line->word == WORD_ENV)
            (void) json_object_set_new(stage->env, name, json_string(value));
    }
    if (r == 0)
        plan_step(stage, line->number,
                  json_pack("{s:s, s:O}", "type", dockerfile_word_name(line->word), "args", args));
    json_decref(pairs);
    json_decref(args);
    return r;
}

int plan_workdir(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                 struct err *err)
{
    auto_free char *path = NULL, *literal = NULL;
    char *whole;

    if (plan_expand(p, stage, line->rest, &path, err) < 0)
        return -1;
    if (!path[0])
        return err_set(err, ERR_INVALID, "WORKDIR: its variable has no value");
    whole = plan_join(stage, path);
    literal = whole ? plan_literal(whole) : NULL;
    if (!literal) {
        free(whole);
        return err_set(err, ERR_NO_MEMORY, "no memory for a path");
    }
    for (size_t len = strlen(whole); len > 1 && whole[len - 1] == '/'; len--)
        whole[len - 1] = '\0';
    free(stage->workdir);
    stage->workdir = whole;
    plan_step(stage, line->number, json_pack("{s:s, s:[s]}", "type", "WORKDIR", "args", literal));
    return 0;
}

int plan_user(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
              struct err *err)
{
    auto_free char *user = NULL;

    if (plan_expand(p, stage, line->rest, &user, err) < 0)
        return -1;
    if (!user[0])
        return err_set(err, ERR_INVALID, "USER: its variable has no value");
    if (strchr(user, ':'))
        return err_set(err, ERR_INVALID,
                       "USER with a group is not supported: a user has the groups of /etc/group");
    free(stage->user);
    stage->user = take_ptr(&user);
    plan_step(stage, line->number, json_pack("{s:s, s:[s]}", "type", "USER", "args", stage->user));
    return 0;
}

int plan_shell(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
               struct err *err)
{
    (void) p;
    if (json_array_size(line->exec) == 0)
        return err_set(err, ERR_INVALID, "SHELL is a list: SHELL [\"/bin/bash\", \"-c\"]");
    json_decref(stage->shell);
    stage->shell = json_incref(line->exec);
    return 0;
}

/* A new ENTRYPOINT forgets the CMD of what it stands on. */
int plan_command(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                 struct err *err)
{
    json_t *args = line->exec ? json_incref(line->exec) : json_copy(stage->shell);

    (void) p;
    if (!args)
        return err_set(err, ERR_NO_MEMORY, "no memory for a command");
    if (!line->exec)
        (void) json_array_append_new(args, json_string(line->rest));
    plan_step(stage, line->number,
              json_pack("{s:s, s:o}", "type", dockerfile_word_name(line->word), "args", args));
    if (line->word == WORD_CMD)
        stage->own_cmd = true;
    else if (!stage->own_cmd)
        plan_step(stage, line->number, json_pack("{s:s, s:[]}", "type", "CMD", "args"));
    return 0;
}

static bool port_ok(const char *text)
{
    size_t len = strspn(text, "0123456789");

    if (len == 0 || len > 5)
        return false;
    if (text[len] == '-') {
        text += len + 1;
        len = strspn(text, "0123456789");
    }
    return len > 0 && len <= 5 &&
           (!text[len] || strcmp(text + len, "/tcp") == 0 || strcmp(text + len, "/udp") == 0);
}

int plan_expose(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                struct err *err)
{
    json_t *words, *word, *args = json_array();
    int r = words_split(line->rest, p->file->escape, &words, err);
    size_t i;

    if (r < 0)
        words = json_array();
    json_array_foreach(words, i, word)
    {
        auto_free char *port = NULL;

        if (r == 0)
            r = plan_expand(p, stage, json_string_value(word), &port, err);
        if (r == 0 && !port_ok(port))
            r = err_set(err, ERR_INVALID, "EXPOSE: '%.40s' is not PORT, PORT/tcp or PORT/udp",
                        port);
        if (r == 0)
            (void) json_array_append_new(args, json_string(port));
    }
    if (r == 0)
        plan_step(stage, line->number, json_pack("{s:s, s:O}", "type", "EXPOSE", "args", args));
    json_decref(words);
    json_decref(args);
    return r;
}
