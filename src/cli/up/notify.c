#include "cli/up/notify.h"

#include "base/own.h"
#include "base/parse.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* "/run/systemd/notify", or "@name" for an abstract socket. */
static int address_of(const char *text, struct sockaddr_un *ret, socklen_t *ret_len)
{
    size_t len = strlen(text);

    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof ret->sun_path)
        return -1;
    memcpy(ret->sun_path, text, len);
    if (text[0] == '@')
        ret->sun_path[0] = '\0';
    *ret_len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + len);
    return 0;
}

/* Half of what the manager allows, if the manager means this process. */
static uint64_t watchdog_of(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t value, ours;
    struct err ignored;

    if (!usec || parse_u64(usec, &value, &ignored) < 0 || value < 2000)
        return 0;
    if (pid && (parse_u64(pid, &ours, &ignored) < 0 || ours != (uint64_t) getpid()))
        return 0;
    return value / 2000;
}

void notify_open(struct notify *notify)
{
    const char *path = getenv("NOTIFY_SOCKET");

    *notify = (struct notify){ .fd = -1 };
    if (path && address_of(path, &notify->to, &notify->to_len) == 0)
        notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd >= 0)
        notify->watchdog_ms = watchdog_of();
    (void) unsetenv("NOTIFY_SOCKET");
    (void) unsetenv("WATCHDOG_USEC");
    (void) unsetenv("WATCHDOG_PID");
}

void notify_close(struct notify *notify)
{
    own_close(&notify->fd);
}

void notify_send(const struct notify *notify, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    int n;

    if (notify->fd < 0)
        return;
    va_start(args, fmt);
    n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0 && (size_t) n < sizeof text)
        (void) sendto(notify->fd, text, (size_t) n, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *) &notify->to, notify->to_len);
}
