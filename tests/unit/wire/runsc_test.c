#include "wire/runsc.h"

#include "check.h"
#include "wire/isolation.h"

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

CHECK_MAIN(T(the_date_is_found_in_every_form_of_version), T(what_is_no_date_is_none),
           T(a_machine_without_hardware_is_worth_its_jail))
