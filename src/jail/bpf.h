/* bpf.h - the few words in which the keeper writes programs for the kernel. */
#ifndef COVE_JAIL_BPF_H
#define COVE_JAIL_BPF_H

#include <linux/bpf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INSN(c, d, s, o, i)                                                                        \
    ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
/* A 32-bit field of the context that `from` points to. */
#define LOAD_FROM(reg, from, type, field)                                                          \
    INSN(BPF_LDX | BPF_MEM | BPF_W, reg, from, (int16_t) offsetof(type, field), 0)
#define MOVE(reg, value)           INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define COPY(to, from)             INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define ADD(reg, value)            INSN(BPF_ALU64 | BPF_ADD | BPF_K, reg, 0, 0, value)
#define AND(reg, value)            INSN(BPF_ALU64 | BPF_AND | BPF_K, reg, 0, 0, value)
#define RIGHT(reg, value)          INSN(BPF_ALU64 | BPF_RSH | BPF_K, reg, 0, 0, value)
#define SKIP(n)                    INSN(BPF_JMP | BPF_JA, 0, 0, n, 0)
#define SKIP_IF(reg, value, n)     INSN(BPF_JMP32 | BPF_JEQ | BPF_K, reg, 0, n, (int32_t) (value))
#define SKIP_IF_NOT(reg, value, n) INSN(BPF_JMP32 | BPF_JNE | BPF_K, reg, 0, n, (int32_t) (value))
#define CALL(function)             INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define LEAVE                      INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static inline int bpf_call(int cmd, union bpf_attr *attr)
{
    return (int) syscall(__NR_bpf, cmd, attr, sizeof *attr);
}

#endif
