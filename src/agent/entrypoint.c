#include "agent/entrypoint.h"

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

/* Texts, each with its NUL. */
int entrypoint_main(char **envp)
{
    static char text[BYTES_MAX + 1];
    static char *argv[WORDS_MAX + 1];
    auto_close int fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);
    size_t len = 0, count = 0;
    ssize_t n;

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
