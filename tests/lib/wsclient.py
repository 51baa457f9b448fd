"""Just enough of a WebSocket client, for terminals and sessions."""
import os


class WebSocket:
    """Messages whole, and without checks of what the server sends."""

    def __init__(self, server, path, timeout=15):
        self.s = server.connect(timeout)
        self.s.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % path).encode())
        self.f = self.s.makefile("rb")
        self.head = b""
        while not self.head.endswith(b"\r\n\r\n"):
            self.head += self.f.readline() or b"\r\n\r\n"

    def send(self, op, data):
        head = bytes([0x80 | op, 0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | op, 0xfe]) + len(data).to_bytes(2, "big")
        mask = os.urandom(4)
        self.s.sendall(head + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(data)))

    def next(self):
        op, size = self.f.read(2)
        if size == 126:
            size = int.from_bytes(self.f.read(2), "big")
        elif size == 127:
            size = int.from_bytes(self.f.read(8), "big")
        return op & 15, self.f.read(size)

    def until(self, text):
        out = b""
        while text not in out:
            op, data = self.next()
            if op == 8:
                break
            if op == 2:
                out += data
        return out
