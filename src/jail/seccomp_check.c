/* What can be said of a filter that is already there: its name, its quiet form, and whether it confines.
 *
 * A version of cove may have other rows than the one that made a sandbox, so a filter is not compared with today's.
 * seccomp_confines() runs the program instead, for the calls that no version ever allowed. */
#include "jail/seccomp.h"

#include "base/own.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define BROKEN    0u /* SECCOMP_RET_KILL_THREAD: no program of ours answers so */
#define X32_CALL  0x40000000
#define QUIET     (SECCOMP_RET_ERRNO | EPERM)
#define IS_ANSWER (BPF_RET | BPF_K)

void seccomp_quiet(struct sock_filter *code, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (code[i].code == IS_ANSWER &&
            (code[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
            code[i].k = QUIET;
}

bool seccomp_is_quiet(const struct sock_filter *code, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (code[i].code == IS_ANSWER &&
            (code[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
            return false;
    return true;
}

void seccomp_name(const struct sock_filter *code, size_t len, unsigned char ret[SHA256_LEN])
{
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < len; i++) {
        struct sock_filter one = code[i];

        seccomp_quiet(&one, 1);
        sha256_add(&hash, &one, sizeof one);
    }
    sha256_done(&hash, ret);
}

static bool jumps(const struct sock_filter *f, uint32_t a)
{
    switch (BPF_OP(f->code)) {
    case BPF_JEQ:
        return a == f->k;
    case BPF_JGT:
        return a > f->k;
    case BPF_JGE:
        return a >= f->k;
    default:
        return a & f->k;
    }
}

/* The answer, or BROKEN for an instruction that no version of seccomp.c writes. Programs only jump forward. */
static uint32_t run(const struct sock_filter *code, size_t len, const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (size_t at = 0; at < len; at++) {
        const struct sock_filter *f = &code[at];

        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (f->k % sizeof a || f->k > sizeof *data - sizeof a)
                return BROKEN;
            memcpy(&a, (const char *) data + f->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_JMP | BPF_JA:
            at += f->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JSET | BPF_K:
            at += jumps(f, a) ? f->jt : f->jf;
            break;
        case IS_ANSWER:
            return f->k;
        default:
            return BROKEN;
        }
    }
    return BROKEN;
}

bool seccomp_confines(const struct sock_filter *code, size_t len)
{
    /* Calls that every version refuses, whatever their arguments beyond the first. */
    static const struct {
        int number;
        uint64_t first;
    } never[] = {
        { __NR_unshare, CLONE_NEWUSER },
        { __NR_unshare, 0 },
        { __NR_setns, 3 },
        { __NR_clone, CLONE_NEWUSER },
        { __NR_clone, CLONE_NEWNET },
        { __NR_clone3, 0 },
        { __NR_mount, 0 },
        { __NR_move_mount, 3 },
        { __NR_fsopen, 0 },
        { __NR_open_tree, 3 },
        { __NR_pivot_root, 0 },
        { __NR_bpf, 0 },
        { __NR_io_uring_setup, 1 },
        { __NR_userfaultfd, 0 },
        { __NR_perf_event_open, 0 },
        { __NR_keyctl, 0 },
        { __NR_add_key, 0 },
        { __NR_pidfd_getfd, 3 },
        { __NR_init_module, 0 },
        { __NR_kexec_load, 0 },
        { __NR_open_by_handle_at, 3 },
        { __NR_socket, AF_PACKET },
        { __NR_socket, AF_VSOCK },
        { __NR_socket, AF_ALG },
        { X32_CALL | __NR_read, 0 },
    };
    struct seccomp_data foreign = { .nr = __NR_read, .arch = AUDIT_ARCH_I386 };

    if (!seccomp_is_quiet(code, len) ||
        (run(code, len, &foreign) & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(never); i++) {
        struct seccomp_data data = { .nr = never[i].number,
                                     .arch = AUDIT_ARCH_X86_64,
                                     .args = { never[i].first } };

        if ((run(code, len, &data) & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO)
            return false;
    }
    return true;
}
