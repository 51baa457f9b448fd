#include "cli/up/restart.h"

#include "base/own.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define STRIKE_FOR_MS 1000 /* of being ready take one strike back */

/* What the next attempt would say, too: usage, configuration, permission, this host, another keeper on this state, and
 * a program that is not there. */
static const int lasting[] = { 64, 65, 77, 78, 99, 126, 127 };

static bool is_lasting(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(lasting); i++)
        if (WIFEXITED(status) && WEXITSTATUS(status) == lasting[i])
            return true;
    return false;
}

static unsigned wait_for(unsigned strikes)
{
    unsigned wait = RESTART_FIRST_MS;

    if (strikes < 2)
        return 0;
    for (unsigned i = 2; i < strikes && wait < RESTART_MOST_MS; i++)
        wait *= 2;
    return wait < RESTART_MOST_MS ? wait : RESTART_MOST_MS;
}

bool restart_again(struct restart *restart, int status, uint64_t ready_ms, unsigned *ret_wait_ms)
{
    uint64_t forgiven = ready_ms / STRIKE_FOR_MS;

    restart->strikes -= forgiven < restart->strikes ? (unsigned) forgiven : restart->strikes;
    restart->strikes++;
    if (!restart->was_ready && (is_lasting(status) || restart->strikes >= RESTART_TRIES))
        return false;
    *ret_wait_ms = wait_for(restart->strikes);
    return true;
}

const char *restart_reason(int status, char *out, size_t size)
{
    const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;

    if (WIFSIGNALED(status))
        (void) snprintf(out, size, "signal %d (SIG%s)", WTERMSIG(status), name ? name : "?");
    else
        (void) snprintf(out, size, "exit code %d", WEXITSTATUS(status));
    return out;
}

int restart_exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
