"""A server that lies to cove cp: nothing may be written outside of the destination, and nothing half is left. Arguments: cove, a directory."""
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading

from harness import check, finish

COVE, ROOT = sys.argv[1:3]
answer = {}


class Liar(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        what = self.path.split("?")[0].rsplit("/", 1)[1]
        body, kind = answer.get(what, b'{"entries":[]}'), "application/json" if what in ("stat", "list") else "application/x-tar"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) + (answer.get("missing", 0) if what == "tar" else 0)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *args):
        pass


def archive(*entries, end=True):
    out = io.BytesIO()
    tar = tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT)
    for name, kind, content in entries:
        info = tarfile.TarInfo(name)
        info.type, info.mode = kind, 0o4777
        if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            info.linkname = content
        else:
            info.size = len(content)
        tar.addfile(info, io.BytesIO(content) if kind == tarfile.REGTYPE else None)
    if end:
        tar.close()
    return out.getvalue() if end else out.getvalue()[:-100]


def copy(*options):
    place = os.path.join(ROOT, "place")
    subprocess.run(["rm", "-rf", place])
    os.mkdir(place)
    done = subprocess.run([COVE, "--server", "http://127.0.0.1:%d" % server.server_port, "cp", *options, "box:evil", place], capture_output=True,
                          text=True, timeout=60, env=dict(os.environ, COVE_KEY="e2b_key", HOME=ROOT, COVE_STATE=""))
    found = sorted(os.path.relpath(os.path.join(d, n), place) for d, dirs, files in os.walk(place) for n in dirs + files)
    return done.returncode, done.stderr.strip(), found


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
threading.Thread(target=server.serve_forever, daemon=True).start()
outside = os.path.join(ROOT, "outside")
DIR, FILE, LINK, HARD, FIFO = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE
answer["stat"] = b'{"path":"/evil","type":"directory","mode":"4755"}'
for sentence, entries in (
        ("a path that goes up", [("../outside", FILE, b"EVIL")]),
        ("a path that goes up in the middle", [("a", DIR, b""), ("a/../../outside", FILE, b"EVIL")]),
        ("an absolute path", [(outside, FILE, b"EVIL")]),
        ("a path through a link of the archive", [("l", LINK, "../.."), ("l/outside", FILE, b"EVIL")]),
        ("a directory where the archive made a link", [("l", LINK, "../.."), ("l", DIR, b""), ("l/outside", FILE, b"EVIL")]),
        ("a path through a file of the archive", [("f", FILE, b"x"), ("f/outside", FILE, b"EVIL")]),
        ("a hard link", [("f", FILE, b"x"), ("g", HARD, "f")]),
        ("a hard link that leads out", [("g", HARD, "../../outside")]),
        ("a FIFO in an archive", [("p", FIFO, b"")])):
    with open(outside, "w") as f:
        f.write("precious")
    answer["tar"] = archive(*entries)
    code, said, found = copy()
    check(sentence + " is refused", code != 0 and said.startswith("cove: "), (code, said))
    check(sentence + " writes nothing outside", open(outside).read() == "precious" and not any(".cove-" in n for n in found), found)
answer["tar"] = archive(("prog", FILE, b"x"), ("dir", DIR, b""), ("dir/f", FILE, b"y"), ("link", LINK, outside))
code, said, found = copy()
check("an honest archive is copied", (code, found) == (0, ["evil", "evil/dir", "evil/dir/f", "evil/link", "evil/prog"]), (code, said, found))
modes = [oct(os.lstat(os.path.join(ROOT, "place/evil", n)).st_mode & 0o7777) for n in ("prog", "dir", ".")]
check("setuid bits are dropped", modes == ["0o777", "0o777", "0o755"], modes)
check("a link is a link", os.readlink(os.path.join(ROOT, "place/evil/link")) == outside)
answer["tar"] = archive(("a", FILE, b"x" * 100000), end=False)[:50000]
code, said, found = copy()
check("an archive that is cut is a failure", code != 0, (code, said))
check("an archive that is cut leaves no half file", found == ["evil"], found)
answer["missing"] = 1000
code, said, found = copy()
check("an answer that is cut is a failure", code != 0 and found == ["evil"], (code, said, found))
answer["missing"] = 0
answer["tar"] = archive(("a", FILE, b"x" * 200000))
code, said, found = copy("--max", "100k")
check("more than --max is refused", code == 98 and found == ["evil"], (code, said, found))
answer["tar"] = b"no archive at all" * 100
code, said, found = copy()
check("what is no archive is refused", code != 0, (code, said))
answer["stat"] = b'{"path":"/evil","type":"surprise","mode":"x"}'
code, said, found = copy()
check("an unknown type is left out", (code, found) == (91, []), (code, said, found))
answer["stat"] = b'{"path":"/evil","type":"symlink","mode":"777"}'
code, said, found = copy()
check("a link without a target is refused", code != 0 and found == [], (code, said, found))
answer["stat"] = b'[]'
code, said, found = copy()
check("an answer of another shape is survived", found == [], (code, said, found))
finish()
