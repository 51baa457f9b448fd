"""Pauses, resumes, idleness, snapshots and forks. Run by pause_test. What needs images
is skipped where the host cannot make them; what must hold without them is not."""
import subprocess
import threading

from harness import STATE, check, refused, run, same, server, within
from boxes import COVE, OTHER, Box, api, audit

def refusals():
    box = Box()
    for body, field in [({"tier": "cold"}, "tier"), ({"tier": 1}, "tier"), ({"memory": "no"}, "memory"),
                        ({"tier": "hot", "memory": False}, "memory"), ({"colour": 1}, "colour")]:
        refused("pause refuses %s" % body, box.post("pause", body), 400, "invalid", field)
    for body, field in [({"count": 0}, "count"), ({"count": 101}, "count"), ({"count": "2"}, "count"), ({"timeout": 0}, "timeout")]:
        refused("fork refuses %s" % body, box.post("fork", body), 400, "invalid", field)
    for name in ["", "No Good", "x" * 64, "i" + "a" * 20]:
        refused("a snapshot cannot have the name '%.12s'" % name, box.post("snapshots", {"name": name}), 400, "invalid", "name")
    for body, status, code, field in [({"snapshot": "nope"}, 404, "snapshot_not_found", "snapshot"),
                                      ({"snapshot": "x", "template": "host"}, 400, "invalid", "template"),
                                      ({"snapshot": "x", "limits": {"pids": 0}}, 400, "limit_invalid", "limits.pids"),
                                      ({"snapshot": "x", "root": True}, 400, "invalid", "root"),
                                      ({"idle_pause_seconds": -1}, 400, "invalid", "idle_pause_seconds")]:
        refused("create refuses %s" % body, api("POST", "/v1/sandboxes", body), status, code, field)
    for method, path in [("GET", "/v1/snapshots/nope"), ("DELETE", "/v1/snapshots/nope"), ("GET", "/v1/snapshots/i" + "a" * 20)]:
        refused("%s of a snapshot that never was" % method, api(method, path), 404, "snapshot_not_found")
    for what in ["pause", "resume", "snapshots", "fork"]:
        refused("a tenant cannot %s another tenant's sandbox" % what, api("POST", box.at + "/" + what, {}, OTHER), 404, "sandbox_not_found")
    same("a sandbox still runs after requests of another tenant", "running", box.get()["state"])
    box.end()


def in_memory():
    box = Box()
    same("awake it has no tier", (None, None, None), tuple(box.get()[k] for k in ("tier", "paused_since", "image_bytes")))
    box.run("(while :; do echo x >> /tmp/ticks; sleep 0.05; done) >/dev/null 2>&1 &")
    a = box.post("pause", {"tier": "hot"})
    same("a hot pause", (200, "paused", "hot", None), (a.status, a.json["state"], a.json["tier"], a.json["fallback_reason"]))
    check("a hot pause says since when, and has no deadline", a.json["paused_since"] and a.json["deadline"] is None, a.json)
    b = box.post("pause", {"tier": "hot"})
    same("a second one is no error, and changes nothing", (200, a.json["paused_since"]), (b.status, b.json["paused_since"]))
    same("an automatic one leaves it where it is", "hot", box.post("pause").json["tier"])
    refused("a paused sandbox runs nothing", box.run("true"), 409, "wrong_state")
    refused("a hot sandbox cannot be saved", box.post("snapshots"), 409, "wrong_state")
    refused("a hot sandbox cannot be forked", box.post("fork"), 409, "wrong_state")
    same("a list shows the tier", ["hot"], [s["tier"] for s in api("GET", "/v1/sandboxes?state=paused").json["sandboxes"]])
    a = box.post("resume")
    same("resume", (200, "running", None), (a.status, a.json["state"], a.json["tier"]))
    check("a resume gives the time of the create", a.json["deadline"] is not None, a.json)
    same("a second resume is no error", 200, box.post("resume").status)
    before = int(box.said("wc -l < /tmp/ticks"))
    check("processes continue after a hot pause", within(5, lambda: int(box.said("wc -l < /tmp/ticks")) > before))
    a = box.post("pause", {"tier": "warm"}).json
    check("a warm pause is warm, or hot with the reason", a["tier"] == "warm" or (a["tier"] == "hot" and a["fallback_reason"]), a)
    if a["tier"] == "hot":
        check("the audit log says why a pause was hot instead of warm", any("hot, since" in (r.get("detail") or "") for r in audit("sandbox.pause", box.id)))
    same("a paused sandbox can be killed", 204, box.end())
    same("a sandbox that was killed while paused is gone", 404, api("GET", box.at).status)


def waking():
    box = Box(auto_resume=True)
    same("auto_resume is shown", True, box.get()["auto_resume"])
    box.post("pause", {"tier": "hot"})
    same("a question for stats does not wake a sandbox", "paused", (box.post("stats"), box.get())[1]["state"])
    got = []
    threads = [threading.Thread(target=lambda: got.append(box.said("echo here"))) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same("a dozen requests at once all get their answer", ["here"] * 12, got)
    same("a dozen requests at once are one resume", 1, len(audit("sandbox.resume", box.id)))
    box.post("pause", {"tier": "hot"})
    same("a file request wakes a sandbox", 201, api("PUT", box.at + "/files?path=/tmp/a", "x").status // 100 * 100 + 1)
    same("a sandbox that a file request resumed runs", "running", box.get()["state"])
    box.end()


def idleness():
    idle = Box(idle_pause_seconds=2)
    busy = Box(idle_pause_seconds=2)
    busy.run("(while :; do :; done) >/dev/null 2>&1 &")
    held = Box(idle_pause_seconds=2)
    over = threading.Event()
    stream = threading.Thread(target=lambda: (held.run("until [ -e /tmp/over ]; do sleep 0.05; done"), over.set()))
    stream.start()
    check("an idle sandbox is paused", within(10, lambda: idle.get()["tier"] == "hot"), idle.get())
    check("an idle pause keeps the deadline", idle.get()["deadline"], idle.get())
    same("a sandbox that computes is not paused", "running", busy.get()["state"])
    same("a sandbox whose command a client waits for is not paused", ("running", False), (held.get()["state"], over.is_set()))
    same("a request wakes what fell asleep by itself", "here", idle.said("echo here"))
    same("a sandbox that a request resumed runs", "running", idle.get()["state"])
    check("a sandbox that was woken is paused again", within(10, lambda: idle.get()["tier"] == "hot"), idle.get())
    check("the audit log says why it slept", any("idle" in (r.get("detail") or "") for r in audit("sandbox.pause", idle.id)))
    busy.end()
    api("PUT", held.at + "/files?path=/tmp/over", "x")
    stream.join()
    held.end()
    idle.end()


def crashes():
    """What the record says is corrected by what is."""
    box, short = Box(), Box(timeout=3, on_timeout="pause")
    box.post("pause", {"tier": "hot"})
    server.kill()
    subprocess.check_call([COVE, "resume", box.id, "--state", STATE])
    server.start()
    check("a sandbox that was resumed past the server is found awake", within(10, lambda: box.get()["tier"] is None), box.get())
    same("a sandbox that was resumed past the server works", "here", box.said("echo here"))
    subprocess.check_call([COVE, "pause", box.id, "--tier", "hot", "--state", STATE])
    check("a sandbox that was paused past the server is found asleep", within(10, lambda: box.get()["tier"] == "hot"), box.get())
    same("a sandbox that was paused past the server can be resumed", 200, (within(10, lambda: box.run("true").status == 409), box.post("resume").status)[1])
    check("a sandbox is paused at its deadline, if on_timeout says so",
          within(20, lambda: (lambda s: s["state"] == "paused" and s["deadline"] is None)(short.get())), short.get())
    same("a sandbox that was paused at its deadline can be resumed", "running", short.post("resume", {"timeout": 60}).json["state"])
    box.end()
    short.end()


run(refusals, in_memory, waking, idleness, crashes, settings=("--pause-disk-after", "0s"))
