/* io_rule.h - when a sandbox's limit on disk I/O is in force: from its start to its end, but not while it is saved.
 *
 * A frozen sandbox reads and writes nothing; what it wrote before goes to its file as fast as the host can.
 *
 * Callers: drivers. */
#ifndef COVE_DRIVER_IO_RULE_H
#define COVE_DRIVER_IO_RULE_H

#include "driver/host.h"

/* Of a sandbox that starts and has its disk: which device that is. */
void io_rule_find(struct keeper *keeper, struct sandbox *sandbox);

/* Behind cgroup_create(), before anything runs inside. */
int io_rule_begin(struct keeper *keeper, const struct sandbox *sandbox, struct err *err);

/* While it is saved. */
void io_rule_pause(struct keeper *keeper, const struct sandbox *sandbox);
/* It runs again. If that fails, it must not. */
int io_rule_resume(struct keeper *keeper, const struct sandbox *sandbox, struct err *err);

/* It dies. Once: its device may be another sandbox's soon. */
void io_rule_end(struct keeper *keeper, struct sandbox *sandbox);

#endif
