/* dockerfile_fuzz.c - Dockerfiles, and .dockerignore. The first byte says which. */
#include "dockerfile/match.h"
#include "dockerfile/plan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static int base(void *arg, const char *from, json_t **ret, struct err *err)
{
    (void) arg;
    (void) err;
    must(from[0]);
    *ret =
        json_pack("{s:{s:s}, s:s, s:s}", "env", "PATH", "/bin", "user", "app", "workdir", "/app");
    return 0;
}

/* Every step is one that the engine could be sent, and every COPY has a source. */
static void check_steps(const json_t *steps, size_t stages)
{
    json_t *step;
    size_t i;

    json_array_foreach(steps, i, step)
    {
        const json_t *stage = json_object_get(step, "stage");

        must(json_is_string(json_object_get(step, "type")));
        must(json_is_array(json_object_get(step, "args")));
        must(!stage || (size_t) json_integer_value(stage) < stages);
    }
}

static void dockerfile(const char *text, size_t len)
{
    json_t *args = json_pack("{s:s}", "A", "b"), *secrets = json_pack("{s:b}", "key", 1), *stage;
    struct plan_wish wish = { .args = args, .secrets = secrets, .base = base };
    struct dockerfile file;
    struct plan plan;
    struct err err;
    size_t i;

    if (dockerfile_parse(text, len, &file, &err) < 0) {
        must(strncmp(err.msg, "line ", 5) == 0);
    } else {
        if (plan_make(&file, &wish, &plan, &err) < 0) {
            must(strncmp(err.msg, "line ", 5) == 0);
        } else {
            size_t stages = json_array_size(json_object_get(plan.body, "stages")), steps = 0;

            json_array_foreach(json_object_get(plan.body, "stages"), i, stage)
            {
                check_steps(json_object_get(stage, "steps"), i);
                steps += json_array_size(json_object_get(stage, "steps"));
            }
            check_steps(json_object_get(plan.body, "steps"), stages);
            steps += json_array_size(json_object_get(plan.body, "steps"));
            must(steps == json_array_size(plan.lines));
            for (i = 0; i < plan.copy_count; i++)
                must(json_array_size(plan.copies[i].sources) +
                         json_array_size(plan.copies[i].docs) >
                     0);
            plan_done(&plan);
        }
        dockerfile_done(&file);
    }
    json_decref(args);
    json_decref(secrets);
}

static void ignores(const char *text, size_t len)
{
    struct ignore ignore;
    struct err err;

    if (ignore_parse(text, len, &ignore, &err) < 0)
        return;
    for (size_t i = 0; i < ignore.count; i++)
        must(ignore.rows[i].pattern[0] && ignore.rows[i].pattern[0] != '/');
    (void) ignore_has(&ignore, "a/b/c.txt");
    ignore_done(&ignore);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'i')
        ignores((const char *) data + 1, size - 1);
    else
        dockerfile((const char *) data + 1, size - 1);
    return 0;
}
