#include "wire/qmp.h"

#include "check.h"

#include <string.h>

static char why[32];

static void answers_and_the_end_of_a_migration_are_told_apart(void)
{
    static const struct {
        const char *line;
        enum qmp_said said;
    } rows[] = {
        { "{\"QMP\": {\"version\": {\"qemu\": {\"major\": 10}}}}", QMP_OTHER },
        { "{\"return\": {}}", QMP_RETURN },
        { "{\"return\": {\"status\": \"failed\", \"event\": \"MIGRATION\"}}", QMP_RETURN },
        { "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}}", QMP_ERROR },
        { "{\"timestamp\": {\"seconds\": 1}, \"event\": \"MIGRATION\", \"data\": {\"status\": "
          "\"completed\"}}",
          QMP_MOVED },
        { "{\"timestamp\": {\"seconds\": 1}, \"event\": \"MIGRATION\", \"data\": {\"status\": "
          "\"failed\"}}",
          QMP_FAILED },
        { "{\"timestamp\": {\"seconds\": 1}, \"event\": \"MIGRATION\", \"data\": {\"status\": "
          "\"active\"}}",
          QMP_OTHER },
        { "{\"timestamp\": {\"seconds\": 1}, \"event\": \"STOP\"}", QMP_OTHER },
        { " {\"return\": {}}", QMP_OTHER },
        { "", QMP_OTHER },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(qmp_read(rows[i].line, why, sizeof why), rows[i].said);
}

static void a_reason_is_printable_and_fits(void)
{
    (void) qmp_read("{\"error\": {\"desc\": \"the \x01 machine\\n is\"}}", why, sizeof why);
    CHECK_STR(why, "the ? machine");
    (void) qmp_read("{\"error\": {\"desc\": \"0123456789012345678901234567890123456789\"}}", why,
                    sizeof why);
    CHECK_INT(strlen(why), sizeof why - 1);
    (void) qmp_read("{\"error\": {}}", why, sizeof why);
    CHECK_STR(why, "no reason is told");
    (void) qmp_read("{\"error\": {\"desc\": \"\"}}", why, sizeof why);
    CHECK_STR(why, "no reason is told");
}

CHECK_MAIN(T(answers_and_the_end_of_a_migration_are_told_apart), T(a_reason_is_printable_and_fits))
