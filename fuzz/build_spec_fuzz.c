/* build_spec_fuzz.c - requests for builds: the steps of a request are read, and what is read is applied step by step, as a build does
 * before any sandbox is made. The first byte says whether the dialect is E2B's. Whatever is refused must say why; whatever is taken
 * must stay within its bounds. */
#include "server/build/build_own.h"

#include "base/own.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* What build_copy.c does with a path, and where it ends. */
static void check_copy(const struct build_state *state, const struct build_step *step)
{
    struct err err = { .kind = ERR_NONE };
    char *where = state_expand(state, step_arg(step, 1), &err);
    char source[PATH_MAX], to[PATH_MAX];

    if (where && state_path(state, where, to, &err) == 0)
        must(to[0] == '/' && strlen(to) < sizeof to);
    free(where);
    if (step->stage >= 0)
        return;
    must(copy_source(step_arg(step, 0), source, &err) == 0);
    must(source[0] && source[0] != '/' && !strstr(source, "/../"));
}

static void apply(const struct build_spec *spec, const struct build_stage *stage)
{
    struct build_state state;
    char key[KEY_MAX], next[KEY_MAX];
    struct err err = { .kind = ERR_NONE };

    must(state_init(&state) == 0);
    key_begin("local", stage->from, &state, key);
    for (size_t i = 0; i < stage->count; i++) {
        const struct build_step *step = &stage->steps[i];

        must(step->stage < (int) spec->stage_count);
        step_key(key, step, step->stage >= 0 ? "source" : "", next);
        must(strlen(next) == KEY_MAX - 1 && strcmp(next, key) != 0);
        memcpy(key, next, sizeof key);
        if (state_apply(&state, step, &err) < 0) {
            must(err.kind != ERR_NONE && err.msg[0]);
            break;
        }
        must(!state.workdir[0] || state.workdir[0] == '/');
        if (step->type == STEP_COPY)
            check_copy(&state, step);
    }
    state_done(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct caller caller = { .fd = -1, .request = "", .peer = "" };
    struct build_spec *spec = NULL;
    struct err err = { .kind = ERR_NONE };
    json_t *body;

    if (size < 1)
        return 0;
    body = json_loadb((const char *) data + 1, size - 1, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(body)) {
        if (spec_read(&caller, body, data[0] & 1, &spec, &err) < 0) {
            must(err.kind != ERR_NONE && err.msg[0]);
        } else {
            must(spec->steps <= BUILD_STEPS_MAX && spec->stage_count >= 1);
            for (size_t i = 0; i < spec->stage_count; i++)
                apply(spec, &spec->stages[i]);
            spec_free(spec);
        }
    }
    json_decref(body);
    return 0;
}
