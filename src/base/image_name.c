#include "base/image_name.h"

#include <stdio.h>
#include <string.h>

void image_template_name(const char *image, char *out, size_t size)
{
    const char *slash = strrchr(image, '/'), *name = slash ? slash + 1 : image;
    size_t len = strcspn(name, "@");
    const char *colon = memchr(name, ':', len);

    if (colon && len == (size_t) (colon + 1 - name) + strlen("latest") &&
        strncmp(colon + 1, "latest", strlen("latest")) == 0)
        len = (size_t) (colon - name);
    (void) snprintf(out, size, "%.*s", (int) len, name);
    for (char *c = out; *c; c++)
        *c = *c == ':' ? '-' : *c >= 'A' && *c <= 'Z' ? (char) (*c - 'A' + 'a') : *c;
}
