#include "api/listener.h"

#include "base/address.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

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

int listeners_open(struct listener listeners[LISTENERS_MAX], const struct config *config,
                   bool *ret_loopback, struct err *err)
{
    const char *const texts[LISTENERS_MAX] = { config->listen, config->tls_listen };
    size_t count = config->tls_listen[0] ? 2 : 1, given = inherited();

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
