/* tar_sum.h - for fuzzers of archives: checksums are put right, or nothing would come past the first one. */
#ifndef COVE_FUZZ_TAR_SUM_H
#define COVE_FUZZ_TAR_SUM_H

#include "http/tar.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void fix_sum(char *block)
{
    static const char zeros[TAR_BLOCK];
    unsigned sum = 0;

    if (memcmp(block, zeros, TAR_BLOCK) == 0)
        return;
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char) block[i];
    for (int i = 5; i >= 0; i--, sum >>= 3)
        block[148 + i] = (char) ('0' + (sum & 7));
    block[154] = '\0';
}

#endif
