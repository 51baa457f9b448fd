/* ops_pull.h - images of registries and archives, for tenants: each becomes a template on the host that only the tenant's own builds
 * stand on.
 *
 * The work is done by a process of root's (wire/pull.h); here are the tenant's rights: quota, records, audit. An image is the
 * tenant's alone. Another tenant's pull of the same image downloads and reads all of it again, and only then are the files
 * stored once: neither time nor errors nor quota tell what others have.
 *
 * Callers: server/build. */
#ifndef COVE_SERVER_OPS_OPS_PULL_H
#define COVE_SERVER_OPS_OPS_PULL_H

#include "server/ops/ops.h"

#define OPS_PULLED_MAX 64 /* of a name, with the NUL */

struct ops_pull {
    const char *image;               /* its name in a registry; NULL: an archive */
    const char *username, *password; /* for the registry; NULL: none */
    int archive_fd;
    const char *tag; /* which image of the archive; NULL: there is one */
    bool fresh;      /* made again, though the tenant has it */
    void (*say)(void *arg, const char *text);
    void *arg;
};

/* Until the caller goes away. ret: the template, which stays until ops_pull_release, and then while something stands on it. */
int ops_pull(struct ops *ops, const struct ops_pull *pull, char ret[OPS_PULLED_MAX],
             struct err *err);
void ops_pull_release(struct app *app, const char *name);
/* Removes images that nothing stands on; tenant "": of all. */
void ops_pull_settle(struct app *app, const char *tenant);

#endif
