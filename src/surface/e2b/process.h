/* process.h - what the methods of process.Process share. Their handlers are in envd.h. */
#ifndef COVE_SURFACE_E2B_PROCESS_H
#define COVE_SURFACE_E2B_PROCESS_H

#include "surface/e2b/rpc.h"

/* {"process": {"pid": …} or {"tag": …}}: one that the sandbox's agent started. */
int process_select(struct exchange *x, json_t *message, struct ops_process *ret, struct err *err);

/* {"size": {"cols", "rows"}} */
int process_size(json_t *pty, uint32_t *ret_rows, uint32_t *ret_columns, struct err *err);

/* The end event: {"exitCode", "exited", "status", "error"?} */
json_t *process_end_json(const struct exec_result *result);

#endif
