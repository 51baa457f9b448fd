/* older_table.h - for a keeper of another version: its table of system calls has one row less (vhangup).
 *
 * Not a helper by itself: included before src/jail/seccomp.c (tests/tests.mk). */
#include <sys/syscall.h>

#undef __NR_vhangup
#define __NR_vhangup __NR_reboot
