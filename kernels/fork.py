"""Forking a context: one kernel becomes two, with one memory that is copied where it is written to.

The server starts a pump for the new context, `kernel.py fork NAME`, and at the same time hands the kernel, between two of
its cells, the line {"id":…, "fork":{"name":NAME, "pid":…of that pump}}. The kernel forks at once and says so; what it forked
waits for the pump, gets its descriptors from it, and is the new context's kernel. So the time that the new pump takes to start is
nobody's but that of the new context's first cell.

    cells, 1, 2, events    as in kernel.py
    life                   a pipe whose other end is the pump's alone. Linux sends SIGKILL to the whole process group of the
                           new kernel when that end closes, however the pump went

The new kernel is no child of its pump, and a descendant of the process that the server started for the first context of
the family; hence the process group of its own, by which the server can end one without the other. Two forks, so that the old
kernel has no child that its code did not start."""

import _socket
import fcntl
import os
import select
import signal
import sys
import time

PATIENCE = 15  # seconds for the other side to come
COUNT = 5  # descriptors: cells, stdout, stderr, events, life
F_SETSIG = 10


def address(name):
    return b"\0cove.fork." + name.encode("ascii")


def new_socket():
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)


def numbers(data):
    return [int.from_bytes(data[i:i + 4], sys.byteorder) for i in range(0, len(data), 4)]


# ---- the kernel ----


def split_off(name, pump, places, group=0):
    """0 in the new kernel, once its pump has come, with cells and events in their old places. In the old one the process in
    between, which is to be reaped when the server has its answer: to take down a copy of much memory takes longer than to make
    it. `group`: a process group to join, else it has a session of its own. OSError: there is no new one."""
    door = new_socket()
    door.bind(address(name))
    door.listen(4)
    told, tell = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(told)
        try:
            if os.fork() != 0:
                os.write(tell, b"\0")
                os._exit(0)
        except OSError as error:
            os.write(tell, bytes([error.errno]))
            os._exit(1)
        os.close(tell)
        if not become(places, door, pump, group):
            os._exit(1)
        return 0
    door.close()
    os.close(tell)
    code = os.read(told, 1)
    os.close(told)
    if code == b"\0":
        return between
    reap(between)
    code = code[0] if code else 11
    raise OSError(code, os.strerror(code))


def reap(between):
    try:
        os.waitpid(between, 0)
    except ChildProcessError:
        pass  # the code ignores SIGCHLD


def become(places, door, pump, group):
    """While it waits it has nothing of the old kernel's: its pump must hear the old kernel's end."""
    try:
        os.setpgid(0, group) if group else os.setsid()
    except OSError:
        return False  # that group is gone
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in places + (1, 2):
        os.dup2(null, fd, fd < 3)
    os.close(null)
    fds = receive(door, pump)
    door.close()
    if fds is None:
        return False
    settle(fds, places)
    return True


def receive(door, pump):
    """From the pump that the server started, and nobody else."""
    until = time.monotonic() + PATIENCE
    poll = select.poll()
    poll.register(door.fileno(), select.POLLIN)
    while poll.poll(max(0, int(1000 * (until - time.monotonic())))):
        link = _socket.socket(fileno=door._accept()[0])
        pid, uid, _ = numbers(link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        if pid == pump and uid == os.geteuid():
            link.settimeout(PATIENCE)
            _, packed, _, _ = link.recvmsg(1, _socket.CMSG_SPACE(4 * COUNT), _socket.MSG_CMSG_CLOEXEC)
            fds = numbers(packed[0][2]) if packed else []
            link.send(str(os.getpgrp()).encode("ascii"))
            link.close()
            return fds if len(fds) == COUNT else None
        link.close()
    return None


def settle(fds, places):
    cells, events = places
    for fd, place in zip(fds, (cells, 1, 2, events)):
        os.dup2(fd, place, place < 3)
        os.close(fd)
    tie(fds[4])


life = -1  # of a kernel that was forked


def tie(fd):
    global life
    if life >= 0:
        os.close(life)
    life = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(fd)
    fcntl.fcntl(life, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(life, 0)
    if poll.poll(0):
        os._exit(1)  # it closed before we listened


# ---- the pump ----


def connect(name):
    """The kernel may not have come to it yet: it is asked again."""
    until = time.monotonic() + PATIENCE
    while True:
        link = new_socket()
        try:
            link.connect(address(name))
            return link
        except ConnectionRefusedError:
            link.close()
            if time.monotonic() > until:
                sys.exit("the kernel did not fork")
            time.sleep(0.001)


def join(name, base):
    """A pump like that of kernel.py, for a kernel that is there already."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    link = connect(name)
    out_r, out_w = base.pipe()
    err_r, err_w = base.pipe()
    events_r, events_w = base.pipe()
    life_r, _ = base.pipe()  # the other end closes with this process
    theirs = [0, out_w, err_w, events_w, life_r]
    packed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in theirs)
    try:
        link.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
        answer = link.recv(16)
    except OSError:
        answer = b""
    link.close()
    if not answer.isdigit():
        sys.exit("the forked kernel is gone")
    group = int(answer)

    def pass_on(number, frame):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            pass

    signal.signal(signal.SIGINT, pass_on)
    out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for fd in theirs[1:]:
        os.close(fd)
    try:
        base.Pump(out, [base.Output(out_r, "stdout"), base.Output(err_r, "stderr")], events_r).run()
    except OSError:
        pass  # nobody reads any more
    os._exit(1)  # how the kernel ended is not ours to know: it is no child of ours
