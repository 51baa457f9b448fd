"""below.py - a process that enters a jail's user and mount namespaces with every capability there, and takes its root away.

   below.py PID TEMPLATE     prints ok and not ok lines; exit code 1 if any is not ok"""
import ctypes
import errno
import os
import sys

import harness

pid, template = int(sys.argv[1]), sys.argv[2]
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MNT_DETACH, MS_REMOUNT, MS_BIND = 2, 32, 4096
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    """0, or the errno."""
    return 0 if getattr(libc, name)(*args) == 0 else ctypes.get_errno()


def check(sentence, good, got=""):
    harness.check(f"{template}: {sentence}", good, got)


def told(number):
    return errno.errorcode.get(number, str(number))


def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError as e:
        return [e.strerror]


user, mounts = (os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "mnt"))
entered = call("setns", user, CLONE_NEWUSER) or call("setresgid", 0, 0, 0) or call("setresuid", 0, 0, 0) or call("setns", mounts, CLONE_NEWNS)
check("the process that has every capability is in the namespaces", entered == 0, told(entered))
check("the process that enters them is at the sandbox's root", "shown" not in names("/"), names("/"))
gone = call("umount2", b"/", MNT_DETACH)
check("a process with every capability takes the root away", gone == 0, told(gone))
again = call("setns", mounts, CLONE_NEWNS)
check("the process enters what is below", again == 0, told(again))

below = names("/")
check("below the root is what mounts are made from, and no more", below == ["agents", "dev", "disk", "empty", "proc", "shown", "usr"], below)
check("the directory for masks is empty", names("/empty") == [], names("/empty"))
check("the host's programs are only below a root that has them", (names("/usr") != []) == (template == "host"), names("/usr"))
processes = [n for n in names("/proc") if n.isdigit()]
check("/proc below has no process", "sys" in names("/proc") and not processes and not os.path.exists("/proc/self"), processes)
check("/disk below is the sandbox's own", set(names("/disk")) <= {"boot_id", "shm", "upper", "work", "lost+found", "data"}, names("/disk"))
check("the programs of agents cannot be listed", names("/agents/shut") == [os.strerror(errno.EACCES)], names("/agents/shut"))
taken = call("umount2", b"/proc", MNT_DETACH)
check("/proc below cannot be taken away", taken == errno.EINVAL, told(taken))
for path in ["/", "/dev", "/shown", "/agents/shut"] + (["/usr"] if template == "host" else []):
    rc = call("umount2", path.encode(), MNT_DETACH)
    check(f"{path} below cannot be taken away", rc == errno.EINVAL, told(rc))
    rc = call("mount", None, path.encode(), None, MS_REMOUNT | MS_BIND, None)
    check(f"{path} below cannot be made writable", rc == errno.EPERM, told(rc))
    try:
        os.close(os.open(f"{path}/below", os.O_WRONLY | os.O_CREAT))
        check(f"nothing can be written to {path} below", False, "a file was made")
    except OSError as e:
        check(f"nothing can be written to {path} below", e.errno in (errno.EROFS, errno.EACCES), told(e.errno))
harness.finish()
