"""HTTP and WebSocket servers inside a sandbox, through coved. Run by relay_test."""
import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time

from harness import COVED, LOG, ask, check, refused, run, same, server, within

OWN, OTHER, READ = (os.environ[k] for k in ("OWN_KEY", "OTHER_KEY", "READ_KEY"))
MIB = 1 << 20


def until_end(s):
    """All that comes, and whether it ended well (by an end, not by a reset)."""
    out = bytearray()  # of bytes, each += would copy all of it
    try:
        while got := s.recv(65536):
            out += got
        return bytes(out), True
    except OSError:
        return bytes(out), False


def talk(data, timeout=20.0):
    s = server.connect(timeout)
    s.sendall(data)
    out, _ = until_end(s)
    s.close()
    return out


class Box:
    domain = "localhost"

    def __init__(self, timeout=600):
        made = ask("POST", "/v1/sandboxes", {"timeout": timeout}).json
        self.id = made["id"]
        self.at = "/v1/sandboxes/" + self.id

    def serve(self):
        with open("tests/e2e/relay_server.py", "rb") as f:
            ask("PUT", self.at + "/files?path=server.py", f.read())
        p = ask("POST", self.at + "/processes", {"command": "exec python3 server.py"}).json["proc"]
        within(40, lambda: self.get("/ready").status == 200)
        return p

    def host(self, port=3000):
        return "%d-%s.%s:%d" % (port, self.id, Box.domain, server.port)

    def get(self, path, method="GET", body=None, port=3000, **headers):
        return ask(method, path, body, headers={"Host": self.host(port), **{k.replace("_", "-"): v for k, v in headers.items()}})

    def raw(self, path, more="Connection: close\r\n", method="GET", version="1.1", body=b""):
        return ("%s %s HTTP/%s\r\nHost: %s\r\n%s\r\n" % (method, path, version, self.host(), more)).encode() + body


box = None


def requests():
    global box
    box = Box()
    box.serve()
    a = box.get("/a%2Fb/../c;d=1?x=1&y=%20&x=2", X_Own="1", Accept="text/plain")
    same("a request arrives as it was sent: path and query raw", ("GET", "/a%2Fb/../c;d=1?x=1&y=%20&x=2"),
         (json.loads(a.body)["method"], json.loads(a.body)["target"]))
    h = json.loads(a.body)["headers"]
    same("a request arrives with its Host and its own headers", (box.host(), "1", "text/plain"), (h["host"], h["x-own"], h["accept"]))
    same("a request arrives with X-Forwarded headers that say who sent it", ("127.0.0.1", "http", box.host()),
         (h["x-forwarded-for"], h["x-forwarded-proto"], h["x-forwarded-host"]))
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        a = box.get("/m", method, b"body" if method != "TRACE" else None)
        got = json.loads(a.body)
        same("%s with a body arrives" % method, (method, 4 if method != "TRACE" else 0), (got["method"], got["size"]))
    a = ask("GET", box.at + "/ports/3000/a/%2e%2e//b?q=1", headers={"X-API-Key": OWN})
    got = json.loads(a.body)
    same("a request by path arrives raw, without the key", ("/a/%2e%2e//b?q=1", True), (got["target"], "x-api-key" not in got["headers"]))
    check("a page that comes by path has an origin of its own in a browser",
          a.headers["Content-Security-Policy"].startswith("sandbox ") and "same-origin" not in a.headers["Content-Security-Policy"])
    same("a request by path may end at the port", "/", json.loads(ask("GET", box.at + "/ports/3000").body)["target"])
    same("a request by path may have any method", "PROPFIND", json.loads(ask("PROPFIND", box.at + "/ports/3000/").body)["method"])
    a = ask("GET", "/h", headers={"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "3000"})
    same("a request by E2B's headers arrives without them", [], [k for k in json.loads(a.body)["headers"] if k.startswith("e2b")])
    same("a server on ::1 is reached", 200, box.get("/", port=3001).status)
    same("a server on 0.0.0.0 is reached", 200, box.get("/", port=3002).status)
    a = box.get("/x", Connection="close, X-Secret", X_Secret="1", Keep_Alive="5", TE="trailers", Proxy_Authorization="Basic x",
                Authorization="Bearer " + OWN)
    h = json.loads(a.body)["headers"]
    same("headers of one connection, and keys of this server, stay outside", [],
         [k for k in ("x-secret", "keep-alive", "te", "proxy-authorization", "authorization") if k in h])
    a = box.get("/x", Authorization="Basic dXNlcjpwYXNz", X_Api_Key=OWN, X_Access_Token="mine", Cookie="a=1")
    h = json.loads(a.body)["headers"]
    same("an application's own credentials go in", ("Basic dXNlcjpwYXNz", "mine", "a=1", False),
         (h.get("authorization"), h.get("x-access-token"), h.get("cookie"), "x-api-key" in h))


def bodies():
    data = os.urandom(100 * MIB)
    sha = hashlib.sha256(data).hexdigest()
    before = memory()
    got = json.loads(box.get("/up", "POST", data).body)
    same("100 MiB go in with a length", (len(data), sha), (got["size"], got["sha"]))
    c = server.http()
    c.request("POST", "/up", (data[i:i + 100000] for i in range(0, len(data), 100000)), {"Host": box.host()}, encode_chunked=True)
    got = json.loads(c.getresponse().read())
    same("100 MiB go in with chunks", (len(data), sha), (got["size"], got["sha"]))
    want = hashlib.sha256(b"0123456789abcdef" * (len(data) // 16)).hexdigest()
    for kind in ("length", "chunked", "end"):
        a = box.get("/big?n=%d&kind=%s" % (len(data), kind))
        same("100 MiB come out, framed by %s" % kind, want, hashlib.sha256(a.body).hexdigest())
    check("100 MiB come out in flat memory", memory() - before < 20 * MIB, memory() - before)
    same("what goes in comes out meanwhile", data[:4 * MIB], duplex(data[:4 * MIB]))


def memory():
    return server.status("VmRSS") << 10


def duplex(data):
    """Writes and reads at once."""
    s = server.connect(20)
    sent = threading.Thread(target=lambda: s.sendall(box.raw("/duplex", "Content-Length: %d\r\n" % len(data), "POST", body=data)))
    sent.start()
    r = http.client.HTTPResponse(s)
    r.begin()
    out = r.read()
    sent.join()
    s.close()
    return out


def answers():
    s = server.connect(20)
    s.sendall(box.raw("/one", "") + box.raw("/two", "") + box.raw("/three"))
    out, _ = until_end(s)
    same("three pipelined requests have three answers, in order", [b"/one", b"/two", b"/three"],
         [p.split(b'"target": "')[1].split(b'"')[0] for p in out.split(b"HTTP/1.1 200 OK")[1:]])
    c = server.http(20)
    ports = set()
    for path in ("/a", "/big?n=70000&kind=chunked", "/raw?name=toend", "/raw?name=204", "/raw?name=304", "/b"):
        c.request("GET", path, headers={"Host": box.host()})
        c.getresponse().read()
        ports.add(c.sock.getsockname()[1])
    same("one connection takes one request after the other, however answers are framed", 1, len(ports))
    c.request("HEAD", "/big?n=123456", headers={"Host": box.host()})
    r = c.getresponse()
    same("HEAD has the length and no body", ("123456", b""), (r.headers["Content-Length"], r.read()))
    c.request("HEAD", "/big?n=5&kind=chunked", headers={"Host": box.host()})
    c.getresponse().read()
    c.request("GET", "/b", headers={"Host": box.host()})
    same("the connection continues after HEAD", 200, c.getresponse().status)
    a = box.get("/raw?name=204")
    same("204 has no body, whatever its server says", (204, b"", None), (a.status, a.body, a.headers["Content-Length"]))
    same("304 says the length of what it stands for", "99", box.get("/raw?name=304").headers["Content-Length"])
    a = box.get("/raw?name=hop")
    same("headers of one connection stay inside", [None] * 3, [a.headers[k] for k in ("X-Own", "Keep-Alive", "Proxy-Authenticate")])
    same("headers of the answer come out, each as often as sent", ("1", ["a=1", "b=2"]), (a.headers["X-Stays"], a.headers.get_all("Set-Cookie")))
    same("an HTTP/1.0 server is understood", b"old", box.get("/raw?name=old").body)
    out = talk(box.raw("/raw?name=toend", "", version="1.0"))
    check("an HTTP/1.0 client gets no chunks", out.endswith(b"\r\n\r\nuntil the end") and b"chunked" not in out, out)
    out = talk(box.raw("/big?n=100&kind=chunked", "", version="1.0"))
    check("an HTTP/1.0 client gets no chunks where the server sent them", out.endswith(b"\r\n\r\n" + b"0123456789abcdef" * 6 + b"0123") and b"chunked" not in out, out)
    out = talk(box.raw("/raw?name=hints"))
    check("early hints come before the answer, an unasked 100 does not", out.startswith(b"HTTP/1.1 103 ") and b"Link: </a>" in out and
          b" 100 " not in out and out.endswith(b"\r\n\r\nok"), out)
    s = server.connect(20)
    s.sendall(box.raw("/up", "Expect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n", "POST"))
    first = s.recv(1000)
    s.sendall(b"hello")
    out, _ = until_end(s)
    check("a client that waits for 100 gets the server's", first == b"HTTP/1.1 100 Continue\r\n\r\n" and b'"size": 5' in out, first + out)
    s = server.connect(20)
    s.sendall(box.raw("/early", "Expect: 100-continue\r\nContent-Length: 5\r\n", "POST"))
    out, _ = until_end(s)
    check("a client that waits for 100 gets the server's refusal, and sends nothing", out.startswith(b"HTTP/1.1 413 ") and b" 100 " not in out, out)
    s = server.connect(20)
    s.sendall(box.raw("/early", "Content-Length: %d\r\n" % (64 * MIB), "POST"))
    with contextlib.suppress(OSError):
        for _ in range(64):
            s.sendall(b"x" * MIB)
    out, _ = until_end(s)
    check("an answer that does not wait for the body arrives", out.startswith(b"HTTP/1.1 413 "), out[:200])


def streams():
    s = server.connect(20)
    s.sendall(box.raw("/sse"))
    times, out = [], b""
    while got := s.recv(65536):
        times += [time.time()] * got.count(b"data: ")
        out += got
    check("events come as they are made", len(times) == 5 and times[4] - times[0] > 0.1 and out.endswith(b"0\r\n\r\n"), out)
    s = server.connect(20)
    s.sendall(box.raw("/endless?name=client"))
    s.recv(1000)
    s.close()
    check("a client that goes ends its exchange inside", left("client"))
    s = server.connect(20)
    s.sendall(box.raw("/hang?name=waiting"))
    check("a request that is not answered is inside", left("waits: waiting"))
    s.close()
    check("a client that goes ends an exchange that waits for its answer", left("waiting"))
    s = server.connect(20)
    s.sendall(box.raw("/big?n=%d" % (20 * MIB)))
    time.sleep(0.5)
    same("a client that does not read does not hold up others", 200, box.get("/").status)
    out, _ = until_end(s)
    same("a client that reads late gets all", 20 * MIB, len(out.split(b"\r\n\r\n", 1)[1]))
    both = [box.raw("/sse?n=3") for _ in range(20)]
    socks = [server.connect(20) for _ in both]
    [s.sendall(r) for s, r in zip(socks, both)]
    same("twenty streams at once", 20, sum(until_end(s)[0].endswith(b"0\r\n\r\n") for s in socks))


def left(name):
    return within(30, lambda: name in json.loads(box.get("/left").body))


def frame(op, data):
    mask = os.urandom(4)
    size = bytes([128 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    return bytes([128 | op]) + size + mask + bytes(a ^ b for a, b in zip(data, mask * (len(data) // 4 + 1)))


WS = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def read_exactly(s, n):
    out = b""
    while len(out) < n:
        got = s.recv(n - len(out))
        if not got:
            return out
        out += got
    return out


def websocket(s, sentence):
    """With the first frame in the packet of the request."""
    s.sendall(box.raw("/ws", WS) + frame(1, b"first"))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += s.recv(1)
    check(sentence + ": the handshake is the server's", head.startswith(b"HTTP/1.1 101 ") and
          b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head, head)
    same(sentence + ": what came with the request", b"\x81\x05first", read_exactly(s, 7))
    s.sendall(frame(2, b"x" * 60000))
    same(sentence + ": a large message", b"\x82\x7e\xea\x60" + b"x" * 60000, read_exactly(s, 60004))
    for i in range(200):
        s.sendall(frame(1, b"m%03d" % i))
        if read_exactly(s, 6) != b"\x81\x04m%03d" % i:
            check(sentence + ": two hundred messages", False, i)
            return
    s.sendall(frame(8, b"\x03\xe8"))
    out, _ = until_end(s)
    same(sentence + ": the end of the WebSocket", b"\x88\x02\x03\xe8", out)
    s.close()


def upgrades():
    websocket(server.connect(20), "a WebSocket")
    s = server.connect(20)
    s.sendall(box.raw("/reverse", "Connection: Upgrade\r\nUpgrade: reverse\r\n") + b"abc")
    s.sendall(b"def")
    head = b""
    while not head.endswith(b"\r\n\r\n"):  # before it is answered, the end of a request is the end of its client
        head += read_exactly(s, 1)
    s.shutdown(socket.SHUT_WR)
    out, _ = until_end(s)
    out = head + out
    check("any protocol: the end of one direction is passed on, the other continues", out.endswith(b"\r\n\r\nfedcba"), out)
    check("an upgrade is in the audit log", within(30, lambda: box.id in json.dumps(ask("GET", "/audit-logs?action=port.upgrade").json)), box.id)
    s = server.connect(20)
    s.sendall(("GET %s/ports/3000/ws HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (box.at, WS)).encode() + frame(1, b"hi"))
    out = b""
    while not out.endswith(b"\x81\x02hi") and (got := s.recv(1000)):
        out += got
    check("a WebSocket by path", out.startswith(b"HTTP/1.1 101 "), out)
    s.close()


def hostile():
    for name, why in (("both", "Content-Length and Transfer-Encoding"), ("twice", "Content-Length twice"), ("lf", "LF alone"),
                      ("folded", "folding"), ("cr", "CR without LF"), ("nul", "byte 0x00"), ("ssh", "does not begin"),
                      ("status", "status"), ("unasked", "not asked for"), ("nothing", "without an answer"),
                      ("badchunk", "the answer's body")):
        a = ask("GET", box.at + "/ports/3000/raw?name=" + name)
        check("an answer is refused: " + name, a.status == 502 and why in a.json["error"]["message"] and a.json["error"]["code"] ==
              "protocol", a.body)
    out = talk(box.raw("/raw?name=interims"))
    check("interim answers without end are refused", out.count(b" 103 ") == 16 and b"HTTP/1.1 502 " in out, out)
    same("a head without end is refused", 502, box.get("/drip").status)
    out = talk(box.raw("/raw?name=more", "") + box.raw("/after"))
    check("what stands behind an answer is nobody's", b"evil" not in out and out.count(b"HTTP/1.1 200") == 2, out)
    for name in ("shortlength", "shortchunk"):
        out = talk(box.raw("/raw?name=" + name, ""))
        check("an answer that ends early does not end well: " + name, b"hello" in out and not out.endswith(b"0\r\n\r\n") and
              out.count(b"HTTP/1.1") == 1, out)
    for bad in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked, chunked\r\n"):
        out = talk(box.raw("/x", bad.decode(), "POST", body=b"0\r\n\r\n"))
        check("a request with two lengths does not get in", out.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), out)


def refusals():
    a = box.get("/", port=3999)
    same("a closed port is 502", (502, {"sandboxId": box.id, "message": "The sandbox is running but port is not open", "port": 3999,
                                         "code": 502}), (a.status, a.json))
    refused("a closed port by path is 502", ask("GET", box.at + "/ports/3999/"), 502, "port_closed")
    refused("a port that is none", ask("GET", box.at + "/ports/70000/"), 400, "invalid", "port")
    ghost = "i" + "a" * 20
    a = ask("GET", "/", headers={"Host": "3000-%s.localhost" % ghost})
    for odd in ("0", "i" * 63):
        a = ask("GET", "/health", headers={"E2b-Sandbox-Id": odd})
        same("an id that is short or long is of no sandbox", (502, odd, "The sandbox was not found"),
             (a.status, a.json["sandboxId"], a.json["message"]))
        a = ask("GET", "/x", headers={"E2b-Sandbox-Id": odd, "E2b-Sandbox-Port": "80"})
        same("an id that is short or long is of no sandbox at a port", (502, odd), (a.status, a.json["sandboxId"]))
    a = ask("GET", "/", headers={"Host": "3000-%s.localhost" % ghost})
    same("an unknown sandbox is 502", (502, {"sandboxId": ghost, "message": "The sandbox was not found", "code": 502}), (a.status, a.json))
    for name, headers in (("a host with a bad port", {"Host": "99999-%s.localhost" % box.id}), ("one with a bad id", {"Host": "80-short.localhost"}),
                          ("a bad port header", {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "x"}),
                          ("a bad id header", {"E2b-Sandbox-Id": "../x", "E2b-Sandbox-Port": "80"}),
                          ("a bad id of envd", {"E2b-Sandbox-Id": "i_" + "a" * 19, "E2b-Sandbox-Port": "49983"}),
                          ("a bad id of the interpreter", {"E2b-Sandbox-Id": "I" + "A" * 20, "E2b-Sandbox-Port": "49999"}),
                          ("an id without end", {"E2b-Sandbox-Id": "i" * 64}), ("an empty one", {"E2b-Sandbox-Id": ""})):
        a = ask("GET", "/", headers=headers)
        check(name + " is refused in plain text", a.status == 400 and a.headers["Content-Type"].startswith("text/plain") and
              a.body.startswith(b"Invalid "), a.body)
    browser = {"Accept": "text/html,*/*", "Sec-Fetch-Mode": "navigate"}
    for name, host, word in (("a closed port", box.host(3999), b"Nothing listens there"), ("no sandbox", "3000-%s.localhost" % ghost, b"No such sandbox")):
        a = ask("GET", "/", headers={"Host": host, **browser})
        check("a browser gets a page: " + name, a.status == 502 and a.headers["Content-Type"].startswith("text/html") and word in a.body, a.body[:200])
    a = ask("GET", "/", headers={"Host": box.host(3999), "Accept": "text/html", "Sec-Fetch-Mode": "cors"})
    check("a script does not", a.json is not None, a.body)
    same("a path with dots outside of a port is refused as ever", 400, ask("GET", "/v1/sandboxes/%2e%2e/ports/3000/").status)


def rights():
    same("a key of the tenant opens a private port", 200, box.get("/", X_API_Key=OWN).status)
    a = box.get("/", X_API_Key=OTHER)
    same("a key of another tenant does not open a private port", (403, {"sandboxId", "message", "code"}, 403), (a.status, set(a.json), a.json["code"]))
    same("a key that only reads does not open a private port", 403, box.get("/", X_API_Key=READ).status)
    same("keys of another tenant and keys that only read do not open a port by path", [404, 403], [ask("GET", box.at + "/ports/3000/", key=k).status for k in (OTHER, READ)])
    a = box.get("/", E2b_Traffic_Access_Token="0" * 64)
    check("a wrong traffic token is refused", a.status == 403 and "wrong" in a.json["message"], a.body)
    check("a page elsewhere cannot use loopback's right", box.get("/", Origin="http://evil.example").status == 403)
    second = Box()
    page = "http://3000-%s.localhost:%d" % (second.id, server.port)
    same("a page of another sandbox cannot use loopback's right", 403, box.get("/", "POST", b"", Origin=page).status)
    same("a page of the sandbox itself can use loopback's right", 200, box.get("/", "POST", b"", Origin="http://" + box.host(8080)).status)
    same("a page of a sandbox cannot ask the API", 403, ask("POST", "/v1/sandboxes", "{}", headers={"Origin": "http://" + box.host()}).status)
    # A page can add any header to what it asks of its own host, and a GET of one's own host has no Origin.
    for port, path in ((3000, "/"), (49999, "/contexts"), (49983, "/health")):
        a = ask("GET", path, headers={"Host": "3999-%s.localhost" % second.id, "E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": str(port)})
        same("a page cannot reach port %d of another sandbox by headers: its host decides" % port, (502, second.id, 3999),
             (a.status, a.json["sandboxId"], a.json.get("port")))
    here = "localhost:%d" % server.port
    same("the API's own page can", 201, ask("POST", "/v1/sandboxes", "{}", headers={"Host": here, "Origin": "http://" + here, "Content-Type": "application/json"}).status)
    for name, origin in (("another port of localhost", "http://3000-%s.localhost:1" % box.id), ("another domain", "http://3000-%s.evil.example:%d" % (box.id, server.port)),
                         ("TLS", "https://" + box.host())):
        same("a page that calls itself the sandbox's, but is of " + name, 403, box.get("/", "POST", b"", Origin=origin).status)
    ask("DELETE", second.at)


def endings():
    dying = Box()
    dying.serve()
    socks = []
    for kind in ("chunked", "end"):
        for version in ("1.1", "1.0"):
            s = server.connect(20)
            s.sendall(dying.raw("/endless?kind=" + kind, version=version))
            socks.append((kind, version, s))
    waits = server.connect(20)
    waits.sendall(dying.raw("/hang"))
    pipe = server.connect(20)
    pipe.sendall(dying.raw("/ws", WS))
    pipe.recv(1000)
    for _, _, s in socks:
        s.recv(1, socket.MSG_PEEK)  # it has begun
    ask("DELETE", dying.at)
    for kind, version, s in socks:
        out, well = until_end(s)
        check("a sandbox that is killed cuts its answers (%s, HTTP/%s)" % (kind, version),
              out and not out.endswith(b"0\r\n\r\n") and (version == "1.1" or not well), (out[-40:], well))
    out, _ = until_end(waits)
    check("an answer of a killed sandbox that had not begun is 502", out.startswith(b"HTTP/1.1 502 "), out)
    same("a sandbox that is killed cuts its WebSockets", b"", until_end(pipe)[0])
    a = dying.get("/")
    same("a killed sandbox is not found", (502, "The sandbox was not found"), (a.status, a.json["message"]))
    asleep = Box()
    ask("POST", asleep.at + "/pause")
    same("a paused sandbox is not found", (502, "The sandbox was not found"), (asleep.get("/").status, asleep.get("/").json["message"]))
    ask("DELETE", asleep.at)


def restart(*more):
    server.end()
    server.start(*more)


def cove(*args):
    p = subprocess.run([os.path.join(os.path.dirname(COVED), "cove"), *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return p.returncode, p.stdout.decode()


def certificates():
    """The CA and certificate that cove cert dev makes; the directory they are in."""
    out = os.path.join(os.path.dirname(LOG), "tls")
    code, said = cove("cert", "dev", "--domain", "sbx.test", "--out", out)
    check("cove cert dev says how to trust and use what it made", code == 0 and "NODE_EXTRA_CA_CERTS=" + out in said and
          "--cacert" in said and "cove up --tls-listen" in said, said)
    same("keys are their owner's alone", [0o600, 0o600], [os.stat(os.path.join(out, k)).st_mode & 0o777 for k in ("key.pem", "ca.key")])
    with open(os.path.join(out, "cert.pem")) as f:
        before = f.read()
    code, said = cove("cert", "dev", "--domain", "sbx.test", "--out", out)
    with open(os.path.join(out, "cert.pem")) as f:
        check("cove cert dev again leaves a good certificate", code == 0 and "nothing to do" in said and f.read() == before, said)
    code, said = cove("cert", "dev", "--domain", "other.test", "--out", out)
    check("cove cert dev never replaces a certificate without --force", code != 0 and "--force" in said, said)
    for bad in ("localhost", "a,DNS:evil.test", "-x.test", "a..test", "x." + "a" * 300):
        same("a domain that is none is refused: " + bad[:20], False, cove("cert", "dev", "--domain", bad, "--out", out + "2")[0] == 0)
    return out


def tls_socket(port, out, host):
    context = ssl.create_default_context(cafile=os.path.join(out, "ca.pem"))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20), server_hostname=host)


def tls():
    out = certificates()
    restart("--tls-listen", "127.0.0.1:0", "--tls-cert", out + "/cert.pem", "--tls-key", out + "/key.pem", "--domain", "sbx.test",
            "--public-domain", "sbx.test:8443")
    with open(LOG, "rb") as f:
        port = int(re.findall(rb"tls=127\.0\.0\.1:(\d+)", f.read())[-1])
    Box.domain = "sbx.test"
    same("plain HTTP continues beside TLS", 200, ask("GET", "/health").status)
    name = "3000-%s.sbx.test" % box.id
    s = tls_socket(port, out, name)
    s.sendall(box.raw("/x").replace(box.host().encode(), name.encode()))
    got, _ = until_end(s)
    check("a port's own name is good for its certificate, and leads there", b"HTTP/1.1 200" in got and
          b'"x-forwarded-proto": "https"' in got, got)
    check("the API is served with TLS", b"healthy" in all_of(tls_socket(port, out, "localhost"), b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    with contextlib.suppress(ssl.SSLError):
        tls_socket(port, out, "3000-x.evil.test")
        check("a name of no port is not good for the certificate", False)
    websocket(tls_socket(port, out, name), "a WebSocket over TLS")
    got = all_of(tls_socket(port, out, name), box.raw("/big?n=%d" % (30 * MIB)))
    same("30 MiB over TLS", 30 * MIB, len(got.split(b"\r\n\r\n", 1)[1]))
    data = os.urandom(8 * MIB)
    got = all_of(tls_socket(port, out, name), box.raw("/up", "Connection: close\r\nContent-Length: %d\r\n" % len(data), "POST", body=data))
    check("8 MiB the other way", hashlib.sha256(data).hexdigest().encode() in got, got[-200:])
    s = tls_socket(port, out, name)
    s.sendall(box.raw("/endless?name=tls"))
    s.recv(1000)
    s.close()
    check("a client over TLS that goes ends its exchange inside", left("tls"))
    made = ask("POST", "/sandboxes", {"templateID": "base", "timeout": 60})
    if made.status == 404:
        made = ask("POST", "/sandboxes", {"templateID": "host", "timeout": 60})
    check("SDKs are told the public domain", (made.json or {}).get("domain") == "sbx.test:8443", made.body)
    if made.json and "sandboxID" in made.json:
        a = ask("GET", "/", headers={"Host": "3999-%s.sbx.test" % made.json["sandboxID"], "X-Api-Key": "mine"})
        same("a port of a sandbox of E2B's is open to everybody", "The sandbox is running but port is not open", (a.json or {}).get("message"))
        ask("DELETE", "/v1/sandboxes/" + made.json["sandboxID"])
    private = ask("POST", "/sandboxes", {"templateID": "host", "timeout": 60, "secure": True, "network": {"allowPublicTraffic": False}})
    if check_made(private):
        box_id, token = private.json["sandboxID"], private.json["trafficAccessToken"]
        for why, headers, status in (("without a token", {}, 403), ("with a wrong one", {"e2b-traffic-access-token": "x"}, 403),
                                     ("with its token", {"e2b-traffic-access-token": token}, 502), ("with a key", {"X-API-Key": OWN}, 502)):
            a = ask("GET", "/", headers={"Host": "3999-%s.sbx.test" % box_id, **headers})
            same("without public traffic, " + why, status, a.status)
        ask("DELETE", "/v1/sandboxes/" + box_id)


def check_made(a):
    check("a sandbox without public traffic is made", a.status == 201 and (a.json or {}).get("trafficAccessToken"), a.body)
    return a.status == 201 and a.json.get("trafficAccessToken")


def all_of(s, request):
    s.sendall(request)
    out, _ = until_end(s)
    s.close()
    return out


def idle():
    Box.domain = "localhost"
    restart("--relay-idle", "1s", "--stall-timeout", "1s")
    a = box.get("/hang")
    check("a server that does not answer is given up", a.status == 504, a.body)
    s = server.connect(20)
    s.sendall(box.raw("/ws", WS))
    s.recv(1000)
    same("a pipe that is not used is given up", b"", until_end(s)[0])
    for wait in (3, 6, 12, 24):  # for the server to begin, where the machine is busy, and then to give up
        s = server.connect(20)
        s.sendall(box.raw("/big?n=%d" % (50 * MIB)))
        time.sleep(wait)
        got = len(until_end(s)[0])
        if got < 50 * MIB:
            break
    check("a client that does not read is given up", got < 50 * MIB, got)
    ask("DELETE", box.at)


run(requests, bodies, answers, streams, upgrades, hostile, refusals, rights, endings, tls, idle)
