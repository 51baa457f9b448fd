/* warm_ready.h - waiting until what runs in a sandbox is ready to be saved with a template.
 *
 * Callers: template_warm.c */
#ifndef COVE_CLI_WARM_READY_H
#define COVE_CLI_WARM_READY_H

#include "client/link.h"

#include <stdbool.h>

/* Runs `command` until it ends with 0. Fails when `proc` ended with anything else, and when the time has come; err has
 * the last words of what failed. */
int warm_ready_wait(struct link *link, const char *sandbox, uint32_t proc, const char *command,
                    uint64_t until_ms, struct err *err);

/* a,b.c: names with dots between, and commas between those. */
bool warm_modules_ok(const char *modules);

/* The kernel that surface/e2b/code_context.c finds by its tag: root's where the sandbox has root, as kernels are there. It
 * has imported the modules when this returns. */
int warm_kernel_start(struct link *link, const char *sandbox, bool root, const char *modules,
                      uint64_t until_ms, struct err *err);

#endif
