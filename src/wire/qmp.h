/* qmp.h - what a line of QEMU's monitor (QMP) says, as far as the bridge asks for it. Pure.
 *
 * A line is an object. Answers have one member, as no command has an id; events have several. QEMU counts as hostile: nothing but what
 * is looked for is believed, and the reason is made printable.
 *
 * Callers: bridge/qmp.c. */
#ifndef COVE_WIRE_QMP_H
#define COVE_WIRE_QMP_H

#include <stddef.h>

enum qmp_said {
    QMP_OTHER,  /* a greeting, another event, or no sense */
    QMP_RETURN, /* the command was done, or begun */
    QMP_ERROR,  /* it was not */
    QMP_MOVED,  /* a migration is complete */
    QMP_FAILED, /* a migration failed */
};

/* why: of QMP_ERROR, the reason in printable characters; never empty. */
enum qmp_said qmp_read(const char *line, char *why, size_t size);

#endif
