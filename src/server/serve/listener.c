#include "server/serve/listener.h"

#include "base/address.h"
#include "base/admin_socket.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define FIRST_FD 3

static size_t inherited(void)
{
    const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

    if (!count || !pid || strtol(pid, NULL, 10) != (long) getpid())
        return 0;
    return strtoul(count, NULL, 10);
}

static int take(struct listener *listener, int fd, struct err *err)
{
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, errno, "use the socket that was handed over");
    listener->fd = fd;
    return 0;
}

static bool is_local(int fd)
{
    int family = 0;
    socklen_t len = sizeof family;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 && family == AF_UNIX;
}

/* It is the last one: those before it have their places by their number. */
int listener_inherited_local(int *ret_fd, struct err *err)
{
    struct listener found = { .fd = -1 };
    size_t given = inherited();

    if (given == 0 || !is_local(FIRST_FD + (int) given - 1))
        return 0;
    if (take(&found, FIRST_FD + (int) given - 1, err) < 0)
        return -1;
    *ret_fd = found.fd;
    return 0;
}

static void use_admin(struct listener *listener, int fd)
{
    listener->fd = fd;
    listener->admin = listener->plain = true;
    (void) snprintf(listener->at, sizeof listener->at, ADMIN_SOCKET);
}

int listeners_open(struct listener listeners[LISTENERS_MAX], const struct config *config,
                   int admin_fd, bool *ret_loopback, struct err *err)
{
    const char *const texts[] = { config->listen, config->tls_listen };
    size_t count = config->tls_listen[0] ? 2 : 1, given = inherited();

    if (admin_fd >= 0)
        use_admin(&listeners[LISTENER_ADMIN], admin_fd);
    given -= given > 0 && is_local(FIRST_FD + (int) given - 1);

    if (given > 0 && given != count)
        return err_set(err, ERR_USAGE, "%zu sockets were handed over, and the settings name %zu",
                       given, count);
    *ret_loopback = true;
    for (size_t i = 0; i < count; i++) {
        struct address address;

        if (address_parse(texts[i], &address, err) < 0)
            return -1;
        *ret_loopback = *ret_loopback && address.loopback;
        listeners[i].plain = i == 0 && count == 2;
        if (given > 0 ? take(&listeners[i], FIRST_FD + (int) i, err) < 0
                      : address_listen(&address, &listeners[i].fd, err) < 0)
            return -1;
        (void) snprintf(listeners[i].at, sizeof listeners[i].at, "%s", texts[i]);
        if (given == 0)
            address_print(&address, listeners[i].at, sizeof listeners[i].at);
    }
    return 0;
}

void listeners_close(struct listener listeners[LISTENERS_MAX])
{
    for (size_t i = 0; i < LISTENERS_MAX; i++)
        own_close(&listeners[i].fd);
}
