/* image_tools.h - what cove adds to every image, as one more layer: sudo, the starter of the image's command, kernels, files of /etc. */
#ifndef COVE_TEMPLATE_IMAGE_TOOLS_H
#define COVE_TEMPLATE_IMAGE_TOOLS_H

#include "base/err.h"
#include "template/maker.h"

/* A tar in memory, the same bytes for the same cove. */
int image_tools_make(const struct template_maker *maker, int *ret_fd, struct err *err);

#endif
