#include "cli/common.h"
#include "cli/report.h"
#include "wire/agent.h"
#include "wire/keeper.h"

const struct verb version_verb = {
    .name = "version",
    .synopsis = "",
    .summary = "versions of cove and of its protocols",
    .run = verb_version,
};

int verb_version(int argc, char **argv)
{
    char **operands;
    int count, code, unused;

    code = common_parse(&version_verb, argc, argv, &unused, &operands, &count);
    if (code >= 0)
        return code;
    if (count > 0)
        return common_excess(&version_verb, operands[0]);
    printf("cove %s\nkeeper protocol %u, agent protocol %u\n", COVE_VERSION, KEEPER_VERSION,
           AGENT_VERSION);
    return report_end(0);
}
