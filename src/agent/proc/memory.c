#include "agent/proc/memory.h"

#include "base/io.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ROW        "\noom_kill "
#define SHELL_SAYS (128 + SIGKILL)

uint64_t memory_kills(void)
{
    char text[16384];
    const char *row;

    if (io_read_text(AT_FDCWD, "/proc/vmstat", text, sizeof text) < 0)
        return 0;
    row = strstr(text, ROW);
    return row ? strtoull(row + strlen(ROW), NULL, 10) : 0;
}

bool memory_could_kill(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == SHELL_SAYS;
}
