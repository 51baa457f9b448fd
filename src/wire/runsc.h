/* runsc.h - which runsc the isolation `gvisor` can use, and what its kernel answers on its control socket. Pure: the keeper and
 * 'cove doctor' run it themselves, and the bridge has the socket. */
#ifndef COVE_WIRE_RUNSC_H
#define COVE_WIRE_RUNSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNSC_OLDEST                                                                               \
    20240729u /* what the driver was tested with; Debian 12's own, of 2022, has no systrap */

/* The date in what `runsc --version` says: "runsc version 0.0~20240729.0" or "runsc version release-20240729.0"; 0: there is none. */
uint32_t runsc_parse_version(const char *text);

/* An answer as it comes: one object of JSON with "success" first, then "err". Begins as all zeros. The kernel counts as hostile: its answer
 * may be of any length, of which the beginning is kept. */
#define RUNSC_ANSWER_MAX (4096u + 512u) /* a path, and what is said of the file */
struct runsc_answer {
    char text[RUNSC_ANSWER_MAX];
    size_t len;
    uint32_t depth;
    bool quoted, escaped;
};

/* One more character; true: that was the last one of the object. */
bool runsc_take(struct runsc_answer *answer, char c);

/* Whether the call was done; why: of one that was not, the reason in printable characters, never empty. */
bool runsc_read_answer(const struct runsc_answer *answer, char *why, size_t size);

/* The call that makes the loopback of a guest that is to be loaded: its own addresses, those of loopback.h, and a route for each. */
#define RUNSC_LINKS_MAX 2048u
void runsc_put_links(char out[RUNSC_LINKS_MAX]);

#endif
