/* qmp_fuzz.c - a line of a hostile QEMU's monitor: nothing is read outside of it, and a reason is short, printable and never empty. */
#include "wire/qmp.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1), why[24];

    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    memset(why, 'x', sizeof why);
    if (qmp_read(line, why, sizeof why) == QMP_ERROR) {
        if (!why[0] || !memchr(why, '\0', sizeof why))
            abort();
        for (const char *c = why; *c; c++)
            if (*c < ' ' || *c > '~')
                abort();
    }
    free(line);
    return 0;
}
