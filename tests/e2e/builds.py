"""Templates built over /v1: steps, the cache, names and tags, failures, cancel, restarts. Run by builds_test."""
import gzip
import hashlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import tarfile
import time

from harness import COVED, STATE, Server, check, finish, same, within

TEAM, OTHER, TINY, SMALL = (os.environ[n + "_KEY"] for n in ("TEAM", "OTHER", "TINY", "SMALL"))
UPLOADS = STATE + "/server/build-files/"
DIRECT = os.path.dirname(COVED) + "/direct/cove"
s = Server().start()


def build(body, key=TEAM):
    return s.ask("POST", "/v1/builds", {"from": "host", **body}, key=key)


def ended(build_id, key=TEAM, seconds=60):
    within(seconds, lambda: s.ask("GET", "/v1/builds/" + build_id, key=key).json.get("ended_at"))
    return s.ask("GET", "/v1/builds/" + build_id, key=key).json


def made(body, key=TEAM):
    a = build(body, key)
    if a.status != 202:
        check("the build of %s is accepted" % body.get("name"), False, a.body)
        return {}
    return ended(a.json["id"], key)


def log(build_id, key=TEAM):
    lines = [json.loads(x) for x in s.ask("GET", "/v1/builds/%s/logs" % build_id, key=key).body.splitlines()]
    return lines, [x["text"] for x in lines if x["type"] == "line"]


def run(template, command, key=TEAM, **more):
    box = s.ask("POST", "/v1/sandboxes", {"template": template, **more}, key=key)
    if box.status != 201:
        return "no sandbox: %s" % box.body.decode()
    out = s.ask("POST", "/v1/sandboxes/%s/exec" % box.json["id"], {"command": command}, key=key)
    s.ask("DELETE", "/v1/sandboxes/" + box.json["id"], key=key)
    return (out.json or {}).get("stdout", out.body.decode())


def boxes(key=TEAM):
    return len(s.ask("GET", "/v1/sandboxes", key=key).json["sandboxes"])


def upload(files, zipped=True, key=TEAM):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            t.addfile(info, io.BytesIO(text.encode()))
    raw = gzip.compress(data.getvalue()) if zipped else data.getvalue()
    name = hashlib.sha256(raw).hexdigest()
    same("files are uploaded", 200, s.ask("PUT", "/v1/builds/files/" + name, raw, key=key).status)
    return name


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


# ---- every kind of step ----
files = upload({"app/a.txt": "one", "app/sub/b.txt": "two"})
STEPS = [step("RUN", "mkdir -p /opt/x && echo made > /opt/x/file", "root"),
         step("ENV", "COLOUR", "blue", "BOTH", "${COLOUR}-ish"),
         step("WORKDIR", "/opt/x/work"),
         step("COPY", "app", "in", "root", "0640", files=files),
         step("COPY", "app/a.txt", "/opt/x/one/", files=files),
         step("RUN", "pwd; echo $BOTH; echo to stderr >&2; cat in/sub/b.txt > seen", "root"),
         step("USER", "root")]
b = made({"name": "first", "steps": STEPS})
same("a build with every kind of step is ready", ("ready", None), (b.get("state"), b.get("reason")))
lines, texts = log(b["id"])
check("the log of a build has the steps", any(t.startswith("[1/7] RUN mkdir") for t in texts), texts)
check("the log of a build has what the steps wrote, in their directory and environment",
      "/opt/x/work" in texts and "blue-ish" in texts and "to stderr" in texts, texts)
same("the log ends with the build", ("end", "ready"), (lines[-1]["type"], lines[-1]["state"]))
same("a sandbox made of it has the files, and begins where WORKDIR said", "made two /opt/x/work root\n",
     run("first", "echo $(cat /opt/x/file) $(cat seen) $(pwd) $(id -un)"))
same("COPY gave them owner and mode", "root 640 one\n",
     run("first", "echo $(stat -c '%U %a' in/a.txt) $(cat /opt/x/one/a.txt)"))
same("ENV is in every command", "blue blue-ish\n", run("first", "echo $COLOUR $BOTH"))
same("what the create says wins", "red\n", run("first", "echo $COLOUR", env={"COLOUR": "red"}))
same("no sandbox of the build is left", 0, boxes())
same("the snapshots of builds are not among the tenant's", [], s.ask("GET", "/v1/snapshots", key=TEAM).json["snapshots"])

b = made({"name": "wide", "limits": {"disk": "2g", "memory": "1g"}, "steps": [step("RUN", "df -m / | tail -n 1 | awk '{ print \"disk\", ($2 > 1900) }'")]})
check("a build has the limits that it asked for", "disk 1" in log(b["id"])[1], log(b["id"])[1])
same("a sandbox of a template has the disk limit of the build", "1\n", run("wide", "df -m / | tail -n 1 | awk '{ print ($2 > 1900) }'"))
same("limits that are none of a build are refused", "limits", build({"name": "x", "limits": {"pids": 10}}).error.get("field"))

# ---- the cache ----
begun = time.time()
b = made({"name": "first", "steps": STEPS})
took = time.time() - begun
_, texts = log(b["id"])
same("the same steps again do not run", 7, sum(t.startswith("CACHED") for t in texts))
print("# a build of 7 known steps took %.3f s" % took)
b = made({"name": "first", "steps": STEPS[:5] + [step("RUN", "echo other > /opt/x/other", "root")]})
_, texts = log(b["id"])
same("only the steps after a change run", ("ready", 5), (b.get("state"), sum(t.startswith("CACHED") for t in texts)))
same("the name of a template means the newest build", "other\n", run("first", "cat /opt/x/other"))
b = made({"name": "first", "steps": STEPS, "force": True})
same("with force every step runs", 0, sum(t.startswith("CACHED") for t in log(b["id"])[1]))
b = made({"name": "elsewhere", "steps": STEPS[:3]}, key=OTHER)
same("a step that another tenant has built is not taken from the cache", 0, sum(t.startswith("CACHED") for t in log(b["id"], OTHER)[1]))

# ---- from another, tags, names ----
b = made({"name": "second:v1", "tags": ["stable"], "from": "first", "steps": [step("RUN", "echo $COLOUR > second", "root")]})
same("a template can be built from another", ("ready", "blue\n"), (b.get("state"), run("second:v1", "cat second")))
same("a template that was built has its tags", ["stable", "v1"],
     [t["tag"] for t in s.ask("GET", "/v1/templates/second", key=TEAM).json["tags"]])
same("a name without a tag is 'default', which it does not have", 404,
     s.ask("POST", "/v1/sandboxes", {"template": "second"}, key=TEAM).status)
same("a template gets a second tag", 200, s.ask("POST", "/v1/templates/second/tags", {"from": "v1", "tags": ["default"]}, key=TEAM).status)
same("a template's name without a tag means 'default'", "blue\n", run("second", "cat second"))
same("a tag is removed", 204, s.ask("DELETE", "/v1/templates/second/tags/stable", key=TEAM).status)
same("'default' stays", 400, s.ask("DELETE", "/v1/templates/second/tags/default", key=TEAM).status)
same("a template of another tenant is not found", 404, s.ask("GET", "/v1/templates/second", key=OTHER).status)
listed = s.ask("GET", "/v1/templates", key=OTHER).json
same("the list of templates has those of the host, and the default", (["host", "scratch"], "host"), (listed["installed"], listed["default"]))
same("a build of another tenant is not found", 404, s.ask("GET", "/v1/builds/" + b["id"], key=OTHER).status)
same("a tenant cannot make sandboxes of another tenant's template", 404, s.ask("POST", "/v1/sandboxes", {"template": "second"}, key=OTHER).status)
same("a tenant's own name comes before the host's", ("ready", "mine\n"),
     (made({"name": "host", "steps": [step("RUN", "echo mine > /opt/mine", "root")]}).get("state"), run("host", "cat /opt/mine")))
check("a tenant's own name of a template counts for that tenant only", "mine" not in run("host", "cat /opt/mine", key=OTHER))
same("a tenant can delete its own template named 'host'", 204, s.ask("DELETE", "/v1/templates/host", key=TEAM).status)
same("only administrators of local publish", 403, s.ask("PATCH", "/v1/templates/second", {"public": True}, key=TEAM).status)
b = made({"name": "shared", "steps": [step("RUN", "echo for all > /opt/all", "root")]}, key=None)
same("an administrator of local publishes a template", 200, s.ask("PATCH", "/v1/templates/shared", {"public": True}).status)
same("every tenant can use a public template", "for all\n", run("shared", "cat /opt/all"))
same("a tenant cannot delete a public template of local", 404, s.ask("DELETE", "/v1/templates/shared", key=TEAM).status)

# ---- refusals and failures ----
for name, body, field in (
        ("no name", {}, "name"), ("a name with blanks", {"name": "a b"}, "name"),
        ("an unknown type", {"name": "x", "steps": [step("MOUNT", "/")]}, "steps[0].type"),
        ("COPY without files", {"name": "x", "steps": [step("COPY", "a", "/b")]}, "steps[0]"),
        ("COPY that leads out", {"name": "x", "steps": [step("COPY", "../a", "/b", files=files)]}, "steps[0]"),
        ("ENV without a value", {"name": "x", "steps": [step("ENV", "A")]}, "steps[0]"),
        ("ENV with a bad name", {"name": "x", "steps": [step("ENV", "A B", "x")]}, "steps[0]"),
        ("too many steps", {"name": "x", "steps": [step("USER", "root")] * 201}, "steps"),
        ("a text that is too long", {"name": "x", "steps": [step("RUN", "x" * 65537)]}, "steps[0]"),
        ("a field that is none", {"name": "x", "colour": 1}, "colour"),
        ("a bad tag", {"name": "x", "tags": ["A B"]}, "tags")):
    a = build(body)
    same("%s is refused, and the field is named" % name, (400, field), (a.status, a.error.get("field")))
b = made({"name": "bad", "steps": [step("RUN", "true"), step("RUN", "echo why; exit 3")]})
same("a step that fails fails the build, and is named", ("failed", "2"), (b.get("state"), b.get("step")))
check("a step that fails fails the build with its exit status", "exit status 3" in (b.get("reason") or ""), b)
b = made({"name": "bad", "from": "python:3.12-slim"})
check("an image that is not installed says how to install it",
      b.get("state") == "failed" and "cove template pull" in (b.get("reason") or ""), b)
b = made({"name": "bad", "steps": [step("COPY", "a", "/b", files="0" * 64)]})
check("files that were not uploaded are a failure", "not uploaded" in (b.get("reason") or ""), b)
b = made({"name": "bad", "steps": [step("COPY", "nothing", "/b", files=files)]})
same("a source that is not among the files is a failure", "failed", b.get("state"))
b = made({"name": "bad", "step_timeout": 1, "steps": [step("RUN", "sleep 1000")]})
check("a step that does not end is ended", b.get("state") == "failed" and "timeout" in (b.get("reason") or ""), b)
same("a template without a build that is ready makes no sandbox", 404,
     s.ask("POST", "/v1/sandboxes", {"template": "bad"}, key=TEAM).status)
same("a name of an upload that is no hash is refused", 400, s.ask("PUT", "/v1/builds/files/abc", b"x", key=TEAM).status)
same("failures leave no sandbox", 0, boxes())

# ---- cancel ----
b = build({"name": "long", "steps": [step("RUN", "echo begun; sleep 1000")]}).json
check("a long build is under way", within(30, lambda: "begun" in
      [json.loads(x).get("text") for x in s.ask("GET", "/v1/builds/%s/logs?follow=false" % b["id"], key=TEAM).body.splitlines()]))
same("a tenant cannot cancel another tenant's build", 404, s.ask("DELETE", "/v1/builds/" + b["id"], key=OTHER).status)
same("cancel is accepted", 202, s.ask("DELETE", "/v1/builds/" + b["id"], key=TEAM).status)
same("a cancelled build ends as cancelled", "cancelled", ended(b["id"]).get("state"))
same("a cancelled build ends its sandbox", 0, boxes())

# ---- a client that goes away ----
b = build({"name": "alone", "steps": [step("RUN", "echo begun; until [ -e /tmp/go ]; do sleep 0.1; done; echo over")]}).json
link = s.http()
link.request("GET", "/v1/builds/%s/logs" % b["id"], headers={"X-API-Key": TEAM})
stream = link.getresponse()
while b'"begun"' not in stream.readline():
    pass
link.close()
stream.close()
same("a build goes on when the client that follows it is gone", "building", s.ask("GET", "/v1/builds/" + b["id"], key=TEAM).json.get("state"))
box = s.ask("GET", "/v1/sandboxes", key=TEAM).json["sandboxes"][0]["id"]
s.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "touch /tmp/go"}, key=TEAM)
same("a build whose client is gone goes on to its end", ("ready", "over"), (ended(b["id"]).get("state"), "over" if "over" in log(b["id"])[1] else ""))
same("a build whose client is gone leaves no sandbox", 0, boxes())

# ---- bounds ----
many = [build({"name": "queue%d" % i, "steps": [step("RUN", "sleep 1000")]}) for i in range(20)]
same("twenty builds of a tenant are taken", {202}, {a.status for a in many})
check("two of them run at once", within(30, lambda: boxes() == 2), boxes())
a = build({"name": "queue20", "steps": [step("RUN", "true")]})
same("one more build than the quota is refused", (429, "builds"), (a.status, a.error.get("rule")))
same("a tenant's queue does not delay another tenant's build", "ready", made({"name": "free", "steps": [step("RUN", "true")]}, key=OTHER).get("state"))
for a in many:
    s.ask("DELETE", "/v1/builds/" + a.json["id"], key=TEAM)
same("all of them can be cancelled", {"cancelled"}, {ended(a.json["id"]).get("state") for a in many})
same("cancelled builds leave no sandbox", 0, boxes())
b = made({"name": "loud", "steps": [step("RUN", "yes | head -n 200000"), step("RUN", "exit 4")]})
_, texts = log(b["id"])
check("a build's log has an end, and says that it is full", len(texts) < 150000 and any("the log is full" in t for t in texts), len(texts))
check("what failed is in it all the same", "exit status 4" in texts[-1], texts[-1:])
b = made({"name": "steps", "steps": [step("RUN", "echo %d > /tmp/n" % i) for i in range(70)]})
with sqlite3.connect("file:%s/server/cove.db?mode=ro" % STATE, uri=True) as db:
    kept = db.execute("SELECT count(*) FROM build_steps WHERE tenant = 'team'").fetchone()[0]
    lost = db.execute("SELECT count(*) FROM snapshots s WHERE state = 3 AND id NOT IN (SELECT snapshot FROM builds) "
                      "AND id NOT IN (SELECT snapshot FROM build_steps)").fetchone()[0]
same("of a tenant 64 steps are kept, and no snapshot that nothing speaks of", ("ready", 64, 0), (b.get("state"), kept, lost))

# ---- what is large is sealed, and not copied ----
def disks():
    """Those with 100 MB and more: names and inodes."""
    with os.scandir(STATE + "/disks") as found:
        return {(e.name, e.inode()) for e in found if e.name.startswith("d") and e.stat().st_blocks * 512 >= 100 << 20}


SIZE = "df -m / | tail -n 1 | awk '{ print \"size\", $2 }'"
b = build({"name": "large", "limits": {"disk": "256m"}, "steps": [
    step("RUN", SIZE + "; head -c 100m /dev/urandom > /opt/a && sum /opt/a > /opt/sum; sync; touch /tmp/wait; while [ -e /tmp/wait ]; do sleep 0.1; done", "root"),
    step("RUN", "sum /opt/a | cmp - /opt/sum && rm /opt/sum", "root"), step("ENV", "A", "b"), step("RUN", SIZE, "root")]}).json
check("a step writes 100 MiB", within(60, lambda: len(disks()) == 1), disks())
wrote = disks()
box = [x["id"] for x in s.ask("GET", "/v1/sandboxes", key=TEAM).json["sandboxes"] if (x.get("metadata") or {}).get("build") == b["id"]]
check("the step's sandbox is there", len(box) == 1 and within(60, lambda: s.ask(
    "POST", "/v1/sandboxes/%s/exec" % box[0], {"command": "rm /tmp/wait", "user": "root"}, key=TEAM).json.get("exit_code") == 0), box)
b = ended(b["id"])
same("a build with a large step is ready", ("ready", None), (b.get("state"), b.get("reason")))
same("the disk that the step wrote is the snapshot's, and no copy of it is there", wrote, disks())
sizes = [t for t in log(b["id"])[1] if t.startswith("size ")]
check("steps after a sealed one have a disk of the same size", len(sizes) == 2 and sizes[0] == sizes[1], sizes)
with sqlite3.connect("file:%s/server/cove.db?mode=ro" % STATE, uri=True) as db:
    large = db.execute("SELECT count(*) FROM build_steps WHERE tenant = 'team' AND bytes > 30000000").fetchone()[0]
same("steps after a sealed one hold nothing of it", 1, large)
same("a template with a sealed step has the files of all steps", "100 no b\n", run("large", "echo $(($(stat -c %s /opt/a) >> 20)) $(test -e /opt/sum && echo yes || echo no) $A"))
with sqlite3.connect("file:%s/server/cove.db?mode=ro" % STATE, uri=True) as db:
    told = [r[0] for r in db.execute("SELECT action FROM audit WHERE sandbox_id = ? ORDER BY seq", box)] if box else []
same("the audit log has the beginning, the step and the end of a sandbox that was sealed", (1, 1, 1, 0),
     tuple(told.count(a) for a in ("sandbox.create", "template.step", "sandbox.kill", "sandbox.lost")))

# ---- how many disks a template has ----
def layers(template):
    """Of a sandbox that is made of it: the file systems below its own disk."""
    box = s.ask("POST", "/v1/sandboxes", {"template": template}, key=TEAM).json["id"]
    ps = json.loads(subprocess.run([DIRECT, "ps", "--json"], capture_output=True, check=True).stdout)
    pid = [p["pid"] for p in ps if p["id"] == box][0]
    with open("/proc/%d/mountinfo" % pid) as f:
        root = [line for line in f if line.split()[4] == "/"][0]
    s.ask("DELETE", "/v1/sandboxes/" + box, key=TEAM)
    lower = [o.split("=", 1)[1] for o in root.split(" - ")[1].split()[2].split(",") if o.startswith("lowerdir")]
    return sum(len(o.split(":")) for o in lower)


base = layers("host")
made({"name": "ten", "steps": [step("RUN", "echo %d >> /opt/n" % i, "root") for i in range(10)]})
same("a template of ten steps has one disk more than its base", (base + 1, "10\n"), (layers("ten"), run("ten", "wc -l < /opt/n")))
made({"name": "eleven", "from": "ten", "steps": [step("RUN", "echo more >> /opt/n", "root")] * 5})
same("a template on that one, two", (base + 2, "15\n"), (layers("eleven"), run("eleven", "wc -l < /opt/n")))
same("a template with a step that was sealed in the middle has two disks more than its base", base + 2, layers("large"))

# ---- a server that is killed ----
b = build({"name": "long", "steps": [step("RUN", "echo begun; sleep 1000")]}).json
check("a build is under way when the server is killed", within(30, lambda: boxes() == 1))
s.end(signal.SIGKILL)
s.start()
b = ended(b["id"])
check("the next server says that the build failed, and why",
      b.get("state") == "failed" and "server ended" in (b.get("reason") or ""), b)
check("the sandbox of a build that failed with the server is removed", within(30, lambda: boxes() == 0))
same("templates outlast the server", "blue\n", run("second", "cat second"))

# ---- start commands ----
b = made({"name": "warm", "start": "exec sleep 4321", "ready": "pgrep -f 'sleep 432[1]'"})
same("a template with a start command is ready", ("ready", None), (b.get("state"), b.get("reason")))
same("the start command of a template runs in every sandbox", "1\n", run("warm", "pgrep -fc 'sleep 432[1]'"))

# ---- uploads count for the quota of stored bytes ----
big = os.urandom(3 << 20)
a = s.ask("PUT", "/v1/builds/files/" + "1" * 64, big, key=TINY)
same("an upload beyond the quota of stored bytes is refused", (429, "stored-bytes"), (a.status, a.error.get("rule")))
same("a refused upload is not there", 404, s.ask("GET", "/v1/builds/files/" + "1" * 64, key=TINY).status)
same("a smaller upload is taken", 200, s.ask("PUT", "/v1/builds/files/" + "2" * 64, big[:1800 << 10], key=TINY).status)
same("an upload is there", 200, s.ask("GET", "/v1/builds/files/" + "2" * 64, key=TINY).status)
same("an upload is not shared with another tenant", 404, s.ask("GET", "/v1/builds/files/" + "2" * 64, key=OTHER).status)
same("uploads count together", 429, s.ask("PUT", "/v1/builds/files/" + "3" * 64, big[:1800 << 10], key=TINY).status)


# ---- uploads at the same time ----
def parts():
    """The sizes of uploads that are under way; one that ended while we looked is none."""
    with os.scandir(UPLOADS) as found:
        names = [entry.name for entry in found if entry.name.startswith("small+part-")]
    sizes = []
    for name in names:
        try:
            sizes.append(os.path.getsize(UPLOADS + name))
        except FileNotFoundError:
            pass
    return sizes


def begin_upload(name, whole, now):
    c = s.connect()
    c.sendall(b"PUT /v1/builds/files/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n"
              % (name.encode() * 64, SMALL.encode(), whole) + big[:1 << 20] * (now >> 20))
    check("an upload is under way", within(30, lambda: parts() == [now]), parts())
    return c


slow = begin_upload("a", 6 << 20, 5 << 20)
same("an upload that is under way counts for the quota", 429, s.ask("PUT", "/v1/builds/files/" + "b" * 64, big * 2, key=SMALL).status)
slow.sendall(big[:1 << 20])
check("an upload counts once", b" 200 " in slow.recv(4096))
slow.close()
s.ask("PUT", "/v1/builds/files/" + "a" * 64, b"", key=SMALL)
slow = begin_upload("c", 7 << 20, 2 << 20)
slow.close()
check("an upload that is cut leaves nothing", within(30, lambda: parts() == []), parts())
check("an upload that is cut frees the bytes that it took", within(30, lambda: s.ask("PUT", "/v1/builds/files/" + "d" * 64, big * 2, key=SMALL).status == 200))
many = [UPLOADS + "small+%064x" % i for i in range(10000)]
for path in many:
    open(path, "w").close()
a = s.ask("PUT", "/v1/builds/files/" + "e" * 64, b"", key=SMALL)
same("a tenant has at most 10000 uploads", (429, True), (a.status, "10000 uploads" in a.error.get("message", "")))
same("the count of uploads is each tenant's own", 200, s.ask("PUT", "/v1/builds/files/" + "e" * 64, b"", key=OTHER).status)
for path in many:
    os.unlink(path)
open(UPLOADS + "small+part-lost", "w").close()
open(UPLOADS + "small+" + "f" * 64, "w").close()
os.utime(UPLOADS + "small+" + "f" * 64, (0, 0))
check("an upload that was not used for a day is removed", within(30, lambda: not os.path.exists(UPLOADS + "small+" + "f" * 64)))

# ---- logs have bounds, together ----
NOISY = {"name": "noisy", "force": True, "steps": [step("RUN", "head -c 6000000 /dev/zero | tr '\\0' x", "root")]}
noisy = [made(NOISY, OTHER) for i in range(6)]
same("builds with endless output are ready", {"ready"}, {b.get("state") for b in noisy})
check("the last of several builds with endless output has its log", len(log(noisy[-1]["id"], OTHER)[1]) > 1000)
same("the first of several builds with endless output has no log any more", [], log(noisy[0]["id"], OTHER)[1])
check("the log of another tenant is still there", len(log(b["id"])[1]) > 0)

# ---- variables of variables ----
b = made({"name": "swollen", "steps": [step("ENV", "A", "x" * 60000), *[step("ENV", "A", "$A" * 20000)] * 4]})
check("variables do not grow without bounds", b.get("state") == "failed" and "longer than 65536 bytes" in (b.get("reason") or ""), b)

# ---- removal ----
box = s.ask("POST", "/v1/sandboxes", {"template": "first"}, key=TEAM).json
same("a template is deleted", 204, s.ask("DELETE", "/v1/templates/first", key=TEAM).status)
same("no sandbox can be made of a deleted template", 404, s.ask("POST", "/v1/sandboxes", {"template": "first"}, key=TEAM).status)
same("sandboxes that were made of it go on", "made\n",
     s.ask("POST", "/v1/sandboxes/%s/exec" % box["id"], {"command": "cat /opt/x/file"}, key=TEAM).json["stdout"])
same("templates that were built from a deleted one work", "blue\n", run("second", "cat second"))
s.ask("DELETE", "/v1/sandboxes/" + box["id"], key=TEAM)
s.end()
finish()
