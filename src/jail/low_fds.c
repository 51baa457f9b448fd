#include "jail/low_fds.h"

#include "base/own.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int number_of(unsigned row, unsigned place)
{
    return LOW_FDS_FIRST + 1 + (int) ((row - 1) * LOW_FDS_EACH + place);
}

/* A number that is open already is replaced, which takes nothing; what failed once succeeds the next time. */
static int empty(int number)
{
    int rc = dup3(LOW_FDS_FIRST, number, O_CLOEXEC);

    return rc < 0 ? dup3(LOW_FDS_FIRST, number, O_CLOEXEC) : rc;
}

static int leave(unsigned from)
{
    return (int) syscall(__NR_close_range, from, UINT_MAX, CLOSE_RANGE_UNSHARE);
}

/* Linux before 6.1.107, 6.6.48 and 6.10.7 takes numbers for open that were left behind (CVE-2024-45025): a sandbox would find none free
 * where the keeper has many. A child leaves what is open from LOW_FDS_FIRST on; then that number must be free. `fd` is below. */
static bool can_leave(int fd)
{
    int status = -1;
    pid_t pid = (pid_t) syscall(__NR_clone, (unsigned long) CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

    if (pid == 0)
        _exit(leave(LOW_FDS_FIRST) < 0 || fcntl(fd, F_DUPFD, LOW_FDS_FIRST) != LOW_FDS_FIRST);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void low_fds_open(struct low_fds *low_fds)
{
    auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    *low_fds = (struct low_fds){ .open = false };
    for (int number = LOW_FDS_FIRST; number < LOW_FDS_END; number++)
        if (fd < 0 || fd >= LOW_FDS_FIRST || fcntl(number, F_GETFD) >= 0)
            return;
    if (dup3(fd, LOW_FDS_FIRST, O_CLOEXEC) < 0)
        return;
    for (int number = LOW_FDS_FIRST + 1; number < LOW_FDS_END; number++)
        if (empty(number) < 0)
            return;
    low_fds->open = can_leave(fd);
}

unsigned low_fds_take(struct low_fds *low_fds)
{
    for (unsigned i = 0; low_fds->open && i < LOW_FDS_ROWS; i++)
        if (!low_fds->taken[i]) {
            low_fds->taken[i] = true;
            return i + 1;
        }
    return 0;
}

int low_fds_put(unsigned row, unsigned place, int fd)
{
    return dup3(fd, number_of(row, place), O_CLOEXEC);
}

/* A number that cannot be kept may become another descriptor's: its row is given out no more. */
void low_fds_free(struct low_fds *low_fds, unsigned row)
{
    bool kept = true;

    for (unsigned place = 0; row && place < LOW_FDS_EACH; place++)
        if (empty(number_of(row, place)) < 0) {
            (void) close(number_of(row, place));
            kept = false;
        }
    if (row)
        low_fds->taken[row - 1] = !kept;
}

int low_fds_unshare(void)
{
    return leave(LOW_FDS_END);
}
