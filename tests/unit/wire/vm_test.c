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

CHECK_MAIN(T(the_first_number_of_a_version_is_found), T(what_is_no_version_is_none))
