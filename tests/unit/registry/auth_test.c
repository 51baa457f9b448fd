#include "check.h"

#include "base/own.h"
#include "registry/auth.h"
#include "registry/registry.h"

static struct err err;

static void a_question_for_a_token_is_read(void)
{
    struct challenge c;

    CHECK(challenge_parse("Bearer realm=\"https://a.example.com/token\",service=\"r \\\"x\\\"\", "
                          "scope=\"repository:a/b:pull\"",
                          &c, &err) == 0);
    CHECK(!c.basic);
    CHECK_STR(c.realm, "https://a.example.com/token");
    CHECK_STR(c.service, "r \"x\"");
    CHECK_STR(c.scope, "repository:a/b:pull");
    CHECK(challenge_parse("bearer realm=https://a.example.com/", &c, &err) == 0);
    CHECK(challenge_parse("Basic realm=\"x\"", &c, &err) == 0 && c.basic);
}

static void a_damaged_question_is_refused(void)
{
    static const char *const bad[] = { "Bearer service=\"x\"", "Bearer realm=\"x",   "Bearer realm",
                                       "Bearer =\"x\"",        "Digest realm=\"x\"", "" };
    struct challenge c;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(challenge_parse(bad[i], &c, &err) == -1);
}

static const char *find(const char *config, const char *host)
{
    static struct auth_found found;

    return auth_find(config, strlen(config), host, &found, &err) < 0 ? "refused" : found.basic;
}

/* "HELPER SERVER", "" or "refused" */
static const char *find_helper(const char *config, const char *host)
{
    static char out[400];
    static struct auth_found found;

    if (auth_find(config, strlen(config), host, &found, &err) < 0)
        return "refused";
    (void) snprintf(out, sizeof out, "%s%s%s", found.helper, found.helper[0] ? " " : "",
                    found.server);
    return out;
}

static void a_helper_of_the_registry_comes_first(void)
{
    static const char config[] =
        "{\"auths\":{\"a.example\":{\"auth\":\"YTpi\"},\"b.example\":{}},"
        "\"credHelpers\":{\"a.example\":\"ecr-login\",\"c.example\":\"\"},\"credsStore\":\"pass\"}";

    CHECK_STR(find_helper(config, "a.example"), "ecr-login a.example");
    CHECK_STR(find(config, "a.example"), "");
    CHECK_STR(find_helper(config, "b.example"), "pass b.example");
    CHECK_STR(find_helper(config, "c.example"), "pass c.example");
    CHECK_STR(find_helper(config, "docker.io"), "pass https://index.docker.io/v1/");
    CHECK_STR(find_helper("{\"auths\":{\"h\":{\"auth\":\"YTpi\"}},\"credsStore\":\"x\"}", "h"), "");
    CHECK_STR(find_helper("{\"credsStore\":\"../x\"}", "h"), "refused");
    CHECK_STR(find_helper("{\"credsStore\":\"a b\"}", "h"), "refused");
    CHECK_STR(find_helper("{\"credHelpers\":{\"h\":\"-x\"}}", "h"), "refused");
    CHECK_STR(find_helper("{\"credsStore\":7}", "h"), "");
}

static void an_answer_of_a_helper_is_read(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "{\"ServerURL\":\"h\",\"Username\":\"a\",\"Secret\":\"b\"}", "YTpi" },
        { "{\"Username\":\"a\",\"Secret\":\"\"}", "YTo=" },
        { "{\"Username\":\"<token>\",\"Secret\":\"b\"}", "refused" },
        { "{\"Username\":\"a:b\",\"Secret\":\"c\"}", "refused" },
        { "{\"Username\":\"a\"}", "refused" },
        { "nonsense", "refused" },
        { "", "refused" },
    };
    char long_one[9000], got[AUTH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int r = auth_helper_read(rows[i].text, strlen(rows[i].text), got, &err);

        CHECK_STR(r < 0 ? "refused" : got, rows[i].want);
    }
    (void) snprintf(long_one, sizeof long_one, "{\"Username\":\"a\",\"Secret\":\"%06200d\"}", 0);
    CHECK(auth_helper_read(long_one, strlen(long_one), got, &err) == -1);
    CHECK_STR(got, "");
}

static void credentials_are_those_of_the_registry(void)
{
    static const char config[] =
        "{\"auths\":{\"r.example.com\":{\"auth\":\"YTpi\"},\"https://index.docker.io/v1/"
        "\":{\"auth\":\"Yzpk\"},\"r.example.com.evil.net\":{\"auth\":\"eDp5\"}}}";

    CHECK_STR(find(config, "r.example.com"), "YTpi");
    CHECK_STR(find(config, "docker.io"), "Yzpk");
    CHECK_STR(find(config, "example.com"), "");
    CHECK_STR(find(config, "r.example.com.evil"), "");
    CHECK_STR(find("{\"auths\":{\"h\":{\"identitytoken\":\"x\"}}}", "h"), "refused");
    CHECK_STR(find("{\"auths\":{\"h\":{\"auth\":\"a\\r\\nb\"}}}", "h"), "refused");
    CHECK_STR(find("nonsense", "h"), "refused");
}

static void places_are_split_and_checked(void)
{
    static const char *const bad[] = { "",
                                       "x",
                                       "ftp://h/",
                                       "https://",
                                       "https://u@h/",
                                       "https://h:0/",
                                       "https://h/a b",
                                       "https://h/a\nb",
                                       "//h/a" };
    struct registry_place p;

    CHECK(registry_place("https://h.example.com:5000/a/b?c=d#e", &p, &err) == 0);
    CHECK(p.tls && p.port == 5000);
    CHECK_STR(p.host, "h.example.com");
    CHECK_STR(p.path, "/a/b?c=d");
    CHECK(registry_place("http://[::1]?x=1", &p, &err) == 0);
    CHECK_STR(p.host, "::1");
    CHECK_STR(p.path, "/?x=1");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(registry_place(bad[i], &p, &err) == -1);
}

static void a_name_that_begins_like_an_address_is_not_this_host(void)
{
    static const struct {
        const char *image;
        bool here;
    } rows[] = { { "localhost/a", true },           { "127.0.0.1:5000/a", true },
                 { "127.4.5.6/a", true },           { "127.0.0.1.example.com/a", false },
                 { "127.example.com:80/a", false }, { "localhost.example.com/a", false } };
    static struct registry r;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK(reference_parse(rows[i].image, &r.reference, &err) == 0);
        CHECK(registry_is_here(&r) == rows[i].here);
    }
}

CHECK_MAIN(T(a_question_for_a_token_is_read), T(a_damaged_question_is_refused),
           T(credentials_are_those_of_the_registry), T(places_are_split_and_checked),
           T(a_helper_of_the_registry_comes_first), T(an_answer_of_a_helper_is_read),
           T(a_name_that_begins_like_an_address_is_not_this_host))
