"""GET /v1/sandboxes/{id}/tunnel/{port}: bytes of a TCP port over a WebSocket. Run by tunnel_test."""
import fcntl
import hashlib
import json
import os
import socket
import struct
import sys
import termios
import threading
import time

sys.path.insert(0, "sdk/python/src")
from cove._core import websocket as ws  # noqa: E402

from harness import ask, check, run, same, server, within  # noqa: E402

OWN, OTHER, READ = (os.environ[k] for k in ("OWN_KEY", "OTHER_KEY", "READ_KEY"))
MIB = 1 << 20

INSIDE = r'''
import hashlib, os, socket, threading, time
def backwards(c):
    data = b""
    while got := c.recv(65536): data += got
    c.sendall(data[::-1])
def echo(c):
    while got := c.recv(65536): c.sendall(got)
def pour(c):
    for _ in range(1600): c.sendall(b"0123456789abcdef" * 4096)
def late(c):
    c.sendall(b"here")
    while not os.path.exists("read"): time.sleep(0.02)
    sum, n = hashlib.sha256(), 0
    while got := c.recv(65536): sum.update(got); n += len(got)
    c.sendall(("%d %s" % (n, sum.hexdigest())).encode())
def note(c):
    while c.recv(65536): pass
    open("noted", "a").write("end ")
def early(c):
    c.recv(10); c.sendall(b"enough")
def run(port, what):
    def one(c):
        try: what(c)
        except OSError: pass
        c.close()
    s = socket.create_server(("127.0.0.1", port), backlog=64)
    while True:
        c, _ = s.accept()
        threading.Thread(target=one, args=(c,)).start()
for i, what in enumerate((backwards, echo, pour, late, note, early)):
    threading.Thread(target=run, args=(7000 + i, what)).start()
open("ready", "w").close()
'''
BACKWARDS, ECHO, POUR, LATE, NOTE, EARLY = range(7000, 7006)


class Tunnel:
    ended = False

    def __init__(self, box, port, key=None):
        self.s = server.connect(60)
        more = "X-API-Key: %s\r\n" % key if key else ""
        self.s.sendall(("GET /v1/sandboxes/%s/tunnel/%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n" % (
            box, port, more, "".join("%s: %s\r\n" % h for h in ws.upgrade_headers(ws.new_key())))).encode())
        self.reader, self.waiting, self.head = ws.FrameReader(), [], b""
        while b"\r\n\r\n" not in self.head:
            got = self.s.recv(1)
            if not got:
                break
            self.head += got
        self.status = int(self.head.split(b" ")[1])
        if self.status != 101:
            length = int(self.head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            self.error = json.loads(self.whole(length))["error"]

    def whole(self, size):
        out = b""
        while len(out) < size:
            out += self.s.recv(size - len(out))
        return out

    def send(self, data):
        for at in range(0, len(data), 100000):
            self.s.sendall(ws.frame(ws.BINARY, data[at:at + 100000]))

    def end(self):
        self.ended = True
        self.s.sendall(ws.frame(ws.TEXT, b'{"type":"end"}'))

    def next(self):
        while not self.waiting:
            got = self.s.recv(65536)
            if not got:
                return None
            self.waiting += self.reader.feed(got)
        return self.waiting.pop(0)

    def rest(self):
        """All bytes, the texts, and the code of the close. The end of the other side is answered with ours."""
        data, texts = hashlib.sha256(), []
        size = 0
        while m := self.next():
            if m.op == ws.BINARY:
                data.update(m.data)
                size += len(m.data)
            elif m.op == ws.TEXT:
                texts.append(json.loads(m.data))
                if texts[-1]["type"] == "end" and not self.ended:
                    self.end()
            elif m.op == ws.PING:
                self.s.sendall(ws.frame(ws.PONG, m.data))
            elif m.op == ws.CLOSE:
                self.s.close()
                return size, data.hexdigest(), texts, m.code
        return size, data.hexdigest(), texts, None

    def read(self, size):
        out = b""
        while len(out) < size:
            m = self.next()
            if m is None or m.op != ws.BINARY:
                return out, m
            out += m.data
        return out


def memory():
    return server.status("VmRSS") << 10


def made(**more):
    box = ask("POST", "/v1/sandboxes", {"timeout": 600, **more}).json["id"]
    ask("PUT", "/v1/sandboxes/%s/files?path=inside.py" % box, INSIDE)
    ask("POST", "/v1/sandboxes/%s/processes" % box, {"command": "exec python3 inside.py"})
    if not within(40, lambda: there(box, "ready")):
        check("servers start inside", False, box)
        sys.exit(1)
    return box


def there(box, path):
    return ask("GET", "/v1/sandboxes/%s/files/stat?path=%s" % (box, path)).status == 200


def content(box, path):
    return ask("GET", "/v1/sandboxes/%s/files?path=%s" % (box, path)).body


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def ordinary(box):
    data = os.urandom(8 * MIB)
    t = Tunnel(box, BACKWARDS)
    same("a tunnel is a WebSocket", 101, t.status)
    t.send(data)
    t.end()
    same("8 MiB go in, the end of that direction arrives, and 8 MiB come out", (len(data), sum_of(data[::-1]), [{"type": "end"}], 1000), t.rest())
    t = Tunnel(box, ECHO)
    t.s.sendall(ws.frame(ws.BINARY, b"") + ws.frame(ws.PING, b"here?") + ws.frame(ws.BINARY, b"one"))
    first, second = t.next(), t.next()
    same("a ping is answered between bytes", {(ws.PONG, b"here?"), (ws.BINARY, b"one")}, {(m.op, m.data) for m in (first, second)})
    t.s.sendall(ws.close_frame(1000, ""))
    same("the client's close is answered", 1000, t.rest()[3])
    t = Tunnel(box, EARLY)
    t.send(b"x" * 10)
    answer = t.read(6)
    t.send(b"y" * 100)
    same("a server that answers and closes early has its answer delivered", b"enough", answer)
    t.end()
    same("a server that closes early ends the tunnel well", ([{"type": "end"}], 1000), t.rest()[2:])
    t = Tunnel(box, NOTE)
    t.send(b"abc")
    t.s.close()
    check("a client that just goes away ends the connection inside", within(40, lambda: content(box, "noted") == b"end "))
    same("a tunnel with a key of the tenant", 101, Tunnel(box, ECHO, OWN).status)
    check("tunnels are in the audit", within(40, lambda: box in json.dumps(ask("GET", "/audit-logs?action=port.tunnel").json)))


def refusals(box):
    for sentence, want, t in (
            ("another tenant's sandbox is not found", (404, "sandbox_not_found"), Tunnel(box, ECHO, OTHER)),
            ("a key that may only read is refused", (403, "permission_denied"), Tunnel(box, ECHO, READ)),
            ("a wrong key is refused", (401, "permission_denied"), Tunnel(box, ECHO, "cove_nonsense")),
            ("an unknown sandbox is not found", (404, "sandbox_not_found"), Tunnel("i" + "a" * 20, ECHO)),
            ("a port where nothing listens is said before the upgrade", (502, "port_closed"), Tunnel(box, 6999)),
            ("port 0 is refused", (400, "invalid"), Tunnel(box, 0)),
            ("port 65536 is refused", (400, "invalid"), Tunnel(box, 65536)),
            ("a port that is no number is refused", (400, "invalid"), Tunnel(box, "http"))):
        same(sentence, want, (t.status, t.error["code"]))
    same("a request that is no WebSocket's is told what is needed", 426, ask("GET", "/v1/sandboxes/%s/tunnel/%d" % (box, ECHO)).status)
    for sentence, code, frames in (
            ("a text that is not JSON is refused", 1008, ws.frame(ws.TEXT, b"end")),
            ("an unknown text is refused", 1008, ws.frame(ws.TEXT, b'{"type":"resize"}')),
            ("a long text is refused", 1009, ws.frame(ws.TEXT, b" " * 100000)),
            ("bytes behind the end are refused", 1008, ws.frame(ws.TEXT, b'{"type":"end"}') + ws.frame(ws.BINARY, b"x")),
            ("a frame that is not masked is refused", 1002, b"\x82\x01x"),
            ("a frame with reserved bits is refused", 1002, b"\xf2\x81\0\0\0\0x"),
            ("a control frame that is too long is refused", 1002, b"\x89\xfe\0\x7f" + b"\0" * 131)):
        t = Tunnel(box, ECHO)
        t.s.sendall(frames)
        same(sentence, code, t.rest()[3])


def slow(box):
    """Neither a client that does not read, nor a port that does not, fills memory or holds up others."""
    before = memory()
    poured = Tunnel(box, POUR)
    lazy = Tunnel(box, LATE)
    same("the slow server has accepted", b"here", lazy.read(4))
    data = os.urandom(MIB)
    sender = threading.Thread(target=lambda: ([lazy.send(data) for _ in range(64)], lazy.end()))
    sender.start()
    t = Tunnel(box, ECHO)
    t.send(b"meanwhile")
    same("a tunnel continues while two others stand still", b"meanwhile", t.read(9))
    t.s.close()
    ask("PUT", "/v1/sandboxes/%s/files?path=read" % box, "")
    m = lazy.next()
    sender.join()
    same("64 MiB arrive at a server that reads late", "%d %s" % (64 * MIB, sum_of(data * 64)), m.data.decode())
    same("100 MiB arrive at a client that reads late", (100 * MIB, sum_of(b"0123456789abcdef" * (100 * MIB // 16))), poured.rest()[:2])
    check("tunnels take flat memory", memory() - before < 20 * MIB, memory() - before)


def killed(box):
    other = made()
    t = Tunnel(other, ECHO)
    t.send(b"alive")
    same("the tunnel works", b"alive", t.read(5))
    ask("DELETE", "/v1/sandboxes/" + other)
    _, _, texts, code = t.rest()
    same("a sandbox that is killed under its tunnel is told", ("sandbox_not_found", 1011), ((texts or [{}])[0].get("error", {}).get("code"), code))


def pinged(t):
    """The code of the error that ends a tunnel through which only pings go; None: they have kept it open for 20 s."""
    t.s.settimeout(0.05)
    end = time.time() + 20
    while time.time() < end:
        try:
            t.s.sendall(ws.frame(ws.PING, b""))
            m = t.next()
        except socket.timeout:
            continue
        except OSError:
            return "cut"
        if m is None or m.op == ws.TEXT:
            return m and json.loads(m.data)["error"]["code"]
    return None


def poured_full(t):
    """Waits until nothing more comes into the receive buffer of a client that does not read."""
    size, now = -1, 0
    while size != now or now == 0:
        time.sleep(0.3)
        size, now = now, struct.unpack("i", fcntl.ioctl(t.s, termios.FIONREAD, b"\0" * 4))[0]


def limits(box):
    server.kill()
    server.start("--relay-most", "2")
    first, second, third = (Tunnel(box, ECHO) for _ in range(3))
    same("two tunnels at once are allowed, not a third", (101, 101, 429), (first.status, second.status, third.status))
    first.end()
    same("a tunnel that both sides end is over", 1000, first.rest()[3])
    check("the place of a tunnel that is over is free again", within(40, lambda: Tunnel(box, ECHO).status == 101))
    server.kill()
    server.start("--relay-idle", "300ms")
    _, _, texts, code = Tunnel(box, ECHO).rest()
    same("an idle tunnel is ended, and told why", ("timeout", 1001), (texts[0]["error"]["code"], code))
    same("pings alone do not keep a tunnel open", "timeout", pinged(Tunnel(box, ECHO)))
    server.kill()
    server.start("--relay-most", "1")
    t = Tunnel(box, POUR)
    poured_full(t)
    t.s.sendall(ws.close_frame(1000, "") + b"more")
    t.s.shutdown(socket.SHUT_WR)
    check("a client that closes and does not read is waited for a few seconds", within(40, lambda: Tunnel(box, ECHO).status == 101))
    t.s.close()


box = None


def part(test):
    def one():
        global box
        box = box or made()
        test(box)
    return one


run(*map(part, (ordinary, refusals, slow, killed, limits)))
