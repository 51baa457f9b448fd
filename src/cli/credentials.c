#include "cli/credentials.h"

#include "base/own.h"
#include "cli/question.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_MAX (1 << 20)
#define ANSWER_MAX 16384
/* What helpers say, with an exit code that is not 0, when they have nothing for a registry. */
#define HAS_NONE "credentials not found"

static void path_of(const char *given, char *out, size_t size)
{
    const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");

    if (given)
        (void) snprintf(out, size, "%s", given);
    else if (dir)
        (void) snprintf(out, size, "%s/config.json", dir);
    else
        (void) snprintf(out, size, "%s/.docker/config.json", home ? home : "");
}

/* One line of what a program said. */
static void first_line(char *text)
{
    text[strcspn(text, "\r\n")] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char) *c < 0x20 || *c == 0x7f)
            *c = '?';
}

static int ask_helper(const struct auth_found *found, uid_t uid, uint64_t most_ms,
                      char ret[AUTH_MAX], struct err *err)
{
    char program[AUTH_HELPER_MAX + 32], answer[ANSWER_MAX] = "";
    const char *argv[] = { program, "get", NULL };
    const struct question question = { .argv = argv,
                                       .input = found->server,
                                       .uid = uid,
                                       .most_ms = most_ms,
                                       .out = answer,
                                       .size = sizeof answer };
    int code, r = 0;

    (void) snprintf(program, sizeof program, "docker-credential-%s", found->helper);
    code = question_ask(&question, err);
    if (code == 0)
        r = auth_helper_read(answer, strlen(answer), ret, err);
    else if (code > 0 && !strstr(answer, HAS_NONE)) {
        first_line(answer);
        r = err_set(err, ERR_DENIED, "exit code %d%s%.200s", code, answer[0] ? ": " : "", answer);
    }
    explicit_bzero(answer, sizeof answer);
    return code < 0 || r < 0 ? err_wrap(err, "credentials for %.100s: %s", found->server, program)
                             : 0;
}

/* Root does not run what others could have written there. */
static int owner_of(const struct stat *config, uid_t *ret, struct err *err)
{
    *ret = geteuid() == 0 ? config->st_uid : geteuid();
    if (config->st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_DENIED,
                       "config.json names a helper program, and others may write to the file: "
                       "'chmod go-w' it");
    return *ret == geteuid() || getpwuid(*ret)
               ? 0
               : err_set(err, ERR_DENIED,
                         "config.json names a helper program, which runs as the owner of the file: "
                         "there is no user with the id %u",
                         (unsigned) *ret);
}

/* All of a file, as far as there is room. */
static ssize_t read_file(int fd, char *out, size_t size)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len < size) {
        n = read(fd, out + len, size - len);
        len += n > 0 ? (size_t) n : 0;
    }
    return n < 0 ? -1 : (ssize_t) len;
}

int credentials_find(const char *file, const char *host, uint64_t most_ms, char ret[AUTH_MAX],
                     struct err *err)
{
    auto_free struct auth_found *found = malloc(sizeof *found);
    auto_free char *text = malloc(CONFIG_MAX);
    auto_close int fd = -1;
    char path[PATH_MAX];
    struct stat st;
    ssize_t len;
    uid_t uid;
    int r;

    ret[0] = '\0';
    if (!found || !text)
        return err_set(err, ERR_NO_MEMORY, "no memory for config.json");
    path_of(file, path, sizeof path);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && !file)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "read %s", path);
    len = read_file(fd, text, CONFIG_MAX);
    if (len < 0 || len == CONFIG_MAX)
        return len < 0 ? err_sys(err, errno, "read %s", path)
                       : err_set(err, ERR_TOO_BIG, "%.200s is too large", path);
    r = auth_find(text, (size_t) len, host, found, err);
    if (r == 0 && found->helper[0])
        r = owner_of(&st, &uid, err) < 0 ? -1 : ask_helper(found, uid, most_ms, ret, err);
    else if (r == 0)
        memcpy(ret, found->basic, AUTH_MAX);
    explicit_bzero(found, sizeof *found);
    explicit_bzero(text, (size_t) len);
    return r;
}
