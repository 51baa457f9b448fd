#include "cli/options.h"

#include "base/own.h"
#include "check.h"
#include "cli/verbs.h"
#include "wire/limits.h"

struct values {
    bool all, quiet;
    const char *name;
    struct option_list env;
    uint64_t number, size, timeout;
    struct limits limits;
};

#define AT(field) offsetof(struct values, field)

static const struct option options[] = {
    { 'a', "all", OPTION_FLAG, AT(all), NULL, COMPLETE_NONE, "all" },
    { 'q', "quiet", OPTION_FLAG, AT(quiet), NULL, COMPLETE_NONE, "quiet" },
    { 'n', "name", OPTION_TEXT, AT(name), "NAME", COMPLETE_NONE, "name" },
    { 'e', "env", OPTION_LIST, AT(env), "K=V", COMPLETE_NONE, "env" },
    { 0, "number", OPTION_NUMBER, AT(number), "N", COMPLETE_NONE, "number" },
    { 0, "size", OPTION_SIZE, AT(size), "SIZE", COMPLETE_NONE, "size" },
    { 0, "timeout", OPTION_DURATION, AT(timeout), "TIME", COMPLETE_NONE, "timeout" },
};

static const struct verb anywhere = { .name = "test",
                                      .synopsis = "",
                                      .summary = "test",
                                      .options = options,
                                      .option_count = ARRAY_LEN(options),
                                      .takes_limits = true,
                                      .limits_offset = AT(limits) };

static struct values values;
static char **operands;
static int count;
static struct err err;

/* Words are split at spaces. */
static int parse(const struct verb *verb, const char *line)
{
    static char copy[1024];
    static char *argv[64];
    int argc = 0;

    memset(&values, 0, sizeof values);
    limits_default(&values.limits);
    (void) snprintf(copy, sizeof copy, "test %s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    count = -1;
    return options_parse(verb, argc, argv, &values, &operands, &count, &err);
}

static void options_and_operands_may_be_mixed(void)
{
    CHECK_INT(parse(&anywhere, "one -a two --name box three"), OPTIONS_RUN);
    CHECK(values.all && !values.quiet);
    CHECK_STR(values.name, "box");
    CHECK_INT(count, 3);
    CHECK_STR(operands[0], "one");
    CHECK_STR(operands[2], "three");
    CHECK(operands[3] == NULL);
}

static void values_come_behind_equals_or_a_space_or_a_letter(void)
{
    CHECK_INT(parse(&anywhere, "--name=a --number 5 --size=1k --timeout 2s"), OPTIONS_RUN);
    CHECK_STR(values.name, "a");
    CHECK(values.number == 5 && values.size == 1024 && values.timeout == 2000);
    CHECK_INT(parse(&anywhere, "-n box"), OPTIONS_RUN);
    CHECK_STR(values.name, "box");
    CHECK_INT(parse(&anywhere, "-aqnbox"), OPTIONS_RUN);
    CHECK(values.all && values.quiet);
    CHECK_STR(values.name, "box");
    CHECK_INT(parse(&anywhere, "--name="), OPTIONS_RUN);
    CHECK_STR(values.name, "");
}

static void lists_gather_and_texts_keep_the_last(void)
{
    CHECK_INT(parse(&anywhere, "-e A=1 --env B=2 -eC=3 -n x -n y"), OPTIONS_RUN);
    CHECK_INT(values.env.count, 3);
    CHECK_STR(values.env.items[2], "C=3");
    CHECK_STR(values.name, "y");
}

static void a_list_has_an_end(void)
{
    char *argv[2 * OPTION_LIST_MAX + 8];
    int argc = 0;

    memset(&values, 0, sizeof values);
    argv[argc++] = (char *) "test";
    for (int i = 0; i < OPTION_LIST_MAX + 1; i++)
        argv[argc++] = (char *) "-eA=1";
    argv[argc] = NULL;
    CHECK_INT(options_parse(&anywhere, argc, argv, &values, &operands, &count, &err), OPTIONS_BAD);
    CHECK_STR(err.msg, "more than 256 --env");
}

static void two_dashes_end_the_options(void)
{
    CHECK_INT(parse(&anywhere, "-a -- -q --name x"), OPTIONS_RUN);
    CHECK(values.all && !values.quiet);
    CHECK_INT(count, 3);
    CHECK_STR(operands[0], "-q");
    CHECK_INT(parse(&anywhere, "-- --"), OPTIONS_RUN);
    CHECK_INT(count, 1);
    CHECK_STR(operands[0], "--");
}

static void a_single_dash_is_an_operand(void)
{
    CHECK_INT(parse(&anywhere, "- box:x"), OPTIONS_RUN);
    CHECK_INT(count, 2);
    CHECK_STR(operands[0], "-");
}

static void a_commands_own_options_are_left_alone(void)
{
    struct verb verb = anywhere;

    verb.command_at = 1;
    CHECK_INT(parse(&verb, "-a ls -q --name x"), OPTIONS_RUN);
    CHECK(values.all && !values.quiet && !values.name);
    CHECK_INT(count, 4);
    verb.command_at = 2;
    CHECK_INT(parse(&verb, "box -a ls -q"), OPTIONS_RUN);
    CHECK(values.all && !values.quiet);
    CHECK_INT(count, 3);
    CHECK_STR(operands[1], "ls");
    CHECK_INT(parse(&verb, "box -- -q"), OPTIONS_RUN);
    CHECK_INT(count, 2);
    CHECK_STR(operands[1], "-q");
}

static void limits_are_options_too(void)
{
    CHECK_INT(parse(&anywhere, "--memory 64m --cpus=0.5"), OPTIONS_RUN);
    CHECK_INT(values.limits.memory_bytes, 64 << 20);
    CHECK_INT(values.limits.cpu_milli, 500);
    CHECK_INT(values.limits.processes, 512);
}

static void the_state_directory_is_understood_everywhere(void)
{
    CHECK_INT(parse(&anywhere, "one --state /tmp/x two"), OPTIONS_RUN);
    CHECK_STR(getenv("COVE_STATE"), "/tmp/x");
    CHECK_INT(count, 2);
    (void) unsetenv("COVE_STATE");
}

static void refusals_name_verb_and_word(void)
{
    static const struct {
        const char *line;
        enum err_kind kind;
        const char *wording;
    } cases[] = {
        { "--frob", ERR_USAGE, "test: there is no option '--frob' (see 'cove help test')" },
        { "--nam x", ERR_USAGE,
          "test: there is no option '--nam'; did you mean '--name'? (see 'cove help test')" },
        { "--names x", ERR_USAGE,
          "test: there is no option '--names'; did you mean '--name'? (see 'cove help test')" },
        { "--=x", ERR_USAGE, "test: there is no option '--=x' (see 'cove help test')" },
        { "-x", ERR_USAGE, "test: there is no option '-x' (see 'cove help test')" },
        { "-ax", ERR_USAGE, "test: there is no option '-ax' (see 'cove help test')" },
        { "--all=1", ERR_USAGE, "test: takes no value: '--all=1' (see 'cove help test')" },
        { "--name", ERR_USAGE, "test: a value is missing after '--name' (see 'cove help test')" },
        { "-n", ERR_USAGE, "test: a value is missing after '-n' (see 'cove help test')" },
        { "--memory", ERR_USAGE,
          "test: a value is missing after '--memory' (see 'cove help test')" },
        { "--state=", ERR_USAGE,
          "test: a directory is missing after '--state=' (see 'cove help test')" },
        { "--number x", ERR_LIMIT, "--number: 'x' is not a number" },
        { "--size x", ERR_LIMIT, "--size: 'x' is not a size (such as 512m or 1.5g)" },
        { "--timeout 1w", ERR_LIMIT,
          "--timeout: '1w' is not a duration (such as 500ms, 60s or 5m)" },
        { "--memory x", ERR_LIMIT, "limit 'memory': 'x' is not a size (such as 512m or 1.5g)" },
        { "--pids 5k", ERR_LIMIT, "limit 'pids': '5k' is not a number" },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        err = (struct err){ 0 };
        CHECK_INT(parse(&anywhere, cases[i].line), OPTIONS_BAD);
        CHECK_STR(err.msg, cases[i].wording);
        CHECK_INT(err.kind, cases[i].kind);
    }
}

/* --- the tables of the verbs themselves */

static void check_options(const struct verb *verb)
{
    for (size_t i = 0; i < verb->option_count; i++) {
        const struct option *o = &verb->options[i];

        CHECK(o->name && o->name[0] && o->help && o->help[0]);
        CHECK((o->kind == OPTION_FLAG) == (o->value == NULL));
        CHECK(o->complete < COMPLETE_COUNT);
        CHECK(strcmp(o->name, "state") != 0 && strcmp(o->name, "help") != 0);
        for (size_t k = 0; k < i; k++) {
            CHECK(strcmp(verb->options[k].name, o->name) != 0);
            CHECK(!o->letter || verb->options[k].letter != o->letter);
        }
        for (size_t k = 0; verb->takes_limits && k < limit_count; k++)
            CHECK(strcmp(limit_table[k].name, o->name) != 0);
    }
}

static void every_verb_is_complete(void)
{
    for (size_t i = 0; i < verb_count; i++) {
        const struct verb *verb = verbs[i];

        CHECK(verb->name && verb->summary && verb->synopsis && verb->run);
        CHECK(verb_find(verb->name) == verb);
        check_options(verb);
        for (size_t k = 0; k < verb->sub_count; k++)
            check_options(&verb->subs[k]);
    }
    CHECK(verb_find("frob") == NULL);
}

static void every_help_names_every_option(void)
{
    for (size_t i = 0; i < verb_count; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        options_help(verbs[i], out);
        (void) fclose(out);
        CHECK(strncmp(text, "cove ", 5) == 0);
        for (size_t k = 0; k < verbs[i]->option_count; k++) {
            char want[64];

            (void) snprintf(want, sizeof want, "--%s", verbs[i]->options[k].name);
            CHECK(strstr(text, want) != NULL);
        }
        for (size_t k = 0; verbs[i]->takes_limits && k < limit_count; k++)
            CHECK(strstr(text, limit_table[k].help) != NULL);
        free(text);
    }
}

CHECK_MAIN(T(options_and_operands_may_be_mixed),
           T(values_come_behind_equals_or_a_space_or_a_letter),
           T(lists_gather_and_texts_keep_the_last), T(a_list_has_an_end),
           T(two_dashes_end_the_options), T(a_single_dash_is_an_operand),
           T(a_commands_own_options_are_left_alone), T(limits_are_options_too),
           T(the_state_directory_is_understood_everywhere), T(refusals_name_verb_and_word),
           T(every_verb_is_complete), T(every_help_names_every_option))
