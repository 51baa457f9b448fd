/* The compiled filter, run by a small evaluator of classic BPF: every row of the table and every rule about
 * arguments. What the kernel itself makes of it is shown by the escape suite. */
#include "check.h"

#include "base/own.h"
#include "jail/seccomp.h"
#include "wire/ioctl_table.h"
#include "wire/seccomp_table.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/membarrier.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ALLOWED SECCOMP_RET_ALLOW
#define NOTIFY  SECCOMP_RET_USER_NOTIF
#define NOSYS   (SECCOMP_RET_ERRNO | ENOSYS)
#define PERM    (SECCOMP_RET_ERRNO | EPERM)
#define BROKEN  0xdeadbeefu
#define HIGH    0x100000000ull
#define X32     0x40000000u

static struct seccomp_filter notify, quiet;

static uint32_t jump(const struct sock_filter *f, uint32_t a)
{
    bool yes = BPF_OP(f->code) == BPF_JEQ   ? a == f->k
               : BPF_OP(f->code) == BPF_JGE ? a >= f->k
                                            : a > f->k;

    return yes ? f->jt : f->jf;
}

static uint32_t run(const struct seccomp_filter *filter, const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (uint32_t pc = 0; pc < filter->len; pc++) {
        const struct sock_filter *f = &filter->code[pc];

        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (f->k % 4 || f->k + 4 > sizeof *data)
                return BROKEN;
            memcpy(&a, (const char *) data + f->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_JMP | BPF_JA:
            pc += f->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
            pc += jump(f, a);
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            return BROKEN;
        }
    }
    return BROKEN; /* fell off its end: the kernel would not have taken it */
}

static uint32_t ask4(const struct seccomp_filter *filter, uint32_t nr, uint64_t a0, uint64_t a1,
                     uint64_t a2, uint64_t a3)
{
    struct seccomp_data data = { .nr = (int) nr,
                                 .arch = AUDIT_ARCH_X86_64,
                                 .args = { a0, a1, a2, a3 } };

    return run(filter, &data);
}

static uint32_t ask(const struct seccomp_filter *filter, uint32_t nr, uint64_t a0, uint64_t a1,
                    uint64_t a2)
{
    return ask4(filter, nr, a0, a1, a2, 0);
}

#define CHECK_CALL(want, ...) CHECK_INT(ask(&notify, __VA_ARGS__), want)

static const struct {
    uint32_t nr;
    const char *name;
} allowed[] = {
#define ALLOW(name) { __NR_##name, #name },
    SECCOMP_ALLOWED
#undef ALLOW
},
  refused[] = {
#define REFUSE(name) { __NR_##name, #name },
      SECCOMP_REFUSED
#undef REFUSE
  };

static const uint32_t with_rules[] = { __NR_clone,
                                       __NR_socket,
                                       __NR_socketpair,
                                       __NR_setsockopt,
                                       __NR_ioctl,
                                       __NR_personality,
                                       __NR_prlimit64,
                                       __NR_futex,
                                       __NR_seccomp,
                                       __NR_ptrace,
                                       __NR_sendto,
                                       __NR_recvfrom,
                                       __NR_sendmsg,
                                       __NR_recvmsg,
                                       __NR_sendmmsg,
                                       __NR_recvmmsg,
                                       __NR_process_vm_readv,
                                       __NR_process_vm_writev };

static bool in_table(uint32_t nr)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (allowed[i].nr == nr)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i].nr == nr)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(with_rules); i++)
        if (with_rules[i] == nr)
            return true;
    return false;
}

static void the_filter_compiles_within_the_kernels_bounds(void)
{
    seccomp_compile(&notify, true);
    seccomp_compile(&quiet, false);
    CHECK(notify.len > 0 && notify.len < 4096);
    CHECK_INT(notify.len, quiet.len);
}

static void every_allowed_row_is_allowed(void)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        CHECK_CALL(ALLOWED, allowed[i].nr, 0, 0, 0);
        CHECK_CALL(ALLOWED, allowed[i].nr, ~0ull, ~0ull, ~0ull);
        CHECK_INT(ask(&quiet, allowed[i].nr, 0, 0, 0), ALLOWED);
    }
}

static void every_refused_row_is_refused_and_reported(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        CHECK_CALL(NOTIFY, refused[i].nr, 0, 0, 0);
        CHECK_CALL(NOTIFY, refused[i].nr, ~0ull, ~0ull, ~0ull);
        CHECK_INT(ask(&quiet, refused[i].nr, 0, 0, 0), PERM);
    }
}

static void no_row_is_in_both_lists_nor_twice(void)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        for (size_t j = i + 1; j < ARRAY_LEN(allowed); j++)
            CHECK(allowed[i].nr != allowed[j].nr);
        for (size_t j = 0; j < ARRAY_LEN(refused); j++)
            CHECK(allowed[i].nr != refused[j].nr);
    }
}

static void every_number_without_a_row_does_not_exist(void)
{
    for (uint32_t nr = 0; nr < 2000; nr++)
        if (!in_table(nr))
            CHECK_CALL(NOSYS, nr, 0, 0, 0);
    CHECK_CALL(NOSYS, 0x3fffffff, 0, 0, 0);
    CHECK_CALL(NOSYS, __NR_clone3, 0, 0, 0); /* its flags are in memory: no filter can see them */
}

static void x32_numbers_do_not_exist(void)
{
    for (uint32_t nr = 0; nr < 600; nr++)
        CHECK_CALL(NOSYS, X32 | nr, 0, 0, 0);
    CHECK_CALL(NOSYS, 0x80000000u, 0, 0, 0);
    CHECK_CALL(NOSYS, 0xffffffffu, 0, 0, 0);
}

static void other_architectures_have_no_calls_at_all(void)
{
    static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, 0, ~0u };

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        for (int nr = 0; nr < 600; nr++) {
            struct seccomp_data data = { .nr = nr, .arch = others[i] };

            CHECK_INT(run(&notify, &data), NOSYS);
        }
}

static void clone_makes_threads_and_processes_but_no_namespaces(void)
{
    static const uint64_t namespaces[] = { CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                           CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                           CLONE_NEWNET };

    CHECK_CALL(ALLOWED, __NR_clone, 17 /* SIGCHLD */, 0, 0);
    CHECK_CALL(ALLOWED, __NR_clone,
               CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, 0, 0);
    CHECK_CALL(ALLOWED, __NR_clone, HIGH | 17, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        CHECK_CALL(NOTIFY, __NR_clone, namespaces[i], 0, 0);
        CHECK_CALL(NOTIFY, __NR_clone, HIGH | namespaces[i] | 17, 0, 0);
        CHECK_CALL(NOTIFY, __NR_clone, namespaces[i] | CLONE_VM | CLONE_VFORK, 0, 0);
    }
}

static void terminals_cannot_be_typed_into_whatever_the_high_bits(void)
{
    CHECK_CALL(NOTIFY, __NR_ioctl, 0, 0x5412, 0);
    CHECK_CALL(NOTIFY, __NR_ioctl, 0, HIGH | 0x5412, 0);
    CHECK_CALL(NOTIFY, __NR_ioctl, 0, 0xffffffff00005412ull, 0);
    CHECK_CALL(NOTIFY, __NR_ioctl, 0, 0x541c, 0);
    CHECK_CALL(NOTIFY, __NR_ioctl, 0, HIGH | 0x541c, 0);
    CHECK_CALL(ALLOWED, __NR_ioctl, 0, 0x5401 /* TCGETS */, 0);
    CHECK_CALL(ALLOWED, __NR_ioctl, 0x5412, 0x5413 /* TIOCGWINSZ */, 0x5412);
}

static const struct {
    uint32_t number;
    const char *name;
} commands[] = {
#define IOCTL(name, number) { number, name },
    SECCOMP_IOCTLS
#undef IOCTL
},
  bad_commands[] = {
#define IOCTL_REFUSED(name, number) { number, name },
      SECCOMP_IOCTLS_REFUSED
#undef IOCTL_REFUSED
  };

static uint32_t want_of_ioctl(uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].number == number)
            return ALLOWED;
    for (size_t i = 0; i < ARRAY_LEN(bad_commands); i++)
        if (bad_commands[i].number == number)
            return NOTIFY;
    return SECCOMP_RET_ERRNO | ENOTTY;
}

static void ioctls_are_those_of_the_table(void)
{
    static const uint32_t bases[] = { 0,          0x5400,     0x8900,     0x6600,     0x9400,
                                      0x80045400, 0x40045400, 0x802c5400, 0x402c5400, 0xb700,
                                      0x4b00,     0x5600,     0xff00,     0x1200 };

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        CHECK_CALL(ALLOWED, __NR_ioctl, 0, commands[i].number, 0);
        CHECK_CALL(ALLOWED, __NR_ioctl, ~0ull, HIGH | commands[i].number, ~0ull);
        CHECK(want_of_ioctl(commands[i].number ^ 0x10000000) != ALLOWED || commands[i].number < 3);
    }
    for (size_t i = 0; i < ARRAY_LEN(bases); i++)
        for (uint32_t n = 0; n < 256; n++) {
            CHECK_CALL(want_of_ioctl(bases[i] + n), __NR_ioctl, 0, bases[i] + n, 0);
            CHECK_CALL(want_of_ioctl(bases[i] + n), __NR_ioctl, 0, HIGH | (bases[i] + n), 0);
        }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        for (size_t j = i + 1; j < ARRAY_LEN(commands); j++)
            CHECK(commands[i].number != commands[j].number);
}

/* Around a virtual machine: QEMU drives KVM by ioctls on descriptors of /dev/kvm. All else is as in a sandbox. */
static void kvm_has_its_commands_and_no_more_than_a_sandbox_beside_them(void)
{
    static const uint32_t kvm[] = { 0xae00 /* GET_API_VERSION */,
                                    0xae01 /* CREATE_VM */,
                                    0xae41 /* CREATE_VCPU */,
                                    0xae80 /* RUN */,
                                    0x4020ae46 /* SET_USER_MEMORY_REGION */,
                                    0x4040ae79 /* IOEVENTFD */,
                                    0xc008ae05 /* SUPPORTED_CPUID */,
                                    0x4020ae76 /* IRQFD */ };
    static struct seccomp_filter with_kvm;

    seccomp_compile_kvm(&with_kvm);
    for (size_t i = 0; i < ARRAY_LEN(kvm); i++) {
        CHECK_INT(ask(&with_kvm, __NR_ioctl, 7, kvm[i], 0), ALLOWED);
        CHECK_INT(ask(&quiet, __NR_ioctl, 7, kvm[i], 0), SECCOMP_RET_ERRNO | ENOTTY);
    }
    for (uint32_t number = 0; number < 0x10000; number++)
        if ((number & 0xff00) != 0xae00)
            CHECK_INT(ask(&with_kvm, __NR_ioctl, 0, number, 0),
                      ask(&quiet, __NR_ioctl, 0, number, 0));
    for (uint32_t nr = 0; nr < 600; nr++)
        for (uint64_t arg = 0; nr != __NR_ioctl && arg < 64; arg++)
            CHECK_INT(ask(&with_kvm, nr, arg, arg, arg), ask(&quiet, nr, arg, arg, arg));
}

/* Around gVisor: what makes namespaces and mounts beside a sandbox's, and one command less, which a sandbox has. */
static void around_gvisor_one_barrier_cannot_be_registered(void)
{
    static struct seccomp_filter machine;

    seccomp_compile_machine(&machine);
    CHECK_INT(ask(&machine, __NR_mount, 0, 0, 0), ALLOWED);
    for (unsigned bit = 0; bit < 32; bit++) {
        uint64_t command = 1ull << bit;
        bool slow = command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;

        CHECK_INT(ask(&machine, __NR_membarrier, command, 0, 0), slow ? PERM : ALLOWED);
        CHECK_INT(ask(&machine, __NR_membarrier, HIGH | command, 0, 0), slow ? PERM : ALLOWED);
        CHECK_INT(ask(&quiet, __NR_membarrier, command, 0, 0), ALLOWED);
    }
    CHECK_INT(ask(&machine, __NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0), ALLOWED);
}

static void urgent_data_does_not_exist(void)
{
    static const struct {
        uint32_t nr;
        int flags;
    } calls[] = { { __NR_sendto, 3 },  { __NR_recvfrom, 3 }, { __NR_sendmsg, 2 },
                  { __NR_recvmsg, 2 }, { __NR_sendmmsg, 3 }, { __NR_recvmmsg, 3 } };

    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        for (unsigned bit = 0; bit < 32; bit++) {
            uint64_t flag = 1ull << bit;
            uint32_t want = flag == MSG_OOB ? (SECCOMP_RET_ERRNO | EOPNOTSUPP) : ALLOWED;
            bool third = calls[i].flags == 2;

            CHECK_INT(ask4(&notify, calls[i].nr, ~0ull, ~0ull, third ? flag : ~0ull,
                           third ? ~0ull : HIGH | flag),
                      want);
        }
    CHECK_INT(ask4(&notify, __NR_sendto, 0, 0, 0, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL),
              SECCOMP_RET_ERRNO | EOPNOTSUPP);
}

static void the_agent_is_neither_traced_nor_read(void)
{
    static const uint32_t memory[] = { __NR_process_vm_readv, __NR_process_vm_writev };

    for (size_t i = 0; i < ARRAY_LEN(memory); i++) {
        CHECK_CALL(ALLOWED, memory[i], 2, 0, 0);
        CHECK_CALL(NOTIFY, memory[i], 1, 0, 0);
        CHECK_CALL(NOTIFY, memory[i], HIGH | 1, 0, 0);
    }
    CHECK_CALL(NOTIFY, __NR_ptrace, 16 /* ATTACH */, 1, 0);
    CHECK_CALL(NOTIFY, __NR_ptrace, 0x4206 /* SEIZE */, HIGH | 1, 0);
    CHECK_CALL(ALLOWED, __NR_ptrace, 16, 2, 0);
    CHECK_CALL(ALLOWED, __NR_ptrace, 0x4206, 2, 0);
    CHECK_CALL(ALLOWED, __NR_ptrace, 0 /* TRACEME */, 1, 0);
}

static void sockets_take_no_programs_and_no_tunnels(void)
{
    static const uint64_t bad[][2] = { { 1, 26 }, { 1, 50 }, { 1, 51 }, { 1, 52 }, { 17, 100 } };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_CALL(NOTIFY, __NR_setsockopt, 0, bad[i][0], bad[i][1]);
        CHECK_CALL(NOTIFY, __NR_setsockopt, 0, HIGH | bad[i][0], HIGH | bad[i][1]);
        CHECK_CALL(ALLOWED, __NR_setsockopt, 0, 41, bad[i][1]);
    }
    CHECK_CALL(ALLOWED, __NR_setsockopt, 0, 17, 103 /* UDP_SEGMENT */);
    CHECK_CALL(ALLOWED, __NR_setsockopt, 0, 1, 15 /* SO_REUSEPORT */);
}

static void futexes_work_but_for_requeue_pi(void)
{
    static const uint32_t options[] = { 0, 128 /* private */, 256 /* realtime */, 384 };

    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        for (uint32_t op = 0; op <= 13; op++)
            CHECK_CALL(op == 11 || op == 12 ? NOTIFY : ALLOWED, __NR_futex, 0, op | options[i], 0);
        CHECK_CALL(NOTIFY, __NR_futex, 0, HIGH | 11 | options[i], 0);
    }
}

static void sockets_are_local_or_internet(void)
{
    for (uint64_t family = 0; family < 64; family++) {
        bool fine =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;

        CHECK_CALL(fine ? ALLOWED : NOTIFY, __NR_socket, family, SOCK_STREAM, 0);
        CHECK_CALL(fine ? ALLOWED : NOTIFY, __NR_socket, HIGH | family, SOCK_STREAM, 0);
    }
}

static void internet_sockets_are_streams_or_datagrams(void)
{
    static const uint64_t families[] = { AF_INET, AF_INET6 };

    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        uint64_t family = families[i];

        for (uint64_t type = 0; type < 16; type++) {
            bool fine = type == SOCK_STREAM || type == SOCK_DGRAM;

            CHECK_CALL(fine ? ALLOWED : NOTIFY, __NR_socket, family, type, 0);
            CHECK_CALL(fine ? ALLOWED : NOTIFY, __NR_socket, family,
                       type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            CHECK_CALL(fine ? ALLOWED : NOTIFY, __NR_socket, family, HIGH | type, 0);
        }
        for (uint64_t protocol = 0; protocol < 300; protocol++)
            CHECK_CALL(protocol == 0 || protocol == 6 || protocol == 17
                           ? ALLOWED
                           : (SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
                       __NR_socket, family, SOCK_STREAM, protocol);
        CHECK_CALL(NOTIFY, __NR_socket, family, SOCK_RAW, 0);
        CHECK_CALL(NOTIFY, __NR_socket, family, SOCK_RAW, 6);
    }
}

static void netlink_is_for_routes_only(void)
{
    for (uint64_t protocol = 0; protocol < 32; protocol++) {
        /* An absent audit subsystem is what useradd and its kin can live with. */
        uint32_t want = protocol == NETLINK_ROUTE   ? ALLOWED
                        : protocol == NETLINK_AUDIT ? (SECCOMP_RET_ERRNO | EPROTONOSUPPORT)
                                                    : NOTIFY;

        CHECK_CALL(want, __NR_socket, AF_NETLINK, SOCK_RAW, protocol);
        CHECK_CALL(want, __NR_socket, AF_NETLINK, SOCK_DGRAM, HIGH | protocol);
    }
}

static void pairs_of_sockets_are_local(void)
{
    for (uint64_t family = 0; family < 64; family++)
        CHECK_CALL(family == AF_UNIX ? ALLOWED : NOTIFY, __NR_socketpair, family, SOCK_STREAM, 0);
    CHECK_CALL(NOTIFY, __NR_socketpair, HIGH | 30 /* TIPC */, SOCK_STREAM, 0);
}

static void kernel_tls_and_its_kin_are_refused(void)
{
    CHECK_CALL(NOTIFY, __NR_setsockopt, 0, 6, 31);
    CHECK_CALL(NOTIFY, __NR_setsockopt, 0, HIGH | 6, HIGH | 31);
    CHECK_CALL(ALLOWED, __NR_setsockopt, 0, 6, 1 /* TCP_NODELAY */);
    CHECK_CALL(ALLOWED, __NR_setsockopt, 0, SOL_SOCKET, 31);
    CHECK_CALL(ALLOWED, __NR_setsockopt, 0, SOL_SOCKET, SO_REUSEADDR);
}

static void only_harmless_personalities_are_taken(void)
{
    static const uint64_t fine[] = { 0, 0xffffffff, 0x0040000, 0x0020000, 0x0060000 };
    static const uint64_t bad[] = { 0x0400000 /* READ_IMPLIES_EXEC */,
                                    0x0100000 /* MMAP_PAGE_ZERO */, 8, 1, 0x0440000 };

    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        CHECK_CALL(ALLOWED, __NR_personality, fine[i], 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_CALL(NOTIFY, __NR_personality, bad[i], 0, 0);
        CHECK_CALL(NOTIFY, __NR_personality, HIGH | bad[i], 0, 0);
    }
}

static void limits_of_the_agent_are_out_of_reach(void)
{
    CHECK_CALL(ALLOWED, __NR_prlimit64, 0, 0, 0);
    CHECK_CALL(ALLOWED, __NR_prlimit64, 2, 0, 0);
    CHECK_CALL(NOTIFY, __NR_prlimit64, 1, 0, 0);
    CHECK_CALL(NOTIFY, __NR_prlimit64, HIGH | 1, 0, 0);
}

/* Whether or not there is a listener: the answer must be the filter's own. */
static void no_filter_with_a_listener_can_be_added(void)
{
    static const uint64_t plain[] = {
        0, 1 /* TSYNC */, 2 /* LOG */, 4 /* SPEC_ALLOW */, 16 /* TSYNC_ESRCH */, 23
    };
    const struct seccomp_filter *both[] = { &notify, &quiet };

    for (size_t f = 0; f < ARRAY_LEN(both); f++)
        for (uint64_t op = 0; op < 6; op++) {
            for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
                CHECK_INT(ask(both[f], __NR_seccomp, op, plain[i], 0), ALLOWED);
                CHECK_INT(ask(both[f], __NR_seccomp, op, HIGH | plain[i], 0), ALLOWED);
                CHECK_INT(ask(both[f], __NR_seccomp, op, plain[i] | 8 /* NEW_LISTENER */, 0), PERM);
                CHECK_INT(ask(both[f], __NR_seccomp, HIGH | op, HIGH | plain[i] | 8, 0), PERM);
            }
            for (unsigned bit = 5; bit < 32; bit++) /* WAIT_KILLABLE_RECV, and unknown ones */
                CHECK_INT(ask(both[f], __NR_seccomp, op, 1ull << bit, 0), PERM);
        }
}

static void a_tracer_cannot_suspend_the_filter(void)
{
    static const uint64_t with_options[] = { 0x4200, 0x4206, 21 };
    const uint64_t suspend = 1u << 21;
    const struct seccomp_filter *both[] = { &notify, &quiet };

    for (size_t f = 0; f < ARRAY_LEN(both); f++) {
        for (size_t i = 0; i < ARRAY_LEN(with_options); i++) {
            uint64_t request = with_options[i];

            CHECK_INT(ask4(both[f], __NR_ptrace, request, 2, 0, 0x100ff), ALLOWED);
            CHECK_INT(ask4(both[f], __NR_ptrace, request, 2, 0, suspend), PERM);
            CHECK_INT(ask4(both[f], __NR_ptrace, request, 2, 0, ~0ull), PERM);
            CHECK_INT(ask4(both[f], __NR_ptrace, HIGH | request, 2, 0, suspend | 1), PERM);
        }
        CHECK_INT(ask4(both[f], __NR_ptrace, 0, 0, 0, ~0ull), ALLOWED);        /* TRACEME */
        CHECK_INT(ask4(both[f], __NR_ptrace, 5, 2, 0x1000, suspend), ALLOWED); /* POKEDATA */
        CHECK_INT(ask4(both[f], __NR_ptrace, 0x4205, 2, 1, suspend), ALLOWED); /* SETREGSET */
    }
}

CHECK_MAIN(T(the_filter_compiles_within_the_kernels_bounds), T(every_allowed_row_is_allowed),
           T(kvm_has_its_commands_and_no_more_than_a_sandbox_beside_them),
           T(around_gvisor_one_barrier_cannot_be_registered),
           T(every_refused_row_is_refused_and_reported), T(no_row_is_in_both_lists_nor_twice),
           T(every_number_without_a_row_does_not_exist), T(limits_of_the_agent_are_out_of_reach),
           T(x32_numbers_do_not_exist), T(other_architectures_have_no_calls_at_all),
           T(clone_makes_threads_and_processes_but_no_namespaces),
           T(terminals_cannot_be_typed_into_whatever_the_high_bits),
           T(futexes_work_but_for_requeue_pi), T(sockets_are_local_or_internet),
           T(internet_sockets_are_streams_or_datagrams), T(netlink_is_for_routes_only),
           T(pairs_of_sockets_are_local), T(kernel_tls_and_its_kin_are_refused),
           T(only_harmless_personalities_are_taken), T(no_filter_with_a_listener_can_be_added),
           T(a_tracer_cannot_suspend_the_filter), T(ioctls_are_those_of_the_table),
           T(urgent_data_does_not_exist), T(the_agent_is_neither_traced_nor_read),
           T(sockets_take_no_programs_and_no_tunnels))
