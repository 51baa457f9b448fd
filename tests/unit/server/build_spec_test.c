#include "server/build/build_own.h"

#include "base/image_name.h"
#include "base/own.h"
#include "check.h"

#include <string.h>

static void variables_are_replaced(void)
{
    static const char *const rows[][2] = {
        { "plain", "plain" },    { "$A", "one" },      { "${A}x$B", "onextwo" },
        { "$AB", "" },           { "\\$A", "$A" },     { "$", "$" },
        { "${A", "${A" },        { "a$(B)", "a$(B)" }, { "${}", "${}" },
        { "x:$NONE:y", "x::y" },
    };
    struct build_state state = { .env = json_pack("{s:s, s:s}", "A", "one", "B", "two") };
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_free char *got = state_expand(&state, rows[i][0], &err);

        CHECK_STR(got, rows[i][1]);
    }
    json_decref(state.env);
}

static int set_variable(struct build_state *state, const char *name, const char *value,
                        struct err *err)
{
    json_t *args = json_pack("[s, s]", name, value);
    struct build_step step = { .type = STEP_ENV, .args = args };
    int r = state_apply(state, &step, err);

    json_decref(args);
    return r;
}

static void variables_of_variables_stay_small(void)
{
    struct build_state state;
    char name[16];
    struct err err;
    int r = 0;

    CHECK_INT(state_init(&state), 0);
    CHECK_INT(set_variable(&state, "A", "0123456789abcdef0123456789abcdef", &err), 0);
    for (int i = 0; i < 11; i++) /* 64 KiB */
        CHECK_INT(set_variable(&state, "A", "$A$A", &err), 0);
    CHECK_INT(set_variable(&state, "B", "x$A", &err), -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    for (int i = 0; i < 20 && r == 0; i++) {
        (void) snprintf(name, sizeof name, "C%d", i);
        r = set_variable(&state, name, "$A", &err);
    }
    CHECK_INT(r, -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    state_done(&state);
}

static void sources_stay_in_their_files(void)
{
    static const struct {
        const char *source, *want; /* NULL: refused */
    } rows[] = {
        { "a", "a" },        { "./a/b", "a/b" }, { "/a", "a" },     { "folder/*", "folder" },
        { "*.txt", "." },    { "", "." },        { "a/b*/c", "a" }, { "..", NULL },
        { "a/../b", NULL },  { "a/..", NULL },   { "..a", "..a" },  { "../x/*", NULL },
        { "a/[ab]/c", "a" },
    };
    char out[PATH_MAX];
    struct err err;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_INT(copy_source(rows[i].source, out, &err), rows[i].want ? 0 : -1);
        if (rows[i].want)
            CHECK_STR(out, rows[i].want);
    }
}

static void keys_depend_on_everything(void)
{
    json_t *one = json_pack("[s, s]", "a", "b"), *other = json_pack("[s]", "ab");
    struct build_step step = { .type = STEP_RUN, .args = one };
    struct build_state state = { .env = json_object() };
    char begin[2][KEY_MAX], key[5][KEY_MAX];

    key_begin("team", "base", &state, begin[0]);
    key_begin("other", "base", &state, begin[1]);
    CHECK(strcmp(begin[0], begin[1]) != 0);
    step_key(begin[0], &step, "", key[0]);
    step_key(begin[0], &step, "", key[1]);
    CHECK_STR(key[0], key[1]);
    step_key(begin[1], &step, "", key[1]);
    step.args = other;
    step_key(begin[0], &step, "", key[2]);
    step.files = "f";
    step_key(begin[0], &step, "", key[3]);
    step.type = STEP_USER;
    step_key(begin[0], &step, "", key[4]);
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(key[i], key[j]) != 0);
    json_decref(one);
    json_decref(other);
    json_decref(state.env);
}

static void paths_are_of_the_working_directory(void)
{
    struct build_state state = { .workdir = "/srv" };
    char out[PATH_MAX];
    struct err err;

    CHECK_INT(state_path(&state, "x/y", out, &err), 0);
    CHECK_STR(out, "/srv/x/y");
    CHECK_INT(state_path(&state, "/x", out, &err), 0);
    CHECK_STR(out, "/x");
    state.workdir[0] = '\0';
    CHECK_INT(state_path(&state, "x", out, &err), 0);
    CHECK_STR(out, "/x");
}

static void an_image_has_the_name_that_it_is_installed_under(void)
{
    static const char *const rows[][2] = {
        { "python:3.12-slim", "python-3.12-slim" },
        { "debian:latest", "debian" },
        { "debian", "debian" },
        { "reg.example:5000/team/App:v1", "app-v1" },
        { "debian:la", "debian-la" },
        { "alpine@sha256:00ff", "alpine" },
        { "alpine:3@sha256:00ff", "alpine-3" },
    };
    char out[64];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        image_template_name(rows[i][0], out, sizeof out);
        CHECK_STR(out, rows[i][1]);
    }
}

CHECK_MAIN(T(an_image_has_the_name_that_it_is_installed_under), T(variables_are_replaced),
           T(variables_of_variables_stay_small), T(sources_stay_in_their_files),
           T(keys_depend_on_everything), T(paths_are_of_the_working_directory))
