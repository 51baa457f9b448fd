/* COPY and ADD: out of the directory, out of a stage or an image, or out of the Dockerfile itself. */
#include "base/own.h"
#include "base/parse.h"
#include "dockerfile/match.h"
#include "dockerfile/plan_own.h"
#include "dockerfile/words.h"

#include <string.h>

/* The words of either form, with their variables replaced. */
static int read_words(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                      json_t **ret, struct err *err)
{
    json_t *raw = NULL, *word, *words = json_array();
    int r = line->exec ? 0 : words_split(line->rest, p->file->escape, &raw, err);
    size_t i;

    json_array_foreach(line->exec ? line->exec : raw, i, word)
    {
        const char *text = json_string_value(word);
        auto_free char *value = NULL;

        if (r == 0 && strncmp(text, "<<", 2) == 0 && line->doc_count > 0)
            (void) json_array_append(words, word);
        else if (r == 0 && plan_expand(p, stage, text, &value, err) < 0)
            r = -1;
        else if (r == 0)
            (void) json_array_append_new(words, json_string(value));
    }
    json_decref(raw);
    if (r == 0 && json_array_size(words) < 2)
        r = err_set(err, ERR_INVALID, "%s needs a source and a destination",
                    dockerfile_word_name(line->word));
    if (r < 0)
        json_decref(words);
    else
        *ret = words;
    return r;
}

static bool owner_ok(const char *owner)
{
    const char *colon = strchr(owner, ':');

    return owner[0] && owner[0] != '-' && owner[0] != ':' &&
           !owner[strspn(owner, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_.-:")] &&
           (!colon || (colon[1] && !strchr(colon + 1, ':')));
}

/* The step without its source: owner and mode are root's and as they are, where nothing is said. */
static int make_step(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                     const char *to, json_t **ret, struct err *err)
{
    const char *chown = plan_flag(line, "chown"), *chmod = plan_flag(line, "chmod");
    auto_free char *owner = NULL, *mode = NULL, *path = NULL, *literal = NULL;
    uint32_t bits;

    if (plan_expand(p, stage, chown ? chown : "0:0", &owner, err) < 0 ||
        plan_expand(p, stage, chmod ? chmod : "", &mode, err) < 0)
        return -1;
    if (!owner_ok(owner))
        return err_set(err, ERR_INVALID, "--chown is USER or USER:GROUP");
    if (mode[0] && parse_mode(mode, &bits, err) < 0)
        return err_set(err, ERR_INVALID, "--chmod is an octal number");
    if (chmod && !mode[0])
        return err_set(err, ERR_INVALID, "--chmod: its variable has no value");
    path = to[0] ? plan_join(stage, to) : NULL;
    literal = path ? plan_literal(path) : NULL;
    if (!literal)
        return err_set(err, ERR_INVALID, "the destination's variable has no value");
    *ret = json_pack("{s:s, s:[s, s, s, s]}", "type", "COPY", "args", "", literal, owner, mode);
    return *ret ? 0 : err_set(err, ERR_NO_MEMORY, "no memory for a step");
}

static bool is_directory(const char *path)
{
    size_t len = strlen(path);

    return len == 0 || path[len - 1] == '/' || strcmp(path, ".") == 0 || strcmp(path, "..") == 0 ||
           (len > 1 && strcmp(path + len - 2, "/.") == 0);
}

/* ---- of another stage ---- */

/* Its number for the engine; an image becomes a stage without steps. */
static int stage_number(struct planner *p, const struct stage *stage, const char *from)
{
    json_t *stages = json_object_get(p->plan->body, "stages"), *item;
    int found = plan_find(p, from, (size_t) (stage - p->stages));
    size_t i;

    if (found >= 0)
        return p->stages[found].number;
    json_array_foreach(stages, i, item)
    {
        const char *has = json_string_value(json_object_get(item, "from"));

        if (has && strcmp(has, from) == 0 && json_array_size(json_object_get(item, "steps")) == 0)
            return (int) i;
    }
    (void) json_array_append_new(stages, json_pack("{s:s, s:[]}", "from", from, "steps"));
    return (int) json_array_size(stages) - 1;
}

static int copy_stage(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                      const char *from, json_t *words, struct err *err)
{
    size_t count = json_array_size(words) - 1;
    const char *to = json_string_value(json_array_get(words, count));
    int number = stage_number(p, stage, from);

    for (size_t i = 0; i < count; i++) {
        const char *source = json_string_value(json_array_get(words, i));
        char clean[4096];
        json_t *step, *args;

        if ((count > 1 || match_is_pattern(source)) && !is_directory(to))
            return err_set(err, ERR_INVALID,
                           "with a pattern or several sources the destination ends with '/'");
        if (match_clean(source, clean, sizeof clean) < 0)
            return err_set(err, ERR_INVALID, "the source '%.60s' leads out of the stage", source);
        if (!clean[0])
            return err_set(err, ERR_INVALID,
                           "COPY of all of a stage is not supported: name directories of it");
        if (make_step(p, stage, line, to, &step, err) < 0)
            return -1;
        args = json_object_get(step, "args");
        (void) json_array_set_new(args, 0, json_sprintf("/%s", clean));
        (void) json_object_set_new(step, "stage", json_integer(number));
        plan_step(stage, line->number, step);
    }
    return 0;
}

/* ---- of the directory ---- */

/* Heredocs are files of their own; the other words are sources. */
static int sort_sources(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                        json_t *words, struct plan_copy *copy, struct err *err)
{
    size_t doc = 0;

    for (size_t i = 0; i + 1 < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        auto_free char *text = NULL;

        if (strncmp(word, "<<", 2) != 0 || doc == line->doc_count) {
            (void) json_array_append_new(copy->sources, json_string(word));
            continue;
        }
        if (line->docs[doc].expand &&
            plan_expand_doc(p, stage, line->docs[doc].text, &text, err) < 0)
            return -1;
        (void) json_array_append_new(copy->docs, json_pack("[s, s]", line->docs[doc].name,
                                                           text ? text : line->docs[doc].text));
        doc++;
    }
    return doc == line->doc_count
               ? 0
               : err_set(err, ERR_INVALID, "a heredoc that is not a source of its own");
}

static int copy_files(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
                      json_t *words, struct err *err)
{
    const char *to = json_string_value(json_array_get(words, json_array_size(words) - 1));
    struct plan_copy *copies = realloc(p->plan->copies, (p->plan->copy_count + 1) * sizeof *copies);
    struct plan_copy *copy;
    json_t *source;
    size_t i;

    if (!copies)
        return err_set(err, ERR_NO_MEMORY, "no memory for a step");
    p->plan->copies = copies;
    copy = &copies[p->plan->copy_count++];
    *copy = (struct plan_copy){ .sources = json_array(),
                                .docs = json_array(),
                                .line = line->number,
                                .add = line->word == WORD_ADD,
                                .directory = is_directory(to) };
    if (sort_sources(p, stage, line, words, copy, err) < 0)
        return -1;
    json_array_foreach(copy->sources, i, source)
    {
        const char *text = json_string_value(source);

        if (copy->add && (strstr(text, "://") || strncmp(text, "git@", 4) == 0))
            return err_set(err, ERR_INVALID,
                           "ADD of '%.60s' is not supported: download it with RUN", text);
    }
    if (json_array_size(words) > 2 && !copy->directory)
        return err_set(err, ERR_INVALID, "with several sources the destination ends with '/'");
    if (make_step(p, stage, line, to, &copy->step, err) < 0)
        return -1;
    plan_step(stage, line->number, json_incref(copy->step));
    return 0;
}

int plan_copy(struct planner *p, struct stage *stage, const struct dockerfile_line *line,
              struct err *err)
{
    const char *from = plan_flag(line, "from");
    json_t *words = NULL;
    int r;

    if (from && !from[0])
        return err_set(err, ERR_INVALID, "--from needs a stage or an image");
    if (from && line->doc_count > 0)
        return err_set(err, ERR_INVALID, "a heredoc with --from");
    if (read_words(p, stage, line, &words, err) < 0)
        return -1;
    r = from ? copy_stage(p, stage, line, from, words, err)
             : copy_files(p, stage, line, words, err);
    json_decref(words);
    return r;
}
