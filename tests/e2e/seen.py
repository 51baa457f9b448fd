"""What programs inside a sandbox see of their limits. Run by seen_test."""
import os
import shutil

from harness import ISOLATION, NO_SAVE, Server, check, finish, must, only, same, skip, within

server = Server("--policy", "open").start()
HALF = {"memory": "512m", "cpus": 0.5}


def create(**body):
    a = server.ask("POST", "/v1/sandboxes", {"timeout": 900, **body})
    same("a sandbox is made", 201, a.status)
    return a.json["id"]


def sh(box, command, **body):
    a = server.ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": command, **body}, timeout=60)
    return (a.json["stdout"] + a.json["stderr"]).strip() if a.status == 200 else a.body.decode()


# Cases that do not hold for every isolation: for which, and why not for the others.
ALL = ("jail gvisor vm", "")
MEMORY = ("jail gvisor", "the kernel of a virtual machine keeps some of its memory")
CORES = ("jail vm", "gVisor shows the host's processors")
FILES = ("jail", "a guest has its own kernel's files")

CASES = [
    # sentence, program it needs, command, memory in MiB and cores → what it says, for which isolations
    ("/proc/meminfo", None, "grep -E '^(MemTotal|SwapTotal):' /proc/meminfo | tr -s ' '", lambda m, c: "MemTotal: %d kB\nSwapTotal: 0 kB" % (m * 1024), MEMORY),
    ("free", "free", "free -m | awk 'NR == 2 { print $2 }'", lambda m, c: str(m), MEMORY),
    ("nproc", "nproc", "nproc", lambda m, c: str(c), CORES),
    ("/proc/cpuinfo", None, "grep -c ^processor /proc/cpuinfo", lambda m, c: str(c), CORES),
    ("/proc/stat", None, "grep -c '^cpu[0-9]' /proc/stat", lambda m, c: str(c), CORES),
    ("/sys/devices/system/cpu/online", None, "cat /sys/devices/system/cpu/online", lambda m, c: "0" if c == 1 else "0-%d" % (c - 1), CORES),
    ("cgroup files of version 2", None, "cat /sys/fs/cgroup/memory.max", lambda m, c: str(m << 20), FILES),
    ("python's cpu_count", "python3", "/usr/bin/python3 -c 'import os; print(os.cpu_count())'", lambda m, c: str(c), CORES),
    ("node's total memory", "node", "/usr/bin/node -p 'os.totalmem()'", lambda m, c: str(m << 20), MEMORY),
    ("node's processors", "node", "/usr/bin/node -p 'os.cpus().length'", lambda m, c: str(c), CORES),
    ("node's heap, which is less than its memory", "node",
     "/usr/bin/node -p 'v8.getHeapStatistics().heap_size_limit < %d'" % (520 << 20), lambda m, c: "true", ALL),
    ("java's heap and processors", "java",
     "java -XX:+PrintFlagsFinal -version 2>/dev/null | awk '/ MaxHeapSize / { print ($4 < %d ? \"less\" : $4) } / ActiveProcessorCount / { print $4 }' | sort" % (300 << 20),
     lambda m, c: "%d\nless" % c, CORES),
    ("python's process_cpu_count, from 3.13 on", None, "echo ${PYTHON_CPU_COUNT:-all}", lambda m, c: str(c) if c < os.cpu_count() else "all", FILES),
    ("Go's GOMAXPROCS", None, "echo ${GOMAXPROCS:-all}", lambda m, c: str(c) if c < os.cpu_count() else "all", FILES),
    # umoci is written in Go; a program that ends within a millisecond may end without the line.
    ("a Go program's processors", "umoci", "until GODEBUG=schedtrace=1 umoci --version 2>&1 | grep -om1 'gomaxprocs=[0-9]*'; do :; done",
     lambda m, c: "gomaxprocs=%d" % c, CORES),
]


def look(box, when, memory, cores):
    for name, program, command, want, where in CASES:
        if program and not shutil.which(program, path="/usr/bin:/bin"):
            skip("%s, %s" % (name, when), "needs %s" % program)
        elif only(where[0], "%s, %s" % (name, when), where[1]):
            same("%s, %s" % (name, when), want(memory, cores), sh(box, command))


box = create(limits=HALF)
look(box, "half a core and 512 MiB", 512, 1)
same("ps still knows when processes began", "1", sh(box, "ps -o lstart= -p 1 | grep -c 20[2-9][0-9]"))
same("what a command is given wins", "7", sh(box, "echo $GOMAXPROCS", env={"GOMAXPROCS": "7"}))
check("files of /proc that are made for a sandbox cannot be written", "ermission" in sh(box, "echo x > /proc/meminfo") or "ead-only" in sh(box, "echo x > /proc/meminfo"))
if only("jail", "tables of the kernel's, and files mounted over /proc", "a guest has a kernel of its own"):
    if os.access("/proc/sys/net/ipv4/tcp_child_ehash_entries", os.W_OK):
        same("a sandbox has a table of TCP connections of its own", "512", sh(box, "cat /proc/sys/net/ipv4/tcp_ehash_entries"))
    same("what waits in the table has bounds", "32768\n2048", sh(box, "cd /proc/sys/net/ipv4 && cat tcp_max_tw_buckets tcp_max_syn_backlog"))
    flags = sh(box, r"grep -E ' /proc/(meminfo|stat|cpuinfo) ' /proc/self/mountinfo | cut -d' ' -f6")
    same("each is read-only, nosuid, nodev, noexec", 3,
         sum(all(f in line.split(",") for f in ("ro", "nosuid", "nodev", "noexec")) for line in flags.splitlines()))

# What a user installs for himself is found, however a command is started.
sh(box, "mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho mine\\n' > ~/.local/bin/own-tool && chmod +x ~/.local/bin/own-tool")
for how, body in (("by a login shell", {"command": "own-tool"}), ("by its name alone", {"args": ["own-tool"]}),
                  ("by a shell that is none of login", {"args": ["sh", "-c", "own-tool"]})):
    a = server.ask("POST", "/v1/sandboxes/%s/exec" % box, body)
    same("~/.local/bin is on PATH: %s" % how, "mine\n", a.json.get("stdout"))

# Without a network a name does not exist: nothing is asked for again, and a tool's answer says why.
LOOK = """/usr/bin/python3 -c '
import socket
try: socket.getaddrinfo("www.example.com", 443)
except socket.gaierror as e: print(e.errno == socket.EAI_NONAME, e)'"""
check("without a network a look-up of a name is final", sh(box, LOOK).startswith("True"), sh(box, LOOK))
same("names of the sandbox itself are found", "127.0.1.1", sh(box, "getent hosts sandbox | cut -d' ' -f1"))
if shutil.which("pip", path="/usr/bin:/bin"):
    same("pip asks once more, and at once", "1", sh(box, "pip download --no-cache-dir no-such-thing 2>&1 | grep -c Retrying"))
if shutil.which("npm", path="/usr/bin:/bin"):
    same("npm waits a moment, not a minute", "100 1000", sh(box, "echo $(npm config get fetch-retry-mintimeout fetch-retry-maxtimeout | cut -d= -f2)"))
    sh(box, """mkdir -p /tmp/greet && cd /tmp/greet && printf '#!/usr/bin/env node\nconsole.log("hello")\n' > greet.js && chmod +x greet.js &&
        echo '{"name": "greet", "version": "1.0.0", "bin": {"greet": "greet.js"}}' > package.json""")
    said = sh(box, "npm install -g /tmp/greet 2>&1")
    same("npm install -g works, and its command is found", "hello", sh(box, "greet") if "added 1" in said else said)
a = server.ask("POST", "/bash", {"command": "curl -sS https://www.example.com/"})
told = (a.json or {}).get("network_refused") or [{}]
same("a tool's answer says that there is no network by policy", ("off", True), (told[0].get("rule"), "policy" in told[0].get("reason", "")))
same("a tool's answer says nothing of the network after a command that did not ask for one", None, server.ask("POST", "/bash", {"command": "echo hello"}).json.get("network_refused"))

# One that has such a file open, as top does, is saved and restored with it.
HOLD = """
import time
f, g, h = open("/proc/meminfo"), open("/proc/stat"), open("/proc/cpuinfo")
while True:
    for x in (f, g, h): x.seek(0)
    text = f.readline() + g.readline() + h.readline()
    open("/tmp/held.new", "w").write(text); __import__("os").rename("/tmp/held.new", "/tmp/held")
    time.sleep(.05)
"""
a = server.ask("POST", "/v1/sandboxes/%s/processes" % box, {"args": ["/usr/bin/python3", "-c", HOLD]})
same("a process has the files open", 201, a.status)


def held():
    """A word of it that was written just now."""
    sh(box, "rm -f /tmp/held")
    within(20, lambda: sh(box, "test -s /tmp/held && echo yes") == "yes")
    return sh(box, "head -n 2 /tmp/held | tr -s ' '")


WORD = "MemTotal: 524288 kB\ncpu 0 0 0 0 0 0 0 0 0 0"
if only("jail gvisor", "a process that has them open reads them", MEMORY[1]):
    same("a process holds the files of /proc open and reads them", WORD, held())
if os.environ["SAVES"] or ISOLATION == "jail":
    a = server.ask("POST", "/v1/sandboxes/%s/snapshots" % box, {"memory": False}, timeout=60)
    same("files alone are saved while a process holds /proc open", 201, a.status)

# ---- paused to disk, forked, from the pool, with other limits ----
a = server.ask("POST", "/v1/sandboxes/%s/pause" % box, {"tier": "disk"}, timeout=60)
if os.environ["SAVES"]:
    must("a sandbox is paused to disk", a.status == 200 and a.json.get("tier") == "disk", a.body)
    same("a sandbox is resumed from disk", 200, server.ask("POST", "/v1/sandboxes/%s/resume" % box, {}, timeout=60).status)
    look(box, "after a pause to disk", 512, 1)
    same("a process that had files of /proc open has them after a pause to disk", WORD, held())
    same("each is there once", "3", sh(box, r"grep -cE ' /proc/(meminfo|stat|cpuinfo) ' /proc/self/mountinfo"))
    a = server.ask("POST", "/v1/sandboxes/%s/fork" % box, {"count": 1}, timeout=60)
    copies = a.json.get("sandboxes") or a.json.get("forks") or []
    same("a sandbox is copied", 1, len(copies))
    look((copies[0].get("sandbox") or copies[0])["id"], "in a copy", 512, 1)
    snapshot = server.ask("POST", "/v1/sandboxes/%s/snapshots" % box, {}, timeout=60).json["id"]
    small = create(snapshot=snapshot, limits={"memory": "300m"})
    look(small, "of a snapshot, with less memory", 300, 1)
else:
    skip("pauses to disk", NO_SAVE)
server.end()

server = Server("--policy", "open", "--pool", "host:2-2").start()
check("a sandbox is made ahead", within(30, lambda: any(p["ready"] > 0 for p in server.ask("GET", "/v1/pools").json["pools"])))
look(create(), "from the pool", 512, 1)
server.end()
finish()
