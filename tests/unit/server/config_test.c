#include "server/app/config.h"

#include "check.h"

static void preset(struct config *config)
{
    struct err err;

    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < setting_count; i++)
        CHECK_INT(config_set(config, settings[i].name, settings[i].fallback, &err), 0);
}

static void every_row_is_complete(void)
{
    for (size_t i = 0; i < setting_count; i++) {
        CHECK(settings[i].name[0] && settings[i].help[0] && settings[i].size > 0);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(settings[i].name, settings[j].name) != 0);
    }
}

static void bad_lines_are_refused_by_number_and_name(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "listen", "line 1: not 'name = value'" },
        { "# fine\nnope = 1\n", "line 2: there is no setting 'nope'" },
        { "threads = 3", "line 1: threads: not between 4 and 4096" },
        { "local = maybe", "line 1: local: 'maybe' is neither yes nor no" },
        { "proxy_from = proxy.example",
          "line 1: proxy_from: 'proxy.example' is neither an address nor a prefix" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config config;
        struct err err;
        char text[200];

        preset(&config);
        (void) snprintf(text, sizeof text, "%s", cases[i].text);
        CHECK_INT(config_parse(&config, text, &err), -1);
        CHECK_STR(err.msg, cases[i].why);
    }
}

static char told[200];

static void note(const struct setting *setting)
{
    (void) snprintf(told + strlen(told), sizeof told - strlen(told), "%s%s ",
                    setting->change == LIVE ? "" : "*", setting->name);
}

static void a_reload_takes_what_is_live_and_tells_the_rest(void)
{
    struct config running, fresh;
    struct err err;
    char text[] = "listen = 127.0.0.1:1\nthreads = 9\nverbose = yes\nstate = /elsewhere\n"
                  "domain = example.org\n";

    preset(&running);
    preset(&fresh);
    /* What an earlier and longer text left behind the NUL is no difference. */
    running.domain[strlen(running.domain) + 3] = 'x';
    config_adopt(&running, &fresh, note);
    CHECK_STR(told, "");
    CHECK_INT(config_parse(&fresh, text, &err), 0);
    config_adopt(&running, &fresh, note);
    CHECK_STR(told, "*state *listen domain threads verbose ");
    CHECK_STR(running.state, "/var/lib/cove");
    CHECK_STR(running.listen, "127.0.0.1:8000");
    CHECK_STR(running.domain, "example.org");
    CHECK_INT(running.threads, 9);
    CHECK(running.verbose);
}

CHECK_MAIN(T(every_row_is_complete), T(bad_lines_are_refused_by_number_and_name),
           T(a_reload_takes_what_is_live_and_tells_the_rest))
