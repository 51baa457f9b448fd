/* layers.h - the disks below a sandbox's root, by number: its own first, then those it only reads, the nearest first. */
#ifndef COVE_WIRE_LAYERS_H
#define COVE_WIRE_LAYERS_H

#include <stdint.h>

#define LAYERS_MAX 8

/* Files below that of a template which is an image. */
#define LAYERS_BELOW_MAX 3

struct layers {
    uint64_t number[LAYERS_MAX]; /* 0: none; only the first can be, when the disk is in memory */
    uint32_t count;
};

#endif
