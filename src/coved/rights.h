/* rights.h - what the server keeps of its rights once its settings are read.
 *
 * Callers: main.c, before the first thread. */
#ifndef COVE_COVED_RIGHTS_H
#define COVE_COVED_RIGHTS_H

#include "base/err.h"
#include "server/app/config.h"

/* `config_path`: read again at SIGHUP. */
int rights_drop(const struct config *config, const char *config_path, struct err *err);

#endif
