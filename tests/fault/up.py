"""kill -9 of the programs of `cove up`, alone and together, under load; what the service manager is told. Run by up_test.

Nothing that was answered is lost, the server is back by itself, nothing is left behind."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import threading
import time

from harness import check, finish, request, same, within

COVE, STATE, TMP, LOG = (os.environ[n] for n in ("COVE", "COVE_STATE", "TMP", "LOG"))
ROUNDS = int(os.environ.get("ROUNDS", "12"))
GONE = (OSError, http.client.HTTPException, ValueError)
PROGRAMS = ("cove-keeper", "cove-gateway", "coved")
HANG = 60  # seconds: a hang, not a slow machine


class Manager:
    """systemd's end of sd_notify."""
    def __init__(self):
        self.path = os.path.join(TMP, "notify.sock")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(self.path)
        self.got = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while True:
            self.got.append(self.sock.recv(4096).decode())

    def said(self, text, since=0):
        return any(text in g for g in self.got[since:])


class Up:
    def __init__(self, *args, env=None):
        self.log = open(LOG, "ab")
        self.from_byte = self.log.tell()
        self.p = subprocess.Popen([COVE, "up", *args], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                  env={**os.environ, **(env or {})})

    def text(self):
        with open(LOG, "rb") as f:
            f.seek(self.from_byte)
            return f.read().decode(errors="replace")

    def ready(self):
        within(HANG, lambda: "the API is at" in self.text() or self.p.poll() is not None)
        found = re.search(r"the API is at http://127\.0\.0\.1:(\d+)", self.text())
        return int(found.group(1)) if found else None

    def pid(self, name):
        """Of the program as it is now, or None."""
        out = subprocess.run(["pgrep", "-P", str(self.p.pid), "-x", name], capture_output=True, text=True).stdout
        return int(out) if out.strip() else None

    def kill(self, *names):
        for pid in [self.pid(n) for n in names]:
            if pid:
                os.kill(pid, signal.SIGKILL)

    def end(self, number=signal.SIGTERM):
        self.p.send_signal(number)
        return self.p.wait(HANG)


def ask(method, path, body=None, timeout=30):
    a = request(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout), method, path, body)
    return a.status, a.json or {}


def patient(method, path, body=None):
    """Asks until there is an answer, as a client whose server is being restarted."""
    end = time.time() + HANG
    while time.time() < end:
        with contextlib.suppress(*GONE):
            status, answer = ask(method, path, body)
            if status < 500:
                return status, answer
        time.sleep(0.005)
    raise RuntimeError("no answer to %s %s" % (method, path))


def healthy():
    with contextlib.suppress(*GONE):
        return ask("GET", "/health")[0] == 200
    return False


manager = Manager()
up = Up("--listen", "127.0.0.1:0", env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"})
port = up.ready()
check("cove up is ready", port, up.text()[-300:])
if not port:
    finish()
check("the service manager is told", within(HANG, lambda: manager.said("READY=1\nSTATUS=cove-keeper up, cove-gateway up, cove-pulls up, coved up")), manager.got)
check("the service manager is not told before all programs are up", manager.got and "READY=1" not in manager.got[0], manager.got[:1])
check("signs of life continue", within(HANG, lambda: sum("WATCHDOG=1" in g for g in manager.got) >= 3), manager.got)
for name in PROGRAMS:
    with open("/proc/%d/environ" % up.pid(name), "rb") as f:
        check("%s cannot speak to the service manager" % name, b"NOTIFY_SOCKET" not in f.read())
    with open("/proc/%d/status" % up.pid(name)) as f:
        check("%s has no signal blocked that it did not block itself" % name, "SigBlk:\t0000000000010000" not in f.read())

# ---- the log ----
made = patient("POST", "/v1/sandboxes", {"timeout": 600})[1]["id"]
for path, body in (("/exec", {"command": "true"}), ("/pause", {}), ("/resume", {}), ("/exec", {"command": "true"})):
    patient("POST", "/v1/sandboxes/" + made + path, body)
patient("DELETE", "/v1/sandboxes/" + made)


def lines_of_made():
    return [line.split(" ", 1)[1] for line in up.text().splitlines() if made in line]


within(HANG, lambda: any("stop" in line for line in lines_of_made()))
same("a change of a sandbox is one line of the log, and a command none",
     ["info keeper %s sandbox=%s" % (what, made) for what in ("running", "paused", "resumed", "stop")],
     [" ".join(line.split(" ")[:4]) for line in lines_of_made()])

# ---- the load ----
stop, wrong, counts = False, [], {"creates": 0, "files": 0}
box = patient("POST", "/v1/sandboxes", {"timeout": 3600})[1]["id"]
proc = patient("POST", "/v1/sandboxes/%s/processes" % box, {"command": "sleep 1000"})[1]["proc"]
kept = {}


def creates(lane):
    while not stop:
        status, answer = patient("POST", "/v1/sandboxes", {"timeout": 600})
        counts["creates"] += 1
        if status != 201:
            wrong.append((status, answer))
            continue
        made = answer["id"]
        out = patient("POST", "/v1/sandboxes/%s/exec" % made, {"command": "echo $((6*7))"})[1]
        if out.get("stdout") != "42\n":
            wrong.append(out)
        patient("DELETE", "/v1/sandboxes/" + made)


def writes():
    while not stop:
        n = counts["files"]
        if patient("POST", "/v1/sandboxes/%s/exec" % box, {"command": "echo %d >/home/user/%d" % (n, n)})[1].get("exit_code") == 0:
            kept[n] = True
        counts["files"] += 1


lanes = [threading.Thread(target=creates, args=(1,)), threading.Thread(target=writes)]
for lane in lanes:
    lane.start()
back = {}
turns = [("cove-keeper",), ("cove-gateway",), ("coved",), ("cove-keeper", "cove-gateway", "coved")]
for n in range(ROUNDS):
    names = turns[n % len(turns)]
    before, pids = dict(counts), [up.pid(p) for p in names]
    # Under load: the next ones are killed after something was done with these.
    within(HANG, lambda: all(counts[k] > before[k] for k in counts))
    up.kill(*names)
    begin = time.monotonic()
    status, answer = patient("POST", "/v1/sandboxes/%s/exec" % box, {"command": "true"})
    back.setdefault("+".join(names), []).append((time.monotonic() - begin) * 1000)
    if status != 200 or answer.get("exit_code") != 0:
        wrong.append((status, answer))
    if not within(HANG, lambda: all(up.pid(p) not in (None, old) for p, old in zip(names, pids)) and healthy()):
        wrong.append("not back after %s" % (names,))
stop = True
for lane in lanes:
    lane.join()
for names, times in back.items():
    check("kill -9 of %s: an answer after %.0f ms (median of %d, most %.0f), with no help" %
          (names, statistics.median(times), len(times), max(times)), max(times) < HANG * 1000)
same("%d sandboxes were made meanwhile, %d files written; nothing was answered wrongly" % (counts["creates"], counts["files"]), [], wrong[:3])
check("the load went on", counts["creates"] >= ROUNDS and counts["files"] >= ROUNDS, counts)
names = set(patient("POST", "/v1/sandboxes/%s/exec" % box, {"command": "ls /home/user"})[1]["stdout"].split())
same("every file that was answered is there", [], [n for n in kept if str(n) not in names][:5])
listed = patient("GET", "/v1/sandboxes/%s/processes" % box)[1]
check("the process that ran before still runs", str(proc) in json.dumps(listed), listed)
check("each end is one line with its reason", re.search(r"warning cove cove-keeper ended: signal 9 \(SIGKILL\) after \d+ ms; starting it again", up.text()))
check("the manager was told that the keeper ended", manager.said("STATUS=cove-keeper starting, cove-gateway up, cove-pulls up, coved up") or manager.said("STATUS=cove-keeper down, cove-gateway up, cove-pulls up, coved up"), manager.got[-5:])

# ---- the keeper is away: said so, not hung ----
def ends():
    return re.findall(r"cove-keeper ended.* starting it again (.*)", up.text())


while (ends() or [""])[-1] not in ("in 1600 ms", "in 3200 ms") and len(ends()) < 100:
    ended = len(ends())
    within(HANG, lambda: up.pid("cove-keeper"))
    up.kill("cove-keeper")
    within(HANG, lambda: len(ends()) > ended)
status, answer = ask("POST", "/v1/sandboxes", {})
check("without a keeper, a create is 503 with a sentence", status == 503 and "keeper is down or being restarted" in json.dumps(answer), (status, answer))
status, answer = ask("GET", "/health")
check("without a keeper, /health says what is down", status == 503 and answer["keeper"] is False and answer["store"] is True, (status, answer))
check("the wait grew with each end", {"in 200 ms", "in 400 ms", "in 800 ms"} <= set(ends()), ends())
check("cove up recovers by itself", within(HANG, healthy))
check("a sandbox outlives a keeper that ended again and again", patient("GET", "/v1/sandboxes/" + box)[0] == 200)

# ---- signals ----
since = len(manager.got)
up.p.send_signal(signal.SIGHUP)
check("SIGHUP: the manager sees a reload", within(HANG, lambda: manager.said("RELOADING=1\nMONOTONIC_USEC=", since) and manager.said("READY=1", since)))
check("SIGHUP: coved reloads", within(HANG, lambda: "info coved reloaded" in up.text()))
pids = [up.pid(p) for p in PROGRAMS]
os.kill(up.p.pid, signal.SIGKILL)
up.p.wait()


def gone(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    return True


check("kill -9 of cove up itself ends all: no orphan holds the port", within(HANG, lambda: all(gone(p) for p in pids)))
up = Up("--listen", "127.0.0.1:%d" % port, env={"NOTIFY_SOCKET": manager.path})
check("the next cove up starts at once, on the same port", up.ready() == port, up.text()[-300:])
same("the next cove up has the sandbox", 200, patient("GET", "/v1/sandboxes/" + box)[0])
since = len(manager.got)


def slow_exec():
    with contextlib.suppress(*GONE):
        answers.append(ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "touch /home/user/slow; sleep 300"}, timeout=120))


answers = []
slow = threading.Thread(target=slow_exec)
slow.start()
check("a request is under way", within(HANG, lambda: ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "test -e /home/user/slow"})[1].get("exit_code") == 0), answers)
begin = time.monotonic()
up.p.send_signal(signal.SIGINT)
check("Ctrl-C: the manager is told", within(HANG, lambda: manager.said("STOPPING=1", since)))
coved, keeper = up.pid("coved"), up.pid("cove-keeper")
check("a request that is under way is waited for, with the keeper up", coved and keeper and up.p.poll() is None)
same("a second Ctrl-C does not wait for the request", 0, up.end(signal.SIGINT))
check("a second Ctrl-C ends at once", time.monotonic() - begin < 25, time.monotonic() - begin)
check("a second Ctrl-C leaves no program", all(gone(p) for p in (coved, keeper)))
slow.join()

up = Up("--listen", "127.0.0.1:%d" % port)
same("cove up starts again after a second Ctrl-C", port, up.ready())
same("DELETE ends the sandbox", 204, patient("DELETE", "/v1/sandboxes/" + box)[0])
pids = [up.pid(p) for p in PROGRAMS]
same("SIGTERM ends with 0", 0, up.end())
check("SIGTERM leaves no program", all(gone(p) for p in pids))
finish()
