#include "cli/substore.h"

#include "cli/report.h"

#include <stdio.h>
#include <unistd.h>

int subverb_store(struct store **ret, struct err *err)
{
    return store_open(report_state(), ret, err);
}

int subverb_audit(struct store *store, const char *tenant, const char *action, const char *detail,
                  struct err *err)
{
    char user[32];
    struct audit_record record = { .tenant = tenant,
                                   .user_id = user,
                                   .action = action,
                                   .outcome = "ok",
                                   .detail = detail,
                                   .resource_usage = "{}",
                                   .security_events = "[]",
                                   .duration_ms = -1,
                                   .exit_code = AUDIT_NO_EXIT };

    (void) snprintf(user, sizeof user, "cli/%u", (unsigned) getuid());
    if (store_audit_append(store, &record, STORE_ON_DISK, err) < 0)
        return err_wrap(err, "done, but not in the audit log");
    return 0;
}
