"""Sandboxes that are paused to disk, snapshots, forks, and a server that is killed in the middle. Run by sleep_test."""
import glob
import json
import os
import random
import subprocess
import sys
import threading
import time

from harness import NO_SAVE, STATE, ask, check, must, refused, run, same, server, skip, within
from boxes import COVE, OTHER, Box, again, api, audit

SMALL = os.environ["SMALL_KEY"]
# A program with something in mind: it answers with its own count and what it was told at the start.
PROGRAM = r"""
import os, socket, sys, threading
word, count = sys.argv[1], 0
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 7000)); s.listen()
open("/tmp/up", "w").close()
while True:
    c, _ = s.accept()
    count += 1
    c.sendall(("%s %d %d\n" % (word, count, os.getpid())).encode()); c.close()
"""
ASK = "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\",7000),5); print(s.recv(99).decode().strip())'"


def program(word, **body):
    box = Box(**body)
    api("PUT", box.at + "/files?path=/tmp/p.py", PROGRAM)
    box.post("processes", {"command": "exec python3 /tmp/p.py " + word})
    within(10, lambda: box.run("test -e /tmp/up").json["exit_code"] == 0)
    return box


def on_disk():
    box = program("otter", auto_resume=True, env={"WHO": "me"}, metadata={"a": "b"}, name="sleeper")
    same("a program answers before the pause", "otter 1", " ".join(box.said(ASK).split()[:2]))
    a = box.post("pause", {"tier": "disk"}).json
    same("a sandbox is paused to disk", ("paused", "disk", None), (a["state"], a["tier"], a["fallback_reason"]))
    check("a sandbox on disk takes bytes there", a["image_bytes"] > 0, a)
    kept = json.loads(subprocess.check_output([COVE, "ps", "--json", "--state", STATE]))
    same("the command line shows a sandbox on disk", [("paused", "disk")], [(k["state"], k["tier"]) for k in kept if k["id"] == box.id])
    same("a list has a sandbox on disk", [("disk", "sleeper")], [(s["tier"], s["name"]) for s in api("GET", "/v1/sandboxes?state=paused").json["sandboxes"]])
    same("a second pause is no error", (200, "disk"), (lambda p: (p.status, p.json["tier"]))(box.post("pause", {"tier": "hot"})))
    server.kill()
    server.start()
    same("a new server knows a sandbox on disk", "disk", box.get()["tier"])
    got = []
    threads = [threading.Thread(target=lambda: got.append(box.said("echo here"))) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    same("many requests wake it once", (["here"] * 8, 1), (got, len(audit("sandbox.resume", box.id))))
    same("a program on disk remembers its state after the resume", "otter 2", " ".join(box.said(ASK).split()[:2]))
    now = box.get()
    same("all else is as before", ("running", "sleeper", {"a": "b"}, None), (now["state"], now["name"], now["metadata"], now["tier"]))
    same("commands have its environment", "me", box.said("echo $WHO"))
    a = box.post("pause", {"memory": False}).json
    same("a pause without memory is to disk", "disk", a["tier"])
    same("a sandbox that was paused without memory has its files", "yes", (box.post("resume"), box.said("test -e /tmp/p.py && echo yes"))[1])
    check("a pause without memory keeps no processes", box.run(ASK).json["exit_code"] != 0)
    box.post("pause", {"tier": "hot"})
    same("a hot sandbox can be paused to disk", "disk", box.post("pause", {"tier": "disk"}).json["tier"])
    same("a sandbox on disk can be killed", 204, box.end())
    same("a sandbox that was killed on disk leaves no image", [], [i for i in glob.glob(STATE + "/images/*") if box.id in i])


def snapshots():
    box = program("badger", env={"SELF": "x"})
    a = box.post("snapshots", {"name": "ready"})
    same("a snapshot", (201, "ready", True, box.id), (a.status, a.json["name"], a.json["memory"], a.json["sandbox"]))
    check("the sandbox stood still for a while", a.json["frozen_ms"] > 0, a.json)
    same("a sandbox continues after a snapshot", "badger 1", " ".join(box.said(ASK).split()[:2]))
    refused("the name of a snapshot is in use", box.post("snapshots", {"name": "ready"}), 409, "name_taken", "name")
    files = box.post("snapshots", {"memory": False}).json
    same("snapshots with and without memory are listed", [files["id"], a.json["id"]], [s["id"] for s in api("GET", "/v1/snapshots?sandbox=" + box.id).json["snapshots"]])
    same("snapshots are listed in pages", 1, len(api("GET", "/v1/snapshots?limit=1").json["snapshots"]))
    for method, path in [("GET", "/v1/snapshots/"), ("DELETE", "/v1/snapshots/")]:
        for which in ("ready", a.json["id"]):
            refused("a tenant cannot %s another tenant's snapshot" % method, api(method, path + which, key=OTHER), 404, "snapshot_not_found")
    refused("a tenant cannot make a sandbox of another tenant's snapshot", api("POST", "/v1/sandboxes", {"snapshot": a.json["id"]}, OTHER), 404, "snapshot_not_found", "snapshot")
    same("a tenant does not list another tenant's snapshots", [], api("GET", "/v1/snapshots", key=OTHER).json["snapshots"])
    other = Box(snapshot="ready", env={"MORE": "1"})
    same("a sandbox of it has its processes", "badger 1", " ".join(other.said(ASK).split()[:2]))
    same("a sandbox of a snapshot has the environments of the snapshot and of the create", "x 1", other.said("echo $SELF $MORE"))
    same("the host name in a sandbox of a snapshot is its own", other.id, other.said("hostname"))
    made = Box(snapshot="ready", memory=False, limits={"memory": "64m", "pids": 50})
    same("a sandbox can have the files of a snapshot alone, with limits of its own", ("yes", True, 64 << 20, 50), (made.said("test -e /tmp/p.py && echo yes"), made.run(ASK).json["exit_code"] != 0, made.get()["limits"]["memory"], made.get()["limits"]["pids"]))
    made.end()
    made = Box(snapshot="ready", limits={"memory": "1g"})
    same("a sandbox can have the processes of a snapshot, with different limits", ("badger 1", 1 << 30, box.get()["limits"]["disk"]), (" ".join(made.said(ASK).split()[:2]), made.get()["limits"]["memory"], made.get()["limits"]["disk"]))
    made.end()
    refused("too little memory for the processes of a snapshot is refused", api("POST", "/v1/sandboxes", {"snapshot": "ready", "limits": {"memory": "8m"}}), 400, "limit_invalid", "limits")
    refused("a limit of no processes is refused", api("POST", "/v1/sandboxes", {"snapshot": "ready", "limits": {"pids": 0}}), 400, "limit_invalid", "limits.pids")
    refused("an unknown limit is refused", api("POST", "/v1/sandboxes", {"snapshot": "ready", "limits": {"stars": 4}}), 400, "invalid", "limits.stars")
    refused("template and root stay its own", api("POST", "/v1/sandboxes", {"snapshot": "ready", "template": "host"}), 400, "invalid", "template")
    refused("memory is a snapshot's", api("POST", "/v1/sandboxes", {"memory": False}), 400, "invalid", "memory")
    cold = Box(snapshot=files["id"])
    same("a sandbox of a snapshot without memory has the files", ("yes", True), (cold.said("test -e /tmp/p.py && echo yes"), cold.run(ASK).json["exit_code"] != 0))
    same("a snapshot is deleted", 204, api("DELETE", "/v1/snapshots/ready").status)
    refused("a snapshot is deleted once", api("DELETE", "/v1/snapshots/ready"), 404, "snapshot_not_found")
    same("what was made of it continues", "badger 2", " ".join(other.said(ASK).split()[:2]))
    api("DELETE", "/v1/snapshots/" + files["id"])
    for b in (box, other, cold):
        b.end()


def forks():
    box = program("lynx")
    a = box.post("fork", {"count": 4, "timeout": 60})
    same("a fork makes four copies", (201, [None] * 4), (a.status, [f["error"] for f in a.json["forks"]]))
    copies = [again(f["sandbox"]["id"]) for f in a.json["forks"]]
    same("each fork has the program in the state of its own", ["lynx 1"] * 4, [" ".join(c.said(ASK).split()[:2]) for c in copies])
    same("the program that was forked continues", "lynx 1", " ".join(box.said(ASK).split()[:2]))
    same("no snapshot is left of a fork", ([], []), (api("GET", "/v1/snapshots").json["snapshots"], glob.glob(STATE + "/images/i*")))
    for b in copies + [box]:
        b.end()


def tampering():
    box = Box()
    box.post("pause", {"tier": "disk"})
    found = [f for f in glob.glob(STATE + "/images/%s/**" % box.id, recursive=True) if os.path.isfile(f) and os.path.getsize(f) > 100]
    victim = max(found, key=os.path.getsize)
    with open(victim, "r+b") as f:
        f.seek(50)
        was = f.read(1)
        f.seek(50)
        f.write(bytes([was[0] ^ 1]))
    a = box.post("resume")
    check("an image that was changed is refused", a.status in (403, 409, 500, 502), "%d %s" % (a.status, a.body))
    same("a sandbox whose image was changed stays on disk", "disk", box.get()["tier"])
    with open(victim, "r+b") as f:
        f.seek(50)
        f.write(was)
    same("put right again, it comes back", 200, box.post("resume").status)
    box.end()


def quotas():
    def post(path, body=None):
        return ask("POST", path, body, key=SMALL)
    box = post("/v1/sandboxes", {"timeout": 600}).json["id"]
    at = "/v1/sandboxes/" + box
    post(at + "/exec", {"command": "head -c 3000000 /dev/urandom > /tmp/big; python3 -c 'a=1' "})
    a = within(6, lambda: (lambda r: r if r.status == 429 else None)(post(at + "/snapshots")))  # measured every three seconds
    same("a snapshot beyond the quota of stored bytes", (429, "quota"), (a.status, a.json["error"].get("layer")))
    a = post(at + "/pause", {"tier": "disk"}).json
    check("a pause then stays in memory, and says why", a["tier"] in ("hot", "warm") and "stored-bytes" in (a["fallback_reason"] or ""), a)
    post(at + "/resume")
    ask("DELETE", at, key=SMALL)
    for made in ask("GET", "/v1/snapshots", key=SMALL).json["snapshots"]:  # before it was measured
        ask("DELETE", "/v1/snapshots/" + made["id"], key=SMALL)
    first = within(6, lambda: post("/v1/sandboxes", {"timeout": 600}).json.get("id"))
    same("a sandbox of a tenant with a quota is paused to disk", "disk", post("/v1/sandboxes/%s/pause" % first, {"tier": "disk"}).json["tier"])
    others = [post("/v1/sandboxes", {"timeout": 600}) for _ in range(2)]
    same("what is on disk takes no place", [201, 201], [o.status for o in others])
    refused("a resume beyond the quota", post("/v1/sandboxes/%s/resume" % first), 429, "too_many")
    ask("DELETE", "/v1/sandboxes/" + others[0].json["id"], key=SMALL)
    same("a resume succeeds when the quota has room", 200, post("/v1/sandboxes/%s/resume" % first).status)
    for b in (first, others[1].json["id"]):
        ask("DELETE", "/v1/sandboxes/" + b, key=SMALL)


def kills():
    """The server is killed at random points: a sandbox is running or paused, never lost, never two."""
    random.seed(os.environ.get("SEED", time.time()))
    box = program("heron")
    wrong = []

    def work():
        try:
            for what, body in [("pause", {"tier": "disk"}), ("resume", {}), ("snapshots", {}), ("fork", {"count": 2, "timeout": 30})]:
                box.post(what, body)
        except OSError:
            pass
        except Exception:  # an answer that was cut
            pass
    for i in range(6):
        t = threading.Thread(target=work)
        t.start()
        time.sleep(random.uniform(0.02, 0.9))
        server.kill()
        t.join()
        server.start()
        # Again, if need be: what the server before asked of the keeper may be done later than it is resumed.
        if not within(30, lambda: box.post("resume").status == 200 and box.said(ASK).startswith("heron")):
            wrong.append((i, box.get(), box.post("resume").body, box.said(ASK)))
    same("after six kills it is there each time, with its program", [], wrong)
    box.end()
    for s in api("GET", "/v1/sandboxes?limit=200").json["sandboxes"]:
        api("DELETE", "/v1/sandboxes/" + s["id"])
    for s in api("GET", "/v1/snapshots?limit=200").json["snapshots"]:
        api("DELETE", "/v1/snapshots/" + s["id"])
    check("nothing is left of saves that were not finished", within(15, lambda: not glob.glob(STATE + "/images/i*")), glob.glob(STATE + "/images/*"))
    kept = subprocess.check_output([COVE, "ps", "-q", "--state", STATE]).decode().split()
    same("no sandbox is left of what was not finished", [], kept)


server.start()
probe = Box()
able = probe.post("pause", {"tier": "disk"}).json
probe.end()
server.end()
if not os.environ["SAVES"]:
    skip("sandboxes on disk", NO_SAVE)
    sys.exit(77)
must("a sandbox is paused to disk", able["tier"] == "disk", able)
run(*[p for p in (on_disk, snapshots, forks, tampering, quotas, kills) if os.environ.get("ONLY", "") in p.__name__])
