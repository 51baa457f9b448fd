/* The v1 rows "c 1:3 rw" … of cgroup.c as a BPF program for v2. The kernel asks it at every open and mknod
 * of a device: r1 points to struct bpf_cgroup_dev_ctx; 1 is yes, 0 is no. mknod is never
 * allowed. Attached once, to the cgroup above all sandboxes, where it stays as long as that does. */
#include "jail/device_filter.h"

#include "base/own.h"
#include "jail/bpf.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define ANY_MINOR UINT32_MAX

static const struct {
    uint32_t major, minor;
} allowed[] = {
    { 1, 3 },          /* null */
    { 1, 5 },          /* zero */
    { 1, 7 },          /* full */
    { 1, 8 },          /* random */
    { 1, 9 },          /* urandom */
    { 5, 0 },          /* tty */
    { 5, 2 },          /* ptmx */
    { 136, ANY_MINOR } /* pts */
};

#define LOAD(reg, field) LOAD_FROM(reg, BPF_REG_1, struct bpf_cgroup_dev_ctx, field)

static size_t write_program(struct bpf_insn *out)
{
    size_t n = 0;

    out[n++] = LOAD(BPF_REG_2, access_type); /* low half: type, high half: access */
    out[n++] = LOAD(BPF_REG_3, major);
    out[n++] = LOAD(BPF_REG_4, minor);
    out[n++] = MOVE(BPF_REG_0, 0);
    out[n++] = COPY(BPF_REG_5, BPF_REG_2);
    out[n++] = AND(BPF_REG_5, 0xffff);
    out[n++] = SKIP_IF_NOT(BPF_REG_5, BPF_DEVCG_DEV_CHAR, 1);
    out[n++] = SKIP(1);
    out[n++] = LEAVE;
    out[n++] = RIGHT(BPF_REG_2, 16);
    out[n++] = AND(BPF_REG_2, BPF_DEVCG_ACC_MKNOD);
    out[n++] = SKIP_IF_NOT(BPF_REG_2, BPF_DEVCG_ACC_MKNOD, 1);
    out[n++] = LEAVE;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        bool any = allowed[i].minor == ANY_MINOR;

        out[n++] = SKIP_IF_NOT(BPF_REG_3, allowed[i].major, (int16_t) (any ? 2 : 3));
        if (!any)
            out[n++] = SKIP_IF_NOT(BPF_REG_4, allowed[i].minor, 2);
        out[n++] = MOVE(BPF_REG_0, 1);
        out[n++] = LEAVE;
    }
    out[n++] = MOVE(BPF_REG_0, 0);
    out[n++] = LEAVE;
    return n;
}

static int load_program(struct err *err)
{
    struct bpf_insn program[16 + 4 * ARRAY_LEN(allowed)];
    union bpf_attr attr;
    int fd;

    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insn_cnt = (uint32_t) write_program(program);
    attr.insns = (uint64_t) (uintptr_t) program;
    attr.license = (uint64_t) (uintptr_t) "Apache-2.0";
    fd = bpf_call(BPF_PROG_LOAD, &attr);
    if (fd < 0)
        return err_sys(err, errno, "load the device filter");
    return fd;
}

int device_filter_attach(int cgroup_fd, struct err *err)
{
    auto_close int program_fd = load_program(err);
    union bpf_attr attr;

    if (program_fd < 0)
        return -1;
    memset(&attr, 0, sizeof attr);
    attr.target_fd = (uint32_t) cgroup_fd;
    attr.attach_bpf_fd = (uint32_t) program_fd;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = 0; /* the only one here: attached again, it replaces itself */
    if (bpf_call(BPF_PROG_ATTACH, &attr) < 0)
        return err_sys(err, errno, "attach the device filter");
    return 0;
}
