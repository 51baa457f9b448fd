"""Clients that stall, dribble, flood and vanish, and a server that runs out of threads and descriptors: who asks as
one should is served all the time. Run by crowd_test; CROWD says how many stalled readers there are."""
import contextlib
import json
import os
import socket
import statistics
import struct
import subprocess
import threading
import time

from harness import STATE, Server, check, finish, read_all, same, status_of, within

COVE = os.environ["COVE"]
CROWD = int(os.environ.get("CROWD", "1500"))
HANG = 60  # seconds that nothing here may take


def fds(s):
    return len(os.listdir("/proc/%d/fd" % s.p.pid))


def connections(s):
    """How many connections the server has not closed."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(r[1].endswith(":%04X" % s.port) and r[3] == "01" for r in rows)


def threads(s):
    return s.status("Threads")


def memory_mib(s):
    return s.status("VmRSS") // 1024


class Healthy:
    """Runs a command again and again on a connection of its own each time, and notes what came of it."""

    def __init__(self, server):
        self.s = server
        self.box = server.ask("POST", "/v1/sandboxes", {"timeout": 600}).json["id"]
        self.times, self.bad, self.stop = [], [], False
        self.t = None

    def once(self):
        begin = time.time()
        try:
            a = self.s.ask("POST", "/v1/sandboxes/%s/exec" % self.box, {"args": ["true"]}, timeout=HANG)
            if a.status != 200 or a.json["exit_code"] != 0:
                self.bad.append((a.status, a.body[:100]))
        except OSError as e:
            self.bad.append(repr(e))
        self.times.append(time.time() - begin)

    def loop(self):
        while not self.stop:
            self.once()
            time.sleep(0.02)

    def __enter__(self):
        self.times, self.bad, self.stop = [], [], False
        self.t = threading.Thread(target=self.loop)
        self.t.start()
        return self

    def __exit__(self, *_):
        self.stop = True
        self.t.join()

    def judge(self, sentence, quiet):
        """Loosely: a median of a second more than in quiet would be a server that is stuck."""
        median = statistics.median(self.times)
        check("%s: a healthy caller is served (%d times)" % (sentence, len(self.times)),
              len(self.bad) <= len(self.times) // 10 and len(self.times) > 5, self.bad[:3])
        check("%s: a healthy caller does not wait" % sentence, median < quiet + 1 and max(self.times) < HANG,
              "median %.3f s, quiet %.3f s, longest %.3f s" % (median, quiet, max(self.times)))
        print("# %s: median %.1f ms (quiet %.1f ms), longest %.1f ms" % (sentence, median * 1e3, quiet * 1e3, max(self.times) * 1e3))


def gone(sock):
    """Ends a connection as a client that crashed: with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


s = Server("--head-timeout", "3s", "--stall-timeout", "4s", "--threads", "64", "--stalled", "400", "--idle", "60s").start()
healthy = Healthy(s)
for _ in range(30):
    healthy.once()
quiet = statistics.median(healthy.times)
base_fds, base_threads = fds(s), threads(s)

# ---- readers that stall ----
ASK = b"GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n" * 120
readers = []
with healthy:
    for _ in range(CROWD):
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.settimeout(HANG)
        with contextlib.suppress(OSError):
            c.connect(("127.0.0.1", s.port))
            c.sendall(ASK)
        readers.append(c)
    most_threads, most_memory, begin = 0, 0, time.time()
    # Long enough to tell: while more stall than there are threads for, a request waits for up to a second.
    while time.time() < begin + 2 or (len(healthy.times) <= 10 and time.time() < begin + HANG):
        time.sleep(0.1)
        most_threads, most_memory = max(most_threads, threads(s)), max(most_memory, memory_mib(s))
healthy.judge("%d readers that stall" % CROWD, quiet)
check("readers that stall cost a bounded number of threads (%d) and memory (%d MiB)" % (most_threads, most_memory),
      most_threads <= base_threads + 64 + 800 and most_memory < 400, "")
for c in readers:
    c.close()
check("readers that stall leave no descriptor when they are gone", within(HANG, lambda: fds(s) <= base_fds + 2), (base_fds, fds(s)))

# ---- a stalled download ----
box = s.ask("POST", "/v1/sandboxes", {"timeout": 600}).json["id"]
at = "/v1/sandboxes/%s/files?path=/home/user/" % box
same("a large file is written", 2, s.ask("PUT", at + "big", b"x" * (16 << 20)).status // 100)


def names():
    return sorted(e["path"] for e in s.ask("GET", "/v1/sandboxes/%s/files/list?path=/home/user" % box).json["entries"])


home = names()
idle = connections(s)
stalled = [socket.socket() for _ in range(20)]
with healthy:
    for c in stalled:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.connect(("127.0.0.1", s.port))
        c.sendall(b"GET %sbig HTTP/1.1\r\nHost: localhost\r\n\r\n" % at.encode())
    time.sleep(1)
healthy.judge("20 downloads that stall", quiet)
check("downloads that stand still do not stay", within(HANG, lambda: connections(s) <= idle), (idle, connections(s)))
got = [len(read_all(c)) for c in stalled]
check("downloads that stand still are cut after stall_timeout", max(got) < 16 << 20, got)
base_fds = fds(s)

# ---- heads that come slowly ----
heads = [s.connect() for _ in range(500)]
before_heads = threads(s)  # idle ones of before among them: they go by and by
with healthy:
    first = time.time()
    while time.time() < first + 1:  # less than the time that a head has: who writes on then may miss the answer
        for c in heads:
            with contextlib.suppress(OSError):
                c.send(b"G" if c is heads[0] else b"X")
        time.sleep(0.2)
    check("500 slow heads cost no threads (%d)" % threads(s), threads(s) <= before_heads + 64, (before_heads, threads(s)))
healthy.judge("500 slow heads", quiet)
answers = [status_of(read_all(c)) for c in heads]
check("each is told 408", answers.count(408) >= 495, {a: answers.count(a) for a in answers})

# ---- bodies that come slowly, or not at all ----
bodies = [s.connect() for _ in range(60)]
with healthy:
    for i, c in enumerate(bodies):
        c.sendall(b"PUT %sslow%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx" % (at.encode(), i))
    for _ in range(6):
        for c in bodies[:30]:
            with contextlib.suppress(OSError):
                c.send(b"x")
        time.sleep(0.2)
healthy.judge("60 bodies that come slowly", quiet)
for c in bodies:
    c.settimeout(HANG)
begin = time.time()
answers = [status_of(read_all(c)) for c in bodies]
check("a body that stands still ends with an answer, or cut", time.time() - begin < HANG and not set(answers) & {200, 201, 204}, answers)
check("a body that stands still leaves no file behind", within(HANG, lambda: names() == home), names())

# ---- clients that vanish ----
before = fds(s)
for i in range(30):
    c = s.connect()
    c.sendall(b"PUT %sgone%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n%s" % (at.encode(), i, b"y" * 5000))
    gone(c)
for i in range(10):
    c = s.connect()
    body = json.dumps({"command": "while :; do echo yes; done"}).encode()
    c.sendall(b"POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n"
              b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (box.encode(), len(body), body))
    check("a stream begins", c.recv(100).startswith(b"HTTP/1.1 200"), "") if i == 0 else c.recv(100)
    gone(c)


def running():
    return [p for p in s.ask("GET", "/v1/sandboxes/%s/processes" % box).json["processes"] if p["running"]]


check("a command whose client vanished ends", within(HANG, lambda: not running()), running())
check("uploads that were cut leave no file", within(HANG, lambda: names() == home), names())
check("uploads that were cut leave no descriptor", within(HANG, lambda: fds(s) <= before + 2), (before, fds(s)))
same("the server ends as it should", 0, s.end())

# ---- all threads busy ----
s = Server("--threads", "4").start()
box = s.ask("POST", "/v1/sandboxes", {"timeout": 600}).json["id"]
run = "/v1/sandboxes/%s/exec" % box
results = []


def ask(command):
    a = s.ask("POST", run, {"command": command}, timeout=HANG)
    results.append((a.status, a.headers.get("Retry-After"), a.error.get("code"), a.json and a.json.get("exit_code")))


def inside(command):
    """Past the server, which has no thread for it."""
    return subprocess.run([COVE, "--state", STATE, "exec", box, "--", "sh", "-c", command], capture_output=True, text=True).stdout


long = [threading.Thread(target=ask, args=("echo >>/tmp/in; until [ -e /tmp/out ]; do sleep 0.05; done",)) for _ in range(4)]
[t.start() for t in long]
within(HANG, lambda: inside("wc -l </tmp/in") == "4\n")
more = [threading.Thread(target=ask, args=("true",)) for _ in range(12)]
[t.start() for t in more]
[t.join() for t in more]
refused = [r for r in results if r[0] == 503]
check("with all threads busy, new requests get 503 and a reason", len(refused) == 12 and refused[0][1:3] == ("1", "too_many"), results)
same("requests beyond all threads do not wait", [], [r for r in results if r[0] != 503])
inside("touch /tmp/out")
[t.join() for t in long]
same("what was under way continues", [0] * 4, [r[3] for r in results if r[0] == 200])
same("requests are served again when threads are free", 200, s.ask("POST", run, {"command": "true"}).status)
s.end()

# ---- out of descriptors ----
s = Server("--threads", "16", "--idle", "60s", wrap=["prlimit", "--nofile=256:256"]).start()
box = s.ask("POST", "/v1/sandboxes", {"timeout": 600}).json["id"]
kept = s.connect()
kept_file = kept.makefile("rb")


def on_kept():
    body = b'{"args": ["true"]}'
    kept.sendall(b"POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (box.encode(), len(body), body))
    status, length = kept_file.readline(), 0
    while (line := kept_file.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split()[1])
    kept_file.read(length)
    return status_of(status)


same("a connection is open", 200, on_kept())
many = [s.connect() for _ in range(400)]
time.sleep(0.3)
answer = read_all(many[-1])
same("more connections than descriptors allow get 503", 503, status_of(answer))
same("open connections continue when descriptors have run out", 200, on_kept())
for c in many:
    c.close()
check("new connections are taken as soon as there is room", within(HANG, lambda: status_of(s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")) == 200))
# Down to the spare descriptor: what is free below it is used up first.
spare = next(int(n) for n in os.listdir("/proc/%d/fd" % s.p.pid)
             if int(n) > 2 and os.readlink("/proc/%d/fd/%s" % (s.p.pid, n)) == "/dev/null")
subprocess.run(["prlimit", "--pid", str(s.p.pid), "--nofile=%d:256" % (spare + 1)], check=True)
got, held = b"", []
for _ in range(100):
    c = s.connect()
    c.settimeout(0.3)
    with contextlib.suppress(OSError):
        if c.recv(1, socket.MSG_PEEK):
            got = read_all(c)
    held.append(c)
    if got:
        break
same("without a single descriptor it is still said", (503, True), (status_of(got), b"out of descriptors" in got))
[c.close() for c in held]
subprocess.run(["prlimit", "--pid", str(s.p.pid), "--nofile=256:256"], check=True)
check("a server without a single descriptor recovers", within(HANG, lambda: status_of(s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")) == 200))
s.end()
finish()
