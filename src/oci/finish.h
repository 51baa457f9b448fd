/* finish.h - what a merged image needs to be a template: directories to mount on, users, its command.
 *
 * Works on the tree, never on the host's files, and never through a link where a file is written: /etc/passwd that is a
 * link is replaced.
 *
 *   /dev /proc /sys     real directories; /tmp, /run, /home, /workspace, if missing
 *   /etc/passwd, group  get root and the template's user, if missing. That user is the image's own, unless the image wants root:
 *                       then it is `user`, with uid 1000 or the next that is free
 *   /opt/cove/entrypoint   ENTRYPOINT and CMD, each word with its NUL (agent/entrypoint.c); entrypoint.words and cmd.words: each alone */
#ifndef COVE_OCI_FINISH_H
#define COVE_OCI_FINISH_H

#include "base/err.h"
#include "oci/document.h"
#include "oci/merge.h"

struct finish {
    char user[33];
    char workdir[256];
};

/* ERR_UNSUPPORTED: the image wants a user or a directory that a template cannot have. */
int finish_image(struct merge *merge, const struct oci_config *config, struct finish *ret,
                 struct err *err);

#endif
