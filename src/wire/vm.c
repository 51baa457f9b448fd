#include "wire/vm.h"

#include <stdio.h>
#include <string.h>

#define BEFORE "QEMU emulator version "
#define MOST   9999u

uint32_t vm_parse_qemu_version(const char *text)
{
    uint32_t version = 0;

    if (strncmp(text, BEFORE, strlen(BEFORE)) != 0)
        return 0;
    for (text += strlen(BEFORE); *text >= '0' && *text <= '9' && version <= MOST; text++)
        version = version * 10 + (uint32_t) (*text - '0');
    return *text == '.' && version <= MOST ? version : 0;
}

void vm_parse_parts(const char *text, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);

    while (*text && (strncmp(text, name, len) != 0 || text[len] != ' ')) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    text += *text ? len + 1 : 0;
    (void) snprintf(out, size, "%.*s", (int) strcspn(text, "\n"), text);
}
