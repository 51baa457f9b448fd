/* embed.h - files of kernels/ and inside/ as constants of a program.
 *
 * Assembled in, byte by byte: no copy on disk can be older or newer than the program. */
#ifndef COVE_TEMPLATE_EMBED_H
#define COVE_TEMPLATE_EMBED_H

#define EMBED(name, file)                                                                          \
    __asm__(".section .rodata\n"                                                                   \
            ".global kernel_" #name "\n"                                                           \
            "kernel_" #name ":\n"                                                                  \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char kernel_##name[];

#endif
