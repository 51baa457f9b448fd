/* pstree_fuzz.c - the tree of processes that criu wrote, its inventory, and what criu says: a tree that was mended needs no
 * mending, and is never longer than it was. */
#include "image/criu.h"
#include "image/inventory.h"
#include "image/pstree.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *once = malloc(size + 1), *twice = malloc(size + 1);
    struct criu_response response;
    size_t len = 0, again = 0;
    struct err err;

    criu_parse_response(data, size, &response);
    if (memchr(response.point, 0, sizeof response.point) == NULL)
        abort();
    if (inventory_lock_at(data, size) >= size && size > 0)
        abort();
    if (once && twice && pstree_fix_bytes(data, size, once, &len, &err) == 1 &&
        (len > size || pstree_fix_bytes(once, len, twice, &again, &err) != 0))
        abort();
    free(once);
    free(twice);
    return 0;
}
