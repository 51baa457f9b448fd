"""Runs inside a sandbox for relay_test: a server that says what a test wants, well-formed or not. Port of ::1: 3001, of
0.0.0.0: 3002, of 127.0.0.1: 3000."""
import base64
import hashlib
import json
import socket
import struct
import threading
import time
from urllib.parse import parse_qs, urlsplit

HOSTILE = {
    "both": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
    "twice": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "lf": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
    "cr": b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: evil=1\r\n\r\n",
    "nul": b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH\r\n",
    "status": b"HTTP/1.1 700 X\r\n\r\n",
    "unasked": b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nboo",
    "nothing": b"",
    "interims": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "badchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
    "shortlength": b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
    "shortchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "more": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    "204": b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil",
    "304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nETag: \"e\"\r\n\r\n",
    "hop": b"HTTP/1.1 200 OK\r\nConnection: close, X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n"
           b"X-Stays: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok",
    "hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "toend": b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    "old": b"HTTP/1.0 200 OK\r\n\r\nold",
}


class Client:
    def __init__(self, s):
        self.s, self.buf = s, b""

    def more(self):
        got = self.s.recv(65536)
        self.buf += got
        return got

    def line(self):
        while b"\r\n" not in self.buf:
            if not self.more():
                raise EOFError
        out, self.buf = self.buf.split(b"\r\n", 1)
        return out

    def take(self, n):
        while n > 0:
            if not self.buf and not self.more():
                raise EOFError
            out, self.buf = self.buf[:n], self.buf[n:]
            n -= len(out)
            yield out

    def body(self, headers):
        if headers.get("expect") == "100-continue":
            self.s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding") == "chunked":
            while size := int(self.line(), 16):
                yield from self.take(size)
                self.line()
            self.line()
        else:
            yield from self.take(int(headers.get("content-length", 0)))


def reply(c, status, body, extra=""):
    c.s.sendall(("HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status, len(body), extra)).encode() + body)


def echo(c, method, target, headers, query):
    sha, size = hashlib.sha256(), 0
    for piece in c.body(headers):
        sha.update(piece)
        size += len(piece)
    reply(c, "200 OK", json.dumps({"method": method, "target": target, "headers": headers, "size": size,
                                   "sha": sha.hexdigest()}).encode())


def big(c, method, target, headers, query):
    n = int(query["n"][0])
    kind = query.get("kind", ["length"])[0]
    c.s.sendall(b"HTTP/1.1 200 OK\r\n" + {"length": b"Content-Length: %d\r\n" % n, "chunked": b"Transfer-Encoding: chunked\r\n",
                                         "end": b""}[kind] + b"\r\n")
    piece = b"0123456789abcdef" * 4096
    while n > 0:
        out = piece[:n]
        n -= len(out)
        c.s.sendall(b"%x\r\n%s\r\n" % (len(out), out) if kind == "chunked" else out)
    if kind == "chunked":
        c.s.sendall(b"0\r\nX-Trailer: 1\r\n\r\n")


def sse(c, method, target, headers, query):
    c.s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for i in range(int(query.get("n", ["5"])[0])):
        c.s.sendall(b"data: %d\n\n" % i)
        time.sleep(0.2)


def endless(c, method, target, headers, query):
    """Until somebody hangs up; and then says so to whoever asks /left."""
    framing = b"" if query.get("kind") == ["end"] else b"Transfer-Encoding: chunked\r\n"
    c.s.sendall(b"HTTP/1.1 200 OK\r\n%s\r\n" % framing)
    try:
        while True:
            c.s.sendall(b"1\r\nx\r\n" if framing else b"x")
            time.sleep(0.05)
    except OSError:
        left.append(query.get("name", [""])[0])


def quiet(c, method, target, headers, query):
    """An event stream without events, for as long as somebody listens."""
    c.s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    c.more()


def hang(c, method, target, headers, query):
    name = query.get("name", [""])[0]
    left.append("waits: " + name)
    if not c.more():
        left.append(name)


def early(c, method, target, headers, query):
    reply(c, "413 Content Too Large", b"no", "Connection: close\r\n")
    time.sleep(0.5)


def duplex(c, method, target, headers, query):
    """Sends each piece back as it comes."""
    c.s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for piece in c.body(headers):
        c.s.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
    c.s.sendall(b"0\r\n\r\n")


def drip(c, method, target, headers, query):
    c.s.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        c.s.sendall(b"X-A: " + b"a" * 4000 + b"\r\n")


def raw(c, method, target, headers, query):
    c.s.sendall(HOSTILE[query["name"][0]])


def websocket(c, method, target, headers, query):
    key = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
    c.s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n" % key)
    while True:
        two = b"".join(c.take(2))
        size = two[1] & 127
        if size == 126:
            size = struct.unpack(">H", b"".join(c.take(2)))[0]
        elif size == 127:
            size = struct.unpack(">Q", b"".join(c.take(8)))[0]
        mask = b"".join(c.take(4))
        data = b"".join(c.take(size))
        data = bytes(a ^ b for a, b in zip(data, mask * (size // 4 + 1))) if size < 70000 else data
        out = bytes([two[0]]) + (bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536
                                 else b"\x7f" + struct.pack(">Q", size)) + data
        c.s.sendall(out)
        if two[0] & 15 == 8:
            return


def reverse(c, method, target, headers, query):
    """A protocol of its own: all until the client's end, then all of it backwards."""
    c.s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: reverse\r\nConnection: Upgrade\r\n\r\n")
    while c.more():
        pass
    c.s.sendall(c.buf[::-1])


def gone(c, method, target, headers, query):
    reply(c, "200 OK", json.dumps(left).encode())


left = []
PATHS = {"/big": big, "/sse": sse, "/endless": endless, "/hang": hang, "/early": early, "/duplex": duplex, "/drip": drip,
         "/raw": raw, "/ws": websocket, "/reverse": reverse, "/left": gone, "/quiet": quiet}


def serve(s):
    c = Client(s)
    try:
        method, target, _ = c.line().decode().split(" ")
        headers = {}
        while line := c.line().decode("latin-1"):
            name, value = line.split(":", 1)
            name = name.lower()
            headers[name] = headers[name] + "|" + value.strip() if name in headers else value.strip()
        at = urlsplit(target) if target.startswith("/") and not target.startswith("//") else urlsplit("/")
        PATHS.get(at.path, echo)(c, method, target, headers, parse_qs(at.query))
    except (EOFError, OSError, ValueError):
        pass
    finally:
        s.close()


def listen(family, address, port):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(128)
    while True:
        threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()


for family, address, port in ((socket.AF_INET6, "::1", 3001), (socket.AF_INET, "0.0.0.0", 3002)):
    threading.Thread(target=listen, args=(family, address, port), daemon=True).start()
print("listening", flush=True)
listen(socket.AF_INET, "127.0.0.1", 3000)
