#include "dockerfile/dockerfile.h"

#include "base/own.h"
#include "check.h"
#include "dockerfile/match.h"
#include "dockerfile/plan.h"
#include "dockerfile/words.h"

/* ---- words ---- */

static const char *value_of(void *arg, const char *name)
{
    (void) arg;
    return strcmp(name, "A") == 0 ? "one" : strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static void variables_and_quotes_are_read_as_docker_reads_them(void)
{
    static const char *const rows[][2] = {
        { "plain", "plain" },
        { "$A", "one" },
        { "${A}x", "onex" },
        { "$AB", "" },
        { "\\$A", "$A" },
        { "'$A'", "$A" },
        { "\"$A b\"", "one b" },
        { "\"a\\\"b\"", "a\"b" },
        { "\"a\\nb\"", "a\\nb" },
        { "a\\ b", "a b" },
        { "${NONE:-two}", "two" },
        { "${EMPTY:-two}", "two" },
        { "${EMPTY-two}", "" },
        { "${NONE-two}", "two" },
        { "${A:+set}", "set" },
        { "${EMPTY:+set}", "" },
        { "${EMPTY+set}", "set" },
        { "${NONE:-${A:-x}}", "one" },
        { "${NONE:-a b}", "a b" },
        { "${A:?why}", "one" },
        { "$", "$" },
        { "a$", "a$" },
        { "x/${A}/y", "x/one/y" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_free char *got = NULL;
        struct err err = { .kind = ERR_NONE };

        CHECK_INT(words_expand(rows[i][0], '\\', value_of, NULL, &got, &err), 0);
        CHECK_STR(got ? got : err.msg, rows[i][1]);
    }
}

static void what_is_not_a_word_is_refused(void)
{
    static const char *const rows[][2] = {
        { "'a", "a quote ' without its end" },
        { "\"a", "a quote \" without its end" },
        { "${A", "'${A' without '}'" },
        { "${}", "'${' without a variable's name" },
        { "${NONE:?no value}", "NONE: no value" },
        { "${A#x}", "${A…: '#' is not supported there" },
        { "${A/x/y}", "${A…: '/' is not supported there" },
        { "${A:-", "'${' without '}'" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_free char *got = NULL;
        struct err err;

        CHECK_INT(words_expand(rows[i][0], '\\', value_of, NULL, &got, &err), -1);
        CHECK_STR(err.msg, rows[i][1]);
    }
}

/* ---- patterns ---- */

static void patterns_match_paths(void)
{
    static const struct {
        const char *pattern, *path;
        bool deep, want;
    } rows[] = {
        { "a", "a", true, true },
        { "*.txt", "a.txt", true, true },
        { "*.txt", "d/a.txt", true, false },
        { "**/*.txt", "a.txt", true, true },
        { "**/*.txt", "x/y/a.txt", true, true },
        { "**.txt", "x/y/a.txt", true, true },
        { "a/**", "a/b/c", true, true },
        { "a/**/c", "a/c", true, true },
        { "a/**/c", "a/x/y/c", true, true },
        { "a/**/c", "axc", true, false },
        { "?", "a", true, true },
        { "?", "/", true, false },
        { "[a-c]x", "bx", true, true },
        { "[^a-c]x", "bx", true, false },
        { "[^a-c]x", "dx", true, true },
        { "\\*", "*", true, true },
        { "\\*", "a", true, false },
        { "**/a", "x/a", false, true },
        { "**/a", "x/y/a", false, false },
        { "*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true, false },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err;
        bool got = !rows[i].want;

        CHECK_INT(match_path(rows[i].pattern, rows[i].path, rows[i].deep, &got, &err), 0);
        if (got != rows[i].want)
            CHECK_STR(rows[i].pattern, rows[i].path);
    }
}

static void dockerignore_has_exceptions_and_the_last_row_counts(void)
{
    static const char text[] =
        "# comment\n*.log\n/build/\n!build/keep\n  node_modules  \n**/*.tmp\n";
    static const struct {
        const char *path;
        bool want;
    } rows[] = {
        { "a.log", true },
        { "d/a.log", false },
        { "build", true },
        { "build/x", true },
        { "build/keep", false },
        { "build/keep/x", false },
        { "node_modules/a", true },
        { "x/node_modules", false },
        { "x/y.tmp", true },
        { "y.tmp", true },
        { "a", false },
    };
    struct ignore ignore;
    struct err err;

    CHECK_INT(ignore_parse(text, strlen(text), &ignore, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (ignore_has(&ignore, rows[i].path) != rows[i].want)
            CHECK_STR(rows[i].path, rows[i].want ? "ignored" : "not ignored");
    ignore_done(&ignore);
    CHECK_INT(ignore_parse("a\n[b\n", 5, &ignore, &err), -1);
    CHECK_STR(err.msg, "line 2: '[' without ']' in the pattern '[b'");
    CHECK_INT(ignore_parse("../a\n", 5, &ignore, &err), -1);
}

static void paths_are_clean_or_refused(void)
{
    static const char *const rows[][2] = {
        { "a//b/./c", "a/b/c" }, { "/a/", "a" }, { ".", "" },           { "a/../b", "b" },
        { "a/..", "" },          { "..", NULL }, { "a/../../b", NULL },
    };
    char out[64];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_INT(match_clean(rows[i][0], out, sizeof out), rows[i][1] ? 0 : -1);
        if (rows[i][1])
            CHECK_STR(out, rows[i][1]);
    }
}

/* ---- plans ---- */

static int base(void *arg, const char *from, json_t **ret, struct err *err)
{
    (void) arg;
    if (strcmp(from, "gone") == 0)
        return err_set(err, ERR_NO_TEMPLATE, "there is no template 'gone'");
    *ret = json_pack("{s:{s:s}, s:s, s:s}", "env", "PATH", "/bin", "user", "root", "workdir", "/");
    return 0;
}

/* The body as text, or the error. */
static char *planned(const char *text, const char *target)
{
    json_t *args = json_pack("{s:s, s:s}", "GIVEN", "yes", "NOT_DECLARED", "x"),
           *secrets = json_pack("{s:b}", "key", 1);
    struct plan_wish wish = { .target = target, .args = args, .secrets = secrets, .base = base };
    struct dockerfile file;
    struct plan plan;
    struct err err;
    char *out = NULL;
    int r = dockerfile_parse(text, strlen(text), &file, &err);

    if (r == 0) {
        r = plan_make(&file, &wish, &plan, &err);
        dockerfile_done(&file);
    }
    if (r == 0) {
        CHECK_INT(json_array_size(plan.unused), strstr(text, "ARG GIVEN") ? 1 : 2);
        out = json_dumps(plan.body, JSON_COMPACT | JSON_SORT_KEYS);
        plan_done(&plan);
    }
    json_decref(args);
    json_decref(secrets);
    return out ? out : strdup(err.msg);
}

static void check_plan(const char *text, const char *target, const char *want)
{
    auto_free char *got = planned(text, target);

    CHECK_STR(got, want);
}

#define RUN(command, user, cwd)                                                                    \
    "{\"args\":[\"" command "\",\"" user "\"],\"cwd\":\"" cwd "\",\"env\":{},\"exec\":"            \
    "[\"/bin/sh\",\"-c\",\"" command "\"],\"mounts\":[],\"type\":\"RUN\"}"
#define BODY(steps) "{\"from\":\"base\",\"stages\":[],\"steps\":[" steps "]}"

static void instructions_become_steps(void)
{
    check_plan("FROM base\nRUN make\n", NULL, BODY(RUN("make", "root", "/")));
    check_plan("# escape=`\nFROM base\nRUN a `\n  # comment\n\n  b\n", NULL,
               BODY(RUN("a   b", "root", "/")));
    check_plan(
        "from base\nUser app\nWORKDIR /srv\nworkdir sub\nRUN make\n", NULL,
        BODY("{\"args\":[\"app\"],\"type\":\"USER\"},{\"args\":[\"/srv\"],\"type\":\"WORKDIR\"},"
             "{\"args\":[\"/srv/sub\"],\"type\":\"WORKDIR\"}," RUN("make", "app", "/srv/sub")));
    check_plan("FROM base\nENV A=1 B=\"x $A\" C='$A'\nENV D all of it\n", NULL,
               BODY("{\"args\":[\"A\",\"1\",\"B\",\"x \",\"C\",\"\\\\$A\"],\"type\":\"ENV\"},"
                    "{\"args\":[\"D\",\"all of it\"],\"type\":\"ENV\"}"));
    check_plan("FROM base\nENV PATH=/opt:$PATH\n", NULL,
               BODY("{\"args\":[\"PATH\",\"/opt:/bin\"],\"type\":\"ENV\"}"));
    check_plan(
        "FROM base\nENTRYPOINT [\"/a\", \"b\"]\nCMD run it\nLABEL x.y=\"z w\"\nEXPOSE 80 81/udp\n",
        NULL,
        BODY("{\"args\":[\"/a\",\"b\"],\"type\":\"ENTRYPOINT\"},{\"args\":[],\"type\":\"CMD\"},"
             "{\"args\":[\"/bin/sh\",\"-c\",\"run it\"],\"type\":\"CMD\"},"
             "{\"args\":[\"x.y\",\"z w\"],\"type\":\"LABEL\"},"
             "{\"args\":[\"80\",\"81/udp\"],\"type\":\"EXPOSE\"}"));
    check_plan(
        "FROM base\nSHELL [\"/bin/bash\", \"-ec\"]\nRUN [\"/x\", \"y\"]\nCMD z\n", NULL,
        BODY("{\"args\":[\"[\\\"/x\\\", \\\"y\\\"]\",\"root\"],\"cwd\":\"/\",\"env\":{},\"exec\":"
             "[\"/x\",\"y\"],\"mounts\":[],\"type\":\"RUN\"},"
             "{\"args\":[\"/bin/bash\",\"-ec\",\"z\"],\"type\":\"CMD\"}"));
}

static void arguments_are_in_the_environment_of_run(void)
{
    check_plan("ARG V=base\nFROM $V\nARG GIVEN=no\nARG PLAIN\nARG TARGETARCH\nRUN x\n", NULL,
               BODY("{\"args\":[\"x\",\"root\"],\"cwd\":\"/\",\"env\":{\"GIVEN\":\"yes\","
                    "\"TARGETARCH\":\"amd64\"},\"exec\":[\"/bin/sh\",\"-c\",\"x\"],\"mounts\":[],"
                    "\"type\":\"RUN\"}"));
}

static void heredocs_are_scripts_and_files(void)
{
    check_plan("FROM base\nRUN <<EOF\necho $x\nEOF\n", NULL, BODY(RUN("echo $x\\n", "root", "/")));
    check_plan("FROM base\nRUN cat <<-'E' > /x\n\ta\n\tE\n", NULL,
               BODY(RUN("cat <<-'E' > /x\\na\\nE", "root", "/")));
    check_plan("FROM base\nRUN echo \"<<EOF\"\n", NULL,
               BODY(RUN("echo \\\"<<EOF\\\"", "root", "/")));
}

static void stages_that_are_needed_are_there(void)
{
    static const char text[] = "FROM base AS one\nRUN a\nFROM other AS unused\nRUN never\n"
                               "FROM one AS two\nRUN b\nFROM base\nCOPY --from=two /x /y\n"
                               "COPY --from=tools:1 /bin/*.so /lib/\n";

    check_plan(
        text, NULL,
        "{\"from\":\"base\",\"stages\":[{\"from\":\"base\",\"steps\":[" RUN(
            "a", "root", "/") "," RUN("b", "root",
                                      "/") "]},{\"from\":\"tools:1\",\"steps\":[]}],\"steps\":["
                                           "{\"args\":[\"/x\",\"/"
                                           "y\",\"0:0\",\"\"],\"stage\":0,\"type\":\"COPY\"},"
                                           "{\"args\":[\"/bin/*.so\",\"/lib/"
                                           "\",\"0:0\",\"\"],\"stage\":1,\"type\":\"COPY\"}]}");
    check_plan(text, "one", BODY(RUN("a", "root", "/")));
    check_plan(text, "0", BODY(RUN("a", "root", "/")));
    check_plan(text, "four", "there is no stage 'four'");
}

static void mounts_are_secrets_caches_and_memory(void)
{
    check_plan(
        "FROM base\nRUN --mount=type=secret,id=key --mount=type=cache,target=/c,sharing=locked "
        "--mount=type=tmpfs,target=/t --mount=type=secret,id=none x\n",
        NULL,
        BODY("{\"args\":[\"x\",\"root\"],\"cwd\":\"/\",\"env\":{},\"exec\":[\"/bin/sh\",\"-c\","
             "\"x\"],\"mounts\":[{\"id\":\"key\",\"target\":\"/run/secrets/key\",\"type\":"
             "\"secret\"},{\"id\":\"/c\",\"target\":\"/c\",\"type\":\"cache\"},{\"target\":"
             "\"/t\",\"type\":\"tmpfs\"}],\"type\":\"RUN\"}"));
}

static void what_is_not_supported_is_refused_with_its_line(void)
{
    static const char *const rows[][2] = {
        { "", "line 1: the Dockerfile has no instructions" },
        { "# only a comment\n", "line 1: the Dockerfile has no instructions" },
        { "RUN x\n", "line 1: RUN before the first FROM" },
        { "ARG X=1\n", "line 1: there is no FROM" },
        { "FROM base\n\nVOLUME /x\n", "line 3: VOLUME is not supported" },
        { "FROM base\nHEALTHCHECK NONE\n", "line 2: HEALTHCHECK is not supported" },
        { "FROM base\nONBUILD RUN x\n", "line 2: ONBUILD is not supported" },
        { "FROM base\nRUM x\n", "line 2: unknown instruction 'RUM'" },
        { "FROM base\nRUN\n", "line 2: RUN needs something behind it" },
        { "FROM base\nRUN --security=insecure x\n", "line 2: RUN --security is not supported" },
        { "FROM base\nRUN --network=none x\n",
          "line 2: --network=none is not supported: a build has one network for all steps" },
        { "FROM base\nRUN --mount=target=/x y\n",
          "line 2: --mount=type=bind is not supported: secret, cache and tmpfs are" },
        { "FROM base\nRUN --mount=type=ssh y\n",
          "line 2: --mount=type=ssh is not supported: secret, cache and tmpfs are" },
        { "FROM base\nRUN --mount=type=secret,id=none,required=true y\n",
          "line 2: the secret 'none' is not given (--secret id=none)" },
        { "FROM base\nRUN --mount=type=cache y\n", "line 2: --mount=type=cache needs a target" },
        { "FROM base\nRUN --mount=type=cache,target=/x,from=y z\n",
          "line 2: --mount=type=cache: 'from' is not supported" },
        { "FROM base\nRUN <<EOF\nx\n", "line 2: the heredoc has no end 'EOF'" },
        { "FROM base\nRUN <<EOF\n#!/usr/bin/perl\nEOF\n",
          "line 2: a heredoc with '#!' is not supported: name the program, as in RUN python3 "
          "<<EOF" },
        { "FROM base\nCOPY x\n", "line 2: COPY needs a source and a destination" },
        { "FROM base\nCOPY a b c\n", "line 2: with several sources the destination ends with '/'" },
        { "FROM base\nCOPY --parents a b\n", "line 2: COPY --parents is not supported" },
        { "FROM base\nCOPY --chmod=u+x a b\n", "line 2: --chmod is an octal number" },
        { "FROM base\nCOPY --chown=a:b:c a b\n", "line 2: --chown is USER or USER:GROUP" },
        { "FROM base\nCOPY --chown=a --chown=b a b\n", "line 2: --chown is there twice" },
        { "FROM base\nCOPY --from=x /../a b\n",
          "line 2: the source '/../a' leads out of the stage" },
        { "FROM base AS a\nFROM base\nCOPY --from=a / /x\n",
          "line 3: COPY of all of a stage is not supported: name directories of it" },
        { "FROM base\nADD http://example.com/x /y\n",
          "line 2: ADD of 'http://example.com/x' is not supported: download it with RUN" },
        { "FROM base\nUSER a:b\n",
          "line 2: USER with a group is not supported: a user has the groups of /etc/group" },
        { "FROM base\nENV A\n", "line 2: 'A' has no value" },
        { "FROM base\nENV A=1 B\n", "line 2: 'B' is not NAME=VALUE" },
        { "FROM base\nENV 1A=1\n", "line 2: ENV: '1A' is not a variable's name" },
        { "FROM base\nSHELL /bin/bash\n",
          "line 2: SHELL is a list: SHELL [\"/bin/bash\", \"-c\"]" },
        { "FROM base\nEXPOSE http\n", "line 2: EXPOSE: 'http' is not PORT, PORT/tcp or PORT/udp" },
        { "FROM base as\n", "line 1: FROM is 'FROM IMAGE' or 'FROM IMAGE AS NAME'" },
        { "FROM base AS a\nFROM base AS A\n", "line 2: 'A' is not a new name for a stage" },
        { "FROM --platform=linux/arm64 base\n",
          "line 1: the platform 'linux/arm64' is not supported: linux/amd64 is" },
        { "FROM $NONE\n", "line 1: FROM: its variable has no value" },
        { "FROM gone\n", "line 1: there is no template 'gone'" },
        { "# syntax=example/other\nFROM base\n",
          "line 1: the syntax 'example/other' is not supported" },
        { "# escape=x\nFROM base\n", "line 1: the directive escape is \\ or `" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_plan(rows[i][0], NULL, rows[i][1]);
}

static void limits_of_a_dockerfile_hold(void)
{
    static char text[DOCKERFILE_MAX + 2];
    struct dockerfile file;
    struct err err;

    memset(text, ' ', sizeof text);
    CHECK_INT(dockerfile_parse(text, DOCKERFILE_MAX + 1, &file, &err), -1);
    CHECK_INT(err.kind, ERR_TOO_BIG);
    CHECK_INT(dockerfile_parse("FROM a\0b\n", 9, &file, &err), -1);
    CHECK_STR(err.msg, "line 1: the Dockerfile is not UTF-8 text");
    CHECK_INT(dockerfile_parse("FROM \xff\n", 7, &file, &err), -1);
    (void) strcpy(text, "FROM base\nRUN ");
    memset(text + 14, 'x', DOCKERFILE_TEXT_MAX + 1);
    CHECK_INT(dockerfile_parse(text, 14 + DOCKERFILE_TEXT_MAX + 1, &file, &err), -1);
    CHECK_STR(err.msg, "line 2: longer than 65536 bytes");
    for (size_t i = 0; i <= DOCKERFILE_LINES_MAX; i++)
        memcpy(text + i * 7, "FROM a\n", 7);
    CHECK_INT(dockerfile_parse(text, (DOCKERFILE_LINES_MAX + 1) * 7, &file, &err), -1);
    CHECK_STR(err.msg, "line 1001: more than 1000 instructions");
}

CHECK_MAIN(T(variables_and_quotes_are_read_as_docker_reads_them), T(what_is_not_a_word_is_refused),
           T(patterns_match_paths), T(dockerignore_has_exceptions_and_the_last_row_counts),
           T(paths_are_clean_or_refused), T(instructions_become_steps),
           T(arguments_are_in_the_environment_of_run), T(heredocs_are_scripts_and_files),
           T(stages_that_are_needed_are_there), T(mounts_are_secrets_caches_and_memory),
           T(what_is_not_supported_is_refused_with_its_line), T(limits_of_a_dockerfile_hold))
