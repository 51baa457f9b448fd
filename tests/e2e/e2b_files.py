"""Asks for files as E2B's SDKs do, by a client of our own: JavaScript's form (chunked bodies) and Python's (lengths,
indented JSON). Run by e2b_files_test."""
import base64
import collections
import contextlib
import gzip
import hashlib
import http.client
import json
import os
import socket
import struct
import threading
import time
import zlib
from urllib.parse import quote, urlencode

from harness import ask, check, only, run, same, server, within

MB = 1 << 20
boxes = {}


class Box:
    def __init__(self, key=None, **body):
        a = ask("POST", "/v2/sandboxes", {"templateID": "host", "timeout": 600, **body}, key=key,
                headers={"Content-Type": "application/json"})
        check("a sandbox is made", a.status == 201, a.body)
        self.id, self.token = a.json["sandboxID"], a.json.get("envdAccessToken")

    def headers(self, user=None, **more):
        h = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "X-Access-Token": self.token}
        if user:
            h["Authorization"] = "Basic " + base64.b64encode((user + ":").encode()).decode()
        h.update({k.replace("_", "-"): v for k, v in more.items()})
        return h

    def rpc(self, method, message=None, user=None, python=False, **more):
        """A unary call: chunked as JavaScript sends it, or with a length and indented as Python does."""
        text = json.dumps(message or {}, indent=2 if python else None).encode()
        h = self.headers(user, Content_Type="application/json", Connect_Protocol_Version="1", **more)
        return ask("POST", "/filesystem.Filesystem/" + method, text if python else iter([text]), headers=h)

    def upload(self, query, body, kind, **more):
        h = {**self.headers(), "Content-Type": kind, **more}
        return ask("POST", "/files?" + urlencode(query), body, headers=h)

    def put(self, path, data, **more):
        return self.upload({"path": path}, data, "application/octet-stream", **more)

    def get(self, path, headers=None, **query):
        return ask("GET", "/files?" + urlencode({"path": path, **query}), headers={**self.headers(), **(headers or {})})

    def sh(self, command, user=None):
        a = ask("POST", "/v1/sandboxes/%s/exec" % self.id, {"command": command, **({"user": user} if user else {})})
        return (a.json or {}).get("stdout", "").strip() if a.json and a.json.get("exit_code") == 0 else a.body


def code(sentence, a, status, name, message=None):
    """An error of a unary call: status, string code, and a text in its message."""
    j = a.json or {}
    check(sentence, (a.status, j.get("code")) == (status, name) and (not message or message in j.get("message", "")),
          "%s %s" % (a.status, a.body[:200]))


def refused(sentence, a, status, message=None):
    """An error over HTTP: the code is the status, a number."""
    j = a.json if a.json else (json.loads(a.body) if a.body[:1] == b"{" else {})
    check(sentence, (a.status, j.get("code")) == (status, status) and (not message or message in j.get("message", "")),
          "%s %s" % (a.status, a.body[:200]))


def form(*parts):
    b = b"----cove%d" % time.time_ns()
    out = b""
    for name, filename, data in parts:
        out += b"--" + b + b'\r\nContent-Disposition: form-data; name="' + name.encode() + b'"'
        if filename is not None:
            out += b'; filename="' + filename.encode() + b'"'
        out += b"\r\nContent-Type: application/octet-stream\r\n\r\n" + data + b"\r\n"
    return out + b"--" + b + b"--\r\n", "multipart/form-data; boundary=" + b.decode()


def entry_of(a):
    return (a.json or {}).get("entry", {})


# ---- up and down ----
def contents():
    box = boxes["a"] = Box(envVars={"COLOUR": "green"}, metadata={"x": "y"})
    a = box.put("hello.txt", b"hello")
    same("an upload's answer has name, type and path, and nothing else",
         [{"name": "hello.txt", "type": "file", "path": "/home/user/hello.txt"}], a.json)
    a = box.get("hello.txt")
    check("a download is the same bytes with their length", (a.status, a.body, a.headers["Content-Length"]) == (200, b"hello", "5"), a.body)
    check("a download has a disposition, a type and what it varies by",
          a.headers["Content-Disposition"] == "inline; filename=hello.txt" and a.headers["Vary"] == "Accept-Encoding" and
          a.headers["Content-Type"].startswith("text/plain"), a.headers.items())
    for path, why in [("~/hello.txt", "~/"), ("/home/user/hello.txt", "absolute"), ("./hello.txt", "dotted")]:
        same("a file is found by a path that is " + why, b"hello", box.get(path).body)
    refused("~other is refused", box.get("~root/x"), 400, "home dir")
    refused("a missing file is 404", box.get("gone.txt"), 404, "path '/home/user/gone.txt' does not exist")
    refused("a directory is 400", box.get("/home/user"), 400, "path '/home/user' is a directory")
    refused("no path is the working directory", box.get(""), 400, "path '/home/user' is a directory")
    refused("an unknown user is 401", box.get("x", username="nobody-here"), 401, "nobody-here")
    refused("an upload as an unknown user is 401", box.upload({"path": "x", "username": "nobody-here"}, b"x", "application/octet-stream"), 401)
    same("a path of another user is in that user's home", "/root/r.txt",
         box.upload({"path": "r.txt", "username": "root"}, b"r", "application/octet-stream").json[0]["path"])
    same("a file that is uploaded as another user belongs to that user", "root root", box.sh("stat -c '%U %G' /root/r.txt", "root"))

    a = box.put("empty", b"")
    a = box.get("empty")
    check("an empty file has the length 0", (a.status, a.body, a.headers["Content-Length"]) == (200, b"", "0"), a.headers.items())
    blob = bytes(range(256)) * 1000
    box.put("/tmp/deep/er/blob", blob)
    check("bytes of all kinds come back", box.get("/tmp/deep/er/blob").body == blob)
    same("what no name tells is octets", "application/octet-stream", box.get("/tmp/deep/er/blob").headers["Content-Type"])
    same("missing directories are made, 0755 and the user's", "755 user user", box.sh("stat -c '%a %U %G' /tmp/deep/er"))
    same("new files are 0644 and the user's", "644 user user", box.sh("stat -c '%a %U %G' /tmp/deep/er/blob"))
    box.sh("echo '#!/bin/sh' >/tmp/run.sh && chmod 750 /tmp/run.sh && ln /tmp/run.sh /tmp/second")
    box.put("/tmp/run.sh", b"#!/bin/sh\necho hi\n")
    same("an existing file keeps its mode and its other names", "750 hi", box.sh("echo $(stat -c %a /tmp/run.sh) $(/tmp/second)"))
    same("a place that only root may write to is written as envd does it", "user", box.sh("stat -c %U /srv/app/main.py") if
         box.put("/srv/app/main.py", b"x").status == 200 else "not written")
    name = "/home/user/ünï cödé/文件 \U0001f40b.txt"
    same("names may be of any letters", name, box.put(name, b"whale").json[0]["path"])
    a = box.get(name)
    check("a name with any letters is told in a form that a header can hold", a.body == b"whale" and
          a.headers["Content-Disposition"] == "inline; filename*=utf-8''" + quote(os.path.basename(name), safe=""), a.headers.items())
    odd = "a \"b\" \\.txt"
    box.put(odd, b"q")
    same("quotes in it are quoted", r'inline; filename="a \"b\" \\.txt"', box.get(odd).headers["Content-Disposition"])
    long = "/tmp/" + "/".join(["ü" * 100] * 8)
    same("a long path is found", b"deep", box.get(long).body if box.put(long, b"deep").status == 200 else None)
    refused("a path that is too long is refused", box.get("/" + "x" * 5000), 400)
    a = box.get("/proc/self/status")
    check("a file of procfs is read to its end", a.status == 200 and b"Pid:" in a.body, a.body[:100])
    refused("a device is no file", box.get("/dev/null"), 400)
    a = ask("HEAD", "/files?path=hello.txt", headers=box.headers())
    check("HEAD has the length and no body", (a.status, a.headers["Content-Length"], a.body) == (200, "5", b""), a.headers.items())


def conditions():
    box = boxes["a"]
    box.put("r.txt", b"0123456789")
    a = box.get("r.txt", {"Range": "bytes=2-4"})
    check("a range is 206", (a.status, a.body, a.headers["Content-Range"]) == (206, b"234", "bytes 2-4/10"), a.headers.items())
    same("a range behind the end is 416", 416, box.get("r.txt", {"Range": "bytes=99-"}).status)
    tag = a.headers["ETag"]
    same("what the client has already is 304", 304, box.get("r.txt", {"If-None-Match": tag}).status)
    box.put("r.txt", b"0123456789+")
    same("If-None-Match of a file that changed is 200", 200, box.get("r.txt", {"If-None-Match": tag}).status)
    same("gzip that is only allowed is not used", None, box.get("r.txt", {"Accept-Encoding": "gzip, deflate"}).headers["Content-Encoding"])
    refused("a client that takes no plain content gets 406", box.get("r.txt", {"Accept-Encoding": "br, identity;q=0"}), 406)
    refused("a client that takes no plain content, by a star, gets 406", box.get("r.txt", {"Accept-Encoding": "br, *;q=0.0"}), 406)


def forms():
    box = boxes["a"]
    body, kind = form(("file", "a.txt", b"A"), ("file", "/tmp/f/b.txt", b"B" * 200000), ("note", None, b"passed over"),
                      ("file", "dir/ünï.txt", b""), ("file", "~/t.txt", b"T"))
    a = box.upload({}, iter([body[i:i + 7777] for i in range(0, len(body), 7777)]), kind)
    same("a form's files go where their names say", ["/home/user/a.txt", "/tmp/f/b.txt", "/home/user/dir/ünï.txt", "/home/user/t.txt"],
         [e["path"] for e in a.json or []])
    same("a form's files have their contents", "A 200000 0", box.sh("echo $(cat a.txt) $(stat -c %s /tmp/f/b.txt dir/ünï.txt)"))
    body, kind = form(("file", "elsewhere", b"P"))
    same("a path in the query is used instead", "/home/user/p.txt", box.upload({"path": "p.txt"}, body, kind).json[0]["path"])
    body, kind = form(("file", "1", b"1"), ("file", "2", b"2"))
    refused("two parts to one path are refused", box.upload({"path": "p.txt"}, body, kind), 400, "same path")
    body, kind = form(("file", "same.txt", b"1"), ("file", "/home/user/same.txt", b"2"))
    refused("two parts to one path under two names are refused", box.upload({}, body, kind), 400, "same path")
    body, kind = form(("file", None, b"1"))
    refused("a part needs a name or a path", box.upload({}, body, kind), 400)
    body, kind = form(("file", "cut.txt", b"1"))
    refused("a form that ends early is refused", box.upload({}, body[:-8], kind), 400)
    refused("raw bytes need a path", box.upload({}, b"x", "application/octet-stream"), 400, "path")
    refused("an upload of an unknown type is refused", box.upload({"path": "x"}, b"x", "text/plain"), 400)
    body, kind = form(*[("file", "many/%d" % i, b"%d" % i) for i in range(300)])
    same("a form may have many files", 300, len(box.upload({}, body, kind).json or []))
    refused("a file where a directory is, is refused", box.put("/tmp/f", b"x"), 400)
    refused("a directory where a file is, is refused", box.put("a.txt/b", b"x"), 400)

    same("gzip is undone", b"z" * 100000, box.get("z").body if box.put("z", gzip.compress(b"z" * 100000), **{"Content-Encoding": "gzip"}).status == 200 else None)
    body, kind = form(("file", "zf", b"form"))
    same("gzip is undone for a form", b"form", box.get("zf").body if box.upload({}, gzip.compress(body), kind, **{"Content-Encoding": "gzip"}).status == 200 else None)
    refused("what is no gzip is refused", box.put("z", b"nonsense", **{"Content-Encoding": "gzip"}), 400)
    same("a refused upload leaves a small file as it was", b"z" * 100000, box.get("z").body)
    refused("an upload with an unknown encoding is refused", box.put("z", b"x", **{"Content-Encoding": "br"}), 400)


def breaking_off():
    """An upload that ends in the middle."""
    box = boxes["a"]

    def broken(path, first):
        s = server.connect(20)
        lines = ["POST /files?path=%s HTTP/1.1" % quote(path), "Host: x", "Content-Type: application/octet-stream", "Content-Length: 9999999"]
        s.sendall(("\r\n".join(lines + ["%s: %s" % h for h in box.headers().items()]) + "\r\n\r\n").encode() + first)
        time.sleep(0.3)
        s.close()
        time.sleep(0.3)
    box.put("kept", b"old")
    broken("kept", b"new")
    same("a broken upload leaves a small file as it was", b"old", box.get("kept").body)
    broken("never", b"n" * 300000)
    refused("a broken upload leaves no file where there was none", box.get("never"), 404)


def metadata():
    if not only("jail vm", "metadata of files", "gVisor has no attributes of files on disk"):
        return
    box = boxes["a"]
    a = box.put("m.txt", b"m", **{"X-Metadata-Author": "ann", "x-metadata-k2": "v 2"})
    same("metadata comes back with lower-case keys", {"author": "ann", "k2": "v 2"}, (a.json or [{}])[0].get("metadata"))
    same("metadata is in the answer of Stat", {"author": "ann", "k2": "v 2"}, entry_of(box.rpc("Stat", {"path": "m.txt"})).get("metadata"))
    same("metadata is in the listing", [{"author": "ann", "k2": "v 2"}],
         [e.get("metadata") for e in box.rpc("ListDir", {"path": "/home/user"}).json["entries"] if e["name"] == "m.txt"])
    same("inside it is an attribute of the file", "ann", box.sh("python3 -c 'import os; print(os.getxattr(\"m.txt\", \"user.e2b.author\").decode())'"))
    box.put("m.txt", b"m", **{"X-Metadata-other": "1"})
    same("each upload replaces all metadata", {"other": "1"}, entry_of(box.rpc("Stat", {"path": "m.txt"})).get("metadata"))
    box.put("m.txt", b"m")
    check("an upload without metadata removes the old metadata", "metadata" not in entry_of(box.rpc("Stat", {"path": "m.txt"})))
    body, kind = form(("file", "m1", b"1"), ("file", "m2", b"2"))
    a = box.upload({}, body, kind, **{"X-Metadata-a": "b"})
    same("every file of a form gets the metadata", [{"a": "b"}] * 2, [e.get("metadata") for e in a.json or []])
    refused("a key that is too long is refused", box.put("m.txt", b"", **{"X-Metadata-" + "k" * 247: "v"}), 400, "key")
    same("the longest is taken", 200, box.put("m.txt", b"", **{"X-Metadata-" + "k" * 246: "v"}).status)
    refused("more than 4096 bytes are refused", box.put("m.txt", b"", **{"X-Metadata-a": "v" * 2048, "X-Metadata-b": "v" * 2047}), 400, "4096")
    refused("what is not ASCII is refused", box.put("m.txt", b"", **{"X-Metadata-a": "\xe4"}), 400, "printable")


def large():
    box = boxes["a"]
    size = 100 * MB
    piece = bytes(range(256)) * 1024

    def memory():
        return server.status("VmHWM") << 10
    before = memory()
    a = box.upload({"path": "/home/user/large"}, (piece for _ in range(size // len(piece))), "application/octet-stream")
    same("100 MB go up", (200, str(size)), (a.status, box.sh("stat -c %s /home/user/large")))
    c = server.http()
    c.request("GET", "/files?path=large", headers=box.headers())
    r = c.getresponse()
    crc = total = 0
    while data := r.read(MB):
        crc, total = zlib.crc32(data, crc), total + len(data)
    want = 0
    for _ in range(size // len(piece)):
        want = zlib.crc32(piece, want)
    same("a large file comes down as it went up", (size, want), (total, crc))
    check("the server's memory stays flat", memory() - before < 16 * MB, memory() - before)
    box.sh("rm /home/user/large")


def full_disk():
    box = Box()
    a = box.sh("fallocate -l $(($(df --output=avail -B1 /home/user | tail -1) - 3000000)) /home/user/fill; df --output=avail -B1 /home/user | tail -1")
    refused("a full disk is 507", box.upload({"path": "big"}, (b"x" * 65536 for _ in range(160)), "application/octet-stream"), 507, "disk space")
    refused("what did not fit is not there", box.get("big"), 404)
    body, kind = form(("file", "small", b"s"), ("file", "big", b"x" * 8 * MB))
    refused("a full disk in the middle of a form is 507 (left: %s)" % a, box.upload({}, body, kind), 507)
    same("the file before it is whole", b"s", box.get("small").body)
    ask("DELETE", "/sandboxes/" + box.id)


def compose():
    box = boxes["a"]
    for i in range(3):
        box.put("part%d" % i, b"%d" % i * 3)
    h = box.headers(Content_Type="application/json")
    a = ask("POST", "/files/compose", {"source_paths": ["part0", "part1", "/home/user/part2"], "destination": "whole/all"}, headers=h)
    same("files are put together", {"name": "all", "type": "file", "path": "/home/user/whole/all"}, a.json)
    same("compose keeps the order, and removes the parts", "000111222", box.sh("cat whole/all; ls part* 2>/dev/null || true"))
    refused("a missing part is 404", ask("POST", "/files/compose", {"source_paths": ["whole/all", "gone"], "destination": "y"}, headers=h), 404, "gone")
    same("compose with a missing part changes nothing", "000111222", box.sh("cat whole/all; ls y 2>/dev/null || true"))
    box.put("tail", b"!")
    ask("POST", "/files/compose", {"source_paths": ["whole/all", "tail"], "destination": "whole/all"}, headers=h)
    same("the destination of compose may be one of the parts", "000111222!", box.sh("cat whole/all"))
    refused("sources are needed", ask("POST", "/files/compose", {"destination": "y"}, headers=h), 400)
    refused("compose of too many parts is refused", ask("POST", "/files/compose", {"source_paths": ["whole/all"] * 1025, "destination": "y"}, headers=h), 400, "1024")


# ---- who may ----
def sign(box, path, operation, user="", expires=None, token=None):
    text = ":".join([path, operation, user, token or box.token] + ([str(expires)] if expires else []))
    q = {"path": path, "signature": "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")}
    if user:
        q["username"] = user
    if expires:
        q["signature_expiration"] = str(expires)
    return q


def forge(count):
    """So many requests in a row on one connection, each with another signature: how often each status came."""
    found = collections.Counter()
    with server.connect() as s, s.makefile("rb") as f:
        def send():
            for i in range(count):
                sign = base64.b64encode(hashlib.sha256(b"%d" % i).digest()).decode().rstrip("=").replace("+", "%2B").replace("/", "%2F")
                s.sendall(("GET /files?path=s.txt&signature=v1_%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % sign).encode())
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        for _ in range(count):
            status, length = int(f.readline().split()[1]), 0
            found[status] += 1
            while (line := f.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split()[1])
                if line.startswith(b"Retry-After:"):
                    found[line.decode()] += 1
            f.read(length)
        sender.join()
    return found


def access():
    box = boxes["a"]
    box.put("s.txt", b"signed")
    no = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983"}

    def get(query, headers=no):
        return ask("GET", "/files?" + urlencode(query), headers=headers)
    refused("without a token or a signature: 401", get({"path": "s.txt"}), 401, "missing signature query parameter")
    refused("a wrong token is refused", get({"path": "s.txt"}, {**no, "X-Access-Token": "f" * 64}), 401, "access token present in header but does not match")
    refused("a wrong token beside a good signature is refused", get(sign(box, "s.txt", "read"), {**no, "X-Access-Token": "f" * 64}), 401, "does not match")
    same("a signature is enough", b"signed", get(sign(box, "s.txt", "read")).body)
    same("a signature with a user is enough", b"signed", get(sign(box, "s.txt", "read", "user")).body)
    soon = int(time.time()) + 100
    same("a signature with an end to come is enough", b"signed", get(sign(box, "s.txt", "read", "user", soon)).body)
    refused("a signature after its end is refused", get(sign(box, "s.txt", "read", "", int(time.time()) - 5)), 401, "signature is already expired")
    refused("a tampered one", get({**sign(box, "s.txt", "read"), "signature": "v1_AAAA"}), 401, "invalid signature")
    refused("a signature is not good for another path", get({**sign(box, "s.txt", "read"), "path": "hello.txt"}), 401, "invalid signature")
    refused("a signature is not good for another user", get({**sign(box, "s.txt", "read", "user"), "username": "root"}), 401, "invalid signature")
    refused("a signature is not good for a later end", get({**sign(box, "s.txt", "read", "", soon), "signature_expiration": str(soon + 9)}), 401, "invalid signature")
    refused("a signature is not good for the other operation", ask("POST", "/files?" + urlencode(sign(box, "s.txt", "read")), b"x",
                                               headers={**no, "Content-Type": "application/octet-stream"}), 401, "invalid signature")
    a = ask("POST", "/files?" + urlencode(sign(box, "up.txt", "write")), b"up", headers={**no, "Content-Type": "application/octet-stream"})
    same("a signature for writing writes", (200, b"up"), (a.status, box.get("up.txt").body))
    same("a link that names no sandbox finds the sandbox", b"signed", get(sign(box, "s.txt", "read", "user", soon), {}).body)
    a = ask("POST", "/files?" + urlencode(sign(box, "up2.txt", "write")), b"up", headers={"Content-Type": "application/octet-stream"})
    same("a link for writing that names no sandbox finds the sandbox", (200, b"up"), (a.status, box.get("up2.txt").body))
    check("a tampered one finds none", get({**sign(box, "s.txt", "read"), "path": "x"}, {}).status in (401, 404))
    answers = forge(3000)
    check("invented signatures that name no sandbox get 401, or 429 with Retry-After", answers[401] > 0 and
          answers[401] + answers[429] == 3000 and answers[429] == answers["Retry-After: 1"], answers)
    same("a link of a sandbox whose link was found before works during a flood", b"signed", get(sign(box, "s.txt", "read", "user", soon + 1), {}).body)
    refused("a path with a signature is not enough elsewhere", ask("GET", "/metrics?" + urlencode(sign(box, "s.txt", "read")), headers=no), 401, "unauthorized access")
    other = Box(key=os.environ["OTHER_KEY"])
    refused("a token of another sandbox is none", get({"path": "s.txt"}, {**no, "X-Access-Token": other.token}), 401)
    refused("a signature of another sandbox is none", get(sign(other, "s.txt", "read")), 401, "invalid signature")
    for bad in ("i" + "0" * 20, "nonsense"):
        a = ask("GET", "/files?path=x", headers={**box.headers(), "E2b-Sandbox-Id": bad})
        check("no such sandbox is 502: " + bad, a.status == 502 and a.json.get("message") == "The sandbox was not found", a.body)
    a = ask("GET", "/files?path=x", headers={**box.headers(), "E2b-Sandbox-Id": "../x"})
    same("what cannot be an id is 400 in plain text", (400, b"Invalid sandbox ID"), (a.status, a.body.strip()))
    a = box.rpc("Stat", {"path": "/"}, X_Access_Token="bad")
    check("calls want the token", a.status == 401, a.body)
    other.put("s.txt", b"of another")
    link = sign(other, "s.txt", "read", "user", soon)
    same("a link of another sandbox finds that sandbox", b"of another", get(link, {}).body)
    ask("DELETE", "/sandboxes/" + other.id, key=os.environ["OTHER_KEY"])
    refused("a used link of a killed sandbox: 401", get(link, {}), 401, "invalid signature")
    same("a killed one is 502", 502, ask("GET", "/files?path=x", headers=other.headers()).status)


def around():
    box = boxes["a"]
    same("health is 204", 204, ask("GET", "/health", headers={"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983"}).status)
    a = ask("GET", "/envs", headers=box.headers())
    check("envs has the sandbox's environment", a.json and a.json.get("COLOUR") == "green", a.body)
    a = ask("GET", "/metrics", headers=box.headers())
    check("metrics has what SDKs read", a.json and {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "mem_total_mib",
                                                    "mem_used_mib", "disk_used", "disk_total"} == set(a.json) and a.json["mem_total"] > 0 and
          abs(a.json["ts"] - time.time()) < 60, a.body)
    for path in ("init", "upgrade", "freeze", "unfreeze", "collapse", "fsfreeze", "fsthaw"):
        same("/%s is not for the public" % path, 404, ask("POST", "/" + path, {}, headers=box.headers()).status)
    page = {"Origin": "https://page.example"}
    a = ask("OPTIONS", "/files?path=x", headers={"E2b-Sandbox-Id": box.id, **page, "Access-Control-Request-Method": "POST",
                                                 "Access-Control-Request-Headers": "x-access-token, x-odd"})
    check("a preflight is answered without a token", a.status == 204 and a.headers["Access-Control-Allow-Origin"] == "*" and
          a.headers["Access-Control-Allow-Methods"] == "POST" and a.headers["Access-Control-Allow-Headers"] == "x-access-token, x-odd" and
          a.headers["Access-Control-Max-Age"] == "7200", a.headers.items())
    for what, a in (("an answer", box.get("hello.txt", page)), ("a refusal", ask("GET", "/files?path=x", headers={"E2b-Sandbox-Id": box.id, **page}))):
        check(what + " is for every origin", a.headers["Access-Control-Allow-Origin"] == "*" and "Location" in a.headers["Access-Control-Expose-Headers"],
              a.headers.items())
    same("an answer without an origin has no Access-Control headers", None, box.get("hello.txt").headers["Access-Control-Allow-Origin"])


# ---- calls ----
def entries():
    box = boxes["a"]
    box.put("/tmp/e/f.txt", b"12345")
    box.sh("ln -s f.txt /tmp/e/l; ln -s l /tmp/e/l2; ln -s nowhere /tmp/e/broken; mkdir -m 1777 /tmp/e/d; mkfifo /tmp/e/p; chmod 711 /tmp/e/f.txt")
    box.sh("touch -d 2020-02-03T04:05:06.789Z /tmp/e/f.txt; chown 4321:8765 /tmp/e/p", "root")
    for python in (False, True):
        a = box.rpc("Stat", {"path": "/tmp/e/f.txt"}, python=python)
        same("Stat tells all of a file (%s)" % ("as Python asks" if python else "as JavaScript asks"),
             {"name": "f.txt", "type": "FILE_TYPE_FILE", "path": "/tmp/e/f.txt", "size": "5", "mode": 0o711, "permissions": "-rwx--x--x",
              "owner": "user", "group": "user", "modifiedTime": "2020-02-03T04:05:06.789Z"}, entry_of(a))
    e = entry_of(box.rpc("Stat", {"path": "/tmp/e/l2"}))
    same("a link is told with type and mode of what it leads to", ("FILE_TYPE_FILE", 0o711, "Lrwxrwxrwx", "/tmp/e/f.txt", "/tmp/e/l2"),
         tuple(e.get(k) for k in ("type", "mode", "permissions", "symlinkTarget", "path")))
    e = entry_of(box.rpc("Stat", {"path": "/tmp/e/broken"}))
    same("a link that leads nowhere has no type", ("FILE_TYPE_UNSPECIFIED", "Lrwxrwxrwx"), (e.get("type"), e.get("permissions")))
    e = entry_of(box.rpc("Stat", {"path": "/tmp/e/d"}))
    same("a directory", ("FILE_TYPE_DIRECTORY", 0o777, "dtrwxrwxrwx"), (e.get("type"), e.get("mode"), e.get("permissions")))
    e = entry_of(box.rpc("Stat", {"path": "/tmp/e/p"}))
    same("owners without a name are numbers", ("4321", "8765", "prw-r--r--"), (e.get("owner"), e.get("group"), e.get("permissions")))
    same("the root is itself", ("/", "/"), tuple(entry_of(box.rpc("Stat", {"path": "/"})).get(k) for k in ("name", "path")))
    same("no path is home", "/home/user", entry_of(box.rpc("Stat", {})).get("path"))
    same("a user's home by the user", "/root", entry_of(box.rpc("Stat", {"path": "~"}, user="root")).get("path"))
    same("envd sees what only root may see", "FILE_TYPE_FILE", entry_of(box.rpc("Stat", {"path": "/root/r.txt"})).get("type"))
    code("a missing path", box.rpc("Stat", {"path": "/gone"}), 404, "not_found")
    code("~other", box.rpc("Stat", {"path": "~x"}), 400, "invalid_argument")
    code("an unknown user", box.rpc("Stat", {"path": "/"}, user="nobody-here"), 401, "unauthenticated", "invalid username: 'nobody-here'")
    code("a path that is no text", box.rpc("Stat", {"path": 5}), 400, "invalid_argument")

    a = box.rpc("MakeDir", {"path": "new/dir/deep"})
    same("MakeDir makes all parents", ("/home/user/new/dir/deep", "drwxr-xr-x", "user"), tuple(entry_of(a).get(k) for k in ("path", "permissions", "owner")))
    code("a directory that is there", box.rpc("MakeDir", {"path": "new/dir"}), 409, "already_exists")
    code("a file that is there", box.rpc("MakeDir", {"path": "/tmp/e/f.txt"}), 400, "invalid_argument", "not a directory")
    code("below a file", box.rpc("MakeDir", {"path": "/tmp/e/f.txt/x"}), 400, "invalid_argument")
    same("where only root may", "user", entry_of(box.rpc("MakeDir", {"path": "/opt/mine"})).get("owner"))

    box.put("mv", b"moved")
    a = box.rpc("Move", {"source": "mv", "destination": "to/there/mv2"})
    same("Move makes parents and tells the new entry", "/home/user/to/there/mv2", entry_of(a).get("path"))
    same("the content went along", b"moved", box.get("to/there/mv2").body)
    code("a missing source", box.rpc("Move", {"source": "mv", "destination": "x"}), 404, "not_found")
    same("Remove answers {}", {}, box.rpc("Remove", {"path": "to"}).json)
    same("Remove answers {} when nothing is there", {}, box.rpc("Remove", {"path": "to"}, python=True).json)
    code("Remove removes a directory with all that is in it", box.rpc("Stat", {"path": "to"}), 404, "not_found")


def listing():
    box = boxes["a"]
    box.sh("mkdir -p /tmp/t/b/c /tmp/t/a-x /tmp/t/a; touch /tmp/t/b/c/2 /tmp/t/b/1 /tmp/t/a/z /tmp/t/a.txt; ln -s b /tmp/t/link; ln -s t /tmp/tl")

    def names(path, depth=None, **more):
        a = box.rpc("ListDir", {"path": path, **({"depth": depth} if depth is not None else {})}, **more)
        return [e["path"] for e in a.json["entries"]] if a.status == 200 else a.body
    top = ["/tmp/t/a", "/tmp/t/a-x", "/tmp/t/a.txt", "/tmp/t/b", "/tmp/t/link"]
    same("ListDir is in order, and without the root", top, names("/tmp/t"))
    same("depth 0 is 1", top, names("/tmp/t", 0))
    same("ListDir of depth 2 has each directory before its entries", ["/tmp/t/a", "/tmp/t/a/z", "/tmp/t/a-x", "/tmp/t/a.txt", "/tmp/t/b", "/tmp/t/b/1", "/tmp/t/b/c", "/tmp/t/link"],
         names("/tmp/t", 2))
    check("ListDir may be as deep as the tree", "/tmp/t/b/c/2" in names("/tmp/t", 4000000000), names("/tmp/t", 4000000000))
    same("through a link the paths are as they were asked for", [p.replace("/tmp/t/", "/tmp/tl/") for p in top], names("/tmp/tl"))
    box.sh("mkdir /tmp/none")
    same("an empty directory", {"entries": []}, box.rpc("ListDir", {"path": "/tmp/none"}).json)
    code("a missing one", box.rpc("ListDir", {"path": "/gone"}), 404, "not_found")
    code("a file", box.rpc("ListDir", {"path": "/tmp/t/a.txt"}), 400, "invalid_argument", "path is not a directory: /tmp/t/a.txt")
    code("a depth that cannot be", box.rpc("ListDir", {"path": "/", "depth": -1}), 400, "invalid_argument")
    box.sh("mkdir /tmp/wide && cd /tmp/wide && seq -f '%06.0f' 1000 | xargs touch && ln -s 000001 link")
    begin = time.time()
    got = box.rpc("ListDir", {"path": "/tmp/wide"}, python=True).json["entries"]
    took = time.time() - begin
    same("a thousand entries", ["%06d" % i for i in range(1, 1001)] + ["link"], [e["name"] for e in got])
    print("# a thousand entries in %d ms" % (took * 1000))


def many_at_once():
    """As many calls as an SDK has connections: those that find the sandbox busy wait for their turn."""
    box = boxes["a"]
    got = []

    def one(i):
        got.append((box.rpc("Stat", {"path": "/etc"}) if i % 2 else box.rpc("ListDir", {"path": "/etc"})).status)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(200)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same("two hundred calls at once are all answered", {200: 200}, {s: got.count(s) for s in set(got)})


def without_root():
    """A sandbox of the native API, which has no root: envd has no more rights than the user."""
    a = ask("POST", "/v1/sandboxes", {"template": "host"})
    box = Box.__new__(Box)
    box.id = a.json["id"]
    box.token = ask("GET", "/sandboxes/" + box.id).json["envdAccessToken"]
    same("a sandbox without root reads and writes files", b"x", box.get("f").body if box.put("f", b"x").status == 200 else None)
    refused("a place of root's is refused", box.put("/srv/x", b"x"), 403)
    refused("an upload in root's name is refused in a sandbox without root", box.upload({"path": "/tmp/x", "username": "root"}, b"x", "application/octet-stream"), 403)
    code("MakeDir in a place of root's is refused in a sandbox without root", box.rpc("MakeDir", {"path": "/srv/x"}), 403, "permission_denied")
    ask("DELETE", "/sandboxes/" + box.id)


# ---- watching ----
class Stream:
    """WatchDir, until it is closed; events are kept as they come."""

    def __init__(self, box, message, **more):
        self.c = server.http(30)
        text = json.dumps(message).encode()
        self.c.request("POST", "/filesystem.Filesystem/WatchDir", iter([struct.pack(">BI", 0, len(text)) + text]),
                       box.headers(Content_Type="application/connect+json", Connect_Protocol_Version="1", **more))
        self.r = self.c.getresponse()
        self.events, self.end, self.others = [], None, []
        self.first = self.frame()
        self.t = threading.Thread(target=self.read, daemon=True)
        self.t.start()

    def frame(self):
        head = self.r.read(5)
        if len(head) < 5:
            return None
        flag, size = struct.unpack(">BI", head)
        message = json.loads(self.r.read(size))
        if flag == 2:
            self.end = message
        return message

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):  # closed, or cut
            while self.end is None and (m := self.frame()) is not None:
                if "filesystem" in m:
                    self.events.append(m["filesystem"])
                else:
                    self.others.append(m)

    def until(self, *wanted):
        """Waits for these (type, name), in any order."""
        return within(30, lambda: set(wanted) <= {(e["type"].replace("EVENT_TYPE_", ""), e["name"]) for e in self.events})

    def entry(self, kind, name):
        return [e.get("entry") for e in self.events if (e["type"], e["name"]) == ("EVENT_TYPE_" + kind, name)][-1]

    def close(self):
        self.c.sock and self.c.sock.shutdown(socket.SHUT_RDWR)
        self.c.close()


def streams():
    box = boxes["a"]
    box.sh("mkdir -p /tmp/w/sub")
    s = Stream(box, {"path": "/tmp/w"})
    same("a stream begins with start", ({"start": {}}, 200, "application/connect+json"), (s.first, s.r.status, s.r.headers["Content-Type"]))
    box.put("/tmp/w/new.txt", b"1")
    check("an upload is created and written", s.until(("CREATE", "new.txt"), ("WRITE", "new.txt")), s.events)
    s.events.clear()
    box.put("/tmp/w/new.txt", b"2")
    check("a second one is written", s.until(("WRITE", "new.txt")), s.events)
    for what in ("new", "old"):  # a later event says that all of the upload's have come
        s.events.clear()
        box.put("/tmp/w/big", b"b" * 300000)
        box.sh("cd /tmp/w; touch mark; rm mark")
        check("an upload of 300 kB to the %s file is over" % what, s.until(("REMOVE", "mark")), s.events)
        kinds = [e["type"].replace("EVENT_TYPE_", "") for e in s.events if e["name"] == "big"]
        check("an upload has few events: %s file" % what, 1 <= kinds.count("WRITE") <= 3 and len(kinds) <= 5, kinds)
    box.sh("rm /tmp/w/big")
    s.until(("REMOVE", "big"))
    s.events.clear()
    box.sh("cd /tmp/w; chmod 600 new.txt; mv new.txt old.txt; mv old.txt /tmp/out.txt; mv /tmp/out.txt in.txt; rm in.txt; touch sub/unseen")
    check("chmod, rename, leaving, coming and going", s.until(("CHMOD", "new.txt"), ("RENAME", "new.txt"), ("CREATE", "old.txt"), ("RENAME", "old.txt"),
                                                              ("CREATE", "in.txt"), ("REMOVE", "in.txt")), s.events)
    check("what is below is not told", not any("unseen" in e["name"] for e in s.events), s.events)
    check("events have no entries unless asked for", not any("entry" in e for e in s.events), s.events)
    s.close()
    s = Stream(box, {"path": "/tmp/w", "recursive": True, "includeEntry": True}, Keepalive_Ping_Interval="1")
    box.put("/tmp/w/fresh/er/x.txt", b"123", **{"X-Metadata-a": "b"})
    check("a recursive one covers directories that are made later", s.until(("CREATE", "fresh"), ("CREATE", "fresh/er/x.txt")), s.events)
    box.put("/tmp/w/fresh/er/x.txt", b"12345", **{"X-Metadata-a": "b"})
    check("a recursive watch covers files that are written in new directories", s.until(("WRITE", "fresh/er/x.txt")), s.events)
    box.put("/tmp/w/fresh/last.txt", b"")
    s.until(("CREATE", "fresh/last.txt"))  # the first upload's WRITE may have come before its metadata was set: not that one
    e = s.entry("WRITE", "fresh/er/x.txt")
    same("an event has the entry", ("x.txt", "/tmp/w/fresh/er/x.txt", "FILE_TYPE_FILE", "user", {"a": "b"}),
         tuple((e or {}).get(k) for k in ("name", "path", "type", "owner", "metadata")))
    box.rpc("Move", {"source": "/tmp/w/fresh/er/x.txt", "destination": "/tmp/w/y.txt"})
    check("a rename into a watched directory is told", s.until(("RENAME", "fresh/er/x.txt"), ("CREATE", "y.txt")), s.events)
    same("a rename is told with the new entry", "/tmp/w/y.txt", (s.entry("CREATE", "y.txt") or {}).get("path"))
    box.rpc("Remove", {"path": "/tmp/w/y.txt"})
    check("removal has none", s.until(("REMOVE", "y.txt")) and s.entry("REMOVE", "y.txt") is None, s.events)
    check("keepalives come when it is quiet", within(30, lambda: {"keepalive": {}} in s.others), s.others)
    box.rpc("Remove", {"path": "/tmp/w"})
    s.t.join(30)
    same("the end of the directory ends the stream", {}, s.end)
    s = Stream(box, {"path": "/gone"})
    same("a missing directory is told in an end frame behind 200", (200, "not_found"), (s.r.status, s.first["error"]["code"]))
    s = Stream(box, {"path": "/home/user/hello.txt"})
    same("a watch of a file is told in an end frame", "invalid_argument", s.first["error"]["code"])
    s = Stream(box, {"path": "/tmp"}, Connect_Timeout_Ms="300")
    s.t.join(30)
    same("the time that the client allows is kept", "deadline_exceeded", (s.end or {}).get("error", {}).get("code"))


def watchers():
    box = boxes["a"]
    box.sh("mkdir -p /tmp/ww")

    def events(w):
        a = box.rpc("GetWatcherEvents", {"watcherId": w}, python=True)
        return a.json["events"] if a.status == 200 else a.body

    def until(w, *wanted):
        have = []

        def there():
            have.extend(events(w))
            return set(wanted) <= {(e["type"].replace("EVENT_TYPE_", ""), e["name"]) for e in have}
        return have if within(30, there) else None
    a = box.rpc("CreateWatcher", {"path": "/tmp/ww", "recursive": True, "include_entry": True}, python=True)
    w = (a.json or {}).get("watcherId")
    check("a watcher has an id", w, a.body)
    same("a new watcher has no events", [], events(w))
    box.put("/tmp/ww/a/b", b"1")
    have = until(w, ("CREATE", "a"), ("CREATE", "a/b"))
    check("a watcher has events with entries", have and any(e.get("entry", {}).get("path") == "/tmp/ww/a/b" for e in have), have)
    box.sh("cd /tmp/ww; for i in $(seq 3000); do echo >f$i; done")
    have = until(w, ("CREATE", "f1"), ("CREATE", "f3000"))
    check("thousands wait for the question", have and len({e["name"] for e in have if e["type"] == "EVENT_TYPE_CREATE"}) >= 3000, have and len(have))
    box.sh("rm -r /tmp/ww")
    check("the end of the directory is told", until(w, ("REMOVE", ".")) is not None)
    same("a watcher has no events after the end of its directory", [], events(w))
    same("RemoveWatcher answers {}", {}, box.rpc("RemoveWatcher", {"watcherId": w}).json)
    code("a removed watcher is not known", box.rpc("GetWatcherEvents", {"watcherId": w}), 404, "not_found")
    code("a removed watcher cannot be removed again", box.rpc("RemoveWatcher", {"watcherId": w}), 404, "not_found")
    code("a missing directory", box.rpc("CreateWatcher", {"path": "/gone"}), 404, "not_found")
    code("a file", box.rpc("CreateWatcher", {"path": "/home/user/hello.txt"}), 400, "invalid_argument")
    box.sh("mkdir -p /tmp/flood")
    w = box.rpc("CreateWatcher", {"path": "/tmp/flood"}).json["watcherId"]
    box.sh("cd /tmp/flood; for i in $(seq 25000); do echo >>a; echo >>b; done")
    end = time.time() + 20
    while time.time() < end and (a := box.rpc("GetWatcherEvents", {"watcherId": w})).status == 200:
        pass
    code("events without a reader are not kept for ever, and their loss is told", a, 500, "internal", "lost")
    box.rpc("RemoveWatcher", {"watcherId": w})
    ids = [box.rpc("CreateWatcher", {"path": "/tmp"}).json.get("watcherId") for _ in range(16)]
    code("a sandbox has so many watchers and no more", box.rpc("CreateWatcher", {"path": "/tmp"}), 429, "resource_exhausted")
    other = Box()
    code("a watcher of another sandbox is not known", other.rpc("GetWatcherEvents", {"watcherId": ids[0]}), 404, "not_found")
    code("a watcher cannot be removed from another sandbox", other.rpc("RemoveWatcher", {"watcherId": ids[0]}), 404, "not_found")
    same("a watcher is unharmed by requests from another sandbox", [], events(ids[0]))
    for i in ids:
        box.rpc("RemoveWatcher", {"watcherId": i})
    check("a watcher can be made once others are removed", box.rpc("CreateWatcher", {"path": "/tmp"}).status == 200)
    s = Stream(other, {"path": "/tmp"})
    ask("DELETE", "/sandboxes/" + other.id)
    s.t.join(30)
    check("a stream ends with its sandbox", not s.t.is_alive() and s.end is None, s.end)
    same("calls to a killed sandbox are 502", 502, other.rpc("GetWatcherEvents", {"watcherId": ids[0]}).status)


run(contents, conditions, forms, breaking_off, metadata, large, compose, access, around, entries, listing, many_at_once,
    without_root, streams, watchers, full_disk)
