"""descriptors.py KEEPER PID: what a process has open, one row for each number, such as "5 seccomp notify". A file that is in no mount of
the process's own is "10 outside:/dev/null"; what is the same open file as one of the keeper's is "10 keeper's /dev/null". Used by
descriptors_test and by tests of machines."""
import ctypes
import os
import platform
import re
import sys

KCMP = {"x86_64": 312}.get(platform.machine(), 272)
KCMP_FILE = 0
libc = ctypes.CDLL(None, use_errno=True)


def read(path):
    with open(path) as f:
        return f.read()


def numbers(pid):
    return sorted(map(int, os.listdir(f"/proc/{pid}/fd")))


def same_file(a, a_fd, b, b_fd):
    rc = libc.syscall(KCMP, a, b, KCMP_FILE, ctypes.c_ulong(a_fd), ctypes.c_ulong(b_fd))
    if rc < 0 and ctypes.get_errno() not in (2, 9):  # one of the two was closed meanwhile
        raise OSError(ctypes.get_errno(), "kcmp")
    return rc == 0


def describe(pid, fd, own):
    target = os.readlink(f"/proc/{pid}/fd/{fd}")
    if not target.startswith("/"):
        return re.sub(r"^anon_inode:|[][:0-9]", "", target)
    name = re.sub(r"[0-9a-f]{16}|[0-9]+", "N", target)
    mount = re.search(r"^mnt_id:\s*(\d+)", read(f"/proc/{pid}/fdinfo/{fd}"), re.M)[1]
    return name if target.startswith("/memfd:") or mount in own else "outside:" + name


keeper, pid = map(int, sys.argv[1:])
own = {line.split()[0] for line in read(f"/proc/{pid}/mountinfo").splitlines()}
of_keeper = numbers(keeper)
print(", ".join("%d %s%s" % (fd, "keeper's " if any(same_file(pid, fd, keeper, other) for other in of_keeper) else "", describe(pid, fd, own))
                for fd in numbers(pid)))
