/* launch.h - one run of a program, timed from before the fork to its first byte and to its end.
 *
 * posix_spawn (vfork and exec), so that the size of the measuring program is no part of what is
 * measured. A run that takes longer than LAUNCH_LIMIT_MS is killed and counts as failed. */
#ifndef COVE_BENCH_LAUNCH_H
#define COVE_BENCH_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

#define LAUNCH_LIMIT_MS 20000

/* Whether the first byte of stdout is awaited and timed; otherwise stdout is /dev/null. A program
 * that leaves something running in the background must not be given the pipe. */
enum launch_stdout { LAUNCH_NULL, LAUNCH_FIRST_BYTE };

struct launch_result {
    uint64_t first_us; /* 0: it wrote nothing */
    uint64_t total_us;
    int status;     /* as of waitpid; -1: it did not start or was killed by us */
    char said[160]; /* last line that it wrote to stderr */
};

/* 0 when it ended with status 0 (and, if asked for, wrote something), else -1. */
int launch_run(char *const *argv, enum launch_stdout out, struct launch_result *ret);

/* Before a create: what the one before left for later (a removal, what is made ahead, the kernel's clean-up) is no part of the next.
 * BENCH_PAUSE ms, 10 by default. */
void launch_settle(void);

/* Starts a program with its stderr appended to the file, in the background and in a process group
 * of its own, so that Ctrl-C does not end it before its sandboxes; its pid or -1. */
pid_t launch_background(char *const *argv, int stderr_fd);

/* Ends a child by SIGTERM, by SIGKILL when it takes longer than LAUNCH_LIMIT_MS, and reaps it. */
void launch_end(pid_t pid);

#endif
