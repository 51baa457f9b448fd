"""Pools of sandboxes that were made ahead. Run by pool_test."""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from harness import ISOLATION, STATE, Server, check, end_with_us, finish, only, same, within

KEEPER, KEEPER_LOG, COVE, TMP, SMALL = (os.environ[n] for n in ("KEEPER", "KEEPER_LOG", "COVE", "TMP", "SMALL_KEY"))
CONFIG = TMP + "/coved.conf"


class Keeper:
    def __init__(self):
        self.p = None

    def start(self):
        with open(KEEPER_LOG, "ab") as log:
            self.p = subprocess.Popen([KEEPER, "--state", STATE], stderr=log, stdout=log, stdin=subprocess.DEVNULL,
                                      preexec_fn=end_with_us)
        within(20, lambda: cove("ps", "-q").returncode == 0)

    def end(self, how=signal.SIGTERM):
        self.p.send_signal(how)
        self.p.wait(30)


def cove(*args):
    return subprocess.run([COVE, "--state", STATE, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def configure(text):
    with open(CONFIG, "w") as f:
        f.write(text)


def hup():
    server.p.send_signal(signal.SIGHUP)


def log_text():
    with open(KEEPER_LOG, "rb") as f:
        return f.read().decode("utf-8", "replace")


def make(key=None, **body):
    return server.ask("POST", "/v1/sandboxes", {"timeout": 600, **body}, key=key)


def pools():
    return server.ask("GET", "/v1/pools").json["pools"]


def pool(template="host", profile="strict", memory=512 << 20):
    for p in pools():
        if (p["template"], p["profile"], p["limits"]["memory"]) == (template, profile, memory):
            return p
    return {"ready": 0, "target": 0, "hits": 0, "misses": 0, "min": 0, "max": 0}


def ready(n, **of):
    return within(15, lambda: pool(**of)["ready"] == n)


def taken():
    """made_as of every sandbox, by id."""
    return dict(re.findall(r"taken sandbox=(\w+) .*made_as=(\w+)", log_text()))


def waiting():
    """Those that were made and are neither taken nor gone, as the keeper's log has it: only the pool's, if no other."""
    text = log_text()
    made = set(re.findall(r"running sandbox=(\w+)", text))
    return made - set(taken().values()) - set(re.findall(r"(?:gone|lost|stop) sandbox=(\w+)", text))


def run(box, command):
    a = server.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": command, "timeout": 30})
    return a.json["stdout"] if a.status == 200 else "%d %s" % (a.status, a.body)


def kill(box):
    server.ask("DELETE", "/v1/sandboxes/" + box)


def together(n, work):
    threads = [threading.Thread(target=work) for _ in range(n)]
    [t.start() for t in threads]
    [t.join() for t in threads]


def kill_all():
    left = [b["id"] for b in server.ask("GET", "/v1/sandboxes?limit=200").json["sandboxes"]]

    def some():
        while left:
            kill(left.pop())
    together(10, some)


keeper, server = Keeper(), Server("--config", CONFIG, "--policy", "open", "--head-timeout", "5s")
configure("pool = *:0-8\n")
keeper.start()
server.start()

# ---- none without a reason ----
same("the pool is empty at first", [], pools())
first = make().json["id"]
time.sleep(0.3)
same("one create makes no sandbox wait", 0, pool()["target"])
second = make().json["id"]
check("after two some wait", ready(2), pools())
kill(first), kill(second)

# ---- rules ----
same("a rule can be set", (200, {"template": "host", "min": 3, "max": 6}),
     (lambda a: (a.status, a.json))(server.ask("PUT", "/v1/pools/host", {"min": 3, "max": 6})))
check("a rule of the pool counts at once", ready(3), pools())
for body, field in (({"min": 3}, "max"), ({"min": 7, "max": 6}, "min"), ({"max": 1000}, "max"), ({"colour": 1}, "colour"),
                    ({"min": -1, "max": 3}, "min")):
    a = server.ask("PUT", "/v1/pools/host", body)
    same("a rule %s is refused" % json.dumps(body), (400, field), (a.status, a.error.get("field")))
same("a rule for an invalid template is refused", 404, server.ask("PUT", "/v1/pools/No%20Name", {"max": 1}).status)
same("what was never set cannot be unset", 404, server.ask("DELETE", "/v1/pools/other").status)
for method, path, body in (("GET", "/v1/pools", None), ("PUT", "/v1/pools/host", {"max": 1}), ("DELETE", "/v1/pools/host", None)):
    same("%s is not for other tenants' admins" % method, 403, server.ask(method, path, body, key=SMALL).status)


def listed():
    return [(p["template"], p["ready"], p["min"], p["max"]) for p in json.loads(cove("pool", "ls", "--json").stdout) if p["target"]]


check("cove pool says the same, soon", within(20, lambda: listed() == [("host", 3, 3, 6)]), listed())

# ---- nobody's ----
own = waiting()
same("what waits is in no list", (3, [], ""),
     (len(own), server.ask("GET", "/v1/sandboxes").json["sandboxes"], cove("ps", "-q").stdout))
one = min(own)
for verb in (("exec", one, "true"), ("pause", one), ("resume", one)):
    got = cove(*verb)
    check("no user can %s a sandbox that waits in the pool" % verb[0], got.returncode == 85 and "there is no sandbox" in got.stderr, got)
same("a tenant does not see a sandbox that waits in the pool", 404, server.ask("GET", "/v1/sandboxes/" + one).status)
pids = re.findall(r"running sandbox=(?:%s) .*pid=(\d+)" % "|".join(own), log_text())
if only("jail", "nothing runs in what waits but its PID 1", "PID 1 is the bridge, and the guest beside it"):
    same("a sandbox that waits in the pool has only its PID 1", [""] * 3, [open("/proc/%s/task/%s/children" % (p, p)).read() for p in pids])

# ---- taken ----
before = pool()
asked = {"name": "mine", "metadata": {"a": "b"}, "env": {"WHO": "me"}, "timeout": 100}
box = make(**asked).json
now = time.time()
same("a create takes one", before["hits"] + 1, pool()["hits"])
made_as = taken().get(box["id"])
check("the sandbox that a create takes waited in the pool before", made_as in own and made_as != box["id"], (made_as, own))
same("a sandbox from the pool has what the create asked for", ("mine", {"a": "b"}, "running", "strict"),
     tuple(box[k] for k in ("name", "metadata", "state", "profile")))
same("a sandbox from the pool has its name as host name everywhere", ["mine"] * 3,
     run(box["id"], "hostname; cat /proc/sys/kernel/hostname; uname -n").split())
same("a sandbox from the pool has the environment of the create", "me\n", run(box["id"], "echo $WHO"))
if only("jail", "what was taken from the pool is confined as any other", "drivers_test and vm_test look at the jail around a guest"):
    confined = subprocess.run([sys.executable, "tests/e2e/confined.py", "taken from the pool", box["id"], "listens", "landlock"], text=True,
                              env={**os.environ, "KEEPER_PID": str(keeper.p.pid), "BUILD": os.path.dirname(COVE), "COVE_STATE": STATE},
                              capture_output=True)
    print(confined.stdout, end="")
    check("a sandbox from the pool is confined like any other", confined.returncode == 0, confined)
same("the old id is nobody's", 404, server.ask("GET", "/v1/sandboxes/" + made_as).status)
check("a sandbox from the pool is as old as its create", server.ask("GET", "/v1/sandboxes/%s/stats" % box["id"]).json["uptime_ms"] <
      (time.time() - now) * 1000 + 1000, box)
check("the pool is filled again after a create", ready(3), pools())
kill(box["id"])
same("a sandbox from the pool can be killed", 404, server.ask("GET", "/v1/sandboxes/" + box["id"]).status)
cgroup = re.findall(r"taken sandbox=%s .*cgroup=(\S+)" % box["id"], log_text())[0]
check("a killed sandbox from the pool leaves no cgroup", within(5, lambda: not subprocess.run(["find", "/sys/fs/cgroup", "-name", cgroup],
                                                                    capture_output=True, text=True).stdout), cgroup)

# ---- others ----
server.ask("PUT", "/v1/pools/host", {"min": 3, "max": 3})
for what, body in (("another profile", {"root": True}), ("another size", {"limits": {"memory": "256m"}}),
                   ("other inodes", {"limits": {"inodes": 5000}})):
    hits = sum(p["hits"] for p in pools())
    other = make(**body).json
    same("%s does not get one" % what, (hits, True), (sum(p["hits"] for p in pools()), other["id"] not in taken()))
    kill(other["id"])


# ---- what can be seen ----
# Mounts in the order of their lines: that of the table is the order in which the child made /proc and the keeper, beside it, the root.
LOOK = r"""
env | grep -v '^_=' | sort; id; pwd; umask; ulimit -a; hostname
sed 's/^[0-9]* [0-9]* [0-9]*:[0-9]* //; s/loop[0-9]*/loop/; s,fd/[0-9]*,fd/N,g' /proc/self/mountinfo | sort
grep -E '^(Name|Umask|Uid|Gid|Groups|Cap|NoNew|Seccomp|Sig|Shd|Cpus|Mems)' /proc/1/status | grep -v SigQ
cat /proc/1/uid_map | awk '{ print $1, $3 }'; cat /proc/self/cgroup
ls -lan --time-style=+ / /dev /dev/pts /etc /tmp /home/* /proc/1 2>/dev/null | grep -vE ' (self|thread-self|[0-9]+) ?' | sed 's/->.*//'
ls -di / /dev /tmp | awk '{ print $2 }'
cat /etc/hostname /etc/hosts /etc/machine-id /etc/resolv.conf 2>/dev/null
ip -o addr 2>/dev/null; cat /proc/net/route; ls /proc/1/fd 2>&1 | wc -l
ps -eo pid,ppid,user,comm 2>/dev/null | grep -vE ' (ps|sh|bash|sed|grep|sort|awk)$'
df -P / /tmp /dev 2>/dev/null | awk '{ print $2, $3, $6 }'; cat /proc/self/limits; find / -xdev -newer /proc/1 -type f 2>/dev/null | head
dd if=/dev/zero of=/tmp/x bs=1k count=1 2>/dev/null; stat -c '%u %g %a %s' /tmp/x
"""


def posture(**body):
    box = make(**body).json
    seen = run(box["id"], LOOK).replace(box["id"], "ID")
    kill(box["id"])
    return box["id"] in taken(), seen.split("\n")


for root in (False, True):
    profile = "root" if root else "strict"
    server.ask("PUT", "/v1/pools/host", {"min": 0, "max": 0})
    ready(0, profile=profile)
    _, cold = posture(root=root)
    make(root=root), make(root=root)
    server.ask("PUT", "/v1/pools/host", {"min": 2, "max": 2})
    ready(2, profile=profile)
    was, warm = posture(root=root)
    check("profile %s: one was cold, the other was taken" % profile, was, pools())
    check("profile %s: there is much to compare" % profile, len(cold) > 100, cold)
    differs = [(a, b) for a, b in zip(cold, warm) if a != b] or [len(cold), len(warm)] * (len(cold) != len(warm))
    same("profile %s: from inside, there is no difference" % profile, [], differs)
    kill_all()

# ---- quota ----
ready(2)
boxes = [make(key=SMALL) for _ in range(3)]
same("a quota counts what was taken, and nothing that waits", [201, 201, 429], [b.status for b in boxes])
for b in boxes[:2]:
    server.ask("DELETE", "/v1/sandboxes/" + b.json["id"], key=SMALL)

# ---- a template made again ----
ready(2)
old = waiting()
manifest = STATE + "/templates/host/manifest"
with open(manifest, "a") as f:
    f.write("env=BUILD=two\n")
box = make().json["id"]
same("a template that was made again counts at once", "two\n", run(box, "echo $BUILD"))
check("sandboxes in the pool of an old template are ended", within(10, lambda: not (old & waiting())), old & waiting())
check("the pool is filled with sandboxes of the new template", within(20, lambda: len(waiting() - old - {box}) >= 2) and ready(2), pools())
box2 = make().json["id"]
check("the next create takes a sandbox of the new template", box2 in taken() and run(box2, "echo $BUILD") == "two\n", box2)
kill_all()

# ---- a crowd ----
server.ask("PUT", "/v1/pools/host", {"min": 8, "max": 16})
ready(8)
before, answers = pool(), []


together(100, lambda: answers.append(make()))
ids = [a.json["id"] for a in answers if a.status == 201]
after = pool()
same("a hundred at once all work", (100, 100), (len(ids), len(set(ids))))
same("each was taken or made", 100, after["hits"] + after["misses"] - before["hits"] - before["misses"])
check("some were taken", after["hits"] - before["hits"] >= 8, after)
same("no two creates get the same sandbox of the pool", len(taken()), len(set(taken().values())))
same("sandboxes of a hundred creates at once have their own host names", ids[:100:20], [run(i, "hostname").strip() for i in ids[:100:20]])
check("the target follows, to its bound", within(5, lambda: pool()["target"] == 16), pools())
kill_all()

# ---- memory ----
BUDGET = 4 if ISOLATION == "jail" else 120  # for one to three of them
configure("pool = *:0-8\npool_memory = %dM\n" % BUDGET)
hup()
check("a smaller budget is a smaller target", within(10, lambda: pool()["target"] in (1, 2, 3)), pools())
check("sandboxes beyond the target of the pool end", within(10, lambda: all(p["ready"] == p["target"] for p in pools())), pools())
a = server.ask("GET", "/v1/pools").json
check("the pool keeps its memory budget", 0 < a["memory_bytes"] <= a["memory_limit_bytes"] == BUDGET << 20,
      (a["memory_bytes"], a["memory_limit_bytes"], [(p["ready"], p["target"]) for p in a["pools"]]))
configure("pool = *:0-8\n")
hup()
check("the pool grows again with a larger budget", ready(16), pools())

# ---- a server that ends, or is killed ----
for how in (signal.SIGTERM, signal.SIGKILL):
    kept = waiting()
    server.end(how)
    server.start()
    box = make().json["id"]
    check("what waits outlives a server that got %s" % how.name, taken().get(box) in kept, (box, kept))
    kill(box)


def storm(stop, done):
    """Creates with keys, each repeated until it is answered."""
    n = 0
    while not stop.is_set():
        n += 1
        key = "storm-%d-%d" % (threading.get_ident(), n)
        for _ in range(100):
            try:
                a = make(idempotency_key=key)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
                continue
            if a.status in (200, 201):
                done.append((key, a.json["id"]))
                break
            time.sleep(0.05)
        time.sleep(0.02)


def keeper_has():
    return sorted(cove("ps", "-q").stdout.split())


def consistent(what):
    def settled():
        stored = sorted(b["id"] for b in server.ask("GET", "/v1/sandboxes?limit=200").json["sandboxes"] if b["state"] == "running")
        return stored == keeper_has()
    check("%s: the server has what the keeper has" % what, within(10, settled),
          (len(keeper_has()), server.ask("GET", "/v1/sandboxes?limit=200").json["sandboxes"]))


for what, victim in (("kill -9 of the server", server), ("kill -9 of the keeper", keeper)):
    stop, done = threading.Event(), []
    threads = [threading.Thread(target=storm, args=(stop, done)) for _ in range(3)]
    [t.start() for t in threads]
    for wait in (0.05, 0.1, 0.17, 0.23):
        time.sleep(wait)
        victim.end(signal.SIGKILL)
        victim.start()
    check("%s: creates continue" % what, within(60, lambda: len(done) > 8), done)
    stop.set()
    [t.join() for t in threads]
    same("%s: each key has a sandbox of its own" % what, len({k for k, _ in done}), len({i for _, i in done}))
    same("%s: no two got the same" % what, len(taken()), len(set(taken().values())))
    consistent(what)
    check("%s: the pool is full again, and not fuller" % what,
          within(15, lambda: all(p["ready"] == p["target"] for p in pools())), pools())
    kill_all()

# ---- off ----
server.ask("DELETE", "/v1/pools/host")
configure("pool = off\n")
hup()
check("off ends them all", ready(0) and within(5, lambda: not waiting()), (pools(), waiting()))
box = make().json["id"]
check("creates continue without the pool", box not in taken() and run(box, "echo hi") == "hi\n", box)
kill(box)
configure("pool = host:2-2\n")
hup()
ready(2)
server.end()
def direct(*args):  # without a server
    return subprocess.run([os.path.join(os.path.dirname(COVE), "direct/cove"), "--state", STATE, *args], capture_output=True, text=True)


ended = subprocess.run([COVE, "--state", STATE, "kill", "--keeper", *waiting()], capture_output=True, text=True)
same("what waits can be ended without a server", (0, "", set()), (ended.returncode, ended.stderr, waiting()))
records = direct("audit", "export").stdout
check("changes of rules are in the audit log", "pool.set" in records and "pool.unset" in records, records[:200])
keeper.end()
finish()
