"""survive_inside.py - runs in a sandbox: makes one of everything that a process can hold, and looks at it again later.

   survive_inside.py DIR       prints "ready", waits for DIR/go, prints ok lines, "done"

A thing is a generator: what is before its yield is made before the sandbox goes to disk, what is behind it is checked
after it came back. Its docstring is the sentence. Missing() before the yield skips it."""
import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
import random
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

base = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)


class Missing(Exception):
    pass


def path(name):
    return os.path.join(base, name)


def within(seconds, check):
    end = time.monotonic() + max(seconds, 20)
    while not check():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.02)


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(") ", 1)[1][0]


def variables():
    "variables of python: numbers, texts, a set, a closure, an open generator"
    held = {"n": 2 ** 200, "text": "é" * 1000, "set": set(range(1000))}
    count = (i * i for i in range(10))
    assert next(count) == 0 and next(count) == 1
    yield
    assert held == {"n": 2 ** 200, "text": "é" * 1000, "set": set(range(1000))} and list(count)[0] == 4


def memory():
    "4 MiB of random memory, by hash"
    data = random.Random(5).randbytes(4 << 20)
    was = hashlib.sha256(data).hexdigest()
    yield
    assert hashlib.sha256(data).hexdigest() == was
    assert hashlib.sha256(random.Random(5).randbytes(4 << 20)).hexdigest() == was


def threads():
    "threads: one counts, one sleeps in a condition, a thread's own variable"
    ticks, woken, ready = [0], [], threading.Condition()
    own = threading.local()

    def count():
        own.name = "counter"
        while True:
            ticks[0] += 1
            ticks.append(own.name) if len(ticks) < 2 else None
            time.sleep(0.005)

    def wait():
        with ready:
            ready.wait()
            woken.append(1)

    for body in (count, wait):
        threading.Thread(target=body, daemon=True).start()
    time.sleep(0.05)
    yield
    before = ticks[0]
    within(5, lambda: ticks[0] > before + 3)
    assert not woken
    with ready:
        ready.notify()
    within(5, lambda: woken)
    assert ticks[1] == "counter"


def tcp_pair(family=socket.AF_INET, host="127.0.0.1"):
    listener = socket.socket(family)
    listener.bind((host, 0))
    listener.listen(5)
    client = socket.create_connection(listener.getsockname()[:2])
    server = listener.accept()[0]
    return listener, client, server


def take(sock, count):
    sock.settimeout(5)
    got = b""
    while len(got) < count:
        part = sock.recv(count - len(got))
        if not part:
            break
        got += part
    return got


def tcp():
    "a TCP connection within the sandbox, with unread bytes both ways, and its options"
    listener, client, server = tcp_pair()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(b"to the server" * 1000)
    server.sendall(b"to the client" * 1000)
    yield
    assert take(server, 13000) == b"to the server" * 1000 and take(client, 13000) == b"to the client" * 1000
    client.sendall(b"more")
    assert take(server, 4) == b"more"
    assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    other = socket.create_connection(listener.getsockname())
    assert listener.accept()[0].getpeername() == other.getsockname()


def tcp6():
    "a TCP connection over ::1"
    try:
        listener, client, server = tcp_pair(socket.AF_INET6, "::1")
    except OSError as why:
        raise Missing(str(why))
    client.sendall(b"six")
    yield
    assert take(server, 3) == b"six"
    assert listener.fileno() >= 0


def tcp_half():
    "a TCP connection that is half closed: what was sent before is read, then its end; the other way continues"
    listener, client, server = tcp_pair()
    client.sendall(b"last words")
    client.shutdown(socket.SHUT_WR)
    yield
    assert take(server, 100) == b"last words"
    server.sendall(b"answer")
    server.shutdown(socket.SHUT_WR)
    assert take(client, 100) == b"answer"
    listener.close()


def tcp_full():
    "a TCP connection whose buffers are full"
    listener, client, server = tcp_pair()
    client.setblocking(False)
    data, sent = random.Random(7).randbytes(1 << 20), 0
    try:
        while sent < len(data):
            sent += client.send(data[sent:sent + 65536])
    except BlockingIOError:
        pass
    yield
    assert take(server, sent) == data[:sent], "bytes were lost"
    listener.close()


def udp():
    "bound UDP sockets"
    a, b = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
    a.bind(("127.0.0.1", 0))
    b.bind(("127.0.0.1", 0))
    b.connect(a.getsockname())
    yield
    b.send(b"datagram")
    a.settimeout(5)
    assert a.recvfrom(100) == (b"datagram", b.getsockname())


def unix_stream():
    "unix streams: unread bytes, a descriptor that is on its way, a listener in the directory of files"
    a, b = socket.socketpair()
    a.sendall(b"unread")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path("listener"))
    listener.listen(5)
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(path("listener"))
    accepted = listener.accept()[0]
    connected.sendall(b"hello")
    yield
    assert take(b, 6) == b"unread" and take(accepted, 5) == b"hello"
    b.sendall(b"back")
    assert take(a, 4) == b"back"
    other = socket.socket(socket.AF_UNIX)
    other.connect(path("listener"))
    listener.settimeout(5)
    other.sendall(b"new")
    assert take(listener.accept()[0], 3) == b"new"


def unix_passed():
    "a descriptor that was sent over a unix socket and not received yet"
    a, b = socket.socketpair()
    with open(path("passed"), "w+") as file:
        file.write("passed on")
        file.flush()
        socket.send_fds(a, [b"x"], [file.fileno()])
    yield
    text, fds = socket.recv_fds(b, 10, 1)[:2]
    assert text == b"x" and os.pread(fds[0], 100, 0) == b"passed on"


def unix_datagram():
    "unix datagrams, with their bounds; an abstract name"
    a = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.bind(path("datagram"))
    b = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    b.bind("\0abstract")
    b.connect(path("datagram"))
    b.send(b"one")
    b.send(b"two two")
    c, d = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    c.send(b"packet")
    yield
    a.settimeout(5)
    d.settimeout(5)
    assert a.recv(100) == b"one" and a.recv(100) == b"two two" and d.recv(100) == b"packet"
    assert b.getsockname() == b"\0abstract"
    b.send(b"three")
    assert a.recv(100) == b"three"


def pipes():
    "pipes: one with some bytes, one that is full, one without writer"
    r, w = os.pipe()
    os.write(w, b"in the pipe")
    full_r, full_w = os.pipe()
    os.set_blocking(full_w, False)
    amount = 0
    try:
        while True:
            amount += os.write(full_w, b"x" * 4096)
    except BlockingIOError:
        pass
    end_r, end_w = os.pipe()
    os.write(end_w, b"end")
    os.close(end_w)
    os.mkfifo(path("fifo"))
    fifo = os.open(path("fifo"), os.O_RDWR)
    os.write(fifo, b"named")
    yield
    assert os.read(r, 100) == b"in the pipe"
    os.set_blocking(full_r, False)
    got = 0
    try:
        while True:
            got += len(os.read(full_r, 65536))
    except BlockingIOError:
        pass
    assert got == amount, f"{got} of {amount} bytes"
    assert os.read(end_r, 100) == b"end" and os.read(end_r, 100) == b""
    assert os.read(fifo, 100) == b"named"


def inotify_of(where):
    fd = libc.inotify_init1(os.O_NONBLOCK)
    if libc.inotify_add_watch(fd, where.encode(), 0x100) < 0:
        raise Missing(os.strerror(ctypes.get_errno()))
    return fd


def inotify():
    "inotify watches of /tmp, of the home directory and of the directory of files"
    watched = [(inotify_of(d), d) for d in ("/tmp", os.environ["HOME"], base)]
    late = inotify_of(base)
    with open(path("late"), "w"):
        pass
    yield
    for fd, where in watched:
        with open(os.path.join(where, "watched"), "w"):
            pass
        assert b"watched" in os.read(fd, 4096), where
        os.unlink(os.path.join(where, "watched"))
    got = os.read(late, 4096)
    assert b"watched" in got and b"late" not in got, "what was unread is there: docs/pause.md says otherwise"


def memfd():
    "a memfd with its seals, mapped"
    fd = os.memfd_create("held", os.MFD_ALLOW_SEALING)
    os.write(fd, b"memory file" + bytes(8192))
    fcntl.fcntl(fd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
    held = mmap.mmap(fd, 4096)
    yield
    assert os.pread(fd, 11, 0) == b"memory file" and fcntl.fcntl(fd, 1034) == 2
    held[0:6] = b"MEMORY"
    assert os.pread(fd, 11, 0) == b"MEMORY file"


def eventfd():
    "an eventfd's count"
    fd = os.eventfd(41)
    os.eventfd_write(fd, 1)
    yield
    assert os.eventfd_read(fd) == 42


def timerfd():
    "a timerfd that has ticked, one that continues"
    def make(first, interval, flags):
        fd = libc.timerfd_create(time.CLOCK_MONOTONIC, flags)
        spec = struct.pack("qqqq", 0, interval, 0, first)
        assert fd >= 0 and libc.timerfd_settime(fd, 0, spec, None) == 0
        return fd
    ticked, goes_on, ticks = make(1000, 0, os.O_NONBLOCK), make(50_000_000, 50_000_000, 0), [0]

    def count():
        while True:
            ticks[0] += struct.unpack("Q", os.read(goes_on, 8))[0]

    threading.Thread(target=count, daemon=True).start()
    time.sleep(0.02)
    yield
    assert struct.unpack("Q", os.read(ticked, 8))[0] == 1
    before = ticks[0]
    within(5, lambda: ticks[0] > before + 1)


def signalfd():
    "a signalfd, and a blocked signal that is pending"
    os.kill(os.getpid(), signal.SIGUSR2)
    mask = struct.pack("Q", 1 << (signal.SIGUSR2 - 1))
    fd = libc.signalfd(-1, mask, os.O_NONBLOCK)
    assert fd >= 0
    yield
    assert struct.unpack("I", os.read(fd, 128)[:4])[0] == signal.SIGUSR2
    try:
        os.read(fd, 128)
        assert False, "it came twice"
    except BlockingIOError:
        pass


def epoll():
    "an epoll with its members, edge triggered and not"
    poll, (r, w), event = select.epoll(), os.pipe(), os.eventfd(0)
    poll.register(r, select.EPOLLIN)
    poll.register(event, select.EPOLLIN | select.EPOLLET)
    assert poll.poll(0) == []
    yield
    assert poll.poll(0) == []
    os.write(w, b"x")
    os.eventfd_write(event, 1)
    assert sorted(fd for fd, _ in poll.poll(5)) == sorted([r, event])


def interval_timer():
    "a timer with a signal, and its handler"
    hits = []
    signal.signal(signal.SIGALRM, lambda *_: hits.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    yield
    before = len(hits)
    within(5, lambda: len(hits) > before + 1)
    signal.setitimer(signal.ITIMER_REAL, 0)


def posix_timer():
    "a timer of POSIX with a signal"
    hits, ident = [], ctypes.c_void_p()
    signal.signal(signal.SIGUSR1, lambda *_: hits.append(1))
    event = struct.pack("PiiI", 0, signal.SIGUSR1, 0, 0) + bytes(48)
    assert libc.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(ident)) == 0
    assert libc.timer_settime(ident, 0, struct.pack("qqqq", 0, 30_000_000, 0, 30_000_000), None) == 0
    yield
    before = len(hits)
    within(5, lambda: len(hits) > before + 1)
    assert libc.timer_delete(ident) == 0


def deleted_file():
    "a deleted file that is open, twice: content, position, still writable; a deleted one that is mapped"
    one = open(path("deleted"), "w+b")
    one.write(b"0123456789" * 1000)
    one.flush()
    other = os.open(path("deleted"), os.O_RDONLY)
    os.lseek(other, 5, os.SEEK_SET)
    held = mmap.mmap(one.fileno(), 4096)
    os.unlink(path("deleted"))
    yield
    assert os.read(other, 5) == b"56789"
    one.seek(0)
    one.write(b"changed")
    one.flush()
    assert os.pread(other, 10, 0) == b"changed789" and held[:7] == b"changed"
    assert os.fstat(other).st_nlink == 0 and not os.path.exists(path("deleted"))


def linked_file():
    "a deleted name of a file that has another: it is still the same file"
    fd = os.open(path("linked"), os.O_RDWR | os.O_CREAT, 0o640)
    os.write(fd, b"linked")
    os.link(path("linked"), path("link"))
    os.unlink(path("linked"))
    yield
    os.pwrite(fd, b"LINKED", 0)
    with open(path("link")) as file:
        assert file.read() == "LINKED"
    assert os.fstat(fd).st_ino == os.stat(path("link")).st_ino, "another file"
    assert not os.path.exists(path("linked")) and os.fstat(fd).st_nlink == 1, "names are left over"


def open_files():
    "open files: position, append, renamed since, overwritten since"
    with open(path("file"), "w") as file:
        file.write("0123456789")
    fd = os.open(path("file"), os.O_RDWR)
    os.lseek(fd, 4, os.SEEK_SET)
    os.rename(path("file"), path("renamed"))
    add = os.open(path("renamed"), os.O_WRONLY | os.O_APPEND)
    yield
    assert os.read(fd, 2) == b"45"
    os.write(add, b"ab")
    assert os.pread(fd, 100, 0) == b"0123456789ab"
    assert fcntl.fcntl(add, fcntl.F_GETFL) & os.O_APPEND


def private_map():
    "a private map of a file, changed; an empty one behind it"
    with open(path("mapped"), "w+b") as file:
        file.write(b"a" * 8192)
        file.flush()
        held = mmap.mmap(file.fileno(), 8192, flags=mmap.MAP_PRIVATE)
    held[0:4] = b"mine"
    yield
    assert held[:8] == b"mineaaaa"
    with open(path("mapped"), "rb") as file:
        assert file.read(4) == b"aaaa"


def locked_by_other(kind):
    code = (f"import fcntl, sys\nf = open({path('locked-' + kind)!r}, 'r+')\n"
            f"try: fcntl.{kind}(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept OSError: sys.exit(7)\n")
    return subprocess.run([sys.executable, "-S", "-c", code]).returncode == 7


def locks():
    "locks, of POSIX and of flock: another process does not get them"
    held = []
    for kind in ("lockf", "flock"):
        file = open(path("locked-" + kind), "w+")
        getattr(fcntl, kind)(file, fcntl.LOCK_EX)
        held.append((kind, file))
    assert all(locked_by_other(kind) for kind, _ in held)
    yield
    for kind, file in held:
        assert locked_by_other(kind), kind
        getattr(fcntl, kind)(file, fcntl.LOCK_UN)
        assert not locked_by_other(kind), kind


def child(body):
    pid = os.fork()
    if pid == 0:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            body()
        finally:
            os._exit(0)
    return pid


def shared_memory():
    "memory that is shared with a child"
    held = mmap.mmap(-1, 4096)
    asked, ask = os.pipe()

    def body():
        os.read(asked, 1)
        held[0:5] = b"child"
        time.sleep(1000)

    pid = child(body)
    held[100:106] = b"parent"
    yield
    os.write(ask, b"x")
    within(5, lambda: held[0:5] == b"child")
    assert held[100:106] == b"parent"
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


def posix_shm():
    "/dev/shm: a file, and POSIX shared memory that is mapped"
    from multiprocessing import shared_memory as shm
    held = shm.SharedMemory(create=True, size=8192, name="survivor")
    held.buf[:4] = b"held"
    with open("/dev/shm/file", "w") as file:
        file.write("in shm")
    yield
    with open("/dev/shm/file") as file:
        assert file.read() == "in shm"
    other = shm.SharedMemory(name="survivor")
    assert bytes(other.buf[:4]) == b"held"
    other.buf[:4] = b"both"
    assert bytes(held.buf[:4]) == b"both"
    other.close()
    held.close()
    held.unlink()


def sysv():
    "System V: shared memory, a semaphore, a message"
    libc.shmat.restype = ctypes.c_void_p
    shm = libc.shmget(0x5150, 4096, 0o1600)
    if shm < 0:
        raise Missing(os.strerror(ctypes.get_errno()))
    at = libc.shmat(shm, None, 0)
    ctypes.memmove(at, b"sysv", 4)
    sem = libc.semget(0x5151, 1, 0o1600)
    assert libc.semctl(sem, 0, 16, 9) == 0
    queue = libc.msgget(0x5152, 0o1600)
    assert libc.msgsnd(queue, struct.pack("l8s", 3, b"message"), 8, 0) == 0
    yield
    assert ctypes.string_at(at, 4) == b"sysv" and libc.shmget(0x5150, 4096, 0) == shm
    assert libc.semctl(sem, 0, 12) == 9
    got = ctypes.create_string_buffer(16)
    assert libc.msgrcv(queue, got, 8, 3, 0) == 8 and got.raw[8:15] == b"message"


def zombie():
    "a child that has ended and was not waited for"
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    within(5, lambda: state_of(pid) == "Z")
    yield
    assert state_of(pid) == "Z"
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def stopped():
    "a child that was stopped: it stays so, and continues when told"
    r, w = os.pipe()

    def body():
        time.sleep(0.3)
        os.write(w, b"on")
        time.sleep(1000)

    pid = child(body)
    os.kill(pid, signal.SIGSTOP)
    within(5, lambda: state_of(pid) == "T")
    yield
    assert state_of(pid) == "T", state_of(pid)
    os.kill(pid, signal.SIGCONT)
    assert select.select([r], [], [], 5)[0]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def daemon():
    "a daemon that forked twice: no leader in its session, no parent of its own"
    r, w = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(w, struct.pack("i", os.getpid()))
            signal.setitimer(signal.ITIMER_REAL, 0)
            time.sleep(1000)
        os._exit(0)
    pid = struct.unpack("i", os.read(r, 4))[0]
    os.waitpid(middle, 0)
    session = os.getsid(pid)
    yield
    assert os.getsid(pid) == session and not os.path.exists(f"/proc/{session}")
    os.kill(pid, signal.SIGKILL)
    within(5, lambda: not os.path.exists(f"/proc/{pid}"))


def orphan(leader_waits):
    """A process whose parent is gone, in a session whose leader is not; its pid, and the leader's."""
    r, w = os.pipe()
    leader = os.fork()
    if leader == 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.setsid()
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(0.1)
                os.write(w, struct.pack("i", os.getpid()))
                time.sleep(1000)
            os._exit(0)
        os.wait()
        leader_waits()
        os._exit(0)
    return struct.unpack("i", os.read(r, 4))[0], leader


def orphans():
    "orphans in a session whose leader runs, and in one whose leader has ended and was not waited for"
    made = [orphan(lambda: time.sleep(1000)), orphan(lambda: None)]
    within(5, lambda: state_of(made[1][1]) == "Z")
    yield
    for pid, leader in made:
        assert os.getsid(pid) == leader
        os.kill(pid, signal.SIGKILL)
        within(5, lambda: not os.path.exists(f"/proc/{pid}"))
    os.kill(made[0][1], signal.SIGKILL)
    assert os.waitpid(made[0][1], 0)[1] == signal.SIGKILL and os.waitpid(made[1][1], 0)[1] == 0


def groups():
    "process groups and sessions of children, and a child's child"
    r, w = os.pipe()

    def body():
        os.setsid()
        grand = child(lambda: (os.setpgid(0, 0), time.sleep(1000)))
        within(5, lambda: os.getpgid(grand) == grand)
        os.write(w, struct.pack("iii", grand, os.getpgid(grand), os.getsid(grand)))
        time.sleep(1000)

    pid = child(body)
    grand, group, session = struct.unpack("iii", os.read(r, 12))
    yield
    assert (os.getpgid(grand), os.getsid(grand)) == (group, session) == (grand, pid)
    os.killpg(grand, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def settings():
    "what a process set for itself: umask, nice, limits, signal mask, ignored signals, name"
    os.umask(0o027)
    os.nice(3)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 31))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    libc.prctl(15, b"survivor")
    yield
    assert os.umask(0o027) == 0o027 and os.nice(0) == 3
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 30, 1 << 31)
    os.kill(os.getpid(), signal.SIGHUP)
    assert signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with open("/proc/self/comm") as file:
        assert file.read() == "survivor\n"


def place():
    "working directory, a deleted working directory of a child, environment, arguments"
    os.makedirs(path("cwd/gone"))
    os.chdir(path("cwd"))
    os.environ["SET"] = "later"

    def body():
        os.chdir("gone")
        time.sleep(1000)

    pid = child(body)
    within(5, lambda: os.readlink(f"/proc/{pid}/cwd").endswith("gone"))
    os.rmdir("gone")
    args = open("/proc/self/cmdline").read(), open("/proc/self/environ").read(), os.readlink("/proc/self/exe")
    yield
    assert os.getcwd() == path("cwd") and os.environ["SET"] == "later"
    assert (open("/proc/self/cmdline").read(), open("/proc/self/environ").read(), os.readlink("/proc/self/exe")) == args
    assert os.readlink(f"/proc/{pid}/cwd").endswith("gone (deleted)")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def clocks():
    "the monotonic clock runs and never goes back; the time of day is right"
    was, day = time.monotonic(), time.time()
    yield
    assert 0 < time.monotonic() - was < 600 and 0 < time.time() - day < 600


def terminal():
    "a terminal of its own: size, modes, unread input, its foreground process"
    import pty
    import termios
    pid, fd = pty.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.execvp("cat", ["cat"])
    termios.tcsetwinsize(fd, (33, 77))
    modes = termios.tcgetattr(fd)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, modes)
    yield
    assert termios.tcgetwinsize(fd) == (33, 77) and termios.tcgetattr(fd) == modes
    os.write(fd, b"typed\n")
    got = b""
    while b"typed" not in got:
        assert select.select([fd], [], [], 5)[0]
        got += os.read(fd, 100)
    os.write(fd, b"\x04")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def pidfd():
    "a pidfd"
    pid = child(lambda: time.sleep(1000))
    fd = os.pidfd_open(pid)
    yield
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    assert select.select([fd], [], [], 5)[0]
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


REFUSED = {"io_uring_setup": 425, "bpf": 321, "mount": 165, "pivot_root": 155, "keyctl": 250, "add_key": 248, "perf_event_open": 298,
           "userfaultfd": 323, "kexec_load": 246, "init_module": 175, "open_by_handle_at": 304, "swapon": 167, "quotactl": 179,
           "fanotify_init": 300, "process_vm_readv": 310, "kcmp": 312, "acct": 163, "settimeofday": 164, "setns": 308,
           "fsopen": 430, "move_mount": 429, "open_tree": 428, "ptrace": 101, "chroot": 161, "sethostname": 170, "iopl": 172}


def refused_calls():
    "refused system calls: the same ones, with the same error"
    def answer(call, *args):
        # A signal (the timers beside us) may come before the agent has seen the call. Python's handlers restart none.
        while True:
            ctypes.set_errno(0)
            got = call(*args)
            if got != -1 or ctypes.get_errno() != errno.EINTR:
                return got, errno.errorcode.get(ctypes.get_errno())

    def ask():
        got = {name: answer(libc.syscall, number, 99, 0, 0, 0, 0) for name, number in REFUSED.items()}
        for flag in (0x10000000, 0x20000, 0x40000000):  # CLONE_NEWUSER, NEWNS, NEWNET
            got[f"unshare {flag:x}"] = answer(libc.unshare, flag)
        return got
    was = ask()
    assert was["io_uring_setup"] == was["bpf"] == was["mount"] == was["keyctl"] == (-1, "EPERM"), was
    yield
    now = ask()
    assert now == was, {k: (was[k], now[k]) for k in was if was[k] != now[k]}


def agent():
    "the agent cannot be looked into: the same errors"
    def ask():
        got = {}
        for pid in ("1", "2"):
            for name in ("mem", "environ", "maps", "exe", "fd", "root", "cwd", "ns/net", "io", "stack", "syscall", "task/1/mem"):
                where = f"/proc/{pid}/{name}"
                try:
                    if name in ("exe", "root", "cwd", "ns/net"):
                        os.readlink(where)
                    else:
                        os.listdir(where) if name == "fd" else open(where, "rb").read(1)
                    got[where] = "open"
                except OSError as why:
                    got[where] = errno.errorcode[why.errno]
        return got
    was = ask()
    assert was["/proc/1/mem"] == was["/proc/1/fd"] == was["/proc/1/exe"] == "EACCES", was
    yield
    now = ask()
    assert now == was, {k: (was[k], now[k]) for k in was if was[k] != now[k]}


THINGS = (variables, memory, threads, tcp, tcp6, tcp_half, tcp_full, udp, unix_stream, unix_passed, unix_datagram,
          pipes, inotify, memfd, eventfd, timerfd, signalfd, epoll, interval_timer, posix_timer, deleted_file, linked_file, open_files,
          private_map, locks, shared_memory, posix_shm, sysv, zombie, stopped, daemon, orphans, groups, settings, place, clocks,
          terminal, pidfd, refused_calls, agent)


def main():
    os.makedirs(base, exist_ok=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])  # before there are threads: it is for all of them
    held = []
    only = sys.argv[2:]
    for thing in THINGS:
        if only and thing.__name__ not in only:
            continue
        made = thing()
        try:
            next(made)
            held.append((thing, made))
        except Missing as why:
            print(f"skip - {thing.__doc__}: {why}", flush=True)
        except Exception as why:
            print(f"not ok - before a pause: {thing.__doc__}: {why!r}", flush=True)
    print("ready", flush=True)
    while not os.path.exists(path("go")):
        time.sleep(0.02)
    for thing, made in held:
        try:
            next(made, None)
            print(f"ok - it survives: {thing.__doc__}", flush=True)
        except Exception as why:
            line = why.__traceback__.tb_next.tb_lineno if why.__traceback__.tb_next else 0
            print(f"not ok - it survives: {thing.__doc__}: line {line}: {why!r}", flush=True)
    print("done", flush=True)


main()
