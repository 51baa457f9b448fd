/* inject_call PID NUMBER [ARGUMENT…]: has a running process make a system call, as one that was taken over would, and prints what the
 * kernel answered ("-38"), or "killed 31" if that was its end. An argument is a number, or text behind '=', whose address is passed.
 * The process continues as before. Needs root. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSCALL_INSN 0x050fl
#define RED_ZONE     1024

static int fail(const char *what)
{
    (void) fprintf(stderr, "inject_call: %s: %s\n", what, strerror(errno));
    return 1;
}

/* Below the stack, where nothing is. */
static unsigned long long put_text(pid_t pid, unsigned long long *top, const char *text)
{
    size_t words = strlen(text) / sizeof(long) + 1;

    *top -= words * sizeof(long);
    for (size_t i = 0; i < words; i++) {
        long word = 0;

        (void) strncpy((char *) &word, text + i * sizeof word, sizeof word);
        if (ptrace(PTRACE_POKEDATA, pid, (void *) (size_t) (*top + i * sizeof word),
                   (void *) word) < 0)
            exit(fail("write to the process"));
    }
    return *top;
}

static int stopped(pid_t pid, int *status)
{
    return waitpid(pid, status, __WALL) == pid && WIFSTOPPED(*status);
}

int main(int argc, char **argv)
{
    struct user_regs_struct old, now;
    unsigned long long args[6] = { 0 }, top;
    pid_t pid;
    int status;
    long code;

    if (argc < 3 || argc > 9)
        return fail("PID NUMBER [ARGUMENT…]");
    pid = atoi(argv[1]);
    if (ptrace(PTRACE_ATTACH, pid, 0, 0) < 0 || !stopped(pid, &status) ||
        ptrace(PTRACE_GETREGS, pid, 0, &old) < 0)
        return fail("attach");
    top = (old.rsp - RED_ZONE) & ~15ull;
    for (int i = 3; i < argc; i++)
        args[i - 3] =
            argv[i][0] == '=' ? put_text(pid, &top, argv[i] + 1) : strtoull(argv[i], NULL, 0);
    errno = 0;
    code = ptrace(PTRACE_PEEKTEXT, pid, (void *) (size_t) old.rip, 0);
    now = old;
    now.rax = strtoull(argv[2], NULL, 0);
    now.orig_rax = ~0ull; /* or the kernel would begin the call again that it waits in */
    now.rdi = args[0], now.rsi = args[1], now.rdx = args[2];
    now.r10 = args[3], now.r8 = args[4], now.r9 = args[5];
    if (errno ||
        ptrace(PTRACE_POKETEXT, pid, (void *) (size_t) old.rip,
               (void *) ((code & ~0xffffl) | SYSCALL_INSN)) < 0 ||
        ptrace(PTRACE_SETREGS, pid, 0, &now) < 0 || ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0)
        return fail("prepare the call");
    if (!stopped(pid, &status)) {
        printf("killed %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        return 0;
    }
    if (ptrace(PTRACE_GETREGS, pid, 0, &now) < 0 ||
        ptrace(PTRACE_POKETEXT, pid, (void *) (size_t) old.rip, (void *) code) < 0 ||
        ptrace(PTRACE_SETREGS, pid, 0, &old) < 0 || ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
        return fail("put back");
    printf("%lld\n", (long long) now.rax);
    return 0;
}
