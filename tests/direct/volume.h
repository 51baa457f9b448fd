/* volume.h - what the option --volume means: run, shell, create. */
#ifndef COVE_CLI_VOLUME_H
#define COVE_CLI_VOLUME_H

#include "cli/options.h"
#include "wire/volume.h"

/* "NAME:/path" and "NAME:/path:ro", with "TENANT/" before the name if it is not the local tenant's. */
int volume_wishes(const struct option_list *list, struct volume_use ret[VOLUMES_MAX],
                  struct err *err);

#endif
