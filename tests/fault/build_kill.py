"""kill -9 of coved, then of the keeper, in each phase of a build; a disk that is full. Run by build_kill_test.

A build ends with a reason or goes on; no sandbox, no file of a stage and no snapshot that nothing speaks of is left behind; and
the next build of the same steps is ready."""
import hashlib
import io
import json
import os
import signal
import sqlite3
import tarfile

from harness import STATE, Server, check, finish, same, within

KEEPER_PID_FILE = os.environ["KEEPER_PID_FILE"]
UPLOADS = STATE + "/server/build-files/"
s = Server("--local", "yes").start()


def upload(size=100000):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as t:
        info = tarfile.TarInfo("a")
        info.size = size
        t.addfile(info, io.BytesIO(bytes(size)))
    raw = data.getvalue()
    name = hashlib.sha256(raw).hexdigest()
    same("files are uploaded", 200, s.ask("PUT", "/v1/builds/files/" + name, raw).status)
    return name


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


def body(files):
    """Each phase says when it begins; the waits are there to be killed in."""
    return {"name": "cut", "force": True,
            "stages": [{"from": "host", "steps": [step("RUN", "echo stage; sleep 0.3; mkdir /out; echo x > /out/x", "root")]}],
            "from": "host", "start": "exec sleep 4321", "ready": "sleep 0.3",
            "steps": [step("COPY", "/out", "/in", stage=0), step("COPY", "a", "/b/", files=files),
                      step("RUN", "echo last; sleep 0.3; cat /in/x > /in/y", "root")]}


def texts(build):
    lines = s.ask("GET", "/v1/builds/%s/logs?follow=false" % build).body.splitlines()
    return [json.loads(x).get("text", "") for x in lines]


def state_of(build):
    return s.ask("GET", "/v1/builds/" + build).json


def ended(build):
    within(60, lambda: state_of(build).get("ended_at"))
    return state_of(build)


def boxes():
    return s.ask("GET", "/v1/sandboxes").json["sandboxes"]


def lost():
    """Snapshots that no build and no step has."""
    with sqlite3.connect("file:%s/server/cove.db?mode=ro" % STATE, uri=True) as db:
        return db.execute("SELECT count(*) FROM snapshots WHERE state = 3 AND id NOT IN (SELECT snapshot FROM builds) "
                          "AND id NOT IN (SELECT snapshot FROM build_steps)").fetchone()[0]


def parts():
    return [n for n in os.listdir(UPLOADS) if "+part-" in n]


def images():
    """What the keeper has on disk, and the records of it."""
    with sqlite3.connect("file:%s/server/cove.db?mode=ro" % STATE, uri=True) as db:
        known = {row[0] for row in db.execute("SELECT id FROM snapshots")}
    return set(os.listdir(STATE + "/images")) - known


def clean(when):
    check("%s: no sandbox of a build is left" % when, within(60, lambda: not boxes()), boxes())
    check("%s: no file of a stage is left" % when, within(60, lambda: not parts()), parts())
    check("%s: no snapshot is left that nothing speaks of" % when, within(60, lambda: lost() == 0), lost())
    check("%s: the keeper has no image that the server does not know of" % when, within(60, lambda: not images()), images())


PHASES = {"the stage": "stage", "COPY from a stage": "[2/4]", "COPY of files": "[3/4]", "RUN": "last", "the start command": "start:"}


def begin(what, sign, files):
    build = s.ask("POST", "/v1/builds", body(files)).json["id"]
    check("a build comes to %s" % what, within(60, lambda: any(sign in t for t in texts(build)) or state_of(build).get("ended_at")), texts(build))
    return build


files = upload()
s.ask("POST", "/v1/builds", body(files))
same("a build with a stage, files and a start command is ready", "ready",
     ended(s.ask("GET", "/v1/builds").json["builds"][0]["id"]).get("state"))
clean("after a build")

for what, sign in PHASES.items():
    build = begin(what, sign, files)
    s.end(signal.SIGKILL)
    s.start()
    got = ended(build)
    check("the server is killed in %s: the build has failed, with a reason" % what,
          got.get("state") == "failed" and "server ended" in (got.get("reason") or "") or got.get("state") == "ready", got)
    clean("the server is killed in %s" % what)

for what, sign in PHASES.items():
    build = begin(what, sign, files)
    os.kill(int(within(30, lambda: open(KEEPER_PID_FILE).read().strip())), signal.SIGKILL)
    got = ended(build)
    check("the keeper is killed in %s: the build goes on, or has failed with a reason" % what,
          got.get("state") == "ready" or (got.get("state") == "failed" and got.get("reason")), got)
    check("the keeper is back", within(60, lambda: s.ask("GET", "/v1/templates").status == 200))
    clean("the keeper is killed in %s" % what)

same("the next build of the same steps is ready", "ready", ended(s.ask("POST", "/v1/builds", body(files)).json["id"]).get("state"))

# ---- a disk that is full ----
small = {"limits": {"disk": "64m"}, "name": "full", "from": "host"}
got = ended(s.ask("POST", "/v1/builds", {**small, "steps": [step("RUN", "head -c 200m /dev/zero > /big", "root")]}).json["id"])
check("RUN on a full disk fails the build, in its step", (got.get("state"), got.get("step")) == ("failed", "1"), got)
got = ended(s.ask("POST", "/v1/builds", {**small, "steps": [step("COPY", "a", "/a", files=upload(100 << 20))]}).json["id"])
check("COPY to a full disk fails the build, and says so",
      (got.get("state"), got.get("step")) == ("failed", "1") and "the disk is full" in (got.get("reason") or ""), got)
got = ended(s.ask("POST", "/v1/builds", {**small, "stages": [{"from": "host", "steps": [step("RUN", "mkdir /o; head -c 100m /dev/zero > /o/x", "root")]}],
                                         "limits": {"disk": "128m"}, "steps": [step("RUN", "head -c 100m /dev/zero > /y", "root"), step("COPY", "/o", "/o", stage=0)]}).json["id"])
check("COPY --from to a full disk fails the build, and says so",
      (got.get("state"), got.get("step")) == ("failed", "3") and "the disk is full" in (got.get("reason") or ""), got)
clean("after full disks")

# ---- a start command whose processes cannot be saved ----
PENDING = ("exec python3 -c \"import socket, time; l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(); "
           "c = socket.create_connection(l.getsockname()); open('/tmp/up', 'w').close(); time.sleep(4322)\"")
build = s.ask("POST", "/v1/builds", {"name": "pending", "from": "host", "start": PENDING, "ready": "test -e /tmp/up"}).json["id"]
got = ended(build)
same("a template whose start command cannot be saved is ready", ("ready", None), (got.get("state"), got.get("reason")))
check("and its log says so", any("runs in every sandbox" in t for t in texts(build)), texts(build))
box = s.ask("POST", "/v1/sandboxes", {"template": "pending"}).json["id"]
check("its start command runs in a sandbox made of it", within(60, lambda: s.ask(
    "POST", "/v1/sandboxes/%s/exec" % box, {"command": "pgrep -fc 'sleep.432[2]'"}).json.get("stdout") == "1\n"))
s.ask("DELETE", "/v1/sandboxes/" + box)
clean("in the end")
s.end()
finish()
