"""Deadlines and kills beside sandboxes that are hard to pause and to kill. Run by deadlines_test.
`mine` is the hostile tenant, `other` the healthy one."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

from harness import STATE, ask, check, finish, server, within
from boxes import COVE, KEY, OTHER, Box, api

THREADS = int(os.environ.get("THREADS", "1500"))
CROWDS = int(os.environ.get("CROWDS", "3"))
KEEPER = int(os.environ["KEEPER"])
PROMISED = 2.0  # seconds, and several times what a kill of an idle sandbox takes here: the machine may be busy


class Other(Box):
    """A box of the healthy tenant's."""

    def __init__(self, **body):
        body.setdefault("timeout", 600)
        self.of(ask("POST", "/v1/sandboxes", body, key=OTHER).json["id"])

    def state(self):
        a = ask("GET", self.at, key=OTHER)
        return a.json["state"] if a.status == 200 else "gone"

    def end(self):
        return ask("DELETE", self.at, key=OTHER).status


def idle_kill():
    box = Other()
    begin = time.time()
    box.end()
    return time.time() - begin


def allowed():
    return PROMISED + 20 * idle_kill()


def soon(sentence, took, most):
    check("%s (%.2f s)" % (sentence, took), took <= most, "took %.2f s, not %.2f" % (took, most))


def set_timeout(box, seconds, key=KEY):
    a = ask("POST", box.at + "/extend", {"timeout": seconds}, key=key)
    if a.status != 200:
        check("a deadline is set", False, a.body)
        sys.exit(1)


def kept(box):
    all_boxes = json.loads(subprocess.check_output([COVE, "ps", "--json", "--state", STATE]))
    return next((k for k in all_boxes if k["id"] == box.id), None)


def processes(box):
    sandbox = kept(box)
    if not sandbox or not os.path.exists("/proc/%d/cgroup" % sandbox["pid"]):
        return 0
    for line in open("/proc/%d/cgroup" % sandbox["pid"]):
        _, names, path = line.rstrip("\n").split(":", 2)
        root = "/sys/fs/cgroup/pids" if names == "pids" else "/sys/fs/cgroup"
        if names in ("", "pids") and os.path.exists(root + path + "/pids.current"):
            return int(open(root + path + "/pids.current").read())
    return 0


def crowd(on_timeout="kill"):
    """A sandbox with threads that leave nobody inside a moment of its hundredth of a core."""
    box = Box(on_timeout=on_timeout, limits={"cpus": 0.01, "pids": 4000, "memory": "512m"})
    with open(os.environ["ABUSE"], "rb") as f:
        api("PUT", box.at + "/files?path=/tmp/abuse&mode=755", f.read())
    box.run("chmod 755 /tmp/abuse")
    box.post("processes", {"command": "exec /tmp/abuse starve %d" % THREADS})
    if not within(120, lambda: processes(box) > THREADS):
        check("a crowd of %d threads" % THREADS, False, processes(box))
    return box


def crowds(count, on_timeout="kill"):
    made = []
    threads = [threading.Thread(target=lambda: made.append(crowd(on_timeout))) for _ in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return made


def deadline_of_another():
    for on_timeout, wanted in (("kill", "gone"), ("pause", "paused")):
        hostile = crowds(CROWDS, on_timeout)
        box = Other(on_timeout=on_timeout)
        most = allowed()
        begin = time.time()
        for h in hostile:
            set_timeout(h, 1)
        set_timeout(box, 2, OTHER)
        within(150, lambda: box.state() == wanted)
        soon("%s: another tenant's deadline is kept beside %d crowds of %d threads" % (on_timeout, len(hostile), THREADS),
             time.time() - begin - 2, most)
        begin = time.time()
        if on_timeout == "kill":
            check("%s: the crowds end at their deadline" % on_timeout,
                  within(30, lambda: all(api("GET", h.at).status == 404 for h in hostile)), [kept(h) for h in hostile])
        for h in hostile:
            begin = time.time()
            h.end()
            soon("%s: DELETE ends what is left of a crowd" % on_timeout, time.time() - begin, most)
        box.end()


def state(box):
    a = api("GET", box.at)
    return a.json["state"] if a.status == 200 else "gone"


def held(box):
    """Its agent does not answer: from outside, even PID 1 can be stopped."""
    os.kill(kept(box)["pid"], signal.SIGSTOP)


def saving(box):
    k = kept(box)
    return k is not None and k["state"] == "pausing"


def delete_beats_a_save():
    for what, body in (("snapshots", {}), ("pause", {"tier": "disk"})):
        box, said = Box(), []
        held(box)
        t = threading.Thread(target=lambda b=box, w=what, d=body, s=said: s.append(b.post(w, d)))
        t.start()
        check("%s: the sandbox is being saved" % what, within(20, lambda b=box: saving(b)), kept(box))
        most, begin = allowed(), time.time()
        status = box.end()
        soon("%s: DELETE ends a sandbox that is being saved" % what, time.time() - begin, most)
        check("%s: DELETE of a sandbox that is being saved answers 204" % what, status == 204, status)
        t.join()
        check("%s: the caller of the save is told" % what, said[0].status in (404, 409, 503), said[0].body)
        check("%s: the sandbox is gone" % what, api("GET", box.at).status == 404 and kept(box) is None, kept(box))


def deadline_beats_a_save():
    box = Box()
    held(box)
    t = threading.Thread(target=lambda: box.post("snapshots", {}))
    t.start()
    check("a snapshot is being made", within(20, lambda: saving(box)), kept(box))
    most, begin = allowed(), time.time()
    set_timeout(box, 1)
    within(60, lambda: api("GET", box.at).status == 404)
    soon("a deadline is kept although a snapshot is being made", time.time() - begin - 1, most)
    t.join()


def server_ends():
    """The keeper stands still: nobody's pause or kill gets an answer."""
    boxes = [Box(on_timeout="pause" if i % 2 else "kill", timeout=600) for i in range(4)]
    for b in boxes:
        set_timeout(b, 1)
    os.kill(KEEPER, signal.SIGSTOP)
    time.sleep(1.5)  # their deadlines pass
    begin = time.time()
    server.p.send_signal(signal.SIGTERM)
    try:
        server.p.wait(100)
    except subprocess.TimeoutExpired:
        server.kill()
    took = time.time() - begin
    os.kill(KEEPER, signal.SIGCONT)
    check("the server ends although the keeper does not answer (%.1f s)" % took, server.p.returncode == 0, server.p.returncode)
    server.start()
    check("the next server meets the deadlines that were due",
          within(60, lambda: all(state(b) in ("gone", "paused") for b in boxes)), [state(b) for b in boxes])
    for b in boxes:
        b.end()


def soak(seconds):
    """Crowds come, are saved, are killed and reach their deadlines, again and again; the healthy tenant's commands answer, its
    deadlines are kept."""
    end, late, slow, rounds, commands = time.time() + seconds, [], [], 0, 0
    while time.time() < end:
        hostile = crowds(2, "pause" if rounds % 2 else "kill")
        healthy, box = Other(), Other()
        if os.environ.get("CRIU"):
            for h in hostile:
                threading.Thread(target=lambda b=h: b.post("snapshots", {}), daemon=True).start()
        for h in hostile:
            set_timeout(h, 1)
        most, begin = allowed(), time.time()
        set_timeout(box, 2, OTHER)
        while box.state() != "gone":
            asked = time.time()
            a = ask("POST", healthy.at + "/exec", {"command": "echo fine"}, key=OTHER)
            commands += 1
            if a.status != 200 or a.json["stdout"] != "fine\n" or time.time() - asked > max(15, most):
                slow.append((a.status, a.body[:100], time.time() - asked))
            if time.time() - begin > 150:
                break
        took = time.time() - begin - 2
        if took > most:
            late.append("%.1f s, not %.1f" % (took, most))
        for h in hostile:
            begin = time.time()
            if h.end() not in (204, 404) or time.time() - begin > most:
                late.append("a crowd: %.1f s, not %.1f" % (time.time() - begin, most))
        healthy.end()
        rounds += 1
    check("%d rounds beside crowds: no deadline was late" % rounds, not late, late)
    check("beside crowds, %d commands of the healthy tenant answered" % commands, not slow, slow)


def all_of_it():
    if os.environ.get("SOAK_LONG"):
        soak(float(os.environ["SOAK_LONG"]))
        return
    deadline_of_another()
    if os.environ.get("CRIU"):
        delete_beats_a_save()
        deadline_beats_a_save()
    server_ends()
    soak(float(os.environ.get("SOAK_SHORT", "5")))


server.start()
try:
    all_of_it()
    check("no sandbox of either tenant is left", within(30, lambda: not json.loads(
        subprocess.check_output([COVE, "ps", "--json", "--state", STATE]))), "")
finally:
    os.kill(KEEPER, signal.SIGCONT)
    server.end()
finish()
