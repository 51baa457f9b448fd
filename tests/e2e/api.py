"""Asks the native API everything that docs/api.md promises. Run by api_test."""
import base64
import contextlib
import http.client
import json
import os
import re
import subprocess
import threading
import time
from urllib.parse import quote

from harness import COVED, LOG, STATE, ask, check, must, refused, run, same, server, within
from wsclient import WebSocket


def lines(path, body=None, method="GET", headers=None):
    """Events with the time of their arrival."""
    c = server.http(30)
    c.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers or {})
    r = c.getresponse()
    while True:
        line = r.readline()
        if not line:
            return
        yield time.time(), json.loads(line)


def talk(data, head_alone=False):
    """Bytes to the socket, and all that comes back, or the head of that."""
    s = server.connect()
    out = b""
    with contextlib.suppress(OSError):
        s.sendall(data)
        while not (head_alone and b"\r\n\r\n" in out) and (got := s.recv(65536)):
            out += got
    s.close()
    return out


def make(**body):
    a = ask("POST", "/v1/sandboxes", body)
    must("a sandbox is made", a.status == 201, a.body)
    return a.json


# ---- sandboxes ----
def sandboxes():
    box = make(name="one", metadata={"team": "a", "n": "1"}, env={"FOO": "bar"}, timeout=600,
               limits={"memory": "256m", "cpus": 0.5, "pids": 64})
    check("a new sandbox is running, with what was asked for",
          box["state"] == "running" and box["name"] == "one" and box["metadata"] == {"team": "a", "n": "1"} and
          box["limits"]["memory"] == 256 << 20 and box["limits"]["cpus"] == 0.5 and box["profile"] == "strict", box)
    same("get says the same", box, ask("GET", "/v1/sandboxes/" + box["id"]).json)
    refused("a name is taken once", ask("POST", "/v1/sandboxes", {"name": "one"}), 409, "name_taken", "name")
    for body, status, code, field in [
            ({"colour": 1}, 400, "invalid", "colour"), ({"name": 5}, 400, "invalid", "name"),
            ({"name": "No Good"}, 400, "invalid", "name"), ({"timeout": "x"}, 400, "invalid", "timeout"),
            ({"timeout": 0.5}, 400, "invalid", "timeout"), ({"timeout": 1e15}, 400, "invalid", "timeout"),
            ({"on_timeout": "x"}, 400, "invalid", "on_timeout"), ({"limits": {"memory": "1k"}}, 400, "limit_invalid", "limits.memory"),
            ({"limits": {"wheels": 4}}, 400, "invalid", "limits.wheels"), ({"limits": {"memory": "900g"}}, 422, "limit_beyond_host", "limits"),
            ({"template": "nope"}, 404, "template_not_found", "template"), ({"metadata": {"a": 1}}, 400, "invalid", "metadata"),
            ({"metadata": {"cove.x": "1"}}, 400, "invalid", "metadata"), ({"env": {"A=B": "1"}}, 400, "invalid", "env"),
            ({"metadata": {"a": "x" * 5000}}, 413, "too_big", "metadata"), ({"root": "yes"}, 400, "invalid", "root")]:
        refused("create refuses " + json.dumps(body)[:50], ask("POST", "/v1/sandboxes", body), status, code, field)
    refused("a body that is no JSON is refused", ask("POST", "/v1/sandboxes", "{"), 400, "invalid")
    refused("a key given twice is refused", ask("POST", "/v1/sandboxes", '{"name":"a","name":"b"}'), 400, "invalid")
    refused("a body over the route's limit is refused", ask("POST", "/v1/sandboxes", '{"name":"%s"}' % ("x" * 600000)), 413, "too_big")

    a = ask("POST", "/v1/sandboxes", {}, headers={"Idempotency-Key": "k1"})
    b = ask("POST", "/v1/sandboxes", {"idempotency_key": "k1"})
    check("an idempotency key makes one sandbox", (a.status, b.status) == (201, 200) and a.json["id"] == b.json["id"] and
          b.headers["Idempotent-Replayed"] == "true", (a.body, b.body))
    ids = []
    refused("the same key with another request is refused",
            ask("POST", "/v1/sandboxes", {"timeout": 99, "idempotency_key": "k1"}), 409, "already_exists", "idempotency_key")
    c = ask("POST", "/v1/sandboxes", {"metadata": {"a": "1", "b": "2"}, "idempotency_key": "k3"})
    d = ask("POST", "/v1/sandboxes", {"metadata": {"b": "2", "a": "1"}, "idempotency_key": "k3"})
    check("the order of fields does not change a request with an idempotency key", (c.status, d.status) == (201, 200), (c.body, d.body))
    ask("DELETE", "/v1/sandboxes/" + c.json["id"])
    threads = [threading.Thread(target=lambda: ids.append(ask("POST", "/v1/sandboxes", {}, headers={"Idempotency-Key": "k2"}).json["id"]))
               for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    same("six creates at once with one Idempotency-Key make one sandbox", 1, len(set(ids)))
    refused("header and field that differ are refused",
            ask("POST", "/v1/sandboxes", {"idempotency_key": "x"}, headers={"Idempotency-Key": "y"}), 400, "invalid", "idempotency_key")

    same("list by name", [box["id"]], [s["id"] for s in ask("GET", "/v1/sandboxes?name=one").json["sandboxes"]])
    same("list by metadata", [box["id"]], [s["id"] for s in ask("GET", "/v1/sandboxes?metadata=team:a,n:1").json["sandboxes"]])
    seen, cursor = [], ""
    while cursor is not None:
        page = ask("GET", "/v1/sandboxes?limit=1" + ("&cursor=" + cursor if cursor else "")).json
        seen += [s["id"] for s in page["sandboxes"]]
        cursor = page["next"]
    same("pages show every sandbox once, newest first", [ids[0], a.json["id"], box["id"]], seen)
    refused("a state that is none is refused", ask("GET", "/v1/sandboxes?state=x"), 400, "invalid", "state")
    for i in (a.json["id"], ids[0]):
        ask("DELETE", "/v1/sandboxes/" + i)
    refused("a sandbox that was killed is gone", ask("GET", "/v1/sandboxes/" + ids[0]), 404, "sandbox_not_found")
    refused("a sandbox that was killed cannot be killed again", ask("DELETE", "/v1/sandboxes/" + ids[0]), 404, "sandbox_not_found")

    other = os.environ["OTHER_KEY"]
    unknown = ask("GET", "/v1/sandboxes/i" + "a" * 20, key=other)
    foreign = ask("GET", "/v1/sandboxes/" + box["id"], key=other)
    same("a foreign sandbox and an unknown one answer alike", unknown.body.replace(b"i" + b"a" * 20, b"ID"),
         foreign.body.replace(box["id"].encode(), b"ID"))
    for method, path, body in [("DELETE", "", None), ("POST", "/exec", {"command": "true"}), ("POST", "/pause", None),
                               ("POST", "/extend", {"timeout": 9}), ("GET", "/files?path=/etc/passwd", None),
                               ("PUT", "/files?path=x", "x"), ("GET", "/processes", None), ("GET", "/stats", None),
                               ("POST", "/processes/1/signal", {"signal": 9}), ("GET", "/files/watch?path=/", None)]:
        refused("another tenant cannot %s %s" % (method, path.split("?")[0] or "it"),
                ask(method, "/v1/sandboxes/" + box["id"] + path, body, key=other), 404, "sandbox_not_found")
    same("a tenant does not list the sandboxes of another tenant", [], ask("GET", "/v1/sandboxes", key=other).json["sandboxes"])
    refused("a tenant's sandbox has a deadline", ask("POST", "/v1/sandboxes", {"timeout": 0}, key=other), 400, "invalid", "timeout")
    refused("a key for reading cannot make one", ask("POST", "/v1/sandboxes", {}, key=os.environ["READ_KEY"]), 403, "permission_denied")
    mine = [ask("POST", "/v1/sandboxes", {}, key=other) for _ in range(3)]
    same("a quota holds", [201, 201, 429], [m.status for m in mine])
    same("a create beyond the quota is refused by the layer quota", "quota", mine[2].json["error"].get("layer"))
    for m in mine[:2]:
        ask("DELETE", "/v1/sandboxes/" + m.json["id"], key=other)

    at = "/v1/sandboxes/" + box["id"]
    same("extend moves the deadline", True, ask("POST", at + "/extend", {"timeout": 1200}).json["deadline"] > box["deadline"])
    refused("extend needs a timeout", ask("POST", at + "/extend", {}), 400, "invalid", "timeout")
    same("pause", "paused", ask("POST", at + "/pause").json["state"])
    same("the paused are listed", [box["id"]], [s["id"] for s in ask("GET", "/v1/sandboxes?state=paused").json["sandboxes"]])
    refused("a paused one runs nothing", ask("POST", at + "/exec", {"command": "true"}), 409, "wrong_state")
    same("stats of a paused one", True, ask("GET", at + "/stats").json["memory_bytes"] > 0)
    same("resume", "running", ask("POST", at + "/resume").json["state"])
    stats = ask("GET", at + "/stats").json
    check("stats have limits and uptime", stats["memory_limit_bytes"] == 256 << 20 and stats["uptime_ms"] > 0, stats)
    return box["id"]


# ---- executions ----
def executions(box):
    at = "/v1/sandboxes/" + box
    r = ask("POST", at + "/exec", {"command": "echo $FOO $X; cat; echo no >&2; exit 3", "env": {"X": "y"}, "stdin": "in\n",
                                   "cwd": "/tmp"}).json
    check("a command's output, error output and code", (r["stdout"], r["stderr"], r["exit_code"], r["exit_reason"]) ==
          ("bar y\nin\n", "no\n", 3, "exit"), r)
    check("a command's answer has accounting", all(isinstance(r[k], int) for k in ("wall_ms", "cpu_ms", "peak_bytes")) and r["peak_bytes"] > 0, r)
    same("args are taken as they are", "a b $HOME", ask("POST", at + "/exec", {"args": ["printf", "%s", "a b $HOME"]}).json["stdout"])
    r = ask("POST", at + "/exec", {"command": "sleep 60", "timeout": 0.2}).json
    same("a timeout", (124, "timeout"), (r["exit_code"], r["exit_reason"]))
    r = ask("POST", at + "/exec", {"command": "kill -TERM $$"}).json
    same("a signal", (143, "signal", 15), (r["exit_code"], r["exit_reason"], r["signal"]))
    r = ask("POST", at + "/exec", {"args": ["python3", "-c", "x = bytearray(1 << 30)"]}).json
    same("out of memory", (137, "oom"), (r["exit_code"], r["exit_reason"]))
    r = ask("POST", at + "/exec", {"command": "head -c 5000 /dev/zero | tr '\\0' x", "output_limit": 100}).json
    same("output over the limit is cut, and said", (100, True, 5000), (len(r["stdout"]), r["stdout_truncated"], r["stdout_bytes"]))
    r = ask("POST", at + "/exec", {"args": ["printf", r"\377\376"]}).json
    same("what is no UTF-8 comes in base64", ("base64", b"\xff\xfe"), (r["stdout_encoding"], base64.b64decode(r["stdout"])))
    for body, field in [({}, "command"), ({"command": "a", "args": ["b"]}, "args"), ({"args": []}, "args"), ({"args": [1]}, "args"),
                        ({"command": "true", "timeout": -1}, "timeout"), ({"command": "true", "stdin": 5}, "stdin"),
                        ({"command": "true", "stream": "xml"}, "stream"), ({"command": "true", "shell": 1}, "shell"),
                        ({"command": "a\0b"}, None), ({"command": "true", "on_disconnect": "keep"}, "on_disconnect"),
                        ({"command": "true", "output_limit": 1 << 40}, "output_limit")]:
        refused("exec refuses " + json.dumps(body)[:40], ask("POST", at + "/exec", body), 400, "invalid", field)
    refused("a program that is not there", ask("POST", at + "/exec", {"args": ["nonesuch"]}), 404, "path_not_found")
    refused("a user that is not there", ask("POST", at + "/exec", {"command": "true", "user": "nobody9"}), 400, "user_not_found")
    refused("root in a sandbox without", ask("POST", at + "/exec", {"command": "true", "user": "root"}), 403, "root_not_allowed")
    a = ask("POST", at + "/exec", {"command": "rm -rf /"})
    check("policy is asked", a.status == 403 and a.json["error"].get("layer") == "policy" and a.json["error"].get("rule"), a.body)

    events = list(lines(at + "/exec", {"command": "echo one; sleep 1; echo two >&2; exit 4", "stream": "ndjson"}, "POST"))
    kinds = [e["type"] for _, e in events]
    same("a stream has its events in order", ["start", "stdout", "stderr", "end"], kinds)
    check("events of a stream are sent as soon as they happen", events[3][0] - events[1][0] > 0.1, events)
    check("the last event of a stream has the accounting", events[3][1]["exit_code"] == 4 and "cpu_ms" in events[3][1], events[3])
    a = ask("POST", at + "/exec", {"command": "echo hi"}, headers={"Accept": "text/event-stream"})
    check("a stream can be sent as SSE", a.headers["Content-Type"] == "text/event-stream" and
          re.search(rb"event: stdout\ndata: \{.*hi.*\}\n\nevent: end\ndata: ", a.body), a.body)
    events = list(lines(at + "/exec", {"command": r"printf '\303'; sleep 0.3; printf '\251'", "stream": "ndjson"}, "POST"))
    same("a character is never cut", ["é"], [e["data"] for _, e in events if e["type"] == "stdout"])

    def running(text):
        return [p for p in ask("GET", at + "/processes").json["processes"] if p["running"] and text in " ".join(p["args"])]

    def leave(body):
        s = server.connect()
        body = json.dumps(body)
        s.sendall(("POST %s/exec HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (at, len(body), body)).encode())
        was = bool(within(30, lambda: running(body[13:23])))
        s.close()
        end = time.time() + (1 if "keep" in body else 30)
        while running(body[13:23]) and time.time() < end:
            time.sleep(0.05)
        return was, bool(running(body[13:23]))

    same("a client that goes away ends what it waited for", (True, False), leave({"command": "sleep 7771"}))
    same("a client that goes away ends the command of its stream", (True, False), leave({"command": "sleep 7772", "stream": "ndjson"}))
    same("a client that goes away does not end a command that is kept", (True, True), leave({"command": "sleep 7773", "stream": "ndjson", "on_disconnect": "keep"}))
    for p in running("sleep 7773"):
        ask("POST", "%s/processes/%d/signal" % (at, p["proc"]), {"signal": "KILL", "all": True})


def processes(box):
    at = "/v1/sandboxes/" + box + "/processes"
    a = ask("POST", at, {"command": "cat; echo end", "stdin": True, "tag": "reader"})
    same("a process starts in the background", 201, a.status)
    one = "%s/%d" % (at, a.json["proc"])
    same("a background process is shown with its tag", ("reader", True), (ask("GET", one).json["tag"], ask("GET", one).json["running"]))
    same("stdin is taken", 200, ask("POST", one + "/stdin", b"hello ").status)
    same("stdin can be ended", 200, ask("POST", one + "/stdin?end=true", b"world\n").status)
    within(30, lambda: not ask("GET", one).json["running"])  # a byte that is not there yet cannot be asked for
    events = [e for _, e in lines(one + "/output?from=6")]
    same("attach from byte N", "world\nend\n", "".join(e["data"] for e in events if e["type"] == "stdout"))
    same("an attached stream goes to the end of the process", 0, events[-1]["exit_code"])
    refused("stdin of one that has ended", ask("POST", one + "/stdin", b"x"), 409, "wrong_state")
    refused("a byte that was never written", ask("GET", one + "/output?from=999"), 400, "invalid", "from")
    refused("a process that never was", ask("GET", at + "/99999"), 404, "process_not_found")
    refused("the output of an unknown process is 404", ask("GET", at + "/99999/output"), 404, "process_not_found")
    refused("a process that cannot be", ask("GET", at + "/zero"), 404, "process_not_found")
    p = ask("POST", at, {"command": "sleep 1000"}).json["proc"]
    refused("a signal that is none", ask("POST", "%s/%d/signal" % (at, p), {"signal": "HELLO"}), 400, "invalid", "signal")
    same("a signal reaches a process", 1, ask("POST", "%s/%d/signal" % (at, p), {"signal": "SIGTERM"}).json["reached"])
    r = [e for _, e in lines("%s/%d/output" % (at, p))][-1]
    same("SIGTERM ends the process", (143, "signal"), (r["exit_code"], r["exit_reason"]))
    p = ask("POST", at, {"command": "head -c 3000000 /dev/zero | tr '\\0' x", "output_kept": 4 << 20}).json["proc"]
    within(30, lambda: not ask("GET", "%s/%d" % (at, p)).json["running"])
    same("output of the latest process that ended is kept, however large", 3000000,
         sum(len(e["data"]) for _, e in lines("%s/%d/output" % (at, p)) if e["type"] == "stdout"))
    refused("rows need a pty", ask("POST", at, {"command": "true", "rows": 5}), 400, "invalid", "rows")
    p = ask("POST", at, {"command": "stty size; exit", "pty": True, "rows": 33, "columns": 99}).json["proc"]
    same("a pty has its size", "33 99\r\n", "".join(e["data"] for _, e in lines("%s/%d/output" % (at, p)) if e["type"] == "stdout"))
    p = ask("POST", at, {"args": ["python3", "-m", "http.server", "8099", "--bind", "127.0.0.1"]}).json["proc"]
    ports = within(30, lambda: ask("GET", "/v1/sandboxes/" + box + "/ports").json["ports"])
    check("a port that a process listens on is listed", ports and ports[0]["port"] == 8099 and ports[0]["program"].startswith("python"), ports)
    ask("POST", "%s/%d/signal" % (at, p), {"signal": 9})


# ---- terminal ----
def terminal(box):
    at = "/v1/sandboxes/%s/terminal" % box
    same("a terminal is a WebSocket", 426, ask("GET", at).status)
    t = WebSocket(server, at + "?rows=30&columns=100")
    check("the handshake is answered", b"101 " in t.head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in t.head, t.head)
    op, data = t.next()
    start = json.loads(data)
    same("the process is named first", (1, "start"), (op, start["type"]))
    t.send(2, b"stty size; echo mar''ker\n")
    check("what is typed runs, in a terminal of that size", b"30 100\r\n" in t.until(b"marker"), "")
    t.send(1, b'{"type":"resize","rows":40,"columns":120}')
    t.send(2, b"stty size; echo mar''ker\n")
    check("a terminal can be resized", b"40 120\r\n" in t.until(b"marker"), "")
    t.send(9, b"ping")
    while True:
        op, data = t.next()
        if op in (10, 8):
            break
    same("a ping is answered", (10, b"ping"), (op, data))
    t.s.close()
    check("an unknown process is 404, before the upgrade", b"HTTP/1.1 404 " in WebSocket(server, at + "?proc=4000000").head, "")
    t = WebSocket(server, "%s?proc=%d" % (at, start["proc"]))
    check("a terminal continues without its client, and can be attached to again", b"40 120" in t.until(b"40 120"), "")
    t.send(2, b"exit 5\n")
    kinds, end = [], None
    while 8 not in kinds:
        op, data = t.next()
        kinds.append(op)
        if op == 1:
            m = json.loads(data)
            end = m if m["type"] == "end" else end
    same("a terminal tells the exit code", 5, (end or {}).get("exit_code"))
    same("the connection is closed when the terminal's process ends", 1000, int.from_bytes(data[:2], "big"))
    t = WebSocket(server, at)
    t.send(1, b"nonsense")
    while True:
        op, data = t.next()
        if op == 8:
            break
    same("an unknown message closes a terminal", 1008, int.from_bytes(data[:2], "big"))
    t = WebSocket(server, at)
    t.s.sendall(b"\x82\x02ab")
    while True:
        op, data = t.next()
        if op == 8:
            break
    same("a frame without a mask closes a terminal", 1002, int.from_bytes(data[:2], "big"))


# ---- files ----
def files(box):
    at = "/v1/sandboxes/" + box + "/files"
    text = "line one\nline two\nthird\n"
    a = ask("PUT", at + "?path=dir/a.txt&mode=640", text)
    check("a file is written, with its directories", a.status == 200 and a.json["size"] == len(text) and a.json["mode"] == "0640" and
          a.json["path"] == "/home/user/dir/a.txt", a.body)
    a = ask("GET", at + "?path=dir/a.txt")
    check("a file is read with its length and ETag", a.body.decode() == text and a.headers["Content-Length"] == str(len(text)) and a.headers["ETag"], a.body)
    tag = a.headers["ETag"]
    same("a file that the client has already is not sent again", (304, b""), (ask("GET", at + "?path=dir/a.txt", headers={"If-None-Match": tag}).status, b""))
    h = ask("HEAD", at + "?path=dir/a.txt")
    same("HEAD has the head alone", (200, str(len(text)), b""), (h.status, h.headers["Content-Length"], h.body))
    r = ask("GET", at + "?path=dir/a.txt", headers={"Range": "bytes=5-7"})
    same("a range", (206, b"one", "bytes 5-7/%d" % len(text)), (r.status, r.body, r.headers["Content-Range"]))
    r = ask("GET", at + "?path=dir/a.txt", headers={"Range": "bytes=-6"})
    same("a range of the last bytes", b"third\n", r.body)
    r = ask("GET", at + "?path=dir/a.txt", headers={"Range": "bytes=500-"})
    same("a range outside", (416, "bytes */%d" % len(text)), (r.status, r.headers["Content-Range"]))
    r = ask("GET", at + "?path=dir/a.txt", headers={"Range": "bytes=0-3", "If-Range": '"other"'})
    same("a range of another version is not heeded", 200, r.status)
    same("a file without a size is read to its end", True, b"processor" in ask("GET", at + "?path=/proc/cpuinfo").body)
    same("an empty file", b"", (ask("PUT", at + "?path=empty", b""), ask("GET", at + "?path=empty"))[1].body)
    ask("PUT", at + "?path=dir/a.txt&append=true", "more\n")
    same("append", text + "more\n", ask("GET", at + "?path=dir/a.txt").body.decode())
    refused("create refuses what exists", ask("PUT", at + "?path=dir/a.txt&create=true", "x"), 409, "already_exists")
    refused("a directory is no file", ask("GET", at + "?path=dir"), 400, "is_a_directory")
    refused("what is not there", ask("GET", at + "?path=nope"), 404, "path_not_found")
    refused("a path is needed", ask("GET", at), 400, "invalid", "path")
    refused("a mode that is none", ask("PUT", at + "?path=x&mode=9", "x"), 400, "invalid", "mode")
    refused("a path too long", ask("GET", at + "?path=/" + "x" * 5000), 400, "invalid", "path")
    refused("what the user may not write", ask("PUT", at + "?path=/home/x", "x"), 403, "permission_denied")
    same("stat", ("file", "user"), (lambda j: (j["type"], j["owner"]))(ask("GET", at + "/stat?path=dir/a.txt").json))
    same("mkdir", [201, 200], [ask("POST", at + "/mkdir", {"path": "d/e"}).status for _ in range(2)])
    refused("mkdir without parents", ask("POST", at + "/mkdir", {"path": "p/q/r", "parents": False}), 404, "path_not_found")
    same("move", 204, ask("POST", at + "/move", {"path": "dir/a.txt", "to": "d/e/b.txt"}).status)
    refused("move needs a target", ask("POST", at + "/move", {"path": "x"}), 400, "invalid", "to")
    same("chmod", 204, ask("POST", at + "/chmod", {"path": "d/e/b.txt", "mode": "600"}).status)
    refused("chmod needs a mode", ask("POST", at + "/chmod", {"path": "x"}), 400, "invalid", "mode")
    same("chmod was done", "0600", ask("GET", at + "/stat?path=d/e/b.txt").json["mode"])
    same("list by depth", [1, 3], [len([e for e in ask("GET", at + "/list?path=/home/user&depth=%d" % d).json["entries"]
                                        if "/d" in e["path"]]) - 1 for d in (1, 3)])
    r = ask("GET", at + "/list?path=/usr/bin&limit=5").json
    same("a list has a limit, and says that it is truncated", (5, True), (len(r["entries"]), r["truncated"]))
    same("glob", ["/home/user/d/e/b.txt"], [e["path"] for e in ask("GET", at + "/glob?path=.&pattern=**/*.txt").json["entries"]])
    m = ask("GET", at + "/search?path=.&pattern=" + quote("t[wx]o") + "&before=1").json["matches"]
    same("search", [(1, True, "line one"), (2, False, "line two")],
         [(x["line"], x.get("context", False), x["text"].rstrip("\n")) for x in m])
    refused("search needs a pattern", ask("GET", at + "/search?path=."), 400, "invalid", "pattern")
    refused("a directory that is not empty stays", ask("DELETE", at + "?path=d"), 409, "not_empty")
    same("a directory that is not empty is removed with recursive", 3, ask("DELETE", at + "?path=d&recursive=true").json["removed"])

    seen = []

    def watch():
        for _, e in lines(at + "/watch?path=/tmp&recursive=true"):
            seen.append(e)
            if e.get("to") == "/tmp/new.txt" or e.get("path") == "/tmp/new.txt":
                return

    t = threading.Thread(target=watch, daemon=True)
    t.start()
    within(30, lambda: seen)
    ask("PUT", at + "?path=/tmp/new.txt", "x")
    t.join(30)
    check("watch tells changes as they happen", not t.is_alive() and seen[0]["type"] == "start", seen)

    s = server.connect()
    ask("PUT", at + "?path=keep.txt", "old")
    s.sendall(("PUT %s?path=keep.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nnew" % at).encode())
    time.sleep(0.2)
    s.close()
    time.sleep(0.2)
    same("half an upload changes nothing", b"old", ask("GET", at + "?path=keep.txt").body)


def peak():
    return server.status("VmHWM")


def large(tmp):
    box = make(limits={"memory": "256m", "disk": "600m"})["id"]
    at = "http://127.0.0.1:%d/v1/sandboxes/%s/files?path=/tmp/big" % (server.port, box)
    name = tmp + "/big"
    piece = os.urandom(1 << 20)
    with open(name, "wb") as f:
        for i in range(200):
            f.write(piece[i:] + piece[:i])
    before = peak()
    same("200 MB go up", 0, subprocess.call(["curl", "-sf", "-o", "/dev/null", "-T", name, at]))
    same("200 MB go up in chunks", 0, subprocess.call("curl -sf -o /dev/null -X PUT -T - '%s' <%s" % (at, name), shell=True))
    same("200 MB that are downloaded are the same that were uploaded", 0, subprocess.call("curl -sf '%s' | cmp - %s" % (at, name), shell=True))
    check("200 MB go up and down in flat memory", peak() - before < 20000, "%d kB more" % (peak() - before))

    # A reader that does not read: its own connection waits, and nobody else does.
    slow = server.connect()
    slow.sendall(("GET /v1/sandboxes/%s/files?path=/tmp/big HTTP/1.1\r\nHost: localhost\r\n\r\n" % box).encode())
    time.sleep(0.3)
    same("a slow reader does not hold up commands", "hi\n", ask("POST", "/v1/sandboxes/%s/exec" % box, {"command": "echo hi"}).json["stdout"])
    slow.close()
    os.unlink(name)
    full = ask("PUT", "/v1/sandboxes/%s/files?path=/tmp/more" % make(limits={"memory": "64m", "disk": "16m"})["id"], b"x" * (24 << 20))
    refused("a full disk is said", full, 507, "disk_full")


def refused_calls(box):
    """System calls that the jail refused are told in the audit record of the execution."""
    tries = "import ctypes, sys; [ctypes.CDLL(None).syscall(165, 0, 0, 0, 0, 0) for _ in range(int(sys.argv[1]))]"
    for count in (3, 0, 2):
        ask("POST", "/v1/sandboxes/%s/exec" % box, {"args": ["python3", "-c", tries, str(count)]})
    wanted = [[{"type": "refused_syscalls", "count": 3}], [], [{"type": "refused_syscalls", "count": 2}]]

    def told():
        lines = subprocess.run([os.path.join(os.path.dirname(COVED), "cove"), "--state", STATE, "audit", "export", "--sandbox", box, "--action", "exec.run"],
                               capture_output=True, text=True).stdout.splitlines()
        return [json.loads(json.loads(line)["security_events"] or "[]") for line in lines[-3:]]
    within(30, lambda: told() == wanted)  # such records are gathered for a while before they are written
    same("refused system calls are in the audit log, each with its execution", wanted, told())


# ---- the protocol ----
def protocol():
    def status(answer):
        return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else 0

    post = b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n"
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    for name, data, want in [
            ("Content-Length and Transfer-Encoding", post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
            ("two Content-Lengths", post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
            ("a folded header", get + b"X: a\r\n b\r\n\r\n", 400), ("bare LF", b"GET /health HTTP/1.1\nHost: localhost\n\n", 400),
            ("no Host", b"GET /health HTTP/1.1\r\n\r\n", 400), ("two Hosts", get + b"Host: x\r\n\r\n", 400),
            ("a space before the colon", get + b"X : a\r\n\r\n", 400),
            ("a chunk size with a sign", post + b"Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n", 400),
            ("a strange coding", post + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
            ("a head of 20 kB", get + b"X: " + b"a" * 20000 + b"\r\n\r\n", 431)]:
        got = talk(data)
        check("refused: " + name, status(got) == want and got.count(b"HTTP/1.1 ") == 1, got[:80])
    check("a head that takes too long", status(talk(b"GET /health HT", 10)) == 408, "")
    got = talk(get + b"\r\n" + get + b"Connection: close\r\n\r\n")
    same("pipelined requests are answered in order", 2, got.count(b"HTTP/1.1 200"))
    a = ask("PATCH", "/v1/sandboxes/i" + "a" * 20)
    same("a method that is not there says which are", (405, {"GET", "DELETE"}), (a.status, set(a.headers["Allow"].split(", "))))
    same("a path that is not there", 404, ask("GET", "/v1/nothing").status)
    same("HEAD of a list", (200, b""), (lambda r: (r.status, r.body))(ask("HEAD", "/v1/sandboxes")))
    same("a request id goes through", "abc-1", ask("GET", "/health", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"])
    same("a web page's Origin is refused", 403, ask("GET", "/v1/sandboxes", headers={"Origin": "http://evil.example"}).status)
    same("a foreign Host is refused", 403, ask("GET", "/v1/sandboxes", headers={"Host": "evil.example"}).status)


def pages():
    """What a browser sends for a page, without a key; tests/browser/origin.mjs has a real one."""
    here = "localhost:%d" % server.port
    own, json_type = {"Host": here, "Origin": "http://" + here}, {"Content-Type": "application/json"}
    for name, want, more in (
            ("another port of the same name", 403, {"Origin": "http://localhost:%d" % (server.port ^ 1)}),
            ("the same name without a port", 403, {"Origin": "http://localhost"}),
            ("the other name of the same address", 403, {"Origin": "http://127.0.0.1:%d" % server.port}),
            ("another scheme", 403, {"Origin": "https://" + here}), ("a name below ours", 403, {"Origin": "http://x." + here}),
            ("our name below another", 403, {"Origin": "http://localhost.evil.example:%d" % server.port}),
            ("a user before our name", 403, {"Origin": "http://%s@evil.example" % here}), ("no origin", 403, {"Origin": "null"}),
            ("a file", 403, {"Origin": "file://"}), ("our own", 200, {}),
            ("one that an old browser names in Referer", 403, {"Origin": None, "Referer": "http://localhost:1/x"}),
            ("ours that an old browser names in Referer", 200, {"Origin": None, "Referer": "http://%s/docs" % here}),
            ("a frame elsewhere", 403, {"Origin": None, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}),
            ("a person's tab", 200, {"Origin": None, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})):
        headers = {k: v for k, v in {**own, **more}.items() if v}
        same("a page of %s lists sandboxes" % name, want, ask("GET", "/v1/sandboxes", headers=headers).status)
    for path in ("/v1/sandboxes", "/sandboxes", "/bash"):
        for kind in (None, "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            a = ask("POST", path, b"{}", headers={**own, **({"Content-Type": kind} if kind else {})})
            same("a form of our own page (%s) changes nothing at %s" % (kind, path), 415, a.status)
        same("JSON of another page neither, at " + path, 403, ask("POST", path, b"{}", headers={**own, **json_type, "Origin": "http://localhost:1"}).status)
        same("a request of a browser that hides the page changes nothing, at " + path, 415, ask("POST", path, b"{}", headers={"User-Agent": "Mozilla/5.0", "Content-Type": "text/plain"}).status)
    a = ask("POST", "/v1/sandboxes", {}, headers={**own, **json_type})
    same("JSON of our own page does", 201, a.status)
    same("a program needs no Content-Type", 200, ask("POST", "/v1/sandboxes/%s/exec" % a.json["id"], {"command": "true"}).status)
    same("curl needs no JSON Content-Type", 200, ask("POST", "/v1/sandboxes/%s/exec" % a.json["id"], {"command": "true"},
                                        headers={"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "curl/7.88.1"}).status)
    same("loopback has other addresses", 200, ask("GET", "/v1/sandboxes", headers={"Host": "127.0.0.9"}).status)
    ws = ("GET /v1/sandboxes/%s/terminal HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: %s\r\n\r\n")
    for origin, want in (("http://localhost:1", b"403"), ("null", b"403"), ("http://" + here, b"101")):
        same("a terminal for " + origin, want, talk((ws % (a.json["id"], here, origin)).encode(), head_alone=True).split(b" ")[1])
    ask("PUT", "/v1/sandboxes/%s/files?path=page.html" % a.json["id"], "<script>1</script>")
    got = ask("GET", "/v1/sandboxes/%s/files?path=page.html" % a.json["id"])
    check("a file that is opened as a page has an origin of its own", got.headers["Content-Security-Policy"].startswith("sandbox;"), got.headers)
    ask("DELETE", "/v1/sandboxes/" + a.json["id"])


def described():
    """Every route is in the description, and everything described is a route."""
    spec = ask("GET", "/openapi.yaml").body.decode()
    found, path = set(), None
    for line in spec[spec.index("\npaths:"):spec.index("\ncomponents:")].split("\n"):
        if m := re.match(r"  (/\S*):$", line):
            path = m.group(1)
        elif m := re.match(r"    (get|put|post|delete|patch):$", line):
            found.add((m.group(1).upper(), path))
    rows = set()
    for name in ("src/coved/routes.c", "src/surface/tools/tools_routes.h"):
        with open(name) as f:
            for m in re.finditer(r'\{ METHOD_(\w+), +"([^"]+)"', f.read()):
                where = re.sub(r":(\w+)", r"{\1}", m.group(2)).replace("/*", "/{path}")
                every = ("GET", "PUT", "POST", "DELETE", "PATCH")
                rows.update((method, where) for method in (every if m.group(1) == "ANY" else (m.group(1),)))
    same("every route is described", set(), rows - found)
    same("everything described is a route", set(), found - rows)


def passed_on():
    """Requests that a proxy on this host connects for: loopback is where the proxy is, not who asks."""
    for name, want, headers in (
            ("from elsewhere", 401, [("X-Forwarded-For", "203.0.113.7")]), ("by way of two", 401, [("X-Forwarded-For", "127.0.0.1, 203.0.113.7")]),
            ("whose sender wrote a line of its own", 401, [("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", "203.0.113.7")]),
            ("from nobody knows where", 401, [("X-Forwarded-For", "unknown")]), ("from nobody at all", 401, [("X-Forwarded-For", "")]), ("from elsewhere, by IPv6", 401, [("x-forwarded-for", "2001:db8::1")]),
            ("in nginx' words", 401, [("X-Real-IP", "203.0.113.7")]), ("in the standard's words", 401, [("Forwarded", "for=203.0.113.7;proto=https")]),
            ("of this host", 200, [("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "::1")])):
        lines_ = "".join("%s: %s\r\n" % h for h in headers)
        got = talk(("GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\n%sConnection: close\r\n\r\n" % lines_).encode())
        same("a proxy's request %s, without a key" % name, b"%d" % want, got.split(b" ")[1])


def routes_for_pages():
    """No route, of whatever surface, takes the word of a page elsewhere for the tenant local's, or a form."""
    here = "localhost:%d" % server.port
    own, elsewhere = {"Host": here, "Origin": "http://" + here}, {"Host": here, "Origin": "http://localhost:1", "Content-Type": "application/json"}
    taken, forms, count = [], [], 0
    for name in ("src/coved/routes.c", "src/surface/tools/tools_routes.h", "src/surface/e2b/control.c"):
        with open(name) as f:
            rows = re.findall(r'\{ METHOD_(\w+), +"([^"]+)", +SCOPE_(\w+),', f.read())
        check("%s has routes" % name, len(rows) > 5, rows)
        for method, where, scope in rows:
            path = re.sub(r":\w+", "i" + "a" * 20, where).replace("*", "x")
            if scope == "NONE":
                continue
            for verb in ("GET", "POST", "PUT", "DELETE") if method == "ANY" else (method,):
                count += 1
                if ask(verb, path, b"{}", headers=elsewhere).status != 403:
                    taken.append((verb, path))
                if verb == "POST" and ask(verb, path, b"{}", headers={**own, "Content-Type": "text/plain"}).status != 415:
                    forms.append(path)
    same("a page elsewhere gets nothing of %d routes" % count, [], taken)
    same("a form of our own page changes nothing at any route", [], forms)
    ws = ("GET /v1/session HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: %s\r\n\r\n")
    for origin, want in (("http://localhost:1", b"403"), ("null", b"403"), ("http://" + here, b"101")):
        same("a session for " + origin, want, talk((ws % (here, origin)).encode(), head_alone=True).split(b" ")[1])


# ---- restarts and deadlines ----
def restarts():
    box = make(timeout=600)["id"]
    short = make(timeout=4)["id"]
    rest = make(timeout=4, on_timeout="pause")["id"]
    at = "/v1/sandboxes/" + box
    p = ask("POST", at + "/processes", {"command": "for i in $(seq 1 30); do echo line $i; sleep 0.1; done"}).json["proc"]
    got, offset = "", 0
    events = lines("%s/processes/%d/output" % (at, p))
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        for _, e in events:
            if e["type"] == "stdout":
                got += e["data"]
                offset = e["offset"] + len(e["data"])
            if got.count("\n") >= 5:
                server.kill()
    server.start()
    same("a server that was killed is back", 200, ask("GET", "/health").status)
    same("sandboxes still run after the server was killed", "running", ask("GET", at).json["state"])
    for _, e in lines("%s/processes/%d/output?from=%d" % (at, p, offset)):
        if e["type"] == "stdout":
            got += e["data"]
    same("a client that attaches again misses nothing", "".join("line %d\n" % i for i in range(1, 31)), got)
    check("a deadline counts from the create, over a restart", within(60, lambda: ask("GET", "/v1/sandboxes/" + short).status == 404))
    within(60, lambda: ask("GET", "/v1/sandboxes/" + rest).json["state"] == "paused")
    r = ask("GET", "/v1/sandboxes/" + rest).json
    same("a sandbox pauses at the deadline, if on_timeout says so, over a restart", ("paused", None), (r["state"], r["deadline"]))
    r = ask("POST", "/v1/sandboxes/" + rest + "/resume", {"timeout": 60}).json
    check("a sandbox that was paused at the deadline can be resumed", r["state"] == "running" and r["deadline"], r)
    subprocess.call([os.path.dirname(COVED) + "/direct/cove", "kill", rest], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    same("a sandbox that another program killed is lost", "lost", ask("GET", "/v1/sandboxes/" + rest).json["state"])
    server.kill()
    server.start()
    check("the record of a lost sandbox goes", within(30, lambda: ask("GET", "/v1/sandboxes/" + rest).status == 404))
    same("the last sandbox is killed", 204, ask("DELETE", at).status)


def everything():
    first = sandboxes()
    executions(first)
    refused_calls(first)
    processes(first)
    terminal(first)
    files(first)
    large(os.path.dirname(LOG))
    protocol()
    pages()
    routes_for_pages()
    passed_on()
    described()
    restarts()


run(everything)
