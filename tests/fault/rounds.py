"""kill -9 of coved, then of the keeper, at random moments of a load that comes through the API. Run by rounds_test.

No sandbox is lost, one idempotency key makes one sandbox, a reader that attaches again from its byte N misses nothing,
the audit chain stays whole, and the server is back at once."""
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import threading
import time

from harness import STATE, Server, check, finish, same, within

ROUNDS = int(os.environ.get("ROUNDS", "10"))
KEEPER_ROUNDS = int(os.environ.get("KEEPER_ROUNDS", str(ROUNDS)))
COVE, KEEPER_PID_FILE = os.environ["COVE"], os.environ["KEEPER_PID_FILE"]
BACK = 20  # seconds: a hang, not a slow machine
random.seed(int(os.environ.get("SEED", "7")))
s = Server("--local", "yes").start()
GONE = (OSError, http.client.HTTPException, ValueError)


def cove(*args):
    return subprocess.run([COVE, "--state", STATE, *args], capture_output=True, text=True).stdout


def patient(method, path, body=None, headers=None):
    """Asks until there is an answer: what a client does whose server was restarted."""
    end = time.time() + 120  # a create fails as often as its keeper is killed meanwhile
    while True:
        with contextlib.suppress(*GONE):
            a = s.ask(method, path, body, headers=headers, timeout=30)
            if a.status < 500:
                return a
        if time.time() > end:
            raise RuntimeError("no answer to %s %s" % (method, path))
        time.sleep(0.02)


# ---- the load ----
stop = False
wrong, made, counts = [], {}, {"creates": 0, "execs": 0, "lines": 0, "attached": 0}


def creates(lane):
    """Each key is asked for until it is answered; the answers must name one sandbox."""
    n = 0
    while not stop:
        n += 1
        key = "%s-%d-%d" % (os.getpid(), lane, n)
        ids = {patient("POST", "/v1/sandboxes", {"timeout": 600}, {"Idempotency-Key": key}).json["id"] for _ in range(2)}
        counts["creates"] += 1
        if len(ids) != 1:
            wrong.append("key %s made %s" % (key, ids))
        box = ids.pop()
        a = patient("POST", "/v1/sandboxes/%s/exec" % box, {"command": "echo $((6*7))"})
        counts["execs"] += 1
        if a.json.get("stdout") != "42\n":
            wrong.append("exec in %s: %s" % (box, a.body[:100]))
        patient("DELETE", "/v1/sandboxes/" + box)
        made[box] = "ended"


def reader(box):
    """Follows a process that counts, attaching again wherever it was cut."""
    proc = patient("POST", "/v1/sandboxes/%s/processes" % box,
                   {"command": "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done"}).json["proc"]
    at, text, want = 0, "", 1
    while not stop:
        with contextlib.suppress(*GONE):
            c = s.http(10)
            c.request("GET", "/v1/sandboxes/%s/processes/%d/output?from=%d" % (box, proc, at))
            r = c.getresponse()
            counts["attached"] += 1
            while not stop and (line := r.readline()):
                e = json.loads(line)
                if e.get("type") != "stdout":
                    continue
                if e["offset"] != at:
                    wrong.append("reader got byte %d, wanted %d" % (e["offset"], at))
                at = e["offset"] + len(e["data"])
                text += e["data"]
                *whole, text = text.split("\n")
                for number in whole:
                    if int(number) != want:
                        wrong.append("line %s, not %d" % (number, want))
                    want += 1
                    counts["lines"] += 1
        time.sleep(0.01)


neighbours = [patient("POST", "/v1/sandboxes", {"timeout": 86400}).json["id"] for _ in range(3)]
for box in neighbours:
    patient("PUT", "/v1/sandboxes/%s/files?path=/home/user/mark" % box, box.encode())


def lane(work, arg):
    try:
        work(arg)
    except Exception as e:  # a lane that ends early is a failure, not less load
        wrong.append(repr(e))


lanes = [threading.Thread(target=lane, args=(creates, i)) for i in range(2)] + [threading.Thread(target=lane, args=(reader, neighbours[0]))]
[t.start() for t in lanes]


def lost():
    missing = []
    for box in neighbours:
        a = patient("POST", "/v1/sandboxes/%s/exec" % box, {"args": ["cat", "/home/user/mark"]})
        if a.status != 200 or a.json["stdout"] != box:
            missing.append((box, a.body[:100]))
    return missing


# ---- coved ----
missing, backs = [], []
for i in range(ROUNDS):
    time.sleep(random.random() * 0.3)
    s.end(signal.SIGKILL)
    begin = time.time()
    s.start()
    patient("GET", "/health")
    backs.append(time.time() - begin)
    missing += lost()
    if i % 50 == 49:
        print("# %d of %d rounds of coved, slowest back %.3f s, %s" % (i + 1, ROUNDS, max(backs), counts), flush=True)
same("%d times kill -9 of coved under load: no sandbox is lost" % ROUNDS, [], missing[:3])
check("coved is back at once (slowest %.0f ms, median %.0f ms)" % (max(backs) * 1e3, sorted(backs)[len(backs) // 2] * 1e3), max(backs) < BACK, backs)

# ---- upgrade in place: the same program again, as a package upgrade does it ----
before = counts["lines"]
same("a server that is told to end does, with streams open", 0, s.end(signal.SIGTERM))
s.start()
check("readers continue with the new server", within(20, lambda: counts["lines"] > before + 100), counts)

# ---- the keeper ----
missing, backs = [], []
for i in range(KEEPER_ROUNDS):
    time.sleep(random.random() * 0.3)
    with open(KEEPER_PID_FILE) as f:
        old = int(f.read())
    os.kill(old, signal.SIGKILL)  # rounds_test starts the next one
    begin = time.time()
    within(20, lambda: open(KEEPER_PID_FILE).read().strip() not in ("", str(old)))
    within(20, lambda: patient("GET", "/health").json.get("keeper"))
    backs.append(time.time() - begin)
    missing += lost()
    if i % 50 == 49:
        print("# %d of %d rounds of the keeper, slowest back %.3f s, %s" % (i + 1, KEEPER_ROUNDS, max(backs), counts), flush=True)
same("%d times kill -9 of the keeper under load: no sandbox is lost" % KEEPER_ROUNDS, [], missing[:3])
if backs:
    check("the keeper is back at once (slowest %.0f ms, median %.0f ms)" % (max(backs) * 1e3, sorted(backs)[len(backs) // 2] * 1e3), max(backs) < BACK * 2, backs)

stop = True
[t.join(130) for t in lanes]
same("one key made one sandbox (%d creates), commands said what they should (%d), readers missed nothing (%d lines, attached %d times)"
     % (counts["creates"], counts["execs"], counts["lines"], counts["attached"]), [], wrong[:3])
check("the readers did read, and attach again", counts["lines"] > 50 and counts["attached"] > min(ROUNDS, 5), counts)


def only_neighbours():
    ids = {b["id"] for b in s.ask("GET", "/v1/sandboxes?limit=200").json["sandboxes"]}
    return ids == set(neighbours) == set(cove("ps", "-q").split())


check("nothing is left of what was ended, in the server or the keeper", within(60, only_neighbours),
      (cove("ps", "-q").split(), [b["id"] for b in s.ask("GET", "/v1/sandboxes?limit=200").json["sandboxes"]]))
check("the audit chain is whole", cove("audit", "verify").startswith("whole"), cove("audit", "verify"))
same("the server ends as it should", 0, s.end())
finish()
