/* place.h - where a written file goes: straight into it, or beside it until it is whole.
 *
 * An atomic write goes to a file without a name (O_TMPFILE), or where the file system has none, to
 * one with an unpredictable name in the same directory. Only place_finish gives it the name asked
 * for, in one step; until then the old content stays, and whatever ends the writing early (an error,
 * a caller that goes, a full disk) leaves the directory as it was.
 *
 * Owns:    its descriptors and the temporary file, from open to done.
 * Callers: file.c. */
#ifndef COVE_AGENT_WORKER_PLACE_H
#define COVE_AGENT_WORKER_PLACE_H

#include "agent/worker/path.h"

#include <stdbool.h>
#include <sys/stat.h>

struct place {
    char path[PATH_TEXT_MAX]; /* set by the caller: absolute */
    int fd;                   /* write here */
    int dir;                  /* atomic: of the file */
    bool replace;             /* atomic: the name may be in use */
    bool made;                /* straight: it was not there before */
    char name[256];           /* atomic: in dir */
    char temp[32];            /* atomic: name until place_finish; "": has none */
};

#define PLACE_INIT                                                                                 \
    {                                                                                              \
        .fd = -1, .dir = -1                                                                        \
    }

/* `flags` are AGENT_ATOMIC, AGENT_APPEND, AGENT_CREATE; `mode` as in a request. */
int place_open(struct place *place, uint32_t flags, uint32_t mode, struct err *err);

/* The file is whole: it gets its name. */
int place_finish(struct place *place, struct stat *ret_st, struct err *err);

/* Without place_finish: as if nothing had been, but for what was there and was written straight into. */
void place_done(struct place *place);

/* ".cove-" and 16 hex digits that cannot be guessed. */
void place_temp_name(char out[32]);

#endif
