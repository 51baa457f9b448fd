/* turn.h - one at a time for each sandbox: a thread that pauses, wakes, saves or ends it has its turn.
 *
 * Turns of different sandboxes have nothing to do with each other. A turn may last as long as it takes to write a
 * sandbox's memory to disk; those who wait for it wait for one and the same resume.
 *
 * Owns:    the list of turns that are taken; a turn itself is on its holder's stack.
 * Callers: sleep.c, ops_*.c, deadline.c. Never twice by one thread for one sandbox. */
#ifndef COVE_SERVER_LIFE_TURN_H
#define COVE_SERVER_LIFE_TURN_H

#include "base/parse.h"

#include <stdbool.h>
#include <stdint.h>

struct turn {
    char id[ID_LEN + 1];
    struct turn *next;
};

void turn_take(struct turn *turn, const char *id);
/* false: another thread has it. */
bool turn_try(struct turn *turn, const char *id);
/* false: another thread still has it after that time. */
bool turn_wait(struct turn *turn, const char *id, uint64_t ms);
void turn_give(struct turn *turn);

#endif
