#include "http/chars.h"

#define SEEN   (CHAR_VALUE | CHAR_LINE)
#define TARGET (SEEN | CHAR_PATH | CHAR_QUERY)
#define MARK   (TARGET | CHAR_TOKEN)
#define ALNUM  (MARK | CHAR_HOST | CHAR_PLAIN)

/* clang-format off */
const uint8_t char_classes[256] = {
    ['0' ... '9'] = ALNUM | CHAR_HEX,
    ['a' ... 'f'] = ALNUM | CHAR_HEX,  ['g' ... 'z'] = ALNUM,
    ['A' ... 'F'] = ALNUM | CHAR_HEX,  ['G' ... 'Z'] = ALNUM,
    ['-'] = ALNUM,   ['.'] = ALNUM,   ['_'] = ALNUM,
    ['~'] = MARK | CHAR_PLAIN,
    ['!'] = MARK,    ['$'] = MARK,    ['%'] = MARK,    ['&'] = MARK,    ['\''] = MARK,
    ['*'] = MARK,    ['+'] = MARK,    ['^'] = MARK,    ['`'] = MARK,    ['|'] = MARK,
    ['('] = TARGET,  [')'] = TARGET,  [','] = TARGET,  ['/'] = TARGET,  [':'] = TARGET,
    [';'] = TARGET,  ['='] = TARGET,  ['@'] = TARGET,  ['['] = TARGET,  [']'] = TARGET,
    ['{'] = TARGET,  ['}'] = TARGET,
    ['?'] = SEEN | CHAR_QUERY,        ['\\'] = SEEN | CHAR_QUERY,
    ['#'] = SEEN | CHAR_TOKEN,        ['"'] = SEEN,    ['<'] = SEEN,    ['>'] = SEEN,
    [' '] = CHAR_VALUE | CHAR_LINE,   ['\t'] = CHAR_VALUE,
    [0x80 ... 0xff] = CHAR_VALUE,
};
/* clang-format on */
