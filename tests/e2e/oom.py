"""A sandbox that ends as a whole for want of memory: every surface says so of the commands in it. Run by oom_test."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from urllib.parse import quote

import harness
from harness import ask, check, must, run, same, within
from e2b_wire import Box as Envd
from e2b_wire import Result
from wsclient import WebSocket

COVE = os.environ["COVE"]
ISOLATIONS = sys.argv[1:]
MUCH = {"jail": "x = []\nwhile True: x.append(bytearray(1 << 20))", "gvisor": "x = bytearray(10**10)"}  # as in verdict_test
MANY = """until [ -e /tmp/go ]; do sleep 0.1; done
for i in 1 2 3 4 5 6 7 8 9; do /usr/bin/python3 -c 'x = b"x" * (40 << 20); import time; time.sleep(900)' & done; wait"""
TOLD = "the sandbox ran out of memory"


def direct(*args):
    subprocess.run([COVE, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Box:
    def __init__(self, isolation):
        a = ask("POST", "/v1/sandboxes", {"isolation": isolation, "timeout": 900, "limits": {"memory": "256m"}})
        must("a sandbox is made", a.status == 201, a.body)
        self.id, self.isolation = a.json["id"], isolation
        self.at = "/v1/sandboxes/" + self.id
        self.token = ask("GET", "/sandboxes/" + self.id).json["envdAccessToken"]

    def bomb(self):
        """A command that takes all memory."""
        return "/usr/bin/python3 -c '%s'" % MUCH[self.isolation].replace("'", '"')

    def kills(self):
        a = ask("GET", self.at + "/stats")
        return a.status == 200 and a.json["oom_kills"] > 0

    def files(self):
        a = ask("POST", self.at + "/exec", {"command": "ls /tmp"})
        return a.json["stdout"].split() if a.status == 200 else []

    def row(self):
        """What the keeper has of it, or nothing."""
        text = subprocess.run([COVE, "ps", "--json"], capture_output=True, text=True).stdout
        return next((s for s in json.loads(text or "[]") if s["id"] == self.id), None)

    def end(self):
        """The whole sandbox, for want of memory; without the server. What the kernel kills in a jail is its choice, and the agent is
        the last one: the host makes the agent the first choice here, before the processes of 40 MiB each that have begun already. A
        sandbox with gVisor ends by itself: its memory is one process."""
        if self.isolation != "jail":
            direct("exec", "-d", self.id, "--", "sh", "-c", self.bomb())
        else:
            direct("exec", "-d", self.id, "--", "sh", "-c", MANY)
            with open("/proc/%d/oom_score_adj" % self.row()["pid"], "w") as score:
                score.write("1000")
            direct("exec", self.id, "--", "touch", "/tmp/go")
        return within(60, lambda: self.row() is None)


# ---- the surfaces: a command, or a cell's code, and what they say of its end ----
def v1_exec(box, command):
    a = ask("POST", box.at + "/exec", {"command": command}, timeout=300)
    return (a.json or {}).get("exit_reason") or a.body


def v1_stream(box, command):
    a = ask("POST", box.at + "/exec", {"command": command}, headers={"Accept": "application/x-ndjson"}, timeout=300)
    last = json.loads(a.body.splitlines()[-1])
    return last.get("exit_reason") or last


def last_text(ws):
    """The message that ends a WebSocket's process."""
    last = None
    while True:
        op, data = ws.next()
        if op == 8:
            return last
        if op == 1:
            last = json.loads(data)
            if last["type"] in ("end", "error"):
                return last.get("exit_reason") or last


def v1_session(box, command):
    ws = WebSocket(harness.server, "/v1/session", 300)
    ws.send(1, json.dumps({"sandbox": box.id, "process": {"command": command}}).encode())
    return last_text(ws)


def v1_terminal(box, command):
    ws = WebSocket(harness.server, box.at + "/terminal?command=" + quote(command, safe=""), 300)
    return last_text(ws)


def envd(box):
    e = Envd.__new__(Envd)
    e.form, e.user, e.id, e.token = "js", None, box.id, box.token
    return e


def told(text):
    return "oom" if TOLD in text else text


def e2b_start(box, command):
    return told(str(Result(envd(box).start(command)).exit))


def e2b_connect(box, command):
    """Another client, which attaches to the process."""
    stream = envd(box).start(command)
    pid = stream.next()["event"]["start"]["pid"]
    other = Result(envd(box).stream("Connect", {"process": {"pid": pid}}))
    stream.close()
    return told(str(other.exit))


def cell(box, command):
    code = "import subprocess; subprocess.run(%r, shell=True)" % command if "begun" in command else MUCH[box.isolation]
    headers = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49999", "Content-Type": "application/json",
               "X-Access-Token": box.token}
    a = ask("POST", "/execute", {"code": code}, headers=headers, timeout=300)
    events = [json.loads(line) for line in a.body.splitlines()]
    said = next((e["value"] for e in events if e["type"] == "error"), str(events))
    return "oom" if "(oom 137)" in said and events[-1]["type"] == "end_of_execution" else said


def bash(box, command):
    a = ask("POST", "/bash", {"command": command, "sandbox_id": box.id, "timeout": 600000}, timeout=300)
    return (a.json or {}).get("exit_reason") or a.body


def mcp(box, command):
    a = ask("POST", "/mcp?sandbox=" + box.id, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "bash", "arguments": {
        "command": command, "timeout": 600000}}}, headers={"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
        timeout=300)
    result = (a.json or {}).get("result") or {}
    return told(str(result)) if result.get("isError") else a.body


SURFACES = {"POST exec": v1_exec, "a stream of exec": v1_stream, "a session": v1_session, "a terminal": v1_terminal,
            "E2B's Start": e2b_start, "E2B's Connect": e2b_connect, "a cell of the interpreter": cell, "the tool bash": bash, "MCP's bash": mcp}


@contextlib.contextmanager
def busy():
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=harness.end_with_us) for _ in range(4)]
    try:
        yield
    finally:
        [p.kill() for p in loops]
        [p.wait() for p in loops]


def follow(box, surfaces):
    """Each surface follows a command that waits. Returns what collects their answers, when all commands run."""
    answers = {}

    def one(i, name):
        try:
            answers[name] = surfaces[name](box, "touch /tmp/begun.%d; sleep 900" % i)
        except Exception as e:  # an answer like another, and a wrong one
            answers[name] = repr(e)
    threads = [threading.Thread(target=one, args=case) for case in enumerate(surfaces)]
    [t.start() for t in threads]
    begun = {"begun.%d" % i for i in range(len(surfaces))}
    must("the commands of all surfaces run", within(60, lambda: begun <= set(box.files())), (box.files(), answers))

    def collect():
        [t.join(300) for t in threads]
        return answers
    return collect


def whole():
    for isolation in ISOLATIONS:
        with busy():
            box = Box(isolation)
            collect = follow(box, SURFACES)
            check("%s: a sandbox ends for want of memory" % isolation, box.end(), box.row())
            for name, said in collect().items():
                same("%s, beside busy loops: %s says oom when the whole sandbox ends by it" % (isolation, name), "oom", said)


def bombs():
    for isolation in ISOLATIONS:
        with busy():
            for name, surface in SURFACES.items():
                if name == "E2B's Connect":  # the process may be gone before
                    continue
                box = Box(isolation)
                same("%s, beside busy loops: %s says oom of a memory bomb" % (isolation, name), "oom", surface(box, box.bomb()))
                ask("DELETE", box.at)


def late():
    """The server comes to its verdict only when the keeper has removed the sandbox."""
    for isolation in ISOLATIONS:
        box = Box(isolation)
        collect = follow(box, SURFACES)
        os.kill(harness.server.p.pid, signal.SIGSTOP)
        try:
            check("%s: a sandbox is gone while the server is stopped" % isolation, box.end(), box.row())
        finally:
            os.kill(harness.server.p.pid, signal.SIGCONT)
        for name, said in collect().items():
            same("%s: %s says oom of a sandbox that is gone already" % (isolation, name), "oom", said)


def timeouts():
    """The agent says timeout of a command; then its sandbox is gone for want of memory, before the server looks."""
    box = Box("jail")
    answer = []
    command = "touch /tmp/begun.0; exec sleep 900"
    t = threading.Thread(target=lambda: answer.append(ask("POST", box.at + "/exec", {"command": command, "timeout": 15}, timeout=300)))
    t.start()
    must("a command with a timeout runs", within(60, lambda: "begun.0" in box.files()))
    os.kill(harness.server.p.pid, signal.SIGSTOP)
    try:
        check("a command is ended at its timeout while the server is stopped", within(60, lambda: subprocess.run(
            [COVE, "exec", box.id, "--", "pgrep", "-x", "sleep"], stdout=subprocess.DEVNULL).returncode == 1))
        check("a sandbox with a command at its timeout is gone", box.end(), box.row())
    finally:
        os.kill(harness.server.p.pid, signal.SIGCONT)
    t.join(300)
    same("out of memory wins over the timeout also when the sandbox is gone", "oom", answer and (answer[0].json or {}).get("exit_reason"))


def others():
    """Ends that are not for want of memory are told as before."""
    box = Box("jail")
    collect = follow(box, {"E2B's Start": e2b_start, "POST exec": v1_exec, "a session": v1_session})
    ask("DELETE", box.at)
    for name, said in collect().items():
        check("%s: a sandbox that is killed did not run out of memory" % name, "oom" != said and TOLD not in str(said), said)


def outlived():
    """A command that was killed for want of memory says nothing of a later end of the sandbox."""
    box = Box("jail")
    same("a command runs out of memory in a sandbox that lives on", "oom", v1_exec(box, box.bomb()))
    collect = follow(box, {"E2B's Start": e2b_start, "POST exec": v1_exec, "a session": v1_session})
    os.kill(box.row()["pid"], signal.SIGKILL)
    check("a sandbox whose agent is killed is gone", within(60, lambda: box.row() is None), box.row())
    for name, said in collect().items():
        check("%s: a sandbox whose agent was killed did not run out of memory" % name, "oom" != said and TOLD not in str(said), said)


def saved():
    """A save ends the streams, and not the commands: also where something ran out of memory before."""
    for isolation in ISOLATIONS:
        box = Box(isolation)
        collect = follow(box, {"POST exec": v1_exec, "a session": v1_session})
        if isolation == "jail":
            ask("POST", box.at + "/exec", {"command": box.bomb()}, timeout=300)
            check("jail: a command beside others runs out of memory", box.kills())
        a = ask("POST", box.at + "/snapshots", {}, timeout=300)
        if a.status != 201:  # a host without CRIU
            harness.skip("%s: commands whose stream a save ends" % isolation, a.body)
            ask("DELETE", box.at)
            collect()
            continue
        for name, said in collect().items():
            check("%s: %s of a command whose stream a save ends is told so" % (isolation, name), "unavailable" in str(said), said)
        same("%s: a command whose stream a save ends continues" % isolation, "2\n",
             ask("POST", box.at + "/exec", {"command": "pgrep -cxf 'sleep 900'"}).json["stdout"])
        ask("DELETE", box.at)
        ask("DELETE", "/v1/snapshots/" + a.json["id"])


run(whole, bombs, late, timeouts, others, outlived, saved, settings=("--policy", "open"))
