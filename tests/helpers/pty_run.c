/* pty_run - runs a command on a terminal of its own and follows a script.
 *
 *   pty_run ROWSxCOLUMNS STEP… -- COMMAND…
 *     wait=TEXT   until the command has printed TEXT (20 s at most, then exit 99)
 *     send=TEXT   types TEXT; ^C is typed as \003, a newline as \n
 *     size=RxC    resizes the terminal
 *     hangup      closes the terminal
 *     mode        prints whether the terminal is raw or cooked
 *
 * Everything the command prints is printed; the exit code is the command's, or 128 + signal. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000

static char seen[1 << 20];
static size_t seen_len, seen_from;
static int pty = -1;

static long long now_ms(void)
{
    struct timespec t;

    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* 1: something came, 0: nothing within ms, -1: the terminal is closed. */
static int take(int ms)
{
    struct pollfd p = { .fd = pty, .events = POLLIN };
    ssize_t n;

    if (poll(&p, 1, ms) <= 0)
        return 0;
    if (seen_len > sizeof seen / 2) {
        seen_len = seen_from = 0;
    }
    n = read(pty, seen + seen_len, sizeof seen - 1 - seen_len);
    if (n <= 0)
        return -1;
    if (fwrite(seen + seen_len, 1, (size_t) n, stdout) != (size_t) n)
        return -1;
    (void) fflush(stdout);
    seen_len += (size_t) n;
    seen[seen_len] = '\0';
    return 1;
}

static void wait_text(const char *text)
{
    long long end = now_ms() + WAIT_MS;

    for (;;) {
        char *at = memmem(seen + seen_from, seen_len - seen_from, text, strlen(text));

        if (at) {
            seen_from = (size_t) (at - seen) + strlen(text);
            return;
        }
        if (now_ms() > end || take(200) < 0) {
            printf("pty_run: '%s' did not come\n", text);
            exit(99);
        }
    }
}

static void send_text(const char *text)
{
    for (; *text; text++) {
        char c = *text;

        if (c == '\\' && text[1] == 'n') {
            c = '\n';
            text++;
        } else if (c == '\\' && strncmp(text + 1, "003", 3) == 0) {
            c = 3;
            text += 3;
        } else if (c == '\\' && strncmp(text + 1, "004", 3) == 0) {
            c = 4;
            text += 3;
        }
        if (write(pty, &c, 1) != 1)
            exit(98);
    }
}

static void set_size(const char *text)
{
    struct winsize size = { 0 };

    if (sscanf(text, "%hux%hu", &size.ws_row, &size.ws_col) == 2)
        (void) ioctl(pty, TIOCSWINSZ, &size);
}

static void print_mode(void)
{
    struct termios t;

    if (tcgetattr(pty, &t) == 0)
        printf("[mode %s]", t.c_lflag & ICANON ? "cooked" : "raw");
}

static void step(const char *text)
{
    if (strncmp(text, "wait=", 5) == 0)
        wait_text(text + 5);
    else if (strncmp(text, "send=", 5) == 0)
        send_text(text + 5);
    else if (strncmp(text, "size=", 5) == 0)
        set_size(text + 5);
    else if (strcmp(text, "mode") == 0)
        print_mode();
    else if (strcmp(text, "hangup") == 0) {
        (void) close(pty);
        pty = -1;
    }
}

int main(int argc, char **argv)
{
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    int first = 2, command = 2, status;
    pid_t pid;

    while (command < argc && strcmp(argv[command], "--") != 0)
        command++;
    if (argc < 3 || command + 1 >= argc)
        return 64;
    (void) sscanf(argv[1], "%hux%hu", &size.ws_row, &size.ws_col);
    pid = forkpty(&pty, NULL, NULL, &size);
    if (pid < 0)
        return 97;
    if (pid == 0) {
        (void) execvp(argv[command + 1], argv + command + 1);
        _exit(127);
    }
    for (int i = first; i < command; i++)
        step(argv[i]);
    while (pty >= 0 && take(WAIT_MS) > 0)
        ;
    if (waitpid(pid, &status, 0) != pid)
        return 96;
    if (pty >= 0)
        print_mode();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
