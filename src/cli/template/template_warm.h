/* template_warm.h - templates that carry a memory image: a sandbox of theirs in which a command runs already, and a
 * kernel waits with its modules imported. New sandboxes of the same limits and profile start as copies of it.
 *
 * The image is made here, and is the keeper's, with the owner WARM_OWNER; the record is the server's (/v1/host/templates). A
 * record without an image is harmless, an image without a record is dropped by the next record of the template, or by gc.
 *
 * Callers: the template verb. */
#ifndef COVE_CLI_TEMPLATE_WARM_H
#define COVE_CLI_TEMPLATE_WARM_H

#include "cli/options.h"
#include "wire/limits.h"

struct warm_values {
    const char *start, *ready, *modules, *isolation;
    uint64_t ready_ms;
    bool root, e2b;
    struct limits limits;
};

/* clang-format off */
#define WARM_OPTIONS(at) \
    { 0, "start", OPTION_TEXT, (at) + offsetof(struct warm_values, start), "COMMAND", COMPLETE_NONE, \
      "what is to run in its sandboxes, by a shell of the template's user" }, \
    { 0, "ready", OPTION_TEXT, (at) + offsetof(struct warm_values, ready), "COMMAND", COMPLETE_NONE, \
      "ends with 0 once that is ready; tried until it does" }, \
    { 0, "ready-timeout", OPTION_DURATION, (at) + offsetof(struct warm_values, ready_ms), "TIME", COMPLETE_NONE, \
      "how long to try (60s)" }, \
    { 0, "import", OPTION_TEXT, (at) + offsetof(struct warm_values, modules), "MODULES", COMPLETE_NONE, \
      "a python kernel waits for the first cell, with these imported: a,b.c" }, \
    { 0, "root", OPTION_FLAG, (at) + offsetof(struct warm_values, root), NULL, COMPLETE_NONE, \
      "for sandboxes that may have a root of their own" }, \
    { 0, "sdk", OPTION_FLAG, (at) + offsetof(struct warm_values, e2b), NULL, COMPLETE_NONE, \
      "for sandboxes as E2B's SDKs make them: with root, and two cores" }, \
    { 0, "isolation", OPTION_TEXT, (at) + offsetof(struct warm_values, isolation), "KIND", COMPLETE_NONE, \
      "for sandboxes with that isolation: jail, gvisor, vm (jail)" }
/* clang-format on */

/* Prints what it did; the exit code. */
int template_warm(const char *name, const struct warm_values *values);
int template_cool(const char *name);

#endif
