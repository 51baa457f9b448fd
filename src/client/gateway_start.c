#include "client/gateway_start.h"

#include "base/lockdown.h"
#include "base/own.h"
#include "client/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SOCKET_FD 3

int gateway_listen(const char *directory, uid_t uid, int *ret_fd, struct err *err)
{
    return local_listen(directory, GATEWAY_SOCKET, SOCK_STREAM, uid, ret_fd, err);
}

int gateway_connect(const char *directory, int *ret_fd, struct err *err)
{
    return local_connect(directory, GATEWAY_SOCKET, SOCK_STREAM, ret_fd, err);
}

int gateway_drop_privilege(const struct gateway_start *start)
{
    struct err ignored;

    if (start->uid != 0 && (lockdown_bounds(0, &ignored) < 0 || setgroups(0, NULL) < 0 ||
                            setresgid(start->gid, start->gid, start->gid) < 0 ||
                            setresuid(start->uid, start->uid, start->uid) < 0))
        return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || chdir("/") < 0 ? -1 : 0;
}

/* The environment belongs to our parent: what the gateway does not need may be a secret. */
static void keep_env(char *out[], size_t most)
{
    static const char *const names[] = { "SSL_CERT_FILE=", "SSL_CERT_DIR=", "COVE_LOCKDOWN=",
                                         "ASAN_OPTIONS=",  "TSAN_OPTIONS=", "UBSAN_OPTIONS=" };
    size_t n = 0;

    for (char **at = environ; *at; at++)
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (strncmp(*at, names[i], strlen(names[i])) == 0 && n + 1 < most)
                out[n++] = *at;
    out[n] = NULL;
}

/* By descriptor: the user may not be able to walk to where the program lies. */
void gateway_exec(const struct gateway_start *start)
{
    char self[] = "cove-gateway", fd[] = "--fd", number[] = "3", peer[] = "--peer", uid[16];
    char verbose[] = "--verbose";
    char *argv[] = { self, fd, number, peer, uid, start->verbose ? verbose : NULL, NULL };
    int socket = fcntl(start->listen_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
    int program = fcntl(start->program_fd, F_DUPFD_CLOEXEC, SOCKET_FD + 1);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *env[8];

    (void) snprintf(uid, sizeof uid, "%u", (unsigned) start->peer);
    keep_env(env, ARRAY_LEN(env));
    if (socket < 0 || program < 0 || dup2(socket, SOCKET_FD) < 0 || dup2(null, STDIN_FILENO) < 0)
        return;
    (void) fexecve(program, argv, env);
}
