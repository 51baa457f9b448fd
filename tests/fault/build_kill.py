"""kill -9 of coved, then of the keeper, in each phase of a build; a save that stands still; a disk that is full. Run by build_kill_test.

A build ends with a reason or goes on; no sandbox, no file of a stage and no snapshot that nothing speaks of is left behind; and
the next build of the same steps is ready."""
import os
import signal
import time

from builds_left import Builds, step
from harness import Server, check, finish, same, within

KEEPER_PID_FILE = os.environ["KEEPER_PID_FILE"]
s = Server("--local", "yes").start()
builds = Builds(s)


def body(files):
    """Each phase says when it begins; the waits are there to be killed in."""
    return {"name": "cut", "force": True,
            "stages": [{"from": "host", "steps": [step("RUN", "echo stage; sleep 0.3; mkdir /out; echo x > /out/x", "root")]}],
            "from": "host", "start": "exec sleep 4321", "ready": "sleep 0.3",
            "steps": [step("COPY", "/out", "/in", stage=0), step("COPY", "a", "/b/", files=files),
                      step("RUN", "echo last; sleep 0.3; cat /in/x > /in/y", "root")]}


# Each says so when its step is over; the quotes are not in what it says.
LARGE = {"name": "cut", "force": True, "from": "host", "limits": {"disk": "256m"},
         "steps": [step("RUN", "head -c 40m /dev/urandom > /big; echo seal''ing", "root"), step("RUN", "echo seal''ing the last", "root")]}
PHASES = {"the stage": "stage", "COPY from a stage": "[2/4]", "COPY of files": "[3/4]", "RUN": "last", "the start command": "start:",
          "the seal of a large step": "sealing", "the seal of the last step": "sealing the last"}


def begin(what, sign, files):
    build = builds.begin(LARGE if "seal" in sign else body(files))
    check("a build comes to %s" % what, within(60, lambda: any(sign in t for t in builds.texts(build)) or builds.state_of(build).get("ended_at")), builds.texts(build))
    return build


files = builds.upload()
s.ask("POST", "/v1/builds", body(files))
same("a build with a stage, files and a start command is ready", "ready",
     builds.ended(s.ask("GET", "/v1/builds").json["builds"][0]["id"]).get("state"))
builds.clean("after a build")

for what, sign in PHASES.items():
    build = begin(what, sign, files)
    s.end(signal.SIGKILL)
    s.start()
    got = builds.ended(build)
    check("the server is killed in %s: the build has failed, with a reason" % what,
          got.get("state") == "failed" and "server ended" in (got.get("reason") or "") or got.get("state") == "ready", got)
    builds.clean("the server is killed in %s" % what)

for what, sign in PHASES.items():
    build = begin(what, sign, files)
    os.kill(int(within(30, lambda: open(KEEPER_PID_FILE).read().strip())), signal.SIGKILL)
    got = builds.ended(build)
    check("the keeper is killed in %s: the build goes on, or has failed with a reason" % what,
          got.get("state") == "ready" or (got.get("state") == "failed" and got.get("reason")), got)
    check("the keeper is back", within(60, lambda: s.ask("GET", "/v1/templates").status == 200))
    builds.clean("the keeper is killed in %s" % what)

same("the next build of the same steps is ready", "ready", builds.ended(s.ask("POST", "/v1/builds", body(files)).json["id"]).get("state"))

# ---- a snapshot that takes long ----


def savers():
    """Processes that save a sandbox for the keeper."""
    keeper = open(KEEPER_PID_FILE).read().strip()
    try:
        children = open("/proc/%s/task/%s/children" % (keeper, keeper)).read().split()
        return [int(pid) for pid in children if open("/proc/%s/comm" % pid).read() == "cove-saver\n"]
    except OSError:  # one of them has just ended
        return []


def tell(pid, what):
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


def stop_saver(build):
    """The save of a large step stands still; None: it was faster than this test."""
    while not builds.state_of(build).get("ended_at"):
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            for pid in savers():
                if tell(pid, signal.SIGSTOP):
                    return pid
    return None


for _ in range(5):
    slow = builds.begin({**LARGE, "steps": [step("RUN", "head -c 200m /dev/urandom > /big", "root"), step("RUN", "echo", "root")]})
    saver = stop_saver(slow)
    if saver:
        break
if saver:
    try:
        got = builds.ended(builds.begin({"name": "other", "force": True, "from": "host", "steps": [step("RUN", "echo > /x", "root")]}))
    finally:
        tell(saver, signal.SIGCONT)
    same("while one build is saved, another one is ready", "ready", got.get("state"))
    same("the build whose save was stopped is ready in the end", "ready", builds.ended(slow).get("state"))
builds.clean("after a snapshot that took long")

# ---- a disk that is full ----
small = {"limits": {"disk": "64m"}, "name": "full", "from": "host"}
got = builds.ended(s.ask("POST", "/v1/builds", {**small, "steps": [step("RUN", "head -c 200m /dev/zero > /big", "root")]}).json["id"])
check("RUN on a full disk fails the build, in its step", (got.get("state"), got.get("step")) == ("failed", "1"), got)
got = builds.ended(s.ask("POST", "/v1/builds", {**small, "steps": [step("COPY", "a", "/a", files=builds.upload(100 << 20))]}).json["id"])
check("COPY to a full disk fails the build, with the reason",
      (got.get("state"), got.get("step")) == ("failed", "1") and "the disk is full" in (got.get("reason") or ""), got)
got = builds.ended(s.ask("POST", "/v1/builds", {**small, "stages": [{"from": "host", "steps": [step("RUN", "mkdir /o; head -c 100m /dev/zero > /o/x", "root")]}],
                                         "limits": {"disk": "128m"}, "steps": [step("RUN", "head -c 30m /dev/zero > /y", "root"), step("COPY", "/o", "/o", stage=0)]}).json["id"])
check("COPY --from to a full disk fails the build, with the reason",
      (got.get("state"), got.get("step")) == ("failed", "3") and "the disk is full" in (got.get("reason") or ""), got)
builds.clean("after full disks")

# ---- a start command whose processes cannot be saved ----
PENDING = ("exec python3 -c \"import socket, time; l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(); "
           "c = socket.create_connection(l.getsockname()); open('/tmp/up', 'w').close(); time.sleep(4322)\"")
build = s.ask("POST", "/v1/builds", {"name": "pending", "from": "host", "start": PENDING, "ready": "test -e /tmp/up"}).json["id"]
got = builds.ended(build)
same("a template whose start command cannot be saved is ready", ("ready", None), (got.get("state"), got.get("reason")))
check("the log of a template says that its start command cannot be saved", any("runs in every sandbox" in t for t in builds.texts(build)), builds.texts(build))
box = s.ask("POST", "/v1/sandboxes", {"template": "pending"}).json["id"]
check("a start command that cannot be saved runs in a sandbox of the template", within(60, lambda: s.ask(
    "POST", "/v1/sandboxes/%s/exec" % box, {"command": "pgrep -fc 'sleep.432[2]'"}).json.get("stdout") == "1\n"))
s.ask("DELETE", "/v1/sandboxes/" + box)
builds.clean("in the end")
s.end()
finish()
