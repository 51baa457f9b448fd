"""importer.py PROGRAM: starts cove-import as its parent does, and says what it can reach while it waits for its first file.

One fact a line, as 'name value', for image_test."""
import os
import socket
import sys

ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
image = os.memfd_create("image")
tools = os.memfd_create("tools")
program = os.open(sys.argv[1], os.O_RDONLY)
pid = os.fork()
if pid == 0:
    high = [os.dup2(fd, 100 + i) for i, fd in enumerate([theirs.fileno(), image, tools, program])]
    for i, fd in enumerate(high[:3]):
        os.dup2(fd, 3 + i)
    os.closerange(6, 103)
    os.closerange(104, 4096)
    os.set_inheritable(103, False)
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    os.execve(103, ["cove-import", "--archive"], {})
theirs.close()
print("asks", ours.recv(100).decode().strip())
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/%d/status" % pid) if ":\t" in line)
print("capabilities", int(status["CapEff"], 16) | int(status["CapPrm"], 16))
print("no_new_privs", status["NoNewPrivs"])
print("seccomp", status["Seccomp"])
limits = {line[:26].strip(): line[26:].split()[0] for line in open("/proc/%d/limits" % pid)}
print("memory", limits["Max address space"])
print("descriptors", " ".join(sorted(fd for fd in os.listdir("/proc/%d/fd" % pid) if int(fd) > 2)))
ours.close()
print("ends", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
