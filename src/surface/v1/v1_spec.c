/* GET /openapi.yaml: the description of the API, as it was when this program was built. */
#include "surface/v1/v1.h"

/* Assembled in, byte by byte: no copy on disk can be older or newer than the program. */
__asm__(".section .rodata\n"
        ".global openapi_text\n"
        "openapi_text:\n"
        ".incbin \"spec/openapi.yaml\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char openapi_text[];

int v1_openapi(struct exchange *x, struct err *err)
{
    return exchange_reply_text(x, 200, "application/yaml", openapi_text, err);
}
