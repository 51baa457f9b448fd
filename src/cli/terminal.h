/* terminal.h - the caller's own terminal: raw while a sandbox's terminal is shown in it.
 *
 * Owns:    the mode of stdin's terminal between raw and restore. */
#ifndef COVE_CLI_TERMINAL_H
#define COVE_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct terminal {
    bool is_raw;
    struct termios before;
};

/* Does nothing where stdin is no terminal. */
void terminal_raw(struct terminal *terminal);
void terminal_restore(struct terminal *terminal);

/* Of whichever of stdin, stdout, stderr is a terminal; 24 x 80 when none is. */
void terminal_size(uint16_t *ret_rows, uint16_t *ret_columns);

#endif
