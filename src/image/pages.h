/* pages.h - brings the pages of restored processes when they are touched, and the rest behind their back.
 *
 * criu makes the processes with their large areas empty and hands over a userfaultfd for each. A fault is answered with the
 * chunk of the image that has the page, after it was compared with its hash; what is not in the image is zero.
 * Nothing that was not compared reaches a process: with a chunk that differs everything stops, and stays as it is.
 *
 * All that it knows is in struct pages, which is mapped memory, and in descriptors. Both are shared with the process that looks after it
 * (fill.c), so that another can continue where one was killed; unless that was in the middle of a change, which `torn` tells.
 *
 * Callers: fill.c, in a process of its own. */
#ifndef COVE_IMAGE_PAGES_H
#define COVE_IMAGE_PAGES_H

#include "image/chunks.h"
#include "image/ranges.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define PAGES_FEATURES                                                                             \
    (UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |              \
     UFFD_FEATURE_EVENT_UNMAP)
#define SPACES_MAX   4096
#define PAGES_FILES  1024
#define PAGES_WINDOW (256u << 10) /* a fault waits for as much at most */

/* One address space. */
struct space {
    int uffd; /* -1: not handed over yet, or done with */
    int pid;  /* inside; 0: forked since */
    uint32_t file;
    struct ranges ranges;
};

struct pages_file {
    int fd;
    const struct chunk_file *chunks;
};

/* Chunks of a file that were read and compared. */
struct window {
    uint32_t file;
    uint64_t first, count; /* count 0: none */
};

enum pages_end {
    PAGES_DONE,    /* all is there, or no process is left */
    PAGES_STOPPED, /* criu gave up before they ran */
    PAGES_CHANGED, /* a chunk is not as it was, or cannot be read */
    PAGES_FAILED   /* the kernel refused something that it must not */
};

struct pages {
    int listener, device_fd; /* where criu comes; /dev/userfaultfd */
    int alive_fd;            /* until criu comes: ends when it will not */
    int client;              /* -1: not yet, or no more */
    bool finished;           /* criu has nothing left to hand over */
    volatile bool torn;      /* in the middle of a change */
    /* 1 + enum pages_end, of one that has come to an end; 0: not yet, or killed */
    volatile int ended;
    volatile int server_fd; /* pidfd of the one that brings the pages; -1: none */
    uint32_t file_count, space_count, next;
    const struct chunks *chunks;
    struct pages_file file[PAGES_FILES];
    struct space space[SPACES_MAX];
    struct pollfd polled[SPACES_MAX + 2];
    struct window ahead, asked;
    unsigned char ahead_data[PAGES_WINDOW], asked_data[CHUNK_BYTES];
    uint64_t faults, late; /* for the log: pages asked for; bytes brought unasked */
};

/* Until the end. once_criu_is_done: called when no privilege is needed any more. */
enum pages_end pages_serve(struct pages *pages, void (*once_criu_is_done)(void));

/* Holds on to what is missing until no process waits for it: for one whose end would be noticed nowhere. */
void pages_hold(struct pages *pages);

#endif
