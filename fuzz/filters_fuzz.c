/* filters_fuzz.c - the filters and threads of saved processes, as criu wrote them, with what programs inside put there: what is
 * read lies within the file, and a filter that was made quiet is quiet and keeps its name. */
#include "image/filters.h"
#include "image/mm.h"
#include "jail/seccomp.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const uint8_t *data, size_t size, const struct saved_filter *f)
{
    unsigned char name[SHA256_LEN], again[SHA256_LEN];
    size_t bytes = f->len * sizeof *f->code;

    if (bytes == 0 || f->at > size || bytes > size - f->at ||
        memcmp(f->code, data + f->at, bytes) != 0)
        abort();
    seccomp_name(f->code, f->len, name);
    seccomp_quiet(f->code, f->len);
    seccomp_name(f->code, f->len, again);
    if (!seccomp_is_quiet(f->code, f->len) || memcmp(name, again, sizeof name) != 0)
        abort();
    (void) seccomp_confines(f->code, f->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct saved_filters filters;
    struct saved_thread thread;

    if (filters_parse(data, size, &filters))
        for (size_t i = 0; i < filters.count; i++)
            look(data, size, &filters.filter[i]);
    filters_free(&filters);
    (void) filters_parse_core(data, size, &thread);
    if (mm_dumpable_at(data, size) >= size && size > 0)
        abort();
    return 0;
}
