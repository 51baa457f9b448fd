/* bait.c - what there is to find on the host, or in a neighbour: a secret token in files, behind
 * sockets, in shared memory, in a message queue, in a keyring. Everything is removed at the end. */
#include "escape.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* A file in each place that a host keeps things in. */
static const char *const places[] = { "/root", "/home", "/var/lib", "/tmp",    "/run",
                                      "/etc",  "/opt",  "/srv",     "/dev/shm" };

void bait_name(char *out, size_t size, const char *prefix, const char *suffix)
{
    (void) snprintf(out, size, "%scove-bait-%s%s", prefix, bait.token, suffix);
}

int bait_key(void)
{
    unsigned hash = 5381;

    for (const char *c = bait.token; *c; c++)
        hash = hash * 33 + (unsigned char) *c;
    return (int) (hash & 0x7fffffff) | 1;
}

unsigned long bait_hash_file(const char *path)
{
    unsigned long hash = 14695981039346656037ul;
    unsigned char buf[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return 0;
    while ((n = read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < n; i++)
            hash = (hash ^ buf[i]) * 1099511628211ul;
    (void) close(fd);
    return hash;
}

bool bait_readable(const char *path)
{
    char text[4096] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    (void) close(fd);
    return n > 0 && strstr(text, bait.token) != NULL;
}

static void put_file(const char *dir, bool make)
{
    char prefix[512], path[600];
    int fd;

    (void) snprintf(prefix, sizeof prefix, "%s/", dir);
    bait_name(path, sizeof path, prefix, "");
    if (!make) {
        (void) unlink(path);
        return;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    (void) dprintf(fd, "secret %s\n", bait.token);
    (void) close(fd);
}

static int listen_tcp(int *ret_port)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *) &addr, len) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *) &addr, &len) < 0)
        return -1;
    *ret_port = ntohs(addr.sin_port);
    return fd;
}

static int bind_udp(int port)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return fd < 0 || bind(fd, (struct sockaddr *) &addr, sizeof addr) < 0 ? -1 : fd;
}

static int listen_unix(const char *name, bool abstract)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len;

    (void) snprintf(addr.sun_path + abstract, sizeof addr.sun_path - 1, "%s", name);
    len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name));
    if (fd < 0 || bind(fd, (struct sockaddr *) &addr, len) < 0 || listen(fd, 16) < 0)
        return -1;
    return fd;
}

static int shm_put(bool make)
{
    int id = shmget(bait_key(), 4096, make ? IPC_CREAT | 0666 : 0666);
    char *at;

    if (id < 0)
        return -1;
    if (!make)
        return shmctl(id, IPC_RMID, NULL);
    at = shmat(id, NULL, 0);
    if (at != (void *) -1) {
        (void) snprintf(at, 4096, "%s", bait.token);
        (void) shmdt(at);
    }
    return id;
}

static void mq_put(bool make)
{
    char name[256];
    mqd_t mq;

    bait_name(name, sizeof name, "/", "");
    if (!make) {
        (void) mq_unlink(name);
        return;
    }
    mq = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666, NULL);
    if (mq == (mqd_t) -1)
        return;
    (void) mq_send(mq, bait.token, strlen(bait.token), 0);
    (void) mq_close(mq);
}

/* KEYCTL_UNLINK is 9, the user keyring -4. */
static void key_put(bool make)
{
    static long key;
    char name[256];

    bait_name(name, sizeof name, "", "");
    if (make)
        key = syscall(SYS_add_key, "user", name, bait.token, strlen(bait.token), -4L);
    else if (key > 0)
        (void) syscall(SYS_keyctl, 9L, key, -4L, 0L, 0L);
}

static void lay(bool whole, bool make)
{
    put_file("/tmp", make);
    put_file("/dev/shm", make);
    (void) shm_put(make);
    if (!whole)
        return;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        put_file(places[i], make);
    if (bait.state)
        put_file(bait.state, make);
    mq_put(make);
    key_put(make);
}

static void answer(int fd, bool datagram)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    char byte;
    int conn;

    if (datagram) {
        if (recvfrom(fd, &byte, 1, MSG_DONTWAIT, (struct sockaddr *) &from, &len) > 0)
            (void) sendto(fd, bait.token, strlen(bait.token), 0, (struct sockaddr *) &from, len);
        return;
    }
    conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (conn < 0)
        return;
    (void) send(conn, bait.token, strlen(bait.token), MSG_NOSIGNAL);
    (void) close(conn);
}

/* Serves until stdin ends. `whole`: the host's; otherwise only what a neighbour can have. */
int bait_serve(bool whole)
{
    enum { TCP, UDP, PATH, ABSTRACT, TCP2, ABSTRACT2, STDIN, COUNT };
    struct pollfd fds[COUNT];
    char path[256], name[256], name2[256], host[128] = "";
    int port = 0, port2 = 0;

    bait_name(path, sizeof path, "/run/", ".sock");
    bait_name(name, sizeof name, "", "-host");
    bait_name(name2, sizeof name2, "", "-neighbour");
    for (int i = 0; i < COUNT; i++)
        fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
    lay(whole, true);
    if (whole) {
        fds[TCP].fd = listen_tcp(&port);
        fds[UDP].fd = bind_udp(port);
        fds[PATH].fd = listen_unix(path, false);
        fds[ABSTRACT].fd = listen_unix(name, true);
    }
    fds[TCP2].fd = listen_tcp(&port2);
    fds[ABSTRACT2].fd = listen_unix(name2, true);
    fds[STDIN].fd = STDIN_FILENO;
    (void) prctl(PR_SET_NAME, "cove-bait");
    (void) gethostname(host, sizeof host - 1);

    printf("port=%d neighbour_port=%d pid=%d shadow=%lu machine=%lu host=%s\n", port, port2,
           (int) getpid(), bait_hash_file("/etc/shadow"), bait_hash_file("/etc/machine-id"), host);
    (void) fflush(stdout);
    while (poll(fds, COUNT, -1) >= 0) {
        for (int i = 0; i < STDIN; i++)
            if (fds[i].revents)
                answer(fds[i].fd, i == UDP);
        if (fds[STDIN].revents && read(STDIN_FILENO, name, 1) <= 0)
            break;
    }
    if (whole)
        (void) unlink(path);
    lay(whole, false);
    return 0;
}
