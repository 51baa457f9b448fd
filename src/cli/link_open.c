#include "cli/common.h"
#include "cli/report.h"
#include "client/link.h"

int common_open(struct link *link, struct err *err)
{
    return link_open(link, report_state(), err);
}
