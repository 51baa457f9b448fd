/* runsc_fuzz.c - answers of a hostile kernel of gVisor: what is kept of them is bounded, and a reason is short, printable and never empty. */
#include "wire/runsc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct runsc_answer answer = { 0 };
    char why[24];

    for (size_t i = 0; i < size; i++) {
        if (!runsc_take(&answer, (char) data[i]) && i + 1 < size)
            continue;
        memset(why, 'x', sizeof why);
        if (!runsc_read_answer(&answer, why, sizeof why)) {
            if (!why[0] || !memchr(why, '\0', sizeof why))
                abort();
            for (const char *c = why; *c; c++)
                if (*c < ' ' || *c > '~')
                    abort();
        }
        answer = (struct runsc_answer){ 0 };
    }
    return 0;
}
