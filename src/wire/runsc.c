#include "wire/runsc.h"

#include <stddef.h>
#include <string.h>

#define DATE_LEN   8
#define DATE_FIRST 20000101u

uint32_t runsc_parse_version(const char *text)
{
    while (*text) {
        size_t len = strspn(text, "0123456789");
        uint32_t date = 0;

        for (size_t i = 0; len == DATE_LEN && i < len; i++)
            date = date * 10 + (uint32_t) (text[i] - '0');
        if (date >= DATE_FIRST)
            return date;
        text += len > 0 ? len : 1;
    }
    return 0;
}
