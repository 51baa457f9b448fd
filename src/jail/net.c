#include "jail/net.h"

#include "base/io.h"
#include "base/own.h"
#include "jail/spaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* With a table of TCP connections of its own, a namespace also has lower bounds for what waits in it: these are as a host has
 * them, but for connections that were closed. The kernel accounts for those nowhere, and a host has 131072. */
#define TCP_ROWS "512" /* 4 KiB */

static const struct {
    const char *setting, *value;
} tcp_bounds[] = {
    { "sys/net/ipv4/tcp_max_tw_buckets", "32768" },
    { "sys/net/ipv4/tcp_max_syn_backlog", "2048" },
};

static int open_own(void)
{
    return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* A kernel before Linux 6.1, or a host on which settings are read-only, has none. */
static int open_parent(void)
{
    return io_write_text(AT_FDCWD, "/proc/sys/net/ipv4/tcp_child_ehash_entries", TCP_ROWS) < 0
               ? -1
               : open_own();
}

int nets_open(struct nets *nets, struct err *err)
{
    nets->parent_fd = -1;
    nets->own_fd = open_own();
    if (nets->own_fd < 0)
        return err_sys(err, errno, "open our network namespace");
    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(err, errno, "make a network namespace");
    nets->parent_fd = open_parent();
    nets_leave(nets);
    return 0;
}

void nets_close(struct nets *nets)
{
    own_close(&nets->own_fd);
    own_close(&nets->parent_fd);
}

int nets_enter_parent(const struct nets *nets, struct err *err)
{
    if (nets->parent_fd >= 0 && setns(nets->parent_fd, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "enter the parent of network namespaces");
    return 0;
}

void nets_leave(const struct nets *nets)
{
    spaces_return(nets->own_fd, CLONE_NEWNET, "network");
}

int net_prepare(int proc_fd, struct err *err)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(err, errno, "bring lo up");
    if (io_write_text(proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", "0") < 0)
        return err_sys(err, errno, "open low ports");
    for (size_t i = 0; i < ARRAY_LEN(tcp_bounds); i++)
        if (io_write_text(proc_fd, tcp_bounds[i].setting, tcp_bounds[i].value) < 0)
            return err_sys(err, errno, "write %s", tcp_bounds[i].setting);
    return 0;
}

int net_socket_inside(const struct nets *nets, int pidfd, int flags, struct err *err)
{
    int fd, errnum;

    if (setns(pidfd, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "enter the sandbox's network");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    errnum = errno;
    nets_leave(nets);
    return fd < 0 ? err_sys(err, errnum, "make a socket") : fd;
}

/* One transaction: every table of every family goes, with all that is in it. */
static int drop_tables(struct err *err)
{
    struct part {
        struct nlmsghdr head;
        struct nfgenmsg body;
    } all[] = { { .head = { .nlmsg_type = NFNL_MSG_BATCH_BEGIN },
                  .body = { .res_id = htons(NFNL_SUBSYS_NFTABLES) } },
                { .head = { .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE } },
                { .head = { .nlmsg_type = NFNL_MSG_BATCH_END },
                  .body = { .res_id = htons(NFNL_SUBSYS_NFTABLES) } } };
    auto_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        all[i].head.nlmsg_len = sizeof all[i];
        all[i].head.nlmsg_flags = NLM_F_REQUEST;
    }
    if (fd < 0 || send(fd, all, sizeof all, 0) != sizeof all)
        return err_sys(err, errno, "unlock the sandbox's network");
    return 0;
}

int net_unlock(const struct nets *nets, int pidfd, struct err *err)
{
    int rc;

    if (setns(pidfd, CLONE_NEWNET) < 0)
        return err_sys(err, errno, "enter the sandbox's network");
    rc = drop_tables(err);
    nets_leave(nets);
    return rc;
}
