#include "cli/common.h"

#include "cli/report.h"

int common_parse(const struct verb *verb, int argc, char **argv, void *values, char ***ret_operands,
                 int *ret_count)
{
    struct err err;

    switch (options_parse(verb, argc, argv, values, ret_operands, ret_count, &err)) {
    case OPTIONS_RUN:
        return -1;
    case OPTIONS_HELP:
        return report_end(0);
    case OPTIONS_BAD:
        break;
    }
    return report_error(&err);
}

int common_missing(const struct verb *verb, const char *what)
{
    struct err err;

    (void) err_set(&err, ERR_USAGE, "%s: %s is missing (see 'cove help %s')", verb->name, what,
                   verb->name);
    return report_error(&err);
}

int common_excess(const struct verb *verb, const char *operand)
{
    struct err err;

    (void) err_set(&err, ERR_USAGE, "%s: unexpected argument '%.60s' (see 'cove help %s')",
                   verb->name, operand, verb->name);
    return report_error(&err);
}
