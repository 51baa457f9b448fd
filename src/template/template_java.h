/* template_java.h - the program java of templates that have one: started with the limits of its sandbox.
 *
 * Owns:    opt/cove/bin/java, which comes before /usr/bin/java in PATH (inside/java.sh).
 * Callers: those that make a template of files, or of the host. */
#ifndef COVE_TEMPLATE_TEMPLATE_JAVA_H
#define COVE_TEMPLATE_TEMPLATE_JAVA_H

#include "base/err.h"

#include <stdbool.h>

/* Of the tree root_fd; or, with root_fd AT_FDCWD, of this host. */
bool template_has_java(int root_fd);
/* Replaces what is there. opt/cove/bin must be there. */
int template_put_java(int root_fd, struct err *err);

#endif
