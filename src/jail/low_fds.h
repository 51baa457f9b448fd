/* low_fds.h - low numbers for the descriptors of a new child.
 *
 * The keeper has two descriptors for each sandbox. A child that got a copy of them all would have them copied by clone and would close
 * them one by one: beside 2000 sandboxes that is a large part of a create. So a child shares the keeper's table, finds what it needs at
 * numbers below LOW_FDS_END, and leaves with one call that copies nothing from there on (low_fds_unshare).
 *
 * Never:   is a row used again before its child has left the table. The child's first word says so, or its death. */
#ifndef COVE_JAIL_LOW_FDS_H
#define COVE_JAIL_LOW_FDS_H

#include <stdbool.h>

#define LOW_FDS_ROWS 8  /* children on their way at once; one more gets a copy of all */
#define LOW_FDS_EACH 16 /* descriptors of one */
/* The first is open for as long as the keeper lives: empty places are duplicates of it. */
#define LOW_FDS_FIRST 128
#define LOW_FDS_END   (LOW_FDS_FIRST + 1 + LOW_FDS_ROWS * LOW_FDS_EACH)

struct low_fds {
    bool open;
    bool taken[LOW_FDS_ROWS];
};

/* Keeps the numbers for later. Where they cannot be had, or the kernel cannot let a child leave, no row ever is. */
void low_fds_open(struct low_fds *low_fds);

/* A free row from 1 on; 0: none. */
unsigned low_fds_take(struct low_fds *low_fds);
/* A duplicate at one of the places of a row. Returns its number, or -1 with errno. */
int low_fds_put(unsigned row, unsigned place, int fd);
/* Row 0 is none. */
void low_fds_free(struct low_fds *low_fds, unsigned row);

/* In the child, before anything else: a table of its own, with the numbers below LOW_FDS_END. */
int low_fds_unshare(void);

#endif
