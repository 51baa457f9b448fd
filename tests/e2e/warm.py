"""Sandboxes of a template with a memory image, over HTTP. Run by warm_test. The template host
has an image for E2B's sandboxes: a server that counts at port 8123, and a kernel with slow.py imported."""
import json
import os
import re
import subprocess
import time

from harness import STATE, ask, check, run, same, server, within

COUNT = 'python3 -c \'import socket; print(socket.create_connection(("127.0.0.1", 8123)).recv(9).decode().strip())\''


class Box:
    def __init__(self, **create):
        a = ask("POST", "/v2/sandboxes", {"templateID": "host", "timeout": 600, **create},
                headers={"Content-Type": "application/json"})
        assert a.status == 201, a.body
        self.id, self.token = a.json["sandboxID"], a.json.get("envdAccessToken")

    def headers(self):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "Content-Type": "application/json",
                "X-Access-Token": self.token or ""}

    def cell(self, code, **more):
        events = map(json.loads, ask("POST", "/execute", {"code": code, **more}, headers=self.headers()).body.splitlines())
        return "".join(e.get("text") or e.get("value") or "" for e in events if e["type"] in ("result", "error"))

    def said(self, command):
        a = ask("POST", "/v1/sandboxes/%s/exec" % self.id, {"command": command})
        return a.json["stdout"].strip()

    def kernels(self):
        a = ask("GET", "/v1/sandboxes/%s/processes" % self.id)
        return [p for p in a.json["processes"] if "kernel.py" in " ".join(p["args"])]

    def kill(self):
        ask("DELETE", "/sandboxes/" + self.id)


def cells():
    a, b = Box(envVars={"MINE": "a"}), Box(envVars={"MINE": "b"})
    same("the kernel of a warm sandbox has imported already", "True", a.cell("import sys; 'slow' in sys.modules"))
    same("the imports of a warm kernel put no name anywhere", "[]", b.cell("[n for n in ('slow', 'decimal', 'json') if n in globals()]"))
    same("the first cell is cell 1", "1", a.cell("len(In) - 2"))
    same("a warm kernel has the sandbox's environment", "a b",
         a.cell("import os; os.environ['MINE']") + " " + b.cell("import os; os.environ['MINE']"))
    a.cell("os.environ['MINE'] = 'changed'")
    server.kill()
    server.start()
    same("a warm kernel gets the environment once, not again from a server that came after", "changed", a.cell("os.environ['MINE']"))
    draw = "import random; random.random()"
    check("two do not draw the same", a.cell(draw) != b.cell(draw))
    same("a warm kernel is root's, as kernels of E2B's sandboxes are", "0", a.cell("__import__('os').geteuid()"))
    same("cells share the kernel that was there", 1, len(a.kernels()))
    own = a.cell("import os; os.getpid()")
    ask("POST", "/contexts/%s/restart" % contexts(a)["python"], headers=a.headers())
    check("a restart ends the warm kernel", a.cell("import os; os.getpid()") != own)
    same("a restarted kernel has what every kernel has", "a False", a.cell("os.environ['MINE']") + " " +
         a.cell("import sys; 'slow' in sys.modules"))
    fork = json.loads(ask("POST", "/contexts/%s/fork" % contexts(b)["python"], headers=b.headers()).body)
    same("a warm kernel can be forked", "b", b.cell("os.environ['MINE']", context_id=fork["id"]))
    for box in (a, b):
        box.kill()


def contexts(box):
    return {c["language"]: c["id"] for c in ask("GET", "/contexts", headers=box.headers()).json}


def first():
    box = Box(envVars={})
    same("the first cell of a warm sandbox does not wait for imports", "(True, 1)",
         box.cell("import sys; was = 'slow' in sys.modules; import slow; (was, slow.loaded)"))
    check("the start command of a warm sandbox is up", box.said(COUNT).isdigit())
    fork = ask("POST", "/contexts/%s/fork" % contexts(box)["python"], headers=box.headers())
    same("a warm kernel is a context like any other", 200, fork.status)
    box.kill()


def plain():
    """/v1 presets are not what the image was made with."""
    a = ask("POST", "/v1/sandboxes", {"timeout": 600})
    same("a sandbox of other limits is made without", 201, a.status)
    at = "/v1/sandboxes/" + a.json["id"]
    for _ in range(300):
        out = ask("POST", at + "/exec", {"command": COUNT}).json["stdout"].strip()
        if out:
            break
        time.sleep(0.1)
    check("a sandbox that does not come out of the image runs the start command", out.isdigit(), out)
    ask("DELETE", at)
    a = ask("POST", "/v1/sandboxes", {"timeout": 600, "root": True, "limits": {"cpus": 2}, "name": "one",
                                      "env": {"A": "b"}, "metadata": {"k": "v"}})
    same("a sandbox of the same limits has name, metadata and profile of the create", ("one", {"k": "v"}, "sudo"),
         (a.json["name"], a.json["metadata"], a.json["profile"] if a.json["profile"] != "root" else "sudo"))
    at = "/v1/sandboxes/" + a.json["id"]
    same("commands of a warm sandbox have the environment of the create", "b",
         ask("POST", at + "/exec", {"command": "echo $A"}).json["stdout"].strip())
    same("a sandbox of the same limits came out of the image", "why=fork",
         ask("POST", at + "/exec", {"command": "grep why /run/cove/resumed"}).json["stdout"].strip())
    ask("DELETE", at)


def pool(warm=True):
    for p in ask("GET", "/v1/pools").json["pools"]:
        if p["template"] == "host" and p["warm"] == warm and p["profile"] == "root":
            return p
    return {"ready": 0, "target": 0, "hits": 0, "misses": 0}


def keeper_said(pattern):
    with open(os.environ["KEEPER_LOG"], errors="replace") as f:
        return re.findall(pattern, f.read())


def waiting():
    """Ids and pids of those that came out of the image, and are neither taken nor gone."""
    gone = set(keeper_said(r"made_as=(\w+)")) | set(keeper_said(r"(?:stop|gone|lost) sandbox=(\w+)"))
    return {i: pid for i, pid in keeper_said(r"running sandbox=(\w+) .*pid=(\d+) .*profile=root") if i not in gone}


def still(pid):
    """Frozen: on version 1 in 'D', on version 2 its cgroup says so."""
    with open("/proc/%s/stat" % pid) as f:
        if f.read().rsplit(")", 1)[1].split()[0] == "D":
            return True
    with open("/proc/%s/cgroup" % pid) as f:
        path = re.search(r"^0::(.+)$", f.read(), re.M)
    try:
        return path and "frozen 1" in open("/sys/fs/cgroup%s/cgroup.events" % path[1]).read()
    except OSError:
        return False


def pooled():
    same("a rule of a template is one of its image", 200, ask("PUT", "/v1/pools/host", {"min": 2, "max": 2}).status)
    check("sandboxes out of the image wait in the pool, without any demand", within(20, lambda: pool()["ready"] == 2), ask("GET", "/v1/pools").body)
    same("no sandboxes without the image wait in the pool", 0, pool(False)["ready"])
    check("memory of sandboxes out of the image is counted", ask("GET", "/v1/pools").json["memory_bytes"] > 2 * (4 << 20), ask("GET", "/v1/pools").body)
    check("sandboxes out of the image stand still in the pool", within(20, lambda: all(still(pid) for pid in waiting().values())) and len(waiting()) == 2, waiting())
    for how in (("exec", "true"), ("resume",)):
        got = subprocess.run([os.environ["COVE"], "--state", STATE, how[0], min(waiting()), *how[1:]], capture_output=True, text=True)
        check("no user can %s a sandbox that waits in the pool" % how[0], "is in the pool" in got.stderr, got)
    begun = time.time()
    made, a = set(waiting()), Box(envVars={"MINE": "a"})
    server.kill()  # the next is taken from the keeper's pool that another server finds
    server.start()
    within(20, lambda: pool()["ready"] == 2)
    b = Box(envVars={"MINE": "b"})
    taken = [keeper_said(r"taken sandbox=%s .*made_as=(\w+)" % x.id) for x in (a, b)]
    check("creates take them, also after kill -9 of the server", all(taken), taken)
    check("the sandboxes that creates take were made before", set(taken[0]) <= made, (taken, made))
    same("sandboxes out of the pool have their own names", [a.id, b.id], [x.said("hostname") for x in (a, b)])
    same("sandboxes out of the pool have their own environment", "a b", " ".join(x.cell("import os; os.environ['MINE']") for x in (a, b)))
    same("what was imported is", "True", a.cell("import sys; 'slow' in sys.modules"))
    check("servers in sandboxes out of the pool are up", all(x.said(COUNT).isdigit() for x in (a, b)))
    check("two sandboxes out of the pool do not draw the same random number", len({x.cell("import random; random.random()") for x in (a, b)}) == 2)
    told = dict(line.split("=") for line in a.said("cat /run/cove/resumed").split())
    check("sandboxes out of the pool are told when they were taken", told["why"] == "fork" and float(told["at"]) >= begun - 0.01, (told, begun))
    same("sandboxes out of the pool have the limits that were asked for", "2", a.said("nproc"))
    a.kill(), b.kill()
    check("the pool is filled again after creates", within(20, lambda: pool()["ready"] == 2), pool())
    ask("DELETE", "/v1/pools/host")
    check("without the rule they go", within(20, lambda: not waiting()), waiting())


run(first, cells, plain, pooled)
