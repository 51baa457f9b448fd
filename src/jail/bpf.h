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
#define MOVE(reg, value)  INSN(BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, 0, value)
#define COPY(to, from)    INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define ADD(reg, value)   INSN(BPF_ALU64 | BPF_ADD | BPF_K, reg, 0, 0, value)
#define AND(reg, value)   INSN(BPF_ALU64 | BPF_AND | BPF_K, reg, 0, 0, value)
#define ADD_REG(to, from) INSN(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0)
#define OR_REG(to, from)  INSN(BPF_ALU64 | BPF_OR | BPF_X, to, from, 0, 0)
#define LEFT(reg, value)  INSN(BPF_ALU64 | BPF_LSH | BPF_K, reg, 0, 0, value)
/* A word in memory that a register points to, or the stack. */
#define STORE(to, at, reg)         INSN(BPF_STX | BPF_MEM | BPF_W, to, reg, at, 0)
#define STORE_VALUE(to, at, value) INSN(BPF_ST | BPF_MEM | BPF_W, to, 0, at, (int32_t) (value))
#define LOAD_WORD(reg, from, at)   INSN(BPF_LDX | BPF_MEM | BPF_W, reg, from, at, 0)
#define LOAD_BYTE(reg, from, at)   INSN(BPF_LDX | BPF_MEM | BPF_B, reg, from, at, 0)
/* Adds reg to the word, and takes what it was before. */
#define FETCH_ADD(to, at, reg) INSN(BPF_STX | BPF_ATOMIC | BPF_W, to, reg, at, BPF_ADD | BPF_FETCH)
/* Two instructions each. */
#define MAP(reg, fd)                                                                               \
    INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
#define MAP_VALUE(reg, fd, at)                                                                     \
    INSN(BPF_LD | BPF_DW | BPF_IMM, reg, BPF_PSEUDO_MAP_VALUE, 0, fd), INSN(0, 0, 0, 0, at)
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
