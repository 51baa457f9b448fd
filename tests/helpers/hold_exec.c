/* hold_exec PID - holds still whatever a descendant of PID executes next: for tests of what may happen meanwhile.
 *
 * Says `ready` when it watches, then the number of the process, which is stopped before its first instruction and
 * belongs to nobody: SIGCONT lets it continue. Gives up, with exit code 1, after a minute. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 60
#define FORKS      (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

static void give_up(int signal)
{
    (void) signal;
    _exit(1);
}

/* Stopped as by anybody's SIGSTOP, not as ours: that would end with us. */
static int hold(pid_t pid)
{
    if (kill(pid, SIGSTOP) < 0 || ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
        return 1;
    printf("%d\n", (int) pid);
    return fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
    pid_t root = argc == 2 ? (pid_t) strtol(argv[1], NULL, 10) : 0, pid;
    int status;

    if (root <= 1 || ptrace(PTRACE_SEIZE, root, NULL, FORKS | PTRACE_O_TRACEEXEC) < 0) {
        perror("hold_exec");
        return 2;
    }
    (void) signal(SIGALRM, give_up);
    (void) alarm(PATIENCE_S);
    (void) puts("ready");
    (void) fflush(stdout);
    /* New ones are traced from their birth on. Who else is traced is let go when we end. */
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        int event = status >> 16, sent = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;

        if (event == PTRACE_EVENT_EXEC)
            return hold(pid);
        if (WIFSTOPPED(status))
            (void) ptrace(PTRACE_CONT, pid, NULL, event ? 0 : sent);
    }
    return 1;
}
