"""The host's disk is full in the middle of a build. Run by build_full_test, with the state directory on a file system of 400 MiB.

The build ends with a reason, nothing is left of it, and the sandboxes beside it, the server and its store are as before."""
import os
import sqlite3

from builds_left import DB, Builds, step
from harness import Server, check, finish, same, within

SMALL = os.environ["SMALL"]
s = Server("--local", "yes").start()
builds = Builds(s)
LIMITS = {"limits": {"disk": "300m"}, "name": "full", "from": "host", "force": True}


def run(box, command, **more):
    return s.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": command, **more}).json or {}


def fill():
    """To the last byte, the reserve too: by root, who may."""
    with open(SMALL + "/filler", "ab", buffering=0) as f:
        for size in (1 << 20, 4096):
            try:
                while f.write(bytes(size)):
                    pass
            except OSError:
                pass


def leave(size):
    """So many bytes."""
    disk = os.statvfs(SMALL)
    with open(SMALL + "/filler", "wb") as f:
        os.posix_fallocate(f.fileno(), 0, disk.f_bavail * disk.f_frsize - size)


def full():
    return s.ask("GET", "/health").json.get("disk") is False


def room():
    if os.path.exists(SMALL + "/filler"):
        os.unlink(SMALL + "/filler")
    check("the disk has room again", within(60, lambda: not full()))


def begin_and_wait(more):
    """A build whose step sleeps until its sleep is killed, which needs no disk, and then does more. Its id, and its sandbox."""
    build = builds.begin({**LIMITS, "steps": [step("RUN", "echo begun; sleep 4321; " + more, "root")]})
    check("a build is in the middle of its step", within(60, lambda: "begun" in builds.texts(build)), builds.texts(build))
    return build, builds.boxes()[0]["id"]


def runs(box):
    return (s.ask("GET", "/v1/sandboxes/" + box).json or {}).get("state") == "running"


def whole(when):
    builds.clean(when)
    same("%s: a sandbox beside the build runs and has its files" % when, kept, run(beside, "sha256sum big").get("stdout"))
    with sqlite3.connect(DB, uri=True) as db:
        same("%s: the store is whole" % when, "ok", db.execute("PRAGMA integrity_check").fetchone()[0])
    got = builds.ended(builds.begin({"name": "after", "from": "host", "force": True, "limits": {"disk": "32m"}, "steps": [step("RUN", "echo x > /opt/x", "root")]}))
    same("%s: the next build is ready" % when, ("ready", None), (got.get("state"), got.get("reason")))


beside = s.ask("POST", "/v1/sandboxes", {"timeout": 3600, "limits": {"disk": "300m", "memory": "512m"}}).json["id"]
kept = run(beside, "head -c 100m /dev/urandom > big; sync; sha256sum big").get("stdout")
check("a sandbox is beside the builds", kept)

# ---- a step that writes more than the host has ----
got = builds.ended(builds.begin({**LIMITS, "steps": [step("RUN", "head -c 290m /dev/urandom > /big", "root")]}))
check("a step that writes more than the host has fails the build, in its step", (got.get("state"), got.get("step")) == ("failed", "1") and got.get("reason"), got)
check("the log of a build on a full disk says why it failed", any("No space left on device" in t for t in builds.texts(got["id"])), builds.texts(got["id"])[-3:])
check("the disk has room when the build has ended", within(60, lambda: not full()))
whole("a step without room")

# ---- a step whose result has no room ----
leave(85 << 20)  # 40 MiB are kept free: the step has room, and a copy of its small disk does not
got = builds.ended(builds.begin({**LIMITS, "steps": [step("RUN", "head -c 30m /dev/urandom > /big; sync", "root"), step("RUN", "true", "root")]}))
check("a step whose result has no room fails the build, with the reason",
      (got.get("state"), got.get("step")) == ("failed", "1") and "no room for the image" in (got.get("reason") or ""), got)
room()
whole("a result without room")

# ---- what is kept free ----
leave(50 << 20)
a = s.ask("PUT", "/v1/builds/files/" + "1" * 64, b"x")
check("an upload is refused while the host has no more than it keeps free", a.status == 507 and "short of disk" in a.error.get("message", ""), (a.status, a.body))
room()
same("an upload is taken with room", 200, s.ask("PUT", "/v1/builds/files/" + "1" * 64, b"x").status)

# ---- a disk that others fill ----
build, box = begin_and_wait("head -c 20m /dev/urandom > /big && sync")
fill()
check("the host's disk is full to its last byte", within(60, full))
check("the build's sandbox runs", runs(box))
check("the step of a build on a full disk continues", within(60, lambda: run(box, "pkill -x sleep", user="root").get("exit_code") == 0))
check("the sandbox of a build on a full disk is ended, though the store may have no room to say so", within(60, lambda: not runs(box)))
check("the build's log says why, while the disk is still full", within(30, lambda: builds.errors(build)), builds.texts(build))
a = s.ask("PUT", "/v1/builds/files/" + "0" * 64, os.urandom(8 << 20))
check("files of a build that have no room are refused", a.status >= 400 and a.error.get("message"), a.body)
same("commands run beside a build on a full disk", "hi\n", run(beside, "echo hi").get("stdout"))
room()
got = builds.ended(build)  # the store may have had no room for it before
check("a disk that others fill fails the build, with a reason", got.get("state") == "failed" and got.get("reason"), got)
whole("a disk that others filled")
same("the upload that had no room is not there", 404, s.ask("GET", "/v1/builds/files/" + "0" * 64).status)

# ---- and a server that ends meanwhile ----
build, box = begin_and_wait("true")
fill()
check("the host's disk is full once more", within(60, full))
s.kill()
os.unlink(SMALL + "/filler")
s.start()
got = builds.ended(build)
check("a build whose server is killed on a full disk has failed, with a reason", got.get("state") == "failed" and "server ended" in (got.get("reason") or ""), got)
room()
whole("a server killed on a full disk")

# ---- a disk that would not fit twice ----
got = builds.ended(builds.begin({**LIMITS, "steps": [step("RUN", "head -c 140m /dev/urandom > /big", "root"), step("RUN", "test -s /big", "root")]}))
same("a step that writes more than the room for a copy is kept all the same", ("ready", None), (got.get("state"), got.get("reason")))
whole("a disk that would not fit twice")

s.ask("DELETE", "/v1/sandboxes/" + beside)
s.end()
finish()
