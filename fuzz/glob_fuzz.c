/* glob_fuzz.c - patterns of file names against paths: "pattern NUL path".
 *
 * Whatever the pattern, compiling and matching end soon and stay in their bounds; and what matches
 * without hidden names matches with them. */
#include "agent/worker/glob.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 2);
    struct glob *visible = NULL, *all = NULL;
    struct err err;
    const char *path;

    if (!text || size > 4096) {
        free(text);
        return 0;
    }
    if (size)
        memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    path = text + strlen(text) + 1;
    if (glob_new(text, false, &visible, &err) == 0) {
        if (glob_new(text, true, &all, &err) < 0)
            abort();
        if (glob_match(visible, path) && !glob_match(all, path))
            abort();
    } else if (glob_new(text, true, &all, &err) == 0 || !err.msg[0]) {
        abort(); /* whether names are hidden has nothing to do with the pattern */
    }
    glob_free(visible);
    glob_free(all);
    free(text);
    return 0;
}
