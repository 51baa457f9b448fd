#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

void terminal_raw(struct terminal *terminal)
{
    struct termios raw;

    terminal->is_raw = false;
    if (tcgetattr(STDIN_FILENO, &terminal->before) < 0)
        return;
    raw = terminal->before;
    cfmakeraw(&raw);
    terminal->is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void terminal_restore(struct terminal *terminal)
{
    /* DRAIN, so that output of the sandbox is not shown in the wrong mode. */
    if (terminal->is_raw)
        (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
    terminal->is_raw = false;
}

void terminal_size(uint16_t *ret_rows, uint16_t *ret_columns)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        struct winsize size;

        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
            *ret_rows = size.ws_row;
            *ret_columns = size.ws_col;
            return;
        }
    }
    *ret_rows = 24;
    *ret_columns = 80;
}
