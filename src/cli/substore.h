/* substore.h - the server's store, for the verbs that still write it themselves. */
#ifndef COVE_CLI_SUBSTORE_H
#define COVE_CLI_SUBSTORE_H

#include "cli/subverbs.h"
#include "store/store.h"

/* Of the state directory in force. */
int subverb_store(struct store **ret, struct err *err);
/* What the command line changed, in the audit log, on disk when it returns. */
int subverb_audit(struct store *store, const char *tenant, const char *action, const char *detail,
                  struct err *err);
#endif
