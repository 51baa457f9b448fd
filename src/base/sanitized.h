/* sanitized.h - whether the compiler adds a sanitizer (tests only). gcc defines a macro, clang has a feature.
 *
 * A sanitizer needs more memory, more stack and system calls of its own: a limit or a filter that would end it is left out. */
#ifndef COVE_BASE_SANITIZED_H
#define COVE_BASE_SANITIZED_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define ADDRESS_SANITIZED 1
#else
#define ADDRESS_SANITIZED 0
#endif

#if ADDRESS_SANITIZED || defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer) ||        \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#endif
