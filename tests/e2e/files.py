"""Files over HTTP: encodings, archives, signed URLs. Run by files_test."""
import gzip
import http.client
import io
import json
import os
import socket
import subprocess
import tarfile
import time

from harness import COVED, STATE, ask, check, refused, run, same, server, within

GZIP = {"Content-Encoding": "gzip"}
box = None


def begin():
    global box
    a = ask("POST", "/v1/sandboxes", {})
    same("a sandbox", 201, a.status)
    box = "/v1/sandboxes/" + a.json["id"]


# ---- encodings of requests ----
def encodings():
    at = box + "/files?path=z.txt"
    text = b"a line of text\n" * 5000
    packed = gzip.compress(text)

    def put(body, headers=GZIP):
        return ask("PUT", at, body, headers=headers)

    def content():
        return ask("GET", at).body

    same("a gzip upload is stored decoded", (200, len(text)), (lambda a: (a.status, a.json["size"]))(put(packed)))
    check("byte for byte", content() == text)
    put(iter([packed[:20], packed[20:21], packed[21:]]))
    check("a gzip upload in chunks is stored decoded", content() == text)
    put(gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two"))
    same("members follow each other", b"one two", content())
    refused("half a gzip upload is refused", put(packed[:-9]), 400, "invalid")
    refused("a damaged one", put(packed[:-6] + b"xx" + packed[-4:]), 400, "invalid")
    refused("garbage behind a gzip upload is refused", put(packed + b"garbage"), 400, "invalid")
    refused("no gzip at all", put(b"plain text"), 400, "invalid")
    refused("a bomb", put(gzip.compress(bytes(40 << 20))), 413, "too_big")
    same("refused gzip uploads do not change the file", b"one two", content())
    a = put(b"x", {"Content-Encoding": "br"})
    refused("an encoding that is not known", a, 415, "invalid", "Content-Encoding")
    same("a refused encoding is answered with the known one", "gzip", a.headers["Accept-Encoding"])
    same("identity is none", 200, put(b"plain", {"Content-Encoding": "identity"}).status)
    same("an empty body is empty", 200, put(b"").status)

    run_it = box + "/exec"
    same("JSON may be gzip", "hi\n", ask("POST", run_it, gzip.compress(b'{"command": "echo hi"}'), headers=GZIP).json["stdout"])
    spaces = b'{"command": "true"' + b" " * (5 << 20) + b"}"
    refused("the limit is one of decoded bytes", ask("POST", run_it, gzip.compress(spaces), headers=GZIP), 413, "too_big")
    refused("empty gzip members do not get around the limit", ask("POST", run_it, gzip.compress(b"") * 220000, headers=GZIP), 413, "too_big")

    c = server.http(20)
    c.request("PUT", at, packed + b"garbage", GZIP)
    first = c.getresponse()
    first.read()
    c.request("POST", run_it, json.dumps({"command": "echo next"}))
    same("the connection continues behind a refusal", (400, "next\n"), (first.status, json.loads(c.getresponse().read())["stdout"]))
    c.close()


# ---- archives ----
def archive(*entries, fmt=tarfile.PAX_FORMAT):
    """Entries are (name, content), (name, content, changes) or a TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for e in entries:
            info = tarfile.TarInfo(e[0])
            info.mode, info.mtime = 0o644, 1700000000
            for k, v in (e[2] if len(e) > 2 else {}).items():
                setattr(info, k, v)
            content = (e[1] or b"") if info.isreg() else b""
            info.size = len(content)
            t.addfile(info, io.BytesIO(content))
    return out.getvalue()


DIR = {"type": tarfile.DIRTYPE, "mode": 0o755}


def link(target, kind=tarfile.SYMTYPE):
    return {"type": kind, "linkname": target}


def sh(command):
    return ask("POST", box + "/exec", {"command": command}).json["stdout"]


def tree():
    """One of everything that goes through."""
    return [("d", None, {"type": tarfile.DIRTYPE, "mode": 0o555, "mtime": 1600000000}), ("d/a.sh", b"#!/bin/sh\n", {"mode": 0o750}),
            ("d/l", None, link("../else where")), ("d/out", None, link("/etc/passwd")), ("d/same", None, link("d/a.sh", tarfile.LNKTYPE)),
            ("new/parents/f", b"x" * 70000), ("empty", b""), ("name with \xfc", b"u"), ("p" * 90 + "/" + "q" * 120, b"long")]


def read_back(path, more=""):
    a = ask("GET", box + "/files/tar?path=" + path + more)
    same("an archive comes", (200, "application/gzip" if "gzip" in more else "application/x-tar"), (a.status, a.headers["Content-Type"]))
    with tarfile.open(fileobj=io.BytesIO(a.body)) as t:
        return {m.name: (m.type, m.mode, m.mtime, m.linkname, t.extractfile(m).read() if m.isreg() else None) for m in t}


def archives():
    at = box + "/files/tar?path="
    for fmt, name in ((tarfile.USTAR_FORMAT, "ustar"), (tarfile.GNU_FORMAT, "GNU"), (tarfile.PAX_FORMAT, "pax")):
        entries = tree() if name != "ustar" else tree()[:-1]
        a = ask("PUT", at + "/tmp/t-" + name, archive(*entries, fmt=fmt))
        same("an archive of %s is unpacked" % name, (200, len(entries)), (a.status, (a.json or {}).get("entries")))
        got = read_back("/tmp/t-" + name, "&gzip=1" if name == "GNU" else "")
        same("%s: a directory has its mode and time" % name, (tarfile.DIRTYPE, 0o555, 1600000000), got["d"][:3])
        same("%s: a file, too, and its content" % name, (tarfile.REGTYPE, 0o750, 1700000000, "", b"#!/bin/sh\n"), got["d/a.sh"])
        same("%s: links stay links" % name, ["../else where", "/etc/passwd"], [got["d/l"][3], got["d/out"][3]])
        same("%s: everything is there" % name, sorted([e[0] for e in entries] + ["new", "new/parents"] + (["p" * 90] if name != "ustar" else [])),
             sorted(got))
        same("%s: a large file is whole" % name, b"x" * 70000, got["new/parents/f"][4])
    same("a second name is the same file", "2\n", sh("stat -c %h /tmp/t-pax/d/same"))
    same("owned by the user", "user\n", sh("stat -c %U /tmp/t-pax/d/a.sh"))

    a = ask("PUT", at + "/tmp/z", gzip.compress(archive(("a", b"zipped"))), headers=GZIP)
    same("gzip on the way in", (200, b"zipped"), (a.status, ask("GET", box + "/files?path=/tmp/z/a").body))
    same("a file alone is an archive of one", {"a"}, set(read_back("/tmp/z/a")))
    h = ask("HEAD", at + "/tmp/z")
    same("HEAD has the head alone", (200, b""), (h.status, h.body))
    refused("what is not there", ask("GET", at + "/tmp/nope"), 404, "path_not_found")
    refused("an archive to a missing directory with parents=false is 404", ask("PUT", at + "/tmp/nope/x&parents=false", archive()), 404, "path_not_found")
    refused("what the user may not read", ask("GET", at + "/root"), 403, "permission_denied")
    refused("an archive to a place where the user may not write is refused", ask("PUT", at + "/home", archive(("x", b"x"))), 403, "permission_denied")
    same("an archive of nothing", 0, ask("PUT", at + "/tmp/z", archive()).json["entries"])
    ask("PUT", at + "/tmp/z", archive(("a", b"newer")))
    same("what is there is replaced", b"newer", ask("GET", box + "/files?path=/tmp/z/a").body)
    sh("mkdir -p /tmp/u/no; echo x >/tmp/u/x; mkfifo /tmp/u/fifo; chmod 0 /tmp/u/no")
    c = server.http(20)
    c.request("GET", at + "/tmp/u")
    try:
        c.getresponse().read()
        cut = False
    except http.client.IncompleteRead:
        cut = True
    check("a directory that cannot be read cuts the answer", cut)
    same("skip_unreadable leaves out what cannot be read, and FIFOs", {"x"}, set(read_back("/tmp/u", "&skip_unreadable=true")))


def hostile_archives():
    at = box + "/files/tar?path=/tmp/h"
    sh("mkdir -p /tmp/h /tmp/victim; echo safe >/tmp/victim/f; ln -s /tmp/victim /tmp/h/old; ln -s /tmp/victim/f /tmp/h/file")
    for sentence, entries, status, code in (
            ("an absolute path", [("/tmp/victim/f", b"bad")], 400, "invalid"),
            ("a path that climbs", [("a/../../victim/f", b"bad")], 400, "invalid"),
            ("a path through a link that came along", [("l", None, link("/tmp/victim")), ("l/f", b"bad")], 400, "not_a_directory"),
            ("a path through a link that was there", [("old/f", b"bad")], 400, "not_a_directory"),
            ("a directory where a link is", [("old", None, DIR)], 400, "not_a_directory"),
            ("a hard link that leads out", [("h", None, link("../victim/f", tarfile.LNKTYPE))], 400, "invalid"),
            ("a hard link to an absolute path", [("h", None, link("/tmp/victim/f", tarfile.LNKTYPE))], 400, "invalid"),
            ("a hard link through a link", [("h", None, link("old/f", tarfile.LNKTYPE)), ("h", b"bad")], 400, "not_a_directory"),
            ("a device", [("dev", None, {"type": tarfile.CHRTYPE})], 400, "invalid"),
            ("a FIFO", [("fifo", None, {"type": tarfile.FIFOTYPE})], 400, "invalid"),
            ("a file over a directory", [("dir", None, DIR), ("dir", b"bad")], 400, "is_a_directory")):
        a = ask("PUT", at, archive(("first", b"1"), *entries))
        refused("refused: " + sentence, a, status, code)
        name = entries[-1][0] if "through a link that" in sentence else entries[0][0]
        check("the refusal of an archive says which entry", name.split("/")[0 if name[0] != "/" else 1] in a.json["error"]["message"], a.body)
    same("refused archives touch nothing outside", "safe\n", sh("cat /tmp/victim/f"))
    same("a file takes the place of a link, not of what it leads to", ["new", "safe\n"],
         [(ask("PUT", at, archive(("file", b"new"))), sh("cat /tmp/h/file"))[1], sh("cat /tmp/victim/f")])
    good = archive(("first", b"1" * 3000), ("second", b"2"))
    refused("half an archive", ask("PUT", at, good[:1500]), 400, "invalid")
    refused("an archive without its end is refused", ask("PUT", at, good[:512 * 9]), 400, "invalid")
    refused("no archive", ask("PUT", at, b"hello" * 500), 400, "invalid")
    refused("something behind an archive is refused", ask("PUT", at, good + b"x"), 400, "invalid")
    refused("an encoding that is not known", ask("PUT", at, good, headers={"Content-Encoding": "zstd"}), 415, "invalid", "Content-Encoding")
    same("archives leave no file of ours", "", sh("find /tmp/h -name '.cove-*'"))
    refused("the policy looks at every entry", ask("PUT", box + "/files/tar?path=/", archive(("etc/shadow", b"x"))), 403, "permission_denied",
            "path")


def archive_size():
    at = box + "/files/tar?path=/tmp/many"
    a = ask("PUT", at, archive(*[("d%d/f%d" % (i % 50, i), b"%d" % i) for i in range(3000)]))
    same("three thousand files", (200, 3000), (a.status, a.json.get("entries")))
    same("come back", 3050, len(read_back("/tmp/many")))

    def peak():
        return server.status("VmHWM")

    big = archive(("big", bytes(range(256)) * (64 << 12)))
    before = peak()
    same("64 MB go up", 200, ask("PUT", box + "/files/tar?path=/tmp/big", big).status)
    c = server.http()
    c.request("GET", box + "/files/tar?path=/tmp/big&gzip=1")
    with tarfile.open(fileobj=c.getresponse(), mode="r|gz") as t:
        same("64 MB come down in an archive", [("big", 64 << 20)], [(m.name, m.size) for m in t])
    check("an archive of 64 MB takes flat memory", peak() - before < 20000, "%d kB more" % (peak() - before))
    ask("DELETE", box + "/files?path=/tmp/big&recursive=true")


# ---- signed URLs ----
def signed():
    other, reader = os.environ["OTHER_KEY"], os.environ["READ_KEY"]
    a = ask("POST", "/v1/sandboxes", {}, key=other)
    theirs = "/v1/sandboxes/" + a.json["id"]
    same("a file to sign for", 200, ask("PUT", theirs + "/files?path=s/a b.txt".replace(" ", "%20"), "secret", key=other).status)

    def sign(key=other, status=200, at=theirs, **body):
        a = ask("POST", at + "/files/sign", body, key=key)
        same("signing answers %d" % status, status, a.status)
        if status != 200:
            return a
        check("the URL is one of this server", a.json["url"].startswith("http://127.0.0.1:%d/v1/" % server.port), a.body)
        return a.json["url"][len("http://127.0.0.1:%d" % server.port):]

    read = sign(path="s/a b.txt", operation="read")
    write = sign(path="up.txt", operation="write", expires_in=60)
    a = ask("GET", read)
    same("a signed URL reads without a key", (200, b"secret"), (a.status, a.body))
    same("a signed URL answers HEAD", 200, ask("HEAD", read).status)
    r = ask("GET", read, headers={"Range": "bytes=0-2"})
    same("a signed URL gives a range", (206, b"sec"), (r.status, r.body))
    same("a signed URL for writing writes", 200, ask("PUT", write, gzip.compress(b"uploaded"), headers=GZIP).status)
    same("a signed URL writes to the path that it names", b"uploaded", ask("GET", theirs + "/files?path=up.txt", key=other).body)

    refused("a URL for reading does not write", ask("PUT", read, "x"), 403, "permission_denied", "signature")
    refused("a signed URL for writing does not read", ask("GET", write), 403, "permission_denied", "signature")
    refused("a URL for writing that is changed to reading is refused", ask("GET", write.replace("operation=write", "operation=read")), 401, "permission_denied", "signature")
    last = "0" if read[-1] != "0" else "1"
    for sentence, url in (("a changed signature", read[:-1] + last), ("a short one", read[:-1]), ("an empty one", read[:read.index("signature=") + 10]),
                          ("another path", read.replace("a%20b.txt", "c.txt")), ("another user", read + "&user=root"),
                          ("a later end", read.replace("expires=", "expires=9")), ("no end", read.replace("expires=", "x=")),
                          ("another sandbox", read.replace(theirs, box)), ("no key", read.replace("&key=", "&x="))):
        refused("refused: " + sentence, ask("GET", url), 401, "permission_denied", "signature")
    refused("routes without signatures heed none, and want a key from afar",
            ask("GET", theirs + "/files/stat?" + read.split("?")[1]), 404, "sandbox_not_found")
    short = sign(path="s/a b.txt", operation="read", expires_in=1)
    time.sleep(2.1)
    refused("a URL ends", ask("GET", short), 403, "permission_denied", "signature")

    for field, body in (("path", {"operation": "read"}), ("operation", {"path": "x"}), ("operation", {"path": "x", "operation": "list"}),
                        ("expires_in", {"path": "x", "operation": "read", "expires_in": 8 * 86400}),
                        ("path", {"path": "x" * 4096, "operation": "read"})):
        refused("signing is refused: " + field, ask("POST", theirs + "/files/sign", body, key=other), 400, "invalid", field)
    sign(key=reader, status=403, path="x", operation="write")
    sign(status=404, at=box, path="x", operation="read")
    by_reader = sign(key=reader, path="s/a b.txt", operation="read")
    same("a key that may read signs for reading", 200, ask("GET", by_reader).status)

    def cove(*words):
        return subprocess.run([os.path.dirname(COVED) + "/direct/cove", *words], env=dict(os.environ, COVE_STATE=STATE),
                              capture_output=True, text=True)

    cove("key", "revoke", reader[4:16])
    refused("a revoked key takes its URLs along", ask("GET", by_reader), 401, "permission_denied", "signature")
    same("a revoked key leaves the URLs of other keys", 200, ask("GET", read).status)

    mine = sign(key=None, at=box, path="z.txt", operation="read")
    check("the local tenant's name no key", "key=" not in mine, mine)
    same("a signed URL of the local tenant works", 200, ask("GET", mine).status)
    noted = [r["action"] for r in ask("GET", "/audit-logs?limit=1000", key=other).json["logs"]]
    check("signed URLs are in the audit: sign, read, write", {"url.sign", "url.read", "url.write"} <= set(noted), sorted(set(noted)))
    server.kill()
    server.start()
    same("URLs outlive the server", 200, ask("GET", read).status)
    ask("DELETE", theirs, key=other)


def deep():
    """Forty thousand bytes of path: too long for an archive, and said before it begins."""
    a = ask("POST", box + "/exec", {"args": ["python3", "-c", "import os\nos.makedirs('/tmp/deep')\nos.chdir('/tmp/deep')\nopen('a', 'w').write('a')\n"
                                             "for i in range(200):\n  os.mkdir('d' * 200)\n  os.chdir('d' * 200)\nopen('leaf', 'w').write('leaf')"]})
    same("a very deep tree is made", 0, a.json["exit_code"])
    for more in ("", "&gzip=1", "&skip_unreadable=1"):
        a = ask("GET", box + "/files/tar?path=/tmp/deep" + more)
        check("the archive of a very deep tree is refused with a reason %s" % more, a.status == 413 and "a path in it is longer than 4095 bytes" in a.json["error"]["message"],
              (a.status, a.body[:200]))
    for name, why in (("d/" * 20000 + "leaf", "header of more than 32768 bytes"), ("/".join(["d" * 200] * 40), "4095")):
        a = ask("PUT", box + "/files/tar?path=/tmp/up", archive(("first", b"x"), (name, b"y"), ("last", b"z")))
        check("an archive with a path that is too long is refused on the way in", a.status in (400, 413) and why in a.json["error"]["message"], (a.status, a.body[:200]))
    same("what lies above goes as ever", 200, ask("GET", box + "/files/tar?path=/tmp/deep/a").status)
    # Where only the end of the connection ends an answer, one that is not whole must not look like one that is.
    ask("POST", box + "/exec", {"command": "mkdir /tmp/cut && cd /tmp/cut && touch $(seq 1000) && mkdir -m 0 closed"})
    s = server.connect(20)
    s.sendall(("GET %s/files/tar?path=/tmp/cut HTTP/1.0\r\nHost: localhost\r\n\r\n" % box).encode())
    how, got = "ended", 0
    try:
        while more := s.recv(65536):
            got += len(more)
    except ConnectionResetError:
        how = "reset"
    s.close()
    same("an answer that is cut looks cut to HTTP/1.0", "reset", how)


# ---- large files, which no process copies ----
def large():
    at = box + "/files?path=/tmp/large"
    content = os.urandom((9 << 20) + 77)
    same("a file of nine MiB is written", 200, ask("PUT", at, content).status)
    check("a large file comes back byte for byte", ask("GET", at).body == content)
    a = ask("GET", at, headers={"Range": "bytes=4099-8000000"})
    same("a large range of a file is answered as one", (206, "bytes 4099-8000000/%d" % len(content)), (a.status, a.headers["Content-Range"]))
    check("a large range that begins inside a page is right", a.body == content[4099:8000001])
    check("two large files come over one connection", all(ask("GET", at).body == content for _ in range(2)))
    shrinks = box + "/files?path=/tmp/shrinks"
    ask("POST", box + "/exec", {"command": "head -c 100m /dev/zero | tr '\\0' x > /tmp/shrinks"})
    s = server.connect(60)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % shrinks).encode())
    head = s.recv(2000)
    ask("POST", box + "/exec", {"command": "truncate -s 1000 /tmp/shrinks"})
    got = 0
    try:
        while more := s.recv(1 << 20):
            got += len(more)
    except ConnectionResetError:
        pass
    s.close()
    check("a file that shrinks while it is read begins as a whole one", b"Content-Length: %d\r\n" % (100 << 20) in head, head)
    check("a file that shrinks while it is read cuts the connection", got < 90 << 20, got)
    same("the next large file is whole again", True, ask("GET", at).body == content)


# ---- large uploads, whose pages go from the client's connection to the sandbox's ----
def put_begin(where, length):
    s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    s.sendall(("PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (where, length)).encode())
    return s


def status_of(s):
    text = b""
    while b"\r\n\r\n" not in text and (more := s.recv(65536)):
        text += more
    return int(text.split()[1]) if text else 0


def size_of(path):
    a = ask("GET", box + "/files/stat?path=" + path)
    return a.json["size"] if a.status == 200 else None


def large_uploads():
    at = box + "/files?path=/tmp/large-up"
    content = os.urandom((3 << 20) + 33)
    s = put_begin(at, len(content))
    for i in range(0, len(content), 333333):
        s.sendall(content[i:i + 333333])
    same("a large upload in uneven pieces is taken", 200, status_of(s))
    s.close()
    check("a large upload in uneven pieces is whole", ask("GET", at).body == content)

    same("a large body is appended", 200, ask("PUT", at + "&append=true", content).status)
    check("an appended large body stands behind what was there", ask("GET", at).body == content + content)

    # The urgent byte is no byte of the body.
    s = put_begin(at, len(content))
    s.sendall(content[:1 << 20])
    s.send(b"!", socket.MSG_OOB)
    s.sendall(content[1 << 20:])
    same("an upload with an urgent byte in between is taken", 200, status_of(s))
    s.close()
    check("an upload with an urgent byte in between is whole", ask("GET", at).body == content)

    s = put_begin(at, len(content))
    s.sendall(content + ("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % at).encode())
    got = b""
    while more := s.recv(1 << 20):
        got += more
    s.close()
    check("a request right behind a large body is answered", got.startswith(b"HTTP/1.1 200") and got.endswith(content))

    # Appended to: what was sent is in the file before the rest comes.
    slow = box + "/files?path=/tmp/slow&append=true"
    s = put_begin(slow, len(content))
    s.sendall(content[:100000])
    check("what was sent so far is in a file that is appended to", within(60, lambda: size_of("/tmp/slow") == 100000), size_of("/tmp/slow"))
    s.sendall(content[100000:])
    same("the rest of a slow upload is taken", 200, status_of(s))
    s.close()
    check("a slow upload is whole", ask("GET", box + "/files?path=/tmp/slow").body == content)

    s = put_begin(at, len(content))
    s.sendall(b"x" * (2 << 20))
    s.close()
    check("nothing is left of a large upload that broke off",
          within(60, lambda: sh("ls -a /tmp | grep -c '^[.]cove-'") == "0\n"), sh("ls -a /tmp"))
    check("a large upload that broke off changes nothing", ask("GET", at).body == content)


run(begin, encodings, large, large_uploads, signed, archives, hostile_archives, archive_size, deep)
