/* code_event_fuzz.c - a line of a kernel: what is taken comes out as one line of ASCII that is itself taken as far as its
 * grammar goes, and never longer than the line and a few words. */
#include "surface/e2b/code_event.c" /* the one pure module of its folder: the others would bring half of the server along */

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX 8192

static char out[OUT_MAX];
static size_t out_len;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static int keep(void *context, const char *text, size_t len, struct err *err)
{
    (void) context;
    (void) err;
    must(out_len + len <= OUT_MAX);
    memcpy(out + out_len, text, len);
    out_len += len;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice name, value;
    struct members members;
    struct code_event event;
    struct err err;
    int r;

    if (size > 4096)
        return 0;
    out_len = 0;
    if (code_event_parse((const char *) data, size, &event, &err) < 0) {
        must(err.kind == ERR_PROTOCOL);
        return 0;
    }
    must(code_event_put(&event, "now", keep, NULL, &err) == 0);
    must(out_len <= size + 256);
    if (event.type == CODE_END) {
        must(out_len == 0);
        return 0;
    }
    must(out_len > 0 && out[out_len - 1] == '\n' && !memchr(out, '\n', out_len - 1));
    members = members_of((struct slice){ out, out_len - 1 });
    while ((r = next_member(&members, &name, &value)) == 1)
        ;
    must(r == 0);
    return 0;
}
