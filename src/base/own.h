/* own.h - who holds what: scope releases what we hold, take_* hands it over.
 *
 * auto_close, auto_free and auto_file variables are declared before the first
 * goto of their function: gcc runs a skipped one's cleanup on garbage. */
#ifndef COVE_BASE_OWN_H
#define COVE_BASE_OWN_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Results ignored on purpose where the compiler insists on a use. */
#define IGNORE(call)                                                                               \
    do {                                                                                           \
        if (call) {                                                                                \
        }                                                                                          \
    } while (0)

static inline void own_close(int *fd)
{
    if (*fd >= 0)
        (void) close(*fd);
    *fd = -1;
}

static inline void own_free(void *ptr)
{
    free(*(void **) ptr);
}

static inline void own_file(FILE **file)
{
    if (*file)
        (void) fclose(*file);
}

static inline void own_dir(DIR **dir)
{
    if (*dir)
        (void) closedir(*dir);
}

#define auto_close __attribute__((cleanup(own_close)))
#define auto_free  __attribute__((cleanup(own_free)))
#define auto_file  __attribute__((cleanup(own_file)))
#define auto_dir   __attribute__((cleanup(own_dir)))

static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

static inline void *take_ptr_(void **ptr)
{
    void *taken = *ptr;

    *ptr = NULL;
    return taken;
}
#define take_ptr(ptr) ((__typeof__(*(ptr))) take_ptr_((void **) (ptr)))

#endif
