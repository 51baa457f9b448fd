#include "agent/entrypoint.h"

#include "agent/core/agent.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILE_NAME "/opt/cove/entrypoint"
#define BYTES_MAX 32768
#define WORDS_MAX 512

static int fail(const char *what, int code)
{
    (void) fprintf(stderr, "cove: %s\n", what);
    return code;
}

/* Who a command of the template is, where the command begins, its home and its variables, each with a byte 1 behind it. */
static int print_environment(char **envp)
{
    const char *home = getenv("HOME");
    char name[USER_NAME_MAX], cwd[AGENT_PATH_MAX];

    if (!user_name_of(AGENT_ETC, getuid(), name, sizeof name))
        (void) snprintf(name, sizeof name, "%u", (unsigned) getuid());
    (void) printf("%s\1%s\1%s\1", name, getcwd(cwd, sizeof cwd) ? cwd : "/", home ? home : "/");
    for (; *envp; envp++)
        (void) printf("%s\1", *envp);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Texts, each with its NUL. */
int entrypoint_main(int argc, char **argv_given, char **envp)
{
    static char text[BYTES_MAX + 1];
    static char *argv[WORDS_MAX + 1];
    auto_close int fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);
    size_t len = 0, count = 0;
    ssize_t n;

    if (argc == 2 && strcmp(argv_given[1], "--environment") == 0)
        return print_environment(envp);
    if (fd < 0)
        return fail("this template has no command of its own: say which to run", 78);
    while (len < BYTES_MAX && (n = read(fd, text + len, BYTES_MAX - len)) > 0)
        len += (size_t) n;
    for (size_t at = 0; at < len && count < WORDS_MAX; at += strlen(text + at) + 1)
        argv[count++] = text + at;
    if (count == 0)
        return fail("the template's command is empty", 78);
    (void) execvpe(argv[0], argv, envp);
    (void) fprintf(stderr, "cove: %s: %s\n", argv[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
