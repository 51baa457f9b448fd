/* hold_exit PID - lets a process be killed, but not die: it stands at its exit until our standard input ends.
 *
 * Says `ready` when it watches. For tests of those who wait for such a process. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    pid_t pid = argc == 2 ? (pid_t) strtol(argv[1], NULL, 10) : 0;
    int status;
    char byte;

    if (pid <= 1 || ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) < 0) {
        perror("hold_exit");
        return 2;
    }
    (void) puts("ready");
    (void) fflush(stdout);
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_EXIT)
            while (read(0, &byte, 1) > 0)
                ;
        (void) ptrace(PTRACE_CONT, pid, NULL, status >> 16 ? 0 : WSTOPSIG(status));
    }
    return 0;
}
