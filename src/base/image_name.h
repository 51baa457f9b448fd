/* image_name.h - the template that an image is installed as. Pure. */
#ifndef COVE_BASE_IMAGE_NAME_H
#define COVE_BASE_IMAGE_NAME_H

#include <stddef.h>

/* The last part of the image's path, and its tag unless that is "latest": registry.example/team/App:v1 is "app-v1". */
void image_template_name(const char *image, char *out, size_t size);

#endif
