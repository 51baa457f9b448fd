#include "base/kvm.h"

#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MEMORY    (64u << 10)
#define CODE      0x1000u
#define TURNS     20000u /* of a loop of two instructions */
#define ENOUGH_MS 10     /* of a processor; real hardware takes none */
#define ROUNDS                                                                                     \
    5 /* a host that is a virtual machine itself may not get its processor meanwhile, which counts as used */
#define END_MS       2000 /* a kernel that does not come back */
#define PORT         0x10
#define PLACE_OF_TSS 0xfffbd000ul
#define SUPPORTED    'y'

/* Real mode, 16 bits: mov ecx, TURNS; dec ecx; jnz; out PORT, al */
/* clang-format off */
static const uint8_t code[] = { 0x66, 0xb9, TURNS & 0xff, (TURNS >> 8) & 0xff, (TURNS >> 16) & 0xff, TURNS >> 24,
                                0x66, 0x49, 0x75, 0xfc, 0xe6, PORT, 0xf4 };
/* clang-format on */

/* However many others want the processor. */
static uint64_t used_ms(void)
{
    struct timespec used = { 0 };

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t) used.tv_sec * 1000 + (uint64_t) used.tv_nsec / 1000000;
}

/* That code from its beginning, up to its word by the port. -1: it does not come that far; else the time in ms. */
static int64_t run_once(int cpu, const struct kvm_run *state)
{
    const struct kvm_regs registers = { .rip = CODE, .rflags = 2 };
    uint64_t begin = used_ms();

    if (ioctl(cpu, KVM_SET_REGS, &registers) < 0)
        return -1;
    while (ioctl(cpu, KVM_RUN, 0) == 0 || errno == EINTR)
        if (state->exit_reason != KVM_EXIT_INTR)
            return state->exit_reason == KVM_EXIT_IO && state->io.port == PORT
                       ? (int64_t) (used_ms() - begin)
                       : -1;
    return -1;
}

/* A machine with one processor, which is fast enough once. */
static int run(int kvm)
{
    struct kvm_userspace_memory_region region = { .memory_size = MEMORY };
    struct kvm_sregs special;
    int vm = ioctl(kvm, KVM_CREATE_VM, 0), cpu, size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    uint8_t *memory =
        mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct kvm_run *state;
    int64_t ms = ENOUGH_MS;

    if (vm < 0 || size < 0 || memory == MAP_FAILED)
        return -1;
    memcpy(memory + CODE, code, sizeof code);
    region.userspace_addr = (uintptr_t) memory;
    if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
        return -1;
    (void) ioctl(vm, KVM_SET_TSS_ADDR,
                 PLACE_OF_TSS); /* old processors of Intel's need it for such code */
    cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
    state = cpu < 0 ? MAP_FAILED
                    : mmap(NULL, (size_t) size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
    if (state == MAP_FAILED || ioctl(cpu, KVM_GET_SREGS, &special) < 0)
        return -1;
    special.cs.base = special.cs.selector = 0;
    if (ioctl(cpu, KVM_SET_SREGS, &special) < 0)
        return -1;
    for (int i = 0; i < ROUNDS && ms >= ENOUGH_MS; i++)
        ms = run_once(cpu, state);
    return ms >= 0 && ms < ENOUGH_MS ? 0 : -1;
}

static _Noreturn void become_probe(int kvm, int out)
{
    int keep[] = { kvm, out };

    io_keep_only(keep, ARRAY_LEN(keep));
    if (run(kvm) == 0)
        IGNORE(write(out, &(char){ SUPPORTED }, 1) < 0);
    _exit(0);
}

static bool runs_code(int kvm)
{
    auto_close int from = -1, to = -1;
    char answer = 0;
    int pair[2];
    pid_t pid;
    bool yes;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return false;
    from = pair[0];
    to = pair[1];
    pid = fork();
    if (pid == 0)
        become_probe(kvm, to);
    own_close(&to);
    if (pid < 0)
        return false;
    yes = io_read_until(from, &answer, 1, io_now_ms() + END_MS) == 0 && answer == SUPPORTED;
    (void) kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return yes;
}

int kvm_try(int dev_fd, const char **ret_why)
{
    auto_close int fd = openat(dev_fd, "kvm", O_RDWR | O_CLOEXEC);

    if (fd < 0) {
        *ret_why = errno == ENOENT ? "this host has no KVM (/dev/kvm is not there)"
                                   : "/dev/kvm cannot be opened";
        return -1;
    }
    if (ioctl(fd, KVM_GET_API_VERSION, 0) != KVM_API_VERSION || !runs_code(fd)) {
        *ret_why = "KVM of this host does not run code, or is far too slow";
        return -1;
    }
    return take_fd(&fd);
}
