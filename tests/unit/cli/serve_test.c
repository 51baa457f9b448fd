#include "cli/up/serve.h"

#include "base/own.h"
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 8

/* The least queue that there is, so that a few clients fill it. */
static int listen_narrow(char *out, size_t size)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *) &at, sizeof at) == 0 && listen(fd, 0) == 0);
    CHECK(getsockname(fd, (struct sockaddr *) &at, &len) == 0);
    (void) snprintf(out, size, "127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

/* Clients of a coved that is not there: the first are taken by the kernel, the others wait. */
static void knock(int listener, int clients[CLIENTS])
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;

    CHECK(getsockname(listener, (struct sockaddr *) &at, &len) == 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        CHECK(connect(clients[i], (struct sockaddr *) &at, len) == 0 || errno == EINPROGRESS);
    }
}

static void a_full_queue_does_not_hold_up_the_supervisor(void)
{
    struct serve serve = { .tls_fd = -1, .probe_fd = -1 };
    int clients[CLIENTS];

    serve.listen_fd = listen_narrow(serve.listen, sizeof serve.listen);
    knock(serve.listen_fd, clients);
    (void) alarm(60); /* connect() waits for two minutes */
    for (int i = 0; i < 3; i++)
        CHECK(!serve_is_ready(&serve));
    (void) alarm(0);
    for (size_t i = 0; i < CLIENTS; i++)
        own_close(&clients[i]);
    own_close(&serve.probe_fd);
    own_close(&serve.listen_fd);
}

static void an_answer_of_any_kind_is_ready(void)
{
    struct serve serve = { .tls_fd = -1, .probe_fd = -1 };
    int fd;

    serve.listen_fd = listen_narrow(serve.listen, sizeof serve.listen);
    CHECK(!serve_is_ready(&serve)); /* asked */
    fd = accept4(serve.listen_fd, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0 && write(fd, "H", 1) == 1);
    CHECK(serve_is_ready(&serve));
    own_close(&fd);
    own_close(&serve.listen_fd);
}

CHECK_MAIN(T(a_full_queue_does_not_hold_up_the_supervisor), T(an_answer_of_any_kind_is_ready))
