"""Where the parts meet: sandboxes that are paused to disk, saved and forked, with network rules, secrets, private networks,
previews, volumes and pools. Run by across_test."""
import json
import os
import socket
import subprocess

from harness import COVED, STATE, check, refused, run, same, server, within
from boxes import OTHER, Box, again, api, audit

INTERNET = os.environ["INTERNET"]
SETTINGS = ("--network-dns", "93.184.216.53", "--network-ca", INTERNET + "/ca.pem", "--policy", "minimal")
VALUE = "Value-%d-do-not-show" % os.getpid()
WWW = "93.184.216.34 host=www.example.com path=/%s from=93.184.216.1"
# A program that keeps one connection to the outside and writes down when it ends.
HOLD = r"""
import socket
s = socket.create_connection(("www.example.com", 8080), 5); s.sendall(b"GET /big/10 HTTP/1.1\r\nHost: www.example.com:8080\r\n\r\n")
while b"x" * 10 not in s.recv(9999): pass
s.settimeout(60); open("/tmp/held", "w").close()
try:
    got = repr(s.recv(1))
except OSError as e:
    got = type(e).__name__
open("/tmp/ended", "w").write(got)
"""
GREET = r"""
import http.server, os
class H(http.server.BaseHTTPRequestHandler):
    count = 0
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        H.count += 1
        if self.headers.get("Upgrade"):
            self.send_response(101); self.send_header("Upgrade", "websocket"); self.send_header("Connection", "Upgrade"); self.end_headers()
            self.close_connection = True
            return
        body = b"hello %d" % H.count
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 7000), H).serve_forever()
"""


def restart():
    server.kill()
    server.start(*SETTINGS)


def to_disk(box, sentence="to disk"):
    a = box.post("pause", {"tier": "disk"})
    same(sentence, (200, "disk", None), (a.status, a.json.get("tier"), a.json.get("fallback_reason")))


def get(box, path, host="www.example.com"):
    return box.said("curl -sS -m 8 http://%s/%s 2>&1" % (host, path))


def reaches(what, box, path):
    same("%s: what is allowed is reached" % what, WWW % path, get(box, path))
    same("%s: another address is refused" % what, "403", box.said("curl -sS -m 8 -o /dev/null -w '%{http_code}' http://93.184.216.35/"))
    check("%s: another name is not resolved" % what, "Could not resolve" in get(box, "", "evil.test"))


def events(box, event):
    return [e for e in api("GET", box.at + "/network/events").json["events"] if e["event"] == event]


def serve(box, text, ready):
    api("PUT", box.at + "/files?path=/tmp/p.py", text)
    box.post("processes", {"command": "exec python3 /tmp/p.py"})
    check("a program of it is ready", within(10, lambda: box.run(ready).json["exit_code"] == 0))


# ---- what it may reach ----
def rules():
    box = Box(network={"allow": ["www.example.com"]}, auto_resume=True)
    reaches("before", box, "one")
    serve(box, HOLD, "test -e /tmp/held")
    to_disk(box)
    box.post("resume")
    reaches("from disk", box, "two")
    check("a connection that was open is reset", within(5, lambda: "Reset" in box.said("cat /tmp/ended")), box.said("cat /tmp/ended"))
    same("the rules are the same", ("list", ["www.example.com"]), (lambda n: (n["mode"], n["allow"]))(api("GET", box.at + "/network").json))
    check("events continue", len([e for e in events(box, "connect") if e.get("host") == "www.example.com"]) >= 2 and
          len(events(box, "refused")) >= 2, api("GET", box.at + "/network/events").body)
    to_disk(box)
    same("woken by a request", WWW % "three", get(box, "three"))
    to_disk(box)
    restart()
    box.post("resume")
    reaches("from disk, with another server", box, "four")
    box.post("pause", {"tier": "hot"})
    restart()
    box.post("resume")
    check("after a hot pause and a restart of the server, an allowed host is reached", within(5, lambda: get(box, "five") == WWW % "five"), get(box, "five"))
    to_disk(box)
    same("rules can be changed while it sleeps", 200, api("PUT", box.at + "/network", {"mode": "list", "allow": ["api.example.com"]}).status)
    check("rules that were changed while the sandbox was on disk apply after the resume", "Could not resolve" in get(box, "six"), get(box, "six"))
    api("PUT", box.at + "/network", {"mode": "list", "allow": ["www.example.com"]})
    copies(box)
    box.end()


def copies(box):
    made = [again(f["sandbox"]["id"]) for f in box.post("fork", {"count": 2}).json["forks"]]
    for i, copy in enumerate(made):
        reaches("a fork, %d" % i, copy, "fork%d" % i)
    reaches("what was forked", box, "after")
    same("each fork has its own events", [1, 1], [len(events(c, "connect")) for c in made])
    api("PUT", made[0].at + "/network", {"mode": "off"})
    check("a fork can be cut off from its network", WWW % "off" != get(made[0], "off"))
    same("a fork keeps its network when another fork is cut off", WWW % "on", get(made[1], "on"))
    a = box.post("snapshots").json
    of = Box(snapshot=a["id"])
    reaches("made of a snapshot", of, "snap")
    none = Box(snapshot=a["id"], network={"mode": "off"})
    check("a sandbox of a snapshot with rules of its own has those", WWW % "none" != get(none, "none"))
    to_disk(of)
    of.post("resume")
    reaches("a sandbox of a snapshot, to disk and back", of, "snapdisk")
    api("DELETE", "/v1/snapshots/" + a["id"])
    for b in made + [of, none]:
        b.end()


# ---- secrets ----
def seen(path):
    found = [e for e in map(json.loads, open(INTERNET + "/seen")) if e["path"] == path]
    return ",".join(v for n, v in found[-1]["headers"] if n.lower() == "x-key") if found else "never came"


def used(what, box, path):
    got = box.said('curl -sS -m 20 -H "X-Key: $TOKEN" https://vault.example.com/seen/%s 2>&1' % path)
    same("%s: the value arrives" % what, ("seen", VALUE), (got, seen("/seen/" + path)))


def secrets():
    api("PUT", "/v1/secrets/TOKEN", {"value": VALUE, "hosts": ["vault.example.com"]})
    api("PUT", "/v1/secrets/MORE", {"value": VALUE, "hosts": ["vault.example.com"]})
    box = Box(network={"mode": "public", "secrets": ["TOKEN"]})
    used("a secret", box, "a")
    mark = box.said("echo $TOKEN")
    to_disk(box)
    restart()
    box.post("resume")
    used("from disk", box, "b")
    copy = again(box.post("fork", {"count": 1}).json["forks"][0]["sandbox"]["id"])
    same("a fork has the placeholder of the first", mark, copy.said("echo $TOKEN"))
    used("a fork", copy, "c")
    same("a fork shows the names of its secrets", ["TOKEN"], api("GET", copy.at + "/network").json.get("secrets"))
    kept = box.post("snapshots").json["id"]
    used("after a snapshot", box, "d")
    box.end()
    used("a fork whose first is gone", copy, "e")
    of = Box(snapshot=kept)
    used("a sandbox of a snapshot whose first is gone", of, "f")
    more = Box(snapshot=kept, network={"mode": "public", "secrets": ["MORE"]})
    used("one that gets another beside it", more, "g")
    same("a sandbox of a snapshot has the secrets of the snapshot and of the create", ["TOKEN", "MORE"], api("GET", more.at + "/network").json.get("secrets"))
    got = more.said('curl -sS -m 20 -H "X-Key: $MORE" https://vault.example.com/seen/h 2>&1')
    same("the value of a secret that the create added arrives", ("seen", VALUE), (got, seen("/seen/h")))
    check("elsewhere the placeholder is refused", "may not be sent" in of.said('curl -sS -m 9 -H "X-Key: $TOKEN" http://www.example.com/ 2>&1'))
    refused("a tenant cannot use the snapshot of another tenant", api("POST", "/v1/sandboxes", {"snapshot": kept}, OTHER), 404, "snapshot_not_found", "snapshot")
    restart()
    check("a secret works after the server was started again", within(8, lambda: of.said('curl -sS -m 20 -H "X-Key: $TOKEN" https://vault.example.com/seen/i 2>&1') == "seen"))
    same("the value arrives", VALUE, seen("/seen/i"))
    same("the snapshot goes", 204, api("DELETE", "/v1/snapshots/" + kept).status)
    for b in (copy, of, more):
        b.end()


# ---- private networks ----
def private():
    api("POST", "/v1/networks", {"name": "app"})
    db = Box(network={"join": [{"network": "app", "alias": "db", "ports": [7000]}]})
    web = Box(network={"join": [{"network": "app", "alias": "web"}]})
    serve(db, GREET, "curl -s 127.0.0.1:7000")
    ask_db = "curl -sS -m 20 http://db:7000/ 2>&1"
    same("a peer", "hello 2", web.said(ask_db))
    to_disk(db)
    check("a peer on disk is not reached, and the client learns why", "paused" in web.said(ask_db), web.said(ask_db))
    same("a connection leaves a peer on disk where it is", "disk", db.get()["tier"])
    db.post("resume")
    same("a resumed peer is in its network at once", "hello 3", web.said(ask_db))
    api("PUT", db.at + "/preview", {"auto_resume": True})
    to_disk(db)
    same("a connection wakes a peer that has auto_resume", "hello 4", web.said(ask_db))
    same("a connection resumes a peer with auto_resume, and the audit has one line about it", ("running", 1), (db.get()["state"], len([r for r in audit("sandbox.resume", db.id) if "private network" in json.dumps(r)])))
    to_disk(db)
    restart()
    check("a connection resumes a peer after the server was started again", within(8, lambda: web.said(ask_db).startswith("hello")), web.said(ask_db))
    to_disk(web)
    web.post("resume")
    check("a sandbox that was on disk reaches its peers at once", web.said(ask_db).startswith("hello"), web.said(ask_db))
    copy = again(web.post("fork", {"count": 1}).json["forks"][0]["sandbox"]["id"])
    check("a fork is no member", not copy.said(ask_db).startswith("hello"), copy.said(ask_db))
    check("what was forked is", web.said(ask_db).startswith("hello"), web.said(ask_db))
    same("members are who they were", [db.id, web.id], sorted([m["sandbox"] for m in api("GET", "/v1/networks/app").json["members"]], key=[db.id, web.id].index))
    for b in (db, web, copy):
        b.end()


# ---- previews ----
def visit(box, path, more=""):
    s = socket.create_connection(("127.0.0.1", server.port), 20)
    s.sendall(("GET %s HTTP/1.1\r\nHost: 7000-%s.localhost:%d\r\n%s\r\n" % (path, box.id, server.port, more)).encode())
    got = b""
    while b"\r\n\r\n" not in got and (data := s.recv(65536)):
        got += data
    s.close()
    return got.decode("latin1")


def previews():
    box = Box()
    serve(box, GREET, "curl -s 127.0.0.1:7000")
    token = api("POST", box.at + "/ports/7000/link", {}).json["token"]
    cookie = [line.split(":", 1)[1].split(";")[0].strip() for line in visit(box, "/?cove_token=" + token).split("\r\n") if line.lower().startswith("set-cookie")][0]
    auth = "Cookie: %s\r\n" % cookie
    ws = auth + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    to_disk(box)
    got = visit(box, "/", auth + "Accept: text/html\r\n")
    check("a page says that it is paused", " 502 " in got.split("\r\n")[0], got[:200])
    same("a visit leaves a sandbox without auto_resume on disk", "disk", box.get()["tier"])
    api("PUT", box.at + "/preview", {"auto_resume": True})
    check("a visit with an old cookie wakes a sandbox", " 200 " in visit(box, "/", auth).split("\r\n")[0])
    same("a sandbox runs after a visit has resumed it", "running", box.get()["state"])
    to_disk(box)
    check("a WebSocket resumes a sandbox on disk", " 101 " in visit(box, "/", ws).split("\r\n")[0])
    to_disk(box)
    restart()
    check("a link from before a restart wakes a sandbox", " 303 " in visit(box, "/?cove_token=" + token).split("\r\n")[0] and " 200 " in visit(box, "/", auth).split("\r\n")[0])
    box.end()


# ---- volumes ----
def volumes():
    for name in ("data", "ro"):
        same("a volume", 201, api("POST", "/v1/volumes", {"name": name, "size": "32m"}).status)
    first = Box(volumes=[{"name": "ro", "path": "/ro"}])
    first.run("echo read me >/ro/x")
    first.end()
    box = Box(volumes=[{"name": "data", "path": "/data"}, {"name": "ro", "path": "/ro", "read_only": True}])
    box.run("echo one >/data/x")
    box.post("processes", {"command": "exec 3>>/data/log; while :; do echo tick >&3; sleep 0.1; done"})
    check("a program writes there", within(5, lambda: box.run("test -s /data/log").json["exit_code"] == 0))
    to_disk(box, "to disk with volumes")
    wants = {"volumes": [{"name": "data", "path": "/data"}]}
    a = api("POST", "/v1/sandboxes", wants)
    refused("a sandbox on disk is still its volume's writer", a, 409, "volume_in_use", "volumes")
    check("the refusal names the sandbox that writes to the volume", box.id in (a.json["error"]["message"] if a.json else ""), a.body)
    refused("a volume of a sandbox on disk is not removed", api("DELETE", "/v1/volumes/data"), 409, "volume_in_use")
    a = api("GET", "/v1/volumes/data").json
    same("a sandbox on disk is shown as the volume's user", (1, [(box.id, "/data", False)]), (a["writers"], [(u["sandbox"], u["path"], u["read_only"]) for u in a["users"]]))
    reader = Box(volumes=[{"name": "data", "path": "/d", "read_only": True}])
    same("a sandbox may read a volume whose writer is on disk", "one", reader.said("cat /d/x"))
    same("a sandbox with volumes is resumed", 200, box.post("resume").status)
    same("a resumed sandbox has its volumes", ("one", "read me"), (box.said("cat /data/x"), box.said("cat /ro/x")))
    before = int(box.said("wc -l </data/log"))
    check("the program of a resumed sandbox continues writing to the volume", within(5, lambda: int(box.said("wc -l </data/log")) > before))
    check("a read-only volume stays read-only after a resume", "Read-only" in box.said("echo x 2>&1 >/ro/y; true") + box.run("echo x >/ro/y").json["stderr"])
    same("a reader sees what the resumed writer writes", "two", (box.said("echo two >/data/x"), reader.said("cat /d/x"))[1])
    refused("a sandbox that writes to a volume is not forked", box.post("fork", {"count": 1}), 409, "volume_in_use")
    f = reader.post("fork", {"count": 1}).json["forks"][0]
    check("a sandbox that only reads a volume is forked", f["error"] is None, f)
    copy = again(f["sandbox"]["id"])
    same("a fork has the volume", "two", copy.said("cat /d/x"))
    same("a fork shows its volume", [{"name": "data", "path": "/d", "read_only": True}], copy.get()["volumes"])
    kept = box.post("snapshots").json["id"]
    refused("a snapshot of who writes, while it does", api("POST", "/v1/sandboxes", {"snapshot": kept, "timeout": 600}), 409, "volume_in_use", "volumes")
    for b in (box, copy, reader):
        b.end()
    refused("a snapshot keeps its volumes", api("DELETE", "/v1/volumes/data"), 409, "volume_in_use")
    of = Box(snapshot=kept)
    same("a sandbox of a snapshot has its volumes when no other sandbox writes to them", ("two", 2), (of.said("cat /data/x"), len(of.get()["volumes"])))
    of.end()
    api("DELETE", "/v1/snapshots/" + kept)
    same("volumes can be removed once no snapshot needs them", [204, 204], [api("DELETE", "/v1/volumes/" + v).status for v in ("data", "ro")])


# ---- pools and templates ----
def taken(box):
    with open(os.environ["KEEPER_LOG"], "rb") as f:
        return b"taken sandbox=" + box.id.encode() in f.read()


def cove(*words):
    p = subprocess.run([os.path.dirname(COVED) + "/cove", "--state", STATE, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout + p.stderr


def pools():
    cove("pool", "set", "host", "--min", "2", "--max", "2")
    def make():
        made = Box(network={"allow": ["www.example.com"]})
        return made if taken(made) else made.end() and None
    box = within(20, make)
    check("a create takes one that was ready", box)
    if not box:
        return
    serve(box, GREET, "curl -s 127.0.0.1:7000")
    to_disk(box, "one that was taken, to disk")
    same("a pool's sandbox comes back from disk with its processes", (200, "hello 2"), (box.post("resume").status, box.said("curl -s 127.0.0.1:7000")))
    same("a pool's sandbox comes back from disk with its network", WWW % "pool", get(box, "pool"))
    to_disk(box, "to disk again")
    same("a pool's sandbox comes back from disk a second time", (200, "hello 3"), (box.post("resume").status, box.said("curl -s 127.0.0.1:7000")))
    copy = again(box.post("fork", {"count": 1}).json["forks"][0]["sandbox"]["id"])
    same("forked", "hello 4", copy.said("curl -s 127.0.0.1:7000"))
    kept = box.post("snapshots").json["id"]
    of = Box(snapshot=kept)
    same("what is made of a snapshot comes from no pool", ("hello 4", False, False), (of.said("curl -s 127.0.0.1:7000"), taken(of), taken(copy)))
    api("DELETE", "/v1/snapshots/" + kept)
    for b in (copy, of, box):
        b.end()
    cove("pool", "unset", "host")


def templates():
    box, cold = Box(), Box()
    serve(box, GREET, "curl -s 127.0.0.1:7000")
    cold.run("echo kept >/tmp/x")
    kept = box.post("snapshots").json["id"]
    to_disk(box)
    cold.post("pause", {"memory": False})
    [again(s["id"]).end() for s in api("GET", "/v1/sandboxes?state=running").json["sandboxes"]]
    rc, said = cove("template", "rm", "host")
    check("a template stays while something saved stands on it", rc != 0 and "in use by 3 " in said, said)
    trees = len(os.listdir(STATE + "/templates/host"))
    same("a template can be rebuilt while saved sandboxes need the old tree", 0, cove("template", "build", "--rebuild", "host")[0])
    same("a rebuild keeps the tree that saved sandboxes need", trees + 1, len(os.listdir(STATE + "/templates/host")))
    same("a sandbox on disk comes back after its template was rebuilt", (200, "hello 2"), (box.post("resume").status, box.said("curl -s 127.0.0.1:7000")))
    to_disk(box, "a sandbox goes to disk again after its template was rebuilt")
    same("a sandbox comes back a second time after its template was rebuilt", 200, box.post("resume").status)
    same("a sandbox that was paused without memory comes back after its template was rebuilt", (200, "kept"), (cold.post("resume").status, cold.said("cat /tmp/x")))
    of = Box(snapshot=kept)
    same("a snapshot works after its template was rebuilt", "hello 2", of.said("curl -s 127.0.0.1:7000"))
    same("new ones are of the new tree", "new", Box().said("echo new"))
    [again(s["id"]).end() for s in api("GET", "/v1/sandboxes").json["sandboxes"]]
    api("DELETE", "/v1/snapshots/" + kept)


run(rules, secrets, private, previews, volumes, pools, templates, settings=SETTINGS)
