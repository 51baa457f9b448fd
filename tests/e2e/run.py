"""POST /v1/run. Run by run_test."""
import base64
import json
import os
import subprocess
import threading

from harness import ISOLATION, STATE, Server, check, finish, only, same, within

KEY, READER = os.environ["KEY"], os.environ["READER"]
server = Server("--policy", "standard").start()


def run(key=None, **body):
    body.setdefault("timeout", 60)
    return server.ask("POST", "/v1/run", body, key=key, timeout=120)


def boxes(key=None):
    return server.ask("GET", "/v1/sandboxes", key=key).json["sandboxes"]


def alive():
    said = subprocess.run([os.environ["COVE"], "--state", STATE, "ps", "-q"], capture_output=True, text=True).stdout.split()
    return said


def none_left(sentence):
    check(sentence, within(20, lambda: not boxes() and not alive()), (boxes(), alive()))


PY = "/usr/bin/python3"
a = run(args=[PY, "-c", "import sys; print(sys.stdin.read().upper()); sys.stderr.write('e')"], stdin="hé", cpu_timeout=5)
same("a program runs with its input", (200, "HÉ\n", "e", 0, "exit"),
     (a.status, a.json.get("stdout"), a.json.get("stderr"), a.json.get("exit_code"), a.json.get("exit_reason")))
check("the accounting of a run is told", a.json["wall_ms"] > 0 and a.json["cpu_ms"] > 0 and a.json["peak_bytes"] > 1 << 20
      and a.json["memory_peak_bytes"] > 1 << 20 and len(a.json["sandbox"]) > 8, a.json)
none_left("the sandbox of a run is gone after the answer")

for language, code in (("python", "print(6*7)"), ("bash", "echo $((6*7))"), ("sh", "echo $((6*7))"), (None, "print(6*7)")):
    body = {"code": code, **({"language": language} if language else {})}
    same("code is run: %s" % language, "42\n", run(**body).json.get("stdout"))
a = run(command="cat in/a.txt in/b.bin /tmp/c > out; ./go >> out; wc -c < out", return_files=["out", "none", "in"],
        files={"in/a.txt": "text ü\n", "in/b.bin": {"data": base64.b64encode(b"\0\xff").decode(), "encoding": "base64"},
               "/tmp/c": "", "go": {"data": "#!/bin/sh\necho ran\n", "mode": "755"}})
same("files are there for the command", (200, "14\n"), (a.status, a.json.get("stdout")))
out, none, folder = a.json["files"]
same("a file that was asked for comes back", (14, False, "base64", b"text \xc3\xbc\n\0\xffran\n"),
     (out["size"], out["truncated"], out["data_encoding"], base64.b64decode(out["data"])))
check("a file that is not there is an error in its place", none["error"]["code"] == "not_found" or "No such" in none["error"]["message"], none)
check("a directory that was asked for as a file is an error in its place", "error" in folder, folder)
a = run(command="head -c 5000000 /dev/zero > big", return_files=["big", "big"], files_limit=1500000)
same("what is too large is cut, and told", [(5000000, True, 1500000), (5000000, True, 0)],
     [(f["size"], f["truncated"], len(f["data"])) for f in a.json["files"]])
a = run(command="echo $A; pwd; id -un", env={"A": "b"}, cwd="/tmp")
same("environment and directory are its own", ["b", "/tmp", "user"], a.json["stdout"].split())
a = run(command="id -un", root=True, user="root")
same("root of its own sandbox, if asked for", "root\n", a.json["stdout"])

# ---- the template that no caller names ----


def default():
    a = server.ask("POST", "/v1/sandboxes", {"timeout": 60}, timeout=120)
    server.ask("DELETE", "/v1/sandboxes/" + a.json.get("id", "none"), timeout=120)
    return a.json.get("template")


TEMPLATES = os.path.join(STATE, "templates")
before = default()
same("a sandbox has the default template", "host", before)
subprocess.run(["cp", "-a", os.path.join(TEMPLATES, before), os.path.join(TEMPLATES, ".base")], check=True)
os.rename(os.path.join(TEMPLATES, ".base"), os.path.join(TEMPLATES, "base"))
same("a template that is made meanwhile is the default of the next create", "base", default())
same("a run works with a default template that was made meanwhile", "a\n", run(command="echo a").json.get("stdout"))
subprocess.run(["rm", "-r", os.path.join(TEMPLATES, "base")], check=True)
same("a default template that is removed meanwhile is not that of the next create", "host", default())
same("a run works after its default template was removed", "b\n", run(command="echo b").json.get("stdout"))
none_left("no sandbox of another default template is left")

# ---- every limit, exceeded ----
# In steps: the kernel of a machine refuses one piece that is larger than all its memory. In gVisor a command may end with 1 then.
BOMB = "bytearray(10**10)" if ISOLATION == "gvisor" else "x = []\nwhile True: x.append(bytearray(1 << 20))"
for name, body, reason in (
        ("wall time", {"command": "sleep 60", "timeout": .5}, "timeout"),
        ("CPU time", {"command": "while :; do :; done", "cpu_timeout": .3}, "cpu_timeout"),
        ("memory", {"args": [PY, "-c", BOMB], "limits": {"memory": "64m"}}, "oom")):
    a = run(**body)
    same("limited: %s" % name, (200, reason), (a.status, a.json.get("exit_reason")))
if only("jail", "a peak of memory is told that is not more than the limit", "gVisor's sandbox has ended, and a machine has some memory beside its limit"):
    check("a peak of memory is told that is not more than the limit", 32 << 20 < a.json["memory_peak_bytes"] <= 64 << 20, a.json)
if only("jail vm", "limited: processes", "gVisor ends a sandbox with too many processes"):
    a = run(command="i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done; echo all", limits={"pids": 24}, timeout=20)
    check("limited: processes", "all" not in a.json["stdout"] and "fork" in a.json["stderr"], a.json)
a = run(command="head -c 19000000 /dev/zero > f; ls -s f >/dev/null; df . >/dev/null; exit 3", limits={"disk": "8m"})
check("limited: disk", "No space left" in a.json["stderr"], a.json)
if only("jail", "disks in memory, and templates that are built", "a guest's disk is an image, and builds need a jail"):
    a = run(command="df -P / | awk 'NR == 2 { print $2 }'; head -c 50000000 /dev/zero > f", limits={"memory": "64m"})
    check("without a limit of its own, the disk is half the memory", (a.json["stdout"], a.json["exit_reason"]) == ("32768\n", "exit")
          and "No space left" in a.json["stderr"], a.json)
    check("a disk without a limit of its own is in memory", a.json["memory_peak_bytes"] > 32 << 20, a.json)
    a = run(command="head -c 90000000 /dev/zero > f && sync f && echo whole", limits={"memory": "64m", "disk": "120m"})
    same("a larger disk is one of its own, and no memory", ("whole\n", "exit"), (a.json["stdout"], a.json["exit_reason"]))
    build = server.ask("POST", "/v1/builds", {"name": "filled", "from": "host", "steps": [{"type": "RUN", "args": ["head -c 40000000 /dev/zero > ~/f"]}]}).json
    check("a template with many files is built", within(60, lambda: server.ask("GET", "/v1/builds/" + build["id"]).json["state"] == "ready"), build)
    a = run(template="filled", command="wc -c < ~/f", limits={"memory": "64m"})
    same("a template with files of more than half the memory is run without a limit of the disk", (200, "40000000\n"), (a.status, a.json.get("stdout")))
    same("the template with many files is removed", 204, server.ask("DELETE", "/v1/templates/filled").status)
a = run(command="yes | head -c 3000000", output_limit=1000)
same("limited: output", (1000, True, 3000000), (len(a.json["stdout"]), a.json["stdout_truncated"], a.json["stdout_bytes"]))
for sentence, body, field in (
        ("nothing to run", {}, "command"), ("two things to run", {"command": "a", "code": "b"}, "command"),
        ("an unknown language", {"code": "a", "language": "cobol"}, "language"),
        ("a language without code", {"command": "a", "language": "python"}, "language"),
        ("code that is too long", {"code": "#" * 130000}, "code"),
        ("a file that is a number", {"command": "a", "files": {"x": 1}}, "files"),
        ("a file that is not base64", {"command": "a", "files": {"x": {"data": "?", "encoding": "base64"}}}, "files"),
        ("a file without data", {"command": "a", "files": {"x": {}}}, "files"),
        ("too many files", {"command": "a", "files": {str(i): "" for i in range(257)}}, "files"),
        ("a stdin that is no text", {"command": "a", "stdin": 1}, "stdin"),
        ("a field that does not exist", {"command": "a", "volumes": []}, "volumes"),
        ("an unknown stream", {"command": "a", "stream": "x"}, "stream"),
        ("a limit that is too large", {"command": "a", "limits": {"memory": "9999t"}}, "limits.memory"),
        ("a template that is not there", {"command": "a", "template": "nope"}, "template")):
    a = run(**body)
    check("refused: %s" % sentence, 400 <= a.status < 500 and a.json["error"].get("field") == field, a.body)
a = run(command="true", files={"/root/x": ""})
check("a file that may not be written is told", a.status in (403, 400) and "/root/x" in a.json["error"]["message"], a.body)
a = run(args=["/no/such"])
check("a program that is not there is told", a.status >= 400 and "exec /no/such" in a.json["error"]["message"], a.body)
a = run(command=":(){ :|:& };:")
same("the policy is asked", (403, "process.fork-bomb"), (a.status, a.json["error"].get("rule")))
same("a key that may only read is refused", 403, run(key=READER, command="true").status)
none_left("failed runs leave no sandbox")

# ---- streams ----
for stream in ("ndjson", "sse"):
    a = server.ask("POST", "/v1/run", {"command": "echo one; sleep .2; echo two >&2; echo x > f", "stream": stream,
                                       "return_files": ["f"], "timeout": 30})
    lines = [json.loads(line[6:] if stream == "sse" else line) for line in a.body.decode().splitlines()
             if (line.startswith("data: ") if stream == "sse" else line)]
    same("events come as %s" % stream, ["start", "stdout", "stderr", "end"], [e["type"] for e in lines])
    same("the last event has the accounting and the files: %s" % stream, (0, "exit", "x\n"),
         (lines[-1]["exit_code"], lines[-1]["exit_reason"], lines[-1]["files"][0]["data"]))
a = server.ask("POST", "/v1/run", {"command": "echo hi"}, headers={"Accept": "application/x-ndjson"})
check("events come by the header Accept", a.body.decode().splitlines()[0].startswith('{"type":"start"'), a.body)

# ---- whoever goes away takes it along ----
for stream in (None, "ndjson"):
    c = server.connect()
    body = json.dumps({"command": "sleep 300", "timeout": 400, **({"stream": stream} if stream else {})}).encode()
    c.sendall(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    check("a run has its sandbox: %s" % stream, within(20, lambda: len(boxes()) == 1))
    c.close()
    none_left("the client goes away, and so does the sandbox: %s" % stream)

# ---- quota ----
c = threading.Thread(target=run, args=(KEY,), kwargs={"command": "sleep 5"})
c.start()
check("a tenant's run counts", within(20, lambda: len(boxes(KEY)) == 1))
a = run(key=KEY, command="true")
same("one run more than the quota is refused", (429, "quota"), (a.status, a.json["error"].get("layer")))
same("a run of another tenant is not refused by a tenant's quota", 200, run(command="true").status)
c.join()
check("the quota has room again after a run", within(20, lambda: run(key=KEY, command="true").status == 200))

# ---- audit, metrics, pool ----
box = run(command="echo audited").json["sandbox"]


def actions():
    said = subprocess.run([os.environ["COVE"], "--state", STATE, "audit", "export"], capture_output=True, text=True).stdout
    return [json.loads(line)["action"] for line in said.splitlines() if box in line]


check("the audit has its life", within(20, lambda: sorted(actions()) == ["exec.run", "sandbox.create", "sandbox.kill"]), actions())
metrics = server.ask("GET", "/metrics").body.decode()
check("metrics count the ends", 'cove_executions_total{ended="cpu_timeout"} 1' in metrics, metrics)


def hits():
    return sum(p["hits"] for p in server.ask("GET", "/v1/pools").json["pools"] if p["once"] or ISOLATION != "jail")


before = hits()
check("a run takes a sandbox from a pool of its own", within(60, lambda: run(command="true").status == 200 and hits() > before))
if only("jail", "a create with the limits of a run takes none of its pool", "a guest's disk is an image, and it can be paused, too"):
    before = hits()
    a = server.ask("POST", "/v1/sandboxes", {"limits": {"disk": 256 << 20}, "timeout": 60})
    same("a create with the same limits does not take from the pool of runs: it may be paused one day", (201, before), (a.status, hits()))
    server.ask("DELETE", "/v1/sandboxes/" + a.json["id"])
none_left("runs leave no sandbox")
server.end()
finish()
