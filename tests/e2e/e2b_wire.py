"""Connect RPC to envd as E2B's SDKs put it on the wire, without any of them: in the form of the JavaScript SDK (chunked
bodies) and in that of the Python SDK (Content-Length, indented JSON, identity named)."""
import base64
import http.client
import json
import socket
import struct

import harness


def envelope(message, flags=0):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


class Stream:
    """The answer to a call that streams: events come by iteration; then `end` is the end frame, or None: cut."""

    def __init__(self, conn, response):
        self.conn, self.r, self.end = conn, response, None
        self.status, self.type = response.status, response.headers.get("Content-Type")
        self.flags, self.largest = [], 0

    def read(self, n):
        data = b""
        while len(data) < n:
            more = self.r.read(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def __iter__(self):
        try:
            while True:
                flags, size = struct.unpack(">BI", self.read(5))
                self.flags.append(flags)
                message = json.loads(self.read(size))
                if flags == 2:
                    self.end = message
                    assert self.r.read() == b""  # and the body is whole
                    return
                yield message
        except (EOFError, http.client.HTTPException, ConnectionError):
            return

    def next(self):
        return next(iter(self), None)

    def close(self):
        # At once: a socket that lingers would keep the server from seeing it.
        self.conn.sock and self.conn.sock.close()
        self.r.close()
        self.conn.close()


class Box:
    def __init__(self, create=None, form="js", key=None, box=None):
        self.form, self.user = form, None
        if box:
            self.id, self.token = box.id, box.token
            return
        body = {"templateID": "host", "timeout": 600}
        body.update(create or {})
        a = harness.ask("POST", "/v2/sandboxes", body, key=key, headers={"Content-Type": "application/json"})
        assert a.status == 201, a.body
        self.id, self.token = a.json["sandboxID"], a.json["envdAccessToken"]

    def kill(self, key=None):
        return harness.ask("DELETE", "/sandboxes/" + self.id, key=key).status

    def health(self):
        return harness.ask("GET", "/health", headers={"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983"}).status

    def headers(self, more=None):
        h = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token,
             "Connect-Protocol-Version": "1"}
        if self.user is not None:
            h["Authorization"] = "Basic " + base64.b64encode((self.user + ":").encode()).decode()
        h.update(more or {})
        return {k: v for k, v in h.items() if v is not None}

    def send(self, method, body, headers, pieces=None, timeout=60):
        """The request; `pieces`: sizes in which the body leaves, each a chunk and a packet of its own."""
        conn = harness.server.http(timeout)
        conn.connect()
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn.putrequest("POST", method if method.startswith("/") else "/process.Process/" + method)
        for k, v in headers.items():
            conn.putheader(k, v)
        chunked = self.form == "js"
        conn.putheader(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))))
        conn.endheaders()
        at = 0
        for size in pieces or [len(body)]:
            piece = body[at:at + size]
            at += size
            if piece:
                conn.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            conn.send(b"0\r\n\r\n")
        return conn, conn.getresponse()

    def unary(self, method, message, headers=None):
        """Status and JSON."""
        h = {"Content-Type": "application/json"}
        if self.form == "py":
            h.update({"Content-Encoding": "identity", "Accept-Encoding": "identity", "Connect-Timeout-Ms": "60000"})
        else:
            h["Accept-Encoding"] = "gzip, deflate"
        if not isinstance(message, bytes):
            message = json.dumps(message, indent=2 if self.form == "py" else None).encode()
        conn, r = self.send(method, message, self.headers({**h, **(headers or {})}))
        data = r.read()
        conn.close()
        try:
            return r.status, json.loads(data)
        except ValueError:
            return r.status, data

    def stream(self, method, message, headers=None, pieces=None, timeout=60):
        h = {"Content-Type": "application/connect+json", "Keepalive-Ping-Interval": "50"}
        if self.form == "py":
            h.update({"Connect-Content-Encoding": "identity", "Connect-Accept-Encoding": "identity"})
        body = message
        if not isinstance(body, bytes):
            body = envelope(json.dumps(message, indent=2 if self.form == "py" else None).encode())
        return Stream(*self.send(method, body, self.headers({**h, **(headers or {})}), pieces, timeout))

    def start(self, command, headers=None, pieces=None, timeout=60, **more):
        """As the SDKs start commands; returns the stream, whose first event is still to come."""
        process = {"cmd": "/bin/bash", "args": ["-l", "-c", command]}
        for k in ("cwd", "envs", "cmd", "args"):
            if k in more:
                process[k] = more.pop(k)
        message = {"process": process, "stdin": False}
        message.update(more)
        return self.stream("Start", message, headers, pieces, timeout)

    def run(self, command, **more):
        return Result(self.start(command, **more))


class Result:
    """All of a stream."""

    def __init__(self, stream):
        self.out, self.err, self.pty = bytearray(), bytearray(), bytearray()
        self.pid, self.exit, self.keepalives = None, None, 0
        self.kinds, self.largest = [], 0
        for message in stream:
            event = message["event"]
            (kind, value), = event.items()
            if kind == "start":
                self.pid = value["pid"]
            elif kind == "data":
                (name, text), = value.items()
                data = base64.b64decode(text)
                self.largest = max(self.largest, len(data))
                if name == "stdout":
                    self.out += data
                elif name == "stderr":
                    self.err += data
                else:
                    self.pty += data
            elif kind == "end":
                self.exit = value
            elif kind == "keepalive":
                self.keepalives += 1
            if not self.kinds or self.kinds[-1] != kind:
                self.kinds.append(kind)
        self.stream, self.end, self.status = stream, stream.end, stream.status
        stream.close()

    @property
    def error(self):
        return (self.end or {}).get("error", {})
