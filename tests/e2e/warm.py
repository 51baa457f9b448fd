"""Sandboxes of a template with a memory image, over HTTP. Run by warm_test: coved, state directory, log file. The template host
has an image for E2B's sandboxes: a server that counts at port 8123, and a kernel with slow.py imported."""
import http.client
import json
import time

from asking import ask, check, run, same, server

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
        c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        c.request("POST", "/execute", json.dumps({"code": code, **more}), self.headers())
        events = [json.loads(line) for line in c.getresponse().read().splitlines()]
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
    same("its kernel has imported already", "True", a.cell("import sys; 'slow' in sys.modules"))
    same("but put no name anywhere", "[]", b.cell("[n for n in ('slow', 'decimal', 'json') if n in globals()]"))
    same("the first cell is cell 1", "1", a.cell("len(In) - 2"))
    same("it has the sandbox's environment", "a b",
         a.cell("import os; os.environ['MINE']") + " " + b.cell("import os; os.environ['MINE']"))
    a.cell("os.environ['MINE'] = 'changed'")
    server.kill()
    server.start()
    same("which is given once, also by a server that came after", "changed", a.cell("os.environ['MINE']"))
    draw = "import random; random.random()"
    check("two do not draw the same", a.cell(draw) != b.cell(draw))
    same("cells share the kernel that was there", 1, len(a.kernels()))
    own = a.cell("import os; os.getpid()")
    ask("POST", "/contexts/%s/restart" % contexts(a)["python"], headers=a.headers())
    check("a restart ends it", a.cell("import os; os.getpid()") != own)
    same("and the next has what every kernel has", "a False", a.cell("os.environ['MINE']") + " " +
         a.cell("import sys; 'slow' in sys.modules"))
    fork = json.loads(ask("POST", "/contexts/%s/fork" % contexts(b)["python"], headers=b.headers()).body)
    same("it can be forked", "b", b.cell("os.environ['MINE']", context_id=fork["id"]))
    for box in (a, b):
        box.kill()


def contexts(box):
    return {c["language"]: c["id"] for c in ask("GET", "/contexts", headers=box.headers()).json}


def first():
    box = Box(envVars={})
    same("the first cell answers, without the time that its imports take", "(True, 1)",
         box.cell("import sys; was = 'slow' in sys.modules; import slow; (was, slow.loaded)"))
    check("its server is up", box.said(COUNT).isdigit())
    fork = ask("POST", "/contexts/%s/fork" % contexts(box)["python"], headers=box.headers())
    same("its kernel is a context like any other", 200, fork.status)
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
    check("and runs its start command then", out.isdigit(), out)
    ask("DELETE", at)
    a = ask("POST", "/v1/sandboxes", {"timeout": 600, "root": True, "limits": {"cpus": 2}, "name": "one",
                                      "env": {"A": "b"}, "metadata": {"k": "v"}})
    same("one of the same limits is the create's in all else", ("one", {"k": "v"}, "sudo"),
         (a.json["name"], a.json["metadata"], a.json["profile"] if a.json["profile"] != "root" else "sudo"))
    at = "/v1/sandboxes/" + a.json["id"]
    same("its commands have its environment", "b",
         ask("POST", at + "/exec", {"command": "echo $A"}).json["stdout"].strip())
    same("and it came out of the image", "why=fork",
         ask("POST", at + "/exec", {"command": "grep why /run/cove/resumed"}).json["stdout"].strip())
    ask("DELETE", at)


run(first, cells, plain)
