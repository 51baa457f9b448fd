#include "wire/vm.h"

#include "check.h"

#include <stddef.h>

static void the_first_number_of_a_version_is_found(void)
{
    CHECK_INT(vm_parse_qemu_version("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\n"), 10);
    CHECK_INT(vm_parse_qemu_version("QEMU emulator version 7.2.22 (Debian)"), 7);
    CHECK_INT(vm_parse_qemu_version("QEMU emulator version 11.1"), 11);
}

static void what_is_no_version_is_none(void)
{
    static const char *const texts[] = { "",
                                         "QEMU",
                                         "QEMU emulator version ",
                                         "QEMU emulator version x",
                                         "QEMU emulator version 10",
                                         "QEMU emulator version 99999999999.1",
                                         "qemu-img version 10.0.2",
                                         "10.0.2" };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK_INT(vm_parse_qemu_version(texts[i]), 0);
}

static void parts_are_found_by_their_name(void)
{
    static const char text[] = "layout 1\nqemu 10.0.13\nqemux 1\nkernel 6.12.107-cove";
    char out[16];

    vm_parse_parts(text, "qemu", out, sizeof out);
    CHECK_STR(out, "10.0.13");
    vm_parse_parts(text, "layout", out, sizeof out);
    CHECK_STR(out, "1");
    vm_parse_parts(text, "kernel", out, sizeof out);
    CHECK_STR(out, "6.12.107-cove");
    vm_parse_parts("kernel a-name-that-is-longer-than-its-place\n", "kernel", out, sizeof out);
    CHECK_STR(out, "a-name-that-is-");
    vm_parse_parts("layout 1\nkernel\nkernels 2\n", "kernel", out, sizeof out);
    CHECK_STR(out, "");
    vm_parse_parts("", "kernel", out, sizeof out);
    CHECK_STR(out, "");
}

CHECK_MAIN(T(the_first_number_of_a_version_is_found), T(what_is_no_version_is_none),
           T(parts_are_found_by_their_name))
