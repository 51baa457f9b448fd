/* fill.h - large images are restored without their pages, which follow while the sandbox runs.
 *
 * What is said of it: <state>/images/<sandbox>.fill, a file that is locked as long as pages are missing. A sandbox can be saved only
 * then again. The image itself is free at once: its files are held open, whatever becomes of their names.
 *
 * Three processes do it, with the same memory and the same descriptors: one brings the pages (pages.h), one looks after it and
 * starts it again if it is killed, and one stands in for that. None needs the keeper. If the image turns out to be changed, or two of the three
 * are killed, the sandbox is killed before a wrong byte can be seen inside, and the file says why. If all three are killed the keeper
 * kills the sandbox: one with a file that has text and without a lock has lost pages.
 *
 * Callers: driver/jail/loader.c to begin, save.c to wait, memory.c for the reason. */
#ifndef COVE_IMAGE_FILL_H
#define COVE_IMAGE_FILL_H

#include "image/chunks.h"
#include "image/image.h"
#include "jail/cgroup.h"

#include <stdbool.h>
#include <stdint.h>

#define FILL_REASON_MAX 96
#define FILL_LOST       "its memory could not be brought back"

struct fill {
    struct pages *pages;
    uint8_t *later; /* for each chunk: whether criu does not copy it */
    uint64_t bytes; /* that come later */
    int lock_fd, alive_fd;
};

#define FILL_NONE                                                                                  \
    {                                                                                              \
        .lock_fd = -1, .alive_fd = -1                                                              \
    }

/* Whether that descriptor of /dev/userfaultfd does what is needed. */
bool fill_possible(int device_fd);

/* Opens what is needed of an image that was found unchanged, but for its pages. 1: it is to be restored so; 0: it is not: too little would
 * come later, or pages that processes share would be there twice. */
int fill_plan(int memory_fd, const struct chunks *chunks, int device_fd, struct fill *ret,
              struct err *err);

struct fill_box {
    const struct images *images;
    const struct cgroups *cgroups;
    const char *id, *cgroup;
    int work_fd; /* where criu looks for us */
};
/* From here on criu can be told to leave pages out. */
int fill_start(struct fill *fill, const struct fill_box *box, struct err *err);
/* In the caller; those who bring the pages continue, once criu has handed all over to them. */
void fill_done(struct fill *fill);

/* Until every page of a sandbox is there. */
int fill_wait(const struct images *images, const char *id, struct err *err);
/* A pidfd of one of those that bring a sandbox's pages: with its end, ask again. -1: none. Then ret_lost says whether pages are
 * missing for ever. */
int fill_watch(const struct images *images, const char *id, bool *ret_lost);
/* Of one that was killed for it. */
void fill_forget(const struct images *images, const char *id);
/* Why a sandbox was killed: true once. */
bool fill_reason(const struct images *images, const char *id, char ret[FILL_REASON_MAX]);

#endif
