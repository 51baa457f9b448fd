"""Verdicts: CPU time of a whole command, out of memory before timeouts, and none of it by the neighbours. Run by verdict_test."""
import subprocess
import threading

from harness import ISOLATION, SLOW, Server, check, finish, only, same, within

server = Server("--policy", "open").start()

BURN = """
import os, sys, time
def burn(s):
    until = time.process_time() + s
    while time.process_time() < until:
        pass
"""

LIMIT = max(1, SLOW // 2)  # of processor time, for work that takes longer on an emulated processor: to start Python takes a second there
# A command may use more than its limit until it is ended. In a guest the server looks at the time of the host's cgroup, and a guest that has
# little of a busy host's processors hears the server late. At ten times the limit the guest's own agent ends the command (PATIENCE of
# agent/proc/cpu.c).
TIMES = (4, 2) if ISOLATION == "jail" else (10, 10)

# Each uses more than a second of processor time, and none of them in one process alone.
MANY = {
    "one process": "burn(60)",
    "threads": "import threading\n[threading.Thread(target=burn, args=(60,)).start() for i in range(3)]",
    "children at once": "[burn(60) for i in range(4) if os.fork() == 0]\nwhile True: os.wait()",
    "children one after the other, reaped": "while True:\n  if os.fork() == 0: burn(.1); os._exit(0)\n  os.wait()",
    "daemons, forked twice, with sessions of their own":
        "for i in range(3):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: burn(60)\n    os._exit(0)\n  os.wait()\n"
        "time.sleep(60)",
    "children that nobody waits for":
        "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "while True:\n  if os.fork() == 0: burn(.02); os._exit(0)\n  time.sleep(.01)",
}


def create(**body):
    a = server.ask("POST", "/v1/sandboxes", {"timeout": 900, "limits": {"cpus": 2, "memory": "256m"}, **body})
    if a.status != 201:
        a = server.ask("POST", "/v1/sandboxes", {"timeout": 900, "limits": {"memory": "256m"}, **body})
    same("a sandbox is made", 201, a.status)
    return a.json["id"]


def run(box, code, **body):
    a = server.ask("POST", "/v1/sandboxes/%s/exec" % box, {"args": ["/usr/bin/python3", "-c", BURN + code], **body}, timeout=120)
    return a.json if a.status == 200 else {"exit_reason": "%d %s" % (a.status, a.body), "cpu_ms": -1, "exit_code": -1, "wall_ms": -1}


box = create()
for name, code in MANY.items():
    a = run(box, code, cpu_timeout=1, timeout=50)
    same("CPU time is limited: %s" % name, "cpu_timeout", a["exit_reason"])
    same("a limit of CPU time ends with the exit code of a timeout: %s" % name, 124, a["exit_code"])
    check("the CPU time of a limited command is told: %s" % name, 1000 <= a["cpu_ms"] < 1000 * TIMES[0], a)
    check("nothing of a command over its CPU time continues: %s" % name, within(10, lambda: run(
        box, "print(sum(open('/proc/%s/comm' % p).read().startswith('python') for p in os.listdir('/proc') if p.isdigit()))"
    )["stdout"].strip() == "1"))

a = run(box, "time.sleep(1.5)", cpu_timeout=.5)
same("a command that waits is not at its limit of CPU time", ("exit", 0), (a["exit_reason"], a["exit_code"]))
a = run(box, "burn(.3)", cpu_timeout=.1)
same("a command that ends by itself over the limit is over the limit", "cpu_timeout", a["exit_reason"])
a = run(box, "burn(60)", cpu_timeout=30, timeout=.5)
same("the wall clock ends what it ended before", "timeout", a["exit_reason"])
a = run(box, "os.write(1, b'x')\nfor i in range(3000): os.write(1, bytes(65536))", cpu_timeout=5 * LIMIT, output_limit=1)
same("what the agent works for an output is not the command's time", "exit", a["exit_reason"])

# Two commands in one sandbox: each has a time of its own.
busy = threading.Thread(target=run, args=(box, "burn(3)"))
busy.start()
a = run(box, "time.sleep(3)\nburn(.2)", cpu_timeout=1)
same("a command beside it does not count", "exit", a["exit_reason"])
busy.join()

a = server.ask("POST", "/v1/sandboxes/%s/processes" % box, {"args": ["/usr/bin/python3", "-c", BURN + "burn(60)"], "cpu_timeout": .5})
same("a process in the background can have a limit of CPU time", 201, a.status)
at = "/v1/sandboxes/%s/processes/%d" % (box, a.json["proc"])
check("a process in the background ends by its CPU limit", within(20, lambda: server.ask("GET", at).json.get("ended") == "cpu_timeout"
                               or server.ask("GET", at).json.get("exit_reason") == "cpu_timeout"), server.ask("GET", at).body)

for bad in (0, -1, "1", 1e9):
    a = server.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "true", "cpu_timeout": bad})
    same("an invalid cpu_timeout is refused: %r" % bad, (400, "cpu_timeout"), (a.status, a.json["error"].get("field")))

a = server.ask("POST", "/bash", {"command": "while :; do :; done", "cpu_timeout": 300}, timeout=60)
same("a tool's command has it in milliseconds", "cpu_timeout", a.json.get("exit_reason"))

# ---- memory ----
MUCH = "x = bytearray(10**10)" if ISOLATION == "gvisor" else "x = []\\nwhile True: x.append(bytearray(1 << 20))"  # as in verdict_test
BOMB = "import subprocess\nsubprocess.run([sys.executable, '-c', '%s'])\n" % MUCH
a = run(box, BOMB + "time.sleep(60)", timeout=4 + SLOW)
same("out of memory wins over the timeout that follows", ("oom", 137), (a["exit_reason"], a["exit_code"]))
if only("jail vm", "a sandbox continues behind a command that ran out of memory", "gVisor's memory is one: the sandbox ends"):
    a = run(box, BOMB + "burn(600)", cpu_timeout=LIMIT, timeout=100)
    same("out of memory wins over the CPU time that follows", "oom", a["exit_reason"])
    a = server.ask("GET", "/v1/sandboxes/%s/stats" % box)
    check("a sandbox's stats count what ran out of memory", a.status == 200 and a.json["oom_kills"] >= 2, a.body)
    a = run(box, "burn(60)", timeout=.3)
    same("a timeout after it is a timeout again", "timeout", a["exit_reason"])

root = create(root=True)
a = server.ask("POST", "/v1/sandboxes/%s/exec" % root,
               {"args": ["sudo", "/usr/bin/python3", "-c", BURN + "burn(60)"], "cpu_timeout": 1, "timeout": 50}, timeout=120)
same("what sudo starts counts", "cpu_timeout", a.json["exit_reason"])

# ---- beside busy neighbours ----
# Work that does not look at a clock: the same work takes the same processor time, also by the clock of a guest's kernel.
def work(steps):
    return "n = 0\nfor i in range(%d): n += i" % steps


mine = create()
steps = 100000
while run(mine, work(steps), cpu_timeout=60)["cpu_ms"] < (400 if LIMIT == 1 else 200 * LIMIT) and steps < 10**9:
    steps = steps * 3 // 2
server.ask("DELETE", "/v1/sandboxes/" + mine)

loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for i in range(4)]
ends = []


def judge(code, want):
    mine = create()
    got = run(mine, code, cpu_timeout=LIMIT, timeout=100)
    ends.append((got["exit_reason"], want, got["cpu_ms"], code))
    server.ask("DELETE", "/v1/sandboxes/" + mine)


try:
    threads = [threading.Thread(target=judge, args=case) for case in [(work(steps), "exit"), ("burn(60)", "cpu_timeout")] * 3]
    [t.start() for t in threads]
    [t.join() for t in threads]
finally:
    [p.kill() for p in loops]
    [p.wait() for p in loops]
same("beside busy loops every verdict is as alone", [], [e for e in ends if e[0] != e[1]])
check("beside busy loops the CPU time of a command that is ended is as alone", all(e[2] < 1000 * LIMIT * TIMES[1] for e in ends), ends)

server.end()
finish()
