#include "wire/runsc.h"

#include "check.h"
#include "wire/isolation.h"

#include <stdio.h>
#include <string.h>

static void the_date_is_found_in_every_form_of_version(void)
{
    CHECK_INT(runsc_parse_version("runsc version 0.0~20240729.0\nspec: 1.0.2-dev\n"), 20240729);
    CHECK_INT(runsc_parse_version("runsc version release-20250414.0\nspec: 1.1.0-rc.1\n"),
              20250414);
    CHECK_INT(runsc_parse_version("runsc version 0.0~20221219.0-2+b3"), 20221219);
}

static void what_is_no_date_is_none(void)
{
    static const char *const texts[] = { "",          "runsc",   "runsc version VERSION_MISSING",
                                         "123456789", "1234567", "version 12345678901234567890",
                                         "00000000",  "19991231" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK_INT(runsc_parse_version(texts[i]), 0);
}

static void a_machine_without_hardware_is_worth_its_jail(void)
{
    CHECK(isolation_level(ISOLATION_JAIL) < isolation_level(ISOLATION_GVISOR));
    CHECK(isolation_level(ISOLATION_GVISOR) < isolation_level(ISOLATION_VM));
    CHECK_INT(isolation_level(ISOLATION_VM_EMULATED), isolation_level(ISOLATION_JAIL));
    CHECK_INT(isolation_level(ISOLATION_COUNT), isolation_level(ISOLATION_JAIL));
}

/* Whether all of the text was one answer: not less, and nothing behind it. */
static bool takes(struct runsc_answer *a, const char *text)
{
    size_t len = strlen(text);

    *a = (struct runsc_answer){ 0 };
    for (size_t i = 0; i < len; i++)
        if (runsc_take(a, text[i]) != (i == len - 1))
            return false;
    return true;
}

static void an_answer_ends_with_its_object(void)
{
    struct runsc_answer a;
    char why[80];

    CHECK(takes(&a, "{\"success\":true,\"err\":\"\",\"result\":{}}"));
    CHECK(runsc_read_answer(&a, why, sizeof why));
    CHECK(takes(&a, "{\"success\":false,\"err\":\"a } in \\\"quotes\\\" {\",\"result\":null}"));
    CHECK(!runsc_read_answer(&a, why, sizeof why));
    CHECK_STR(why, "a } in \"quotes\" {");
    CHECK(!takes(&a, "{\"success\":true"));
}

static void a_reason_is_one_short_line_and_never_empty(void)
{
    struct runsc_answer a = { 0 };
    char why[160], answer[640];

    CHECK(takes(&a, "{\"success\":false,\"err\":\"first\\nsecond\",\"result\":null}") &&
          !runsc_read_answer(&a, why, sizeof why));
    CHECK_STR(why, "first");
    CHECK(takes(&a, "{\"success\":false,\"err\":\"\",\"result\":null}") &&
          !runsc_read_answer(&a, why, sizeof why));
    CHECK_STR(why, "no reason is told");
    CHECK(takes(&a, "{\"err\":\"no \x01 word\"}") && !runsc_read_answer(&a, why, sizeof why));
    CHECK_STR(why, "no ? word");
    CHECK(takes(&a, "{\"success\":false,\"err\":\"encoding error: "
                    "gofer.dentry(\\\"a\\\").beforeSave: deleted "
                    "and invalidated dentries can't be restored:\\ngoroutine 59\"}") &&
          !runsc_read_answer(&a, why, sizeof why));
    CHECK_STR(why, "a file that was deleted is still open");
    (void) snprintf(answer, sizeof answer,
                    "{\"success\":false,\"err\":\"encoding error: gofer.dentry(\\\"%0300d\\\")"
                    ".beforeSave: deleted and invalidated dentries can't be restored:\"}",
                    0);
    CHECK(takes(&a, answer) && !runsc_read_answer(&a, why, sizeof why));
    CHECK_STR(why, "a file that was deleted is still open");
    a = (struct runsc_answer){ 0 };
    for (int i = 0; i < 100000; i++)
        CHECK(!runsc_take(&a, '{'));
    CHECK(a.len == RUNSC_ANSWER_MAX - 1 && !runsc_read_answer(&a, why, sizeof why));
}

/* As gVisor takes it: a network of every address, with its mask in base64. */
static void a_guest_that_is_loaded_has_a_route_for_each_address(void)
{
    char text[RUNSC_LINKS_MAX];

    runsc_put_links(text);
    CHECK_STR(text,
              "{\"method\":\"Network.CreateLinksAndRoutes\",\"arg\":{\"LoopbackLinks\":[{"
              "\"Name\":\"lo\",\"Addresses\":["
              "{\"Address\":\"127.0.0.1\",\"PrefixLen\":8},"
              "{\"Address\":\"::1\",\"PrefixLen\":128},"
              "{\"Address\":\"10.0.0.1\",\"PrefixLen\":1},"
              "{\"Address\":\"192.0.2.2\",\"PrefixLen\":1},"
              "{\"Address\":\"192.0.2.1\",\"PrefixLen\":32},"
              "{\"Address\":\"2002:c000:202::1\",\"PrefixLen\":3},"
              "{\"Address\":\"fd63:6f76:6500::2\",\"PrefixLen\":7}],\"Routes\":["
              "{\"Destination\":{\"IP\":\"127.0.0.0\",\"Mask\":\"/wAAAA==\"}},"
              "{\"Destination\":{\"IP\":\"::1\",\"Mask\":\"/////////////////////w==\"}},"
              "{\"Destination\":{\"IP\":\"0.0.0.0\",\"Mask\":\"gAAAAA==\"}},"
              "{\"Destination\":{\"IP\":\"128.0.0.0\",\"Mask\":\"gAAAAA==\"}},"
              "{\"Destination\":{\"IP\":\"192.0.2.1\",\"Mask\":\"/////w==\"}},"
              "{\"Destination\":{\"IP\":\"2000::\",\"Mask\":\"4AAAAAAAAAAAAAAAAAAAAA==\"}},"
              "{\"Destination\":{\"IP\":\"fc00::\",\"Mask\":\"/gAAAAAAAAAAAAAAAAAAAA==\"}}]}]}}");
}

CHECK_MAIN(T(a_guest_that_is_loaded_has_a_route_for_each_address),
           T(an_answer_ends_with_its_object), T(a_reason_is_one_short_line_and_never_empty),
           T(the_date_is_found_in_every_form_of_version), T(what_is_no_date_is_none),
           T(a_machine_without_hardware_is_worth_its_jail))
