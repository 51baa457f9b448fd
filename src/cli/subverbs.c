#include "cli/subverbs.h"

#include "cli/common.h"
#include "cli/hints.h"
#include "cli/report.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct verb *find_sub(const struct verb *verb, const char *name)
{
    for (size_t i = 0; i < verb->sub_count; i++)
        if (strcmp(verb->subs[i].name, name) == 0)
            return &verb->subs[i];
    return NULL;
}

int subverbs_run(const struct verb *verb, int argc, char **argv)
{
    const struct verb *sub;
    struct err err = { 0 };
    char hint[160];
    char **operands;
    int count, unused, code;

    code = common_parse(verb, argc, argv, &unused, &operands, &count);
    if (code >= 0)
        return code;
    if (count == 0) {
        options_help(verb, stderr);
        return err_kind_info(ERR_USAGE)->exit_code;
    }
    sub = find_sub(verb, operands[0]);
    if (sub)
        return sub->run(count, operands);
    (void) err_set(&err, ERR_USAGE, "%s: there is no command '%.60s'%s (see 'cove help %s')",
                   verb->name, operands[0], hint_command(verb, operands[0], hint, sizeof hint),
                   verb->name);
    return report_error(&err);
}

int subverb_parse(const struct verb *verb, const char *name, int argc, char **argv, void *values,
                  const char *what, int least, int most, char ***ret_operands, int *ret_count)
{
    struct verb full = *find_sub(verb, name);
    char both[64];
    struct err err;

    (void) snprintf(both, sizeof both, "%s %s", verb->name, name);
    full.name = both;
    switch (options_parse(&full, argc, argv, values, ret_operands, ret_count, &err)) {
    case OPTIONS_BAD:
        return report_error(&err);
    case OPTIONS_HELP:
        return report_end(0);
    case OPTIONS_RUN:
        break;
    }
    if (*ret_count < least)
        (void) err_set(&err, ERR_USAGE, "%s: %s is missing (see 'cove %s --help')", both, what,
                       both);
    else if (*ret_count > most)
        (void) err_set(&err, ERR_USAGE, "%s: unexpected argument '%.60s' (see 'cove %s --help')",
                       both, (*ret_operands)[most], both);
    else
        return -1;
    return report_error(&err);
}

const char *subverb_when(char *out, size_t size, uint64_t ms)
{
    time_t t = (time_t) (ms / 1000);
    struct tm tm;

    if (ms == 0 || !localtime_r(&t, &tm) || strftime(out, size, "%Y-%m-%d %H:%M", &tm) == 0)
        (void) snprintf(out, size, "-");
    return out;
}
