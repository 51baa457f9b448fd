/* The filter as BPF: architecture, then a binary search over runs of numbers with the same answer: the plain rows of
 * wire/seccomp_table.h, and between them the calls whose arguments matter, each with its rule.
 *
 * libseccomp is not used: it takes one comparison per argument, on 64 bits, so that it cannot say
 * "ioctl, unless the low 32 bits are TIOCSTI" (the kernel looks at 32 bits only, and 0x1_0000_5412
 * would pass). The search is not for the sake of running the filter: the kernel keeps a bitmap of
 * calls that are allowed whatever their arguments, and does not run it for those at all. It is for the sake
 * of installing it: to fill that bitmap the kernel walks the program once for every call there is,
 * and a straight line of comparisons took 0.7 ms of every create.
 *
 * A filter sees registers, not memory: clone3's flags are behind a pointer, so clone3 has no row,
 * answers ENOSYS, and libc falls back to clone. */
#include "jail/seccomp.h"

#include "base/own.h"
#include "wire/ioctl_table.h"
#include "wire/seccomp_table.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/membarrier.h>
#include <linux/netlink.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the table of system calls is for x86-64"
#endif

#define X32_BIT 0x40000000u
#define CALLS_MOST                                                                                 \
    512u /* beyond every number in the table; what is above has the last run's answer */
#define NAMESPACE_FLAGS                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#define LEVEL_TCP                6u
#define LEVEL_UDP                17u
#define SOCKET_TYPE_BITS         0xfu
#define FUTEX_OP_BITS            0x7fu /* without PRIVATE and CLOCK_REALTIME */
#define FUTEX_WAIT_REQUEUE_PI_OP 11u
#define FUTEX_CMP_REQUEUE_PI_OP  12u
#define PERSONALITY_ASK          0xffffffffu
#define AGENT_PID                1u
#define UNAME26                  0x0020000u
#ifndef PTRACE_OLDSETOPTIONS
#define PTRACE_OLDSETOPTIONS 21 /* of <asm/ptrace-abi.h> */
#endif
#define SUSPEND_SECCOMP_OPTION 0x200000u /* PTRACE_O_SUSPEND_SECCOMP */
#define IOCTL_KIND_BITS        0xff00u
#define IOCTL_KIND_KVM         0xae00u /* KVMIO: only descriptors of /dev/kvm and its machines take these */

/* The answer to what could lift the filter itself. Never a notification: who may answer notifications is what these
 * calls would change, so this answer must not depend on a listener. */
#define FINAL_REFUSAL (SECCOMP_RET_ERRNO | EPERM)

/* Flags of seccomp() that only add a filter to the caller, or to its threads. */
#define HARMLESS_FILTER_FLAGS                                                                      \
    (SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_LOG |       \
     SECCOMP_FILTER_FLAG_SPEC_ALLOW)

static const uint32_t allowed[] = {
#define ALLOW(name) __NR_##name,
    SECCOMP_ALLOWED
#undef ALLOW
};

static const uint32_t refused[] = {
#define REFUSE(name) __NR_##name,
    SECCOMP_REFUSED
#undef REFUSE
};

/* What the jail around a guest may call beside these, whatever the arguments: its program makes namespaces with mounts of their own for
 * its parts, traces the guest's processes, and filters them with a listener. */
static const uint32_t machine_allowed[] = {
    __NR_clone, __NR_unshare, __NR_mount, __NR_umount2, __NR_pivot_root, __NR_ptrace, __NR_seccomp,
};

struct writer {
    struct seccomp_filter *filter;
    uint32_t refusal; /* the answer to what is refused */
    bool machine;
    bool kvm;
};

static void put(struct writer *w, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    assert(w->filter->len < SECCOMP_FILTER_MOST);
    w->filter->code[w->filter->len++] = (struct sock_filter){ code, jt, jf, k };
}

static void answer(struct writer *w, uint32_t action)
{
    put(w, BPF_RET | BPF_K, 0, 0, action);
}

/* The low half: what the kernel looks at in int-sized arguments. */
static void load_arg(struct writer *w, unsigned n)
{
    put(w, BPF_LD | BPF_W | BPF_ABS, 0, 0,
        (uint32_t) (offsetof(struct seccomp_data, args) + n * sizeof(uint64_t)));
}

static void mask(struct writer *w, uint32_t bits)
{
    put(w, BPF_ALU | BPF_AND | BPF_K, 0, 0, bits);
}

static void answer_if(struct writer *w, uint32_t value, uint32_t action)
{
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    answer(w, action);
}

/* Each rule writes what is done with the arguments of one call; every way through it ends in an answer. */

static void rule_futex(struct writer *w)
{
    load_arg(w, 1);
    mask(w, FUTEX_OP_BITS);
    answer_if(w, FUTEX_WAIT_REQUEUE_PI_OP, w->refusal); /* unused by libcs; CVE-2026-43499 */
    answer_if(w, FUTEX_CMP_REQUEUE_PI_OP, w->refusal);
    answer(w, SECCOMP_RET_ALLOW);
}

static void rule_ioctl(struct writer *w)
{
    static const uint32_t known[] = {
#define IOCTL(name, number) number,
        SECCOMP_IOCTLS
#undef IOCTL
    };
    static const uint32_t dangerous[] = {
#define IOCTL_REFUSED(name, number) number,
        SECCOMP_IOCTLS_REFUSED
#undef IOCTL_REFUSED
    };

    static_assert(ARRAY_LEN(known) + 2 * ARRAY_LEN(dangerous) < 255, "one jump reaches the end");
    if (w->kvm) {
        load_arg(w, 1);
        mask(w, IOCTL_KIND_BITS);
        answer_if(w, IOCTL_KIND_KVM, SECCOMP_RET_ALLOW);
    }
    load_arg(w, 1);
    for (size_t i = 0; i < ARRAY_LEN(known); i++) /* to the last answer */
        put(w, BPF_JMP | BPF_JEQ | BPF_K,
            (uint8_t) (ARRAY_LEN(known) - i + 2 * ARRAY_LEN(dangerous)), 0, known[i]);
    for (size_t i = 0; i < ARRAY_LEN(dangerous); i++)
        answer_if(w, dangerous[i], w->refusal);
    answer(w, SECCOMP_RET_ERRNO | ENOTTY);
    answer(w, SECCOMP_RET_ALLOW);
}

static void rule_clone(struct writer *w)
{
    load_arg(w, 0);
    mask(w, NAMESPACE_FLAGS);
    answer_if(w, 0, SECCOMP_RET_ALLOW);
    answer(w, w->refusal);
}

static void rule_setsockopt(struct writer *w)
{
    static const struct {
        uint32_t level, option;
    } dangerous[] = {
        { LEVEL_TCP, 31 /* TCP_ULP */ },        /* kernel TLS and its kin */
        { LEVEL_UDP, 100 /* UDP_ENCAP */ },     /* IPsec in the path of every datagram */
        { SOL_SOCKET, 26 /* ATTACH_FILTER */ }, /* programs in the kernel, and memory for them */
        { SOL_SOCKET, 50 /* ATTACH_BPF */ },
        { SOL_SOCKET, 51 /* ATTACH_REUSEPORT_CBPF */ },
        { SOL_SOCKET, 52 /* ATTACH_REUSEPORT_EBPF */ },
    };

    for (size_t i = 0; i < ARRAY_LEN(dangerous); i++) {
        load_arg(w, 1);
        put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 3, dangerous[i].level);
        load_arg(w, 2);
        answer_if(w, dangerous[i].option, w->refusal);
    }
    answer(w, SECCOMP_RET_ALLOW);
}

/* Urgent data. Between unix sockets it was a way to memory that is freed already (CVE-2025-38236), and no register says
 * what kind of socket it is. Programs of this century do without; the answer is that of a kernel that has none. */
static void rule_urgent(struct writer *w, unsigned flags)
{
    load_arg(w, flags);
    mask(w, MSG_OOB);
    answer_if(w, 0, SECCOMP_RET_ALLOW);
    answer(w, SECCOMP_RET_ERRNO | EOPNOTSUPP);
}

static void rule_message(struct writer *w) /* sendmsg, recvmsg */
{
    rule_urgent(w, 2);
}

static void rule_messages(struct writer *w) /* sendto, recvfrom, sendmmsg, recvmmsg */
{
    rule_urgent(w, 3);
}

/* process_vm_readv, process_vm_writev, prlimit64: who may, the kernel decides by user, but no program has business with the agent. The
 * sandbox's root has the agent's uid, and limits are not guarded like memory is: with one of them it could take its own
 * PID 1 the descriptors to answer with. */
static void rule_other_process(struct writer *w)
{
    load_arg(w, 0);
    answer_if(w, AGENT_PID, w->refusal);
    answer(w, SECCOMP_RET_ALLOW);
}

static void rule_personality(struct writer *w)
{
    static const uint32_t harmless[] = { 0, PERSONALITY_ASK, ADDR_NO_RANDOMIZE /* gdb */, UNAME26,
                                         UNAME26 | ADDR_NO_RANDOMIZE };

    load_arg(w, 0);
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        answer_if(w, harmless[i], SECCOMP_RET_ALLOW);
    answer(w, w->refusal);
}

/* Programs may put up filters of their own, but not listen: of two filters that ask for a listener the kernel takes the
 * newer one, whose listener could let a call through that this filter refuses. An unknown flag counts as one that
 * makes a listener: a later kernel may allow several. prctl(PR_SET_SECCOMP) has no flags and makes none. */
static void rule_seccomp(struct writer *w)
{
    load_arg(w, 1);
    mask(w, ~(uint32_t) HARMLESS_FILTER_FLAGS);
    answer_if(w, 0, SECCOMP_RET_ALLOW);
    answer(w, FINAL_REFUSAL);
}

/* The agent as what is traced; and a tracer that turns filters off, which the kernel refuses to a process with a filter, too. Whom else a
 * process may trace is decided by the kernel: its own user's. */
static void rule_ptrace(struct writer *w)
{
    static const uint32_t with_options[] = { PTRACE_SETOPTIONS, PTRACE_SEIZE,
                                             PTRACE_OLDSETOPTIONS };

    load_arg(w, 1);
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, AGENT_PID);
    load_arg(w, 0);
    answer_if(w, PTRACE_ATTACH, w->refusal);
    answer_if(w, PTRACE_SEIZE, w->refusal);
    load_arg(w, 0);
    for (size_t i = 0; i < ARRAY_LEN(with_options); i++) /* past the next answer */
        put(w, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t) (ARRAY_LEN(with_options) - i), 0,
            with_options[i]);
    answer(w, SECCOMP_RET_ALLOW);
    load_arg(w, 3);
    mask(w, SUSPEND_SECCOMP_OPTION);
    answer_if(w, 0, SECCOMP_RET_ALLOW);
    answer(w, FINAL_REFUSAL);
}

/* Local sockets, TCP and UDP, and the netlink family that lists interfaces. Odd families and
 * types are where unprivileged kernel bugs live; a refused protocol (MPTCP, SCTP, SMC) gets
 * the answer of a kernel without it, because runtimes probe for those in good faith. */
static void rule_socket(struct writer *w)
{
    static const uint32_t protocols[] = { 0, 6 /* TCP */, 17 /* UDP */ };
    unsigned to_inet[2], to_netlink, at;

    load_arg(w, 0);
    answer_if(w, AF_UNIX, SECCOMP_RET_ALLOW);
    to_inet[0] = w->filter->len;
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, AF_INET);
    to_inet[1] = w->filter->len;
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, AF_INET6);
    to_netlink = w->filter->len;
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, AF_NETLINK);
    answer(w, w->refusal);

    at = w->filter->len; /* internet: stream or datagram, then the protocol */
    w->filter->code[to_inet[0]].jt = (uint8_t) (at - to_inet[0] - 1);
    w->filter->code[to_inet[1]].jt = (uint8_t) (at - to_inet[1] - 1);
    load_arg(w, 1);
    mask(w, SOCKET_TYPE_BITS);
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SOCK_STREAM);
    put(w, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SOCK_DGRAM);
    answer(w, w->refusal);
    load_arg(w, 2);
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
        answer_if(w, protocols[i], SECCOMP_RET_ALLOW);
    answer(w, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);

    at = w->filter->len;
    w->filter->code[to_netlink].jt = (uint8_t) (at - to_netlink - 1);
    load_arg(w, 2);
    answer_if(w, NETLINK_ROUTE, SECCOMP_RET_ALLOW);
    /* useradd and its kin work without the audit subsystem, if the kernel says it has none. */
    answer_if(w, NETLINK_AUDIT, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    answer(w, w->refusal);
}

static void rule_socketpair(struct writer *w)
{
    load_arg(w, 0);
    answer_if(w, AF_UNIX, SECCOMP_RET_ALLOW);
    answer(w, w->refusal);
}

/* In the jail around gVisor. runsc asks for it whenever one of its processes starts, waits until the kernel has it (9 ms), and its systrap never
 * uses it. */
static void rule_membarrier(struct writer *w)
{
    load_arg(w, 0);
    answer_if(w, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, w->refusal);
    answer(w, SECCOMP_RET_ALLOW);
}

/* Calls whose arguments matter. */
static const struct rule {
    uint32_t nr;
    void (*write)(struct writer *w);
} rules[] = {
    { __NR_futex, rule_futex },
    { __NR_ioctl, rule_ioctl },
    { __NR_clone, rule_clone },
    { __NR_socket, rule_socket },
    { __NR_socketpair, rule_socketpair },
    { __NR_setsockopt, rule_setsockopt },
    { __NR_sendmsg, rule_message },
    { __NR_recvmsg, rule_message },
    { __NR_sendto, rule_messages },
    { __NR_recvfrom, rule_messages },
    { __NR_sendmmsg, rule_messages },
    { __NR_recvmmsg, rule_messages },
    { __NR_personality, rule_personality },
    { __NR_prlimit64, rule_other_process },
    { __NR_seccomp, rule_seccomp },
    { __NR_ptrace, rule_ptrace },
    { __NR_process_vm_readv, rule_other_process },
    { __NR_process_vm_writev, rule_other_process },
};

static const struct rule gvisor_rule = { __NR_membarrier, rule_membarrier };

static bool is_machine_call(const struct writer *w, uint32_t nr)
{
    for (size_t i = 0; w->machine && i < ARRAY_LEN(machine_allowed); i++)
        if (machine_allowed[i] == nr)
            return true;
    return false;
}

static const struct rule *rule_of(const struct writer *w, uint32_t nr)
{
    if (is_machine_call(w, nr))
        return NULL;
    if (w->machine && nr == gvisor_rule.nr)
        return &gvisor_rule;
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].nr == nr)
            return &rules[i];
    return NULL;
}

/* The answer to a number, by the plain rows. */
static uint32_t plain_answer(const struct writer *w, uint32_t nr)
{
    if (is_machine_call(w, nr))
        return SECCOMP_RET_ALLOW;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (allowed[i] == nr)
            return SECCOMP_RET_ALLOW;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (refused[i] == nr)
            return w->refusal;
    return SECCOMP_RET_ERRNO | ENOSYS;
}

/* A run begins at `from` and ends where the next run begins. A call with a rule is a run of its own. */
struct run {
    uint32_t from;
    uint32_t answer;
    const struct rule *rule; /* NULL: the answer */
};

static size_t find_runs(const struct writer *w, struct run *runs)
{
    size_t count = 0;

    for (uint32_t nr = 0; nr < CALLS_MOST; nr++) {
        struct run now = { nr, plain_answer(w, nr), rule_of(w, nr) };

        if (count == 0 || now.rule || runs[count - 1].rule || runs[count - 1].answer != now.answer)
            runs[count++] = now;
    }
    return count;
}

/* From `at` over all that was written behind it. A comparison jumps 255 instructions at most, a plain jump as far as it likes: one
 * is put in between, and what jumps within the rest does so by distance. */
static void jump_over(struct seccomp_filter *f, unsigned at)
{
    unsigned len = f->len - at - 1;

    if (len <= UINT8_MAX) {
        f->code[at].jt = (uint8_t) len;
        return;
    }
    assert(f->len < SECCOMP_FILTER_MOST);
    memmove(&f->code[at + 2], &f->code[at + 1], len * sizeof f->code[0]);
    f->code[at + 1] = (struct sock_filter){ BPF_JMP | BPF_JA, 0, 0, len };
    f->code[at].jf = 1;
    f->len++;
}

static void put_search(struct writer *w, const struct run *runs, size_t count)
{
    size_t half = count / 2;
    unsigned at = w->filter->len;

    if (count == 1 && runs[0].rule) {
        runs[0].rule->write(w);
        return;
    }
    if (count == 1) {
        answer(w, runs[0].answer);
        return;
    }
    put(w, BPF_JMP | BPF_JGE | BPF_K, 0, 0, runs[half].from);
    put_search(w, runs, half);
    jump_over(w->filter, at);
    put_search(w, runs + half, count - half);
}

static void compile(struct writer w)
{
    struct run runs[CALLS_MOST];

    w.filter->len = 0;
    put(&w, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    put(&w, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
    answer(&w, SECCOMP_RET_ERRNO | ENOSYS); /* int 0x80: another table of calls */
    put(&w, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    put(&w, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
    answer(&w, SECCOMP_RET_ERRNO | ENOSYS);
    put_search(&w, runs, find_runs(&w, runs));
}

void seccomp_compile(struct seccomp_filter *filter, bool listen)
{
    compile((struct writer){ filter, listen ? SECCOMP_RET_USER_NOTIF : (SECCOMP_RET_ERRNO | EPERM),
                             false, false });
}

void seccomp_compile_machine(struct seccomp_filter *filter)
{
    compile((struct writer){ filter, SECCOMP_RET_ERRNO | EPERM, true, false });
}

void seccomp_compile_kvm(struct seccomp_filter *filter)
{
    compile((struct writer){ filter, SECCOMP_RET_ERRNO | EPERM, false, true });
}

/* Not with WAIT_KILLABLE_RECV: who waits for the agent's answer must be able to freeze meanwhile, because the agent may
 * have been frozen before it gave it. The call is begun again after the thaw. The price is the kernel's usual one: a handler
 * that asks for no restart (SA_RESTART) may see EINTR. */
int seccomp_install(const struct seccomp_filter *filter, bool listen)
{
    struct sock_fprog program = { filter->len, (struct sock_filter *) (uintptr_t) filter->code };
    unsigned long flags = listen ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;

    return (int) syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}
