"""E2B's process.Process, by a client of our own that puts on the wire what SDKs put there, and what they never would.
Run by tests/e2e/e2b_process_test."""
import base64
import os
import struct
import threading
import time

import harness
from harness import check, same, within
from e2b_wire import Box, Result, envelope

b = None  # the sandbox that most parts share


def b64(data):
    return base64.b64encode(data).decode()


def text(data):
    return bytes(data).decode(errors="replace")


def begun(stream):
    """The pid that a stream begins with."""
    return stream.next()["event"]["start"]["pid"]


def pids(box):
    return [p["pid"] for p in box.unary("List", {})[1]["processes"]]


def code_is(sentence, want, result):
    """An error in an end frame behind a 200, and nothing before it but perhaps a start."""
    check(sentence, result.status == 200 and result.error.get("code") == want and result.error.get("message"),
          "%s %s" % (result.status, result.end))


def answer_is(sentence, status, code, got):
    check(sentence, got[0] == status and isinstance(got[1], dict) and got[1].get("code") == code
          and got[1].get("message"), got)


# ---- the two forms, and how processes end ----
def forms():
    for form, name in (("js", "chunked bodies"), ("py", "bodies of known length, indented JSON")):
        box = Box(box=b, form=form)
        same("%s: no process is listed yet" % name, (200, {"processes": []}), box.unary("List", {}))
        stream = box.start("echo out; echo err >&2")
        same("%s: a stream is 200 and application/connect+json" % name, (200, "application/connect+json"),
             (stream.status, stream.type))
        r = Result(stream)
        same("%s: start, data, end, in this order" % name, ["start", "data", "end"], r.kinds)
        same("%s: output of both kinds" % name, (b"out\n", b"err\n"), (bytes(r.out), bytes(r.err)))
        same("%s: exit 0 has no error" % name, {"exitCode": 0, "exited": True, "status": "exit status 0"}, r.exit)
        same("%s: the end frame is empty" % name, {}, r.end)
        same("%s: messages, then one end frame" % name, True,
             set(stream.flags[:-1]) == {0} and stream.flags[-1] == 2)


def exits():
    same("an exit code", {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"},
         b.run("exit 3").exit)
    for number, name in ((9, "killed"), (15, "terminated"), (11, "segmentation fault"), (1, "hangup")):
        same("a signal: " + name, {"exitCode": -1, "exited": False, "status": "signal: " + name,
                                   "error": "signal: " + name}, b.run("kill -%d $$" % number).exit)
    r = b.run("for i in $(seq 200); do echo $i; echo $i >&2; done; exit 1")
    same("all output comes before the end", (200, 200, ["start", "data", "end"]),
         (r.out.count(b"\n"), r.err.count(b"\n"), r.kinds))
    r = b.run("head -c 3000 /dev/urandom | tee /tmp/bytes; md5sum </tmp/bytes >&2")
    import hashlib
    same("bytes of any value arrive as they are", text(r.err).split()[0] if r.err else "",
         hashlib.md5(r.out).hexdigest())


# ---- framing ----
def splits():
    message = {"process": {"cmd": "/bin/echo", "args": ["whole"]}, "stdin": False}
    for form in ("js", "py"):
        box = Box(box=b, form=form)
        body = envelope(message)
        bad = [at for at in range(1, len(body))
               if bytes(Result(box.stream("Start", body, pieces=[at, len(body)])).out) != b"whole\n"]
        same("%s: an envelope may be split at every byte" % form, [], bad)
        same("%s: an envelope may come byte by byte" % form, b"whole\n",
             bytes(Result(box.stream("Start", body, pieces=[1] * len(body))).out))


def malformed():
    good = envelope({"process": {"cmd": "/bin/true"}})
    rows = (("a message that is no JSON", envelope(b"{\"process\":"), "invalid_argument"),
            ("a message that is no object", envelope(b"[1]"), "invalid_argument"),
            ("a message that is no UTF-8", envelope(b"{\"process\":{\"cmd\":\"\xff\"}}"), "invalid_argument"),
            ("a message nested too deep", envelope(b"{\"a\":" + b"[" * 5000 + b"]" * 5000 + b"}"), "invalid_argument"),
            ("no message", b"", "invalid_argument"),
            ("an empty message, which has no process", envelope(b""), "invalid_argument"),
            ("two messages", good + good, "invalid_argument"),
            ("half a head", good[:3], "invalid_argument"),
            ("half a message", good[:-4], "invalid_argument"),
            ("a compressed message", envelope(b"{}", 1), "invalid_argument"),
            ("an end frame from a client", envelope(b"{}", 2), "invalid_argument"),
            ("a flag that nobody knows", envelope(b"{}", 128), "invalid_argument"),
            ("a message that says to be too large", struct.pack(">BI", 0, 4 * 1024 * 1024 + 1), "resource_exhausted"),
            ("a message of 4 GiB", struct.pack(">BI", 0, 0xffffffff), "resource_exhausted"))
    for name, body, code in rows:
        for form in ("js", "py"):
            code_is("%s is %s (%s)" % (name, code, form), code, Result(Box(box=b, form=form).stream("Start", body)))
    code_is("more bytes than the method takes are refused", "resource_exhausted",
            Result(Box(box=b, form="py").stream("Start", envelope(b" " * (4 * 1024 * 1024)) )))
    for name, message in (("cmd", {"process": {"cmd": 5}}), ("args", {"process": {"cmd": "a", "args": "b"}}),
                          ("an argument", {"process": {"cmd": "a", "args": [1]}}),
                          ("envs", {"process": {"cmd": "a", "envs": {"A": 1}}}),
                          ("a variable's name", {"process": {"cmd": "a", "envs": {"A=B": "c"}}}),
                          ("a missing cmd", {"process": {}}), ("stdin", {"process": {"cmd": "a"}, "stdin": "yes"}),
                          ("rows", {"process": {"cmd": "a"}, "pty": {"size": {"rows": -1, "cols": 80}}})):
        code_is("%s of the wrong kind: invalid_argument" % name, "invalid_argument", Result(b.stream("Start", message)))
    answer_is("unary: no JSON is 400 invalid_argument", 400, "invalid_argument", b.unary("List", b"{"))
    answer_is("unary: no object is 400 invalid_argument", 400, "invalid_argument", b.unary("List", b"[]"))
    same("unary: an empty body is an empty message", 200, b.unary("List", b"")[0])
    answer_is("unary: a body beyond the limit is 429 resource_exhausted", 429, "resource_exhausted",
              Box(box=b, form="py").unary("List", b" " * 70000))


def headers():
    start = {"process": {"cmd": "/bin/true"}}
    for kind in ("application/json", "application/connect+proto", "application/grpc", "", None):
        same("a stream of type %r is 415" % kind, 415, b.stream("Start", start, {"Content-Type": kind}).status)
    for kind in ("application/connect+json", "application/proto", "text/plain", None):
        same("a unary call of type %r is 415" % kind, 415, b.unary("List", {}, {"Content-Type": kind})[0])
    same("parameters of the type do not matter", 200,
         b.unary("List", {}, {"Content-Type": "application/json; charset=utf-8"})[0])
    same("GET is 405", 405, harness.ask("GET", "/process.Process/List", headers=b.headers()).status)
    same("an unknown method is 404", 404, b.unary("Nothing", {})[0])
    answer_is("an unknown version of the protocol is refused", 400, "invalid_argument",
              b.unary("List", {}, {"Connect-Protocol-Version": "2"}))
    code_is("compression that was not agreed is unimplemented", "unimplemented",
            Result(b.stream("Start", start, {"Connect-Content-Encoding": "gzip"})))
    code_is("a timeout that is no number is refused", "invalid_argument",
            Result(b.stream("Start", start, {"Connect-Timeout-Ms": "soon"})))
    code_is("a ping interval of 0 is refused", "invalid_argument",
            Result(b.stream("Start", start, {"Keepalive-Ping-Interval": "0"})))


def access():
    other = Box()
    start = {"process": {"cmd": "/bin/true"}}
    for name, token in (("no token", None), ("a wrong token", "0" * 64), ("an empty token", ""),
                        ("another sandbox's token", other.token)):
        status, body = b.unary("List", {}, {"X-Access-Token": token})
        same("%s is 401" % name, (401, 401), (status, body.get("code")))
        same("%s is 401 for a stream" % name, 401, b.stream("Start", start, {"X-Access-Token": token}).status)
    for name, sandbox in (("an unknown sandbox", "i" + "0" * 20), ("an id that is too short", "i0")):
        status, body = b.unary("List", {}, {"E2b-Sandbox-Id": sandbox})
        same("%s is 502" % name, (502, "The sandbox was not found", 502),
             (status, body.get("message"), body.get("code")))
    for name, sandbox in (("no id of a sandbox", "../../etc"), ("no id", "")):
        same("%s is 400 in plain text" % name, (400, b"Invalid sandbox ID"), b.unary("List", {}, {"E2b-Sandbox-Id": sandbox}))
    stream = other.start("sleep 60")
    pid = begun(stream)
    answer_is("a pid of another sandbox is not_found", 404, "not_found",
              b.unary("SendSignal", {"process": {"pid": pid + 4000}, "signal": "SIGNAL_SIGKILL"}))
    check("a process survives a signal that another sandbox sent to its pid", pid in pids(other))
    stream.close()
    same("a second sandbox is killed", 204, other.kill())
    who = Box(box=b)
    for user, name in (("root", "root"), ("user", "user"), ("", "user")):
        who.user = user
        same("user %r is %s" % (user, name), name + "\n", text(who.run("id -un").out))
    who.user = "nobody-here"
    r = who.run("id")
    same("an unknown user is unauthenticated", ("unauthenticated", "invalid username: 'nobody-here'"),
         (r.error.get("code"), r.error.get("message")))
    for value in ("Basic ***", "Bearer abc", "Basic " + b64(b"a" * 400 + b":"), "Basic " + b64(b"a\0b:")):
        code_is("Authorization %r is unauthenticated" % value[:16], "unauthenticated",
                Result(b.start("id", headers={"Authorization": value})))


# ---- Start ----
def environment():
    box = Box({"envVars": {"FROM_BOX": "box", "BOTH": "box"}})
    out = text(box.run("env", envs={"BOTH": "call", "EMPTY": "", "QUOTED": "a'b\"c $HOME\n."}).out)
    for line in ("FROM_BOX=box", "BOTH=call", "EMPTY=", "HOME=/home/user", "USER=user", "LOGNAME=user",
                 "E2B_SANDBOX=true", "E2B_TEMPLATE_ID=host", "E2B_SANDBOX_ID=" + box.id, "QUOTED=a'b\"c $HOME"):
        check("the environment has " + line.split("=")[0], line + "\n" in out, out)
    check("the environment has a PATH", "\nPATH=/" in out, out)
    same("a variable of ours can be set", "mine\n",
         text(box.run("echo $E2B_SANDBOX_ID", envs={"E2B_SANDBOX_ID": "mine"}).out))
    box.run("mkdir -p /home/user/deep/er; ln -s deep /home/user/link")
    for cwd, want in ((None, "/home/user"), ("", "/home/user"), ("/tmp", "/tmp"), ("deep/er", "/home/user/deep/er"),
                      ("~", "/home/user"), ("~/", "/home/user"), ("~/deep", "/home/user/deep")):
        same("cwd %r is %s" % (cwd, want), want + "\n", text(box.run("pwd", **({} if cwd is None else {"cwd": cwd})).out))
    for cwd in ("/nope", "deep/nope", "~/nope"):
        r = box.run("pwd", cwd=cwd)
        same("cwd %s does not exist" % cwd, ("invalid_argument", "cwd '%s' does not exist" % cwd),
             (r.error.get("code"), r.error.get("message")))
    code_is("a file is no cwd", "invalid_argument", box.run("pwd", cwd="/etc/passwd"))
    code_is("the home of another user is no cwd", "invalid_argument", box.run("pwd", cwd="~root"))
    code_is("a command that is not there", "invalid_argument", box.run("", cmd="/nope", args=[]))
    same("a command by its name alone", "x\n", text(box.run("", cmd="echo", args=["x"]).out))
    same("snake_case is understood, null is absent", "x\n", text(Result(box.stream("Start", {
        "process": {"cmd": "echo", "args": ["x"], "envs": None, "cwd": None}, "pty": None, "tag": None,
        "unknown": [1]})).out))
    r = box.run("ls /; rm -rf --no-preserve-root /")
    code_is("a command that the policy denies is permission_denied", "permission_denied", r)
    check("the rule is named", "destructive.rm-root" in r.error.get("message", ""), r.error)
    same("stdin:false is an empty stdin", (b"", 0), (bytes(box.run("cat").out), box.run("cat").exit["exitCode"]))
    same("a long command", 120001, len(box.run("echo " + "x" * 120000).out))
    code_is("a command that is longer than the kernel takes is invalid_argument", "invalid_argument",
            box.run("echo " + "x" * 200000))
    box.kill()


# ---- input, signals, list ----
def out_lines(stream, count):
    """The next lines of stdout, in however many events they come."""
    got = b""
    while got.count(b"\n") < count:
        got += base64.b64decode(stream.next()["event"].get("data", {}).get("stdout", ""))
    return got


def inputs():
    stream = b.stream("Start", {"process": {"cmd": "cat", "args": ["-u"]}, "tag": "the-cat"})
    pid = begun(stream)
    _, listed = b.unary("List", {})
    same("List has the process with its config", [{"pid": pid, "tag": "the-cat", "config": {
        "cmd": "cat", "args": ["-u"], "envs": {}, "cwd": "/home/user"}}], listed["processes"])
    same("SendInput by pid", (200, {}), b.unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(b"one\n")}}))
    same("SendInput by tag", (200, {}),
         b.unary("SendInput", {"process": {"tag": "the-cat"}, "input": {"stdin": b64(b"two\n").rstrip("=")}}))
    same("input to stdin comes back from cat", b"one\ntwo\n", out_lines(stream, 2))
    answer_is("input that is no base64 is invalid_argument", 400, "invalid_argument",
              b.unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": "***"}}))
    answer_is("input for a terminal that is none is internal", 500, "internal",
              b.unary("SendInput", {"process": {"pid": pid}, "input": {"pty": b64(b"x")}}))
    body = b"".join(envelope(m) for m in (
        {"start": {"process": {"pid": pid}}}, {"data": {"input": {"stdin": b64(b"three\n")}}}, {"keepalive": {}},
        {"data": {"input": {"stdin": b64(b"four\n")}}}))
    s = b.stream("StreamInput", body, pieces=[7] * (len(body) // 7 + 1))
    same("StreamInput answers with one message and an end", ([{}], {}), (list(s), s.end))
    same("all of it came", b"three\nfour\n", out_lines(stream, 2))
    for name, bad in (("no start", [{"data": {"input": {"stdin": "YQ=="}}}]),
                      ("two starts", [{"start": {"process": {"pid": pid}}}] * 2)):
        code_is("StreamInput with %s is invalid_argument" % name, "invalid_argument",
                Result(b.stream("StreamInput", b"".join(envelope(m) for m in bad))))
    code_is("StreamInput to an unknown process is not_found", "not_found",
            Result(b.stream("StreamInput", envelope({"start": {"process": {"pid": 4000000}}}))))
    same("CloseStdin", (200, {}), b.unary("CloseStdin", {"process": {"pid": pid}}))
    same("CloseStdin ends the process", 0, Result(stream).exit["exitCode"])
    for method, more in (("SendInput", {"input": {"stdin": b64(b"x")}}), ("CloseStdin", {}), ("Update", {}),
                         ("SendSignal", {"signal": "SIGNAL_SIGKILL"})):
        answer_is("%s to a process that has ended is not_found" % method, 404, "not_found",
                  b.unary(method, {"process": {"pid": pid}, **more}))
        answer_is("%s to one that never was is not_found" % method, 404, "not_found",
                  b.unary(method, {"process": {"tag": "nobody"}, **more}))
        answer_is("%s to nobody in particular is invalid_argument" % method, 400, "invalid_argument",
                  b.unary(method, more))
    stream = b.start("sleep 60")
    pid = begun(stream)
    answer_is("input without stdin is internal", 500, "internal",
              b.unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(b"x")}}))
    answer_is("a terminal's size without one is refused", 400, "failed_precondition",
              b.unary("Update", {"process": {"pid": pid}, "pty": {"size": {"rows": 2, "cols": 2}}}))
    answer_is("a signal that is none is invalid_argument", 400, "invalid_argument",
              b.unary("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGHUP"}))
    answer_is("no signal is invalid_argument", 400, "invalid_argument", b.unary("SendSignal", {"process": {"pid": pid}}))
    answer_is("pid 1 cannot be signalled", 404, "not_found",
              b.unary("SendSignal", {"process": {"pid": 1}, "signal": "SIGNAL_SIGKILL"}))
    same("SIGTERM", (200, {}), b.unary("SendSignal", {"process": {"pid": pid}, "signal": 15}))
    same("SIGTERM ends the process", "signal: terminated", Result(stream).exit["status"])
    stream = b.start("sleep 71 & sleep 71; true")
    same("SIGKILL", (200, {}), b.unary("SendSignal", {"process": {"pid": begun(stream)}, "signal": "SIGNAL_SIGKILL"}))
    same("SIGKILL ends the process", "signal: killed", Result(stream).exit["status"])
    check("SIGKILL ends the children of a process", within(10, lambda: b.run("pgrep -cx -f 'sleep 71'").out == b"0\n"))
    big = b64(os.urandom(1000000))
    stream = b.stream("Start", {"process": {"cmd": "wc", "args": ["-c"]}})
    pid = begun(stream)
    same("a megabyte at once", (200, {}), b.unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": big}}))
    b.unary("CloseStdin", {"process": {"pid": pid}})
    same("a megabyte of input is all there", b"1000000\n", bytes(Result(stream).out))
    stream = b.stream("Start", {"process": {"cmd": "sleep", "args": ["60"]}})
    pid = begun(stream)
    answer_is("a process that does not read all of it is deadline_exceeded, not a sandbox that is gone", 504, "deadline_exceeded",
              b.unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": big}}))
    b.unary("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})


def foreign():
    """A process that another process started is not one of ours to touch."""
    stream = b.start("sleep 62 & echo $!; wait")
    begun(stream)
    child = int(base64.b64decode(stream.next()["event"]["data"]["stdout"]))
    answer_is("a child's pid is not_found", 404, "not_found",
              b.unary("SendSignal", {"process": {"pid": child}, "signal": "SIGNAL_SIGKILL"}))
    code_is("a child's pid cannot be connected to", "not_found", Result(b.stream("Connect", {"process": {"pid": child}})))
    stream.close()
    b.run("kill %d" % child)


# ---- Connect ----
def connect():
    stream = b.start("echo early; sleep 1; echo late; exit 4", tag="t1")
    pid = begun(stream)
    check("the process says something", stream.next()["event"]["data"])
    by_pid = b.stream("Connect", {"process": {"pid": pid}})
    by_tag = Box(box=b, form="py").stream("Connect", {"process": {"tag": "t1"}})
    for name, r in (("by pid", Result(by_pid)), ("by tag", Result(by_tag))):
        same("Connect %s: start, output so far, new output, end" % name,
             (pid, ["start", "data", "end"], b"early\nlate\n", 4),
             (r.pid, r.kinds, bytes(r.out), r.exit["exitCode"]))
    same("the client that started a process sees its end beside Connect", 4, Result(stream).exit["exitCode"])
    r = Result(b.stream("Connect", {"process": {"pid": pid}}))
    same("a late Connect has the end", (pid, 4), (r.pid, r.exit["exitCode"]))
    code_is("Connect to nobody is not_found", "not_found", Result(b.stream("Connect", {"process": {"pid": 4000000}})))
    code_is("pid 0 is not_found", "not_found", Result(b.stream("Connect", {"process": {"pid": 0}})))
    code_is("an unknown tag is not_found", "not_found", Result(b.stream("Connect", {"process": {"tag": "t2"}})))
    for pid in ("x", -1, 1 << 40):
        code_is("pid %r is invalid_argument" % pid, "invalid_argument",
                Result(b.stream("Connect", {"process": {"pid": pid}})))


def disconnect():
    stream = b.start("sleep 1; echo on >/tmp/went; sleep 60")
    pid = begun(stream)
    stream.close()
    check("a process outlives the client that started it", within(10, lambda: b.run("cat /tmp/went").out == b"on\n"))
    check("a process without its client is still listed", pid in pids(b))
    b.unary("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
    check("a process that was killed is not listed", within(10, lambda: pid not in pids(b)))


# ---- terminals ----
def terminal():
    stream = b.stream("Start", {"process": {"cmd": "/bin/bash", "args": ["-i", "-l"],
                                            "envs": {"TERM": "xterm-256color", "LANG": "C.UTF-8"}},
                                "pty": {"size": {"cols": 91, "rows": 17}}})
    pid = begun(stream)

    def type_in(line):
        return b.unary("SendInput", {"process": {"pid": pid}, "input": {"pty": b64(line)}})

    same("input for a terminal", (200, {}), type_in(b"stty size; echo $TERM; tty\n"))
    shown = b""
    while b"/dev/pts/" not in shown:
        shown += base64.b64decode(stream.next()["event"]["data"]["pty"])
    same("Update changes its size", (200, {}),
         b.unary("Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 33, "rows": 11}}}))
    answer_is("stdin of a terminal is internal", 500, "internal",
              b.unary("SendInput", {"process": {"pid": pid}, "input": {"stdin": b64(b"x")}}))
    answer_is("CloseStdin of a terminal is internal", 500, "internal", b.unary("CloseStdin", {"process": {"pid": pid}}))
    type_in(b"stty size; head -c 200000 /dev/zero | tr '\\0' z; exit 5\n")
    r = Result(stream)
    shown = text(shown + r.pty)
    check("a terminal has the size that was asked for", "17 91\r\n" in shown, shown[:300])
    check("TERM is the client's", "xterm-256color\r\n" in shown, shown[:300])
    check("a terminal has its new size after a resize", "11 33\r\n" in shown, shown[:600])
    same("all comes as pty", (b"", b"", 5), (bytes(r.out), bytes(r.err), r.exit["exitCode"]))
    check("a terminal's output comes in pieces of 16 KiB at most", r.pty.count(b"z") >= 200000 and 0 < r.largest <= 16384, r.largest)
    late = Result(b.stream("Connect", {"process": {"pid": pid}}))
    check("Connect shows a terminal's output as pty", late.pty and not late.out and late.exit["exitCode"] == 5)


# ---- time ----
def deadlines():
    begin = time.time()
    stream = b.start("sleep 81 & sleep 81", headers={"Connect-Timeout-Ms": "700"})
    r = Result(stream)
    code_is("a stream ends at the client's deadline", "deadline_exceeded", r)
    check("a stream does not end before the client's deadline", time.time() - begin > 0.6, time.time() - begin)
    check("a process is killed with its children at the client's deadline", within(10, lambda: b.run("pgrep -cx -f 'sleep 81'").out == b"0\n"))
    stream = b.start("echo x; sleep 82", headers={"Connect-Timeout-Ms": "60000"})
    pid = begun(stream)
    r = Result(b.stream("Connect", {"process": {"pid": pid}}, {"Connect-Timeout-Ms": "500"}))
    code_is("Connect ends at its deadline", "deadline_exceeded", r)
    check("the process outlives the deadline of Connect", pid in pids(b))
    b.unary("SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
    stream.close()
    r = b.run("sleep 2.5; echo x", headers={"Keepalive-Ping-Interval": "1"})
    check("a silent process: keepalives", 1 <= r.keepalives <= 10 and r.out == b"x\n", (r.keepalives, r.out))
    for _ in range(10):  # on a busy machine two seconds may pass between two words
        r = b.run("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo x; sleep 0.2; done", headers={"Keepalive-Ping-Interval": "2"})
        if r.keepalives == 0:
            break
    same("a stream that speaks has no keepalives", 0, r.keepalives)


# ---- the end of a sandbox ----
def killed():
    for silent in (True, False):
        box = Box()
        stream = box.start("sleep 60" if silent else "while :; do echo x; sleep 0.01; done")
        begun(stream)
        health = []
        thread = threading.Thread(target=lambda: (time.sleep(0.4), health.append(box.kill())))
        thread.start()
        events = list(stream)  # until it ends, in whatever way
        health_then = box.health()
        thread.join()
        name = "silent" if silent else "busy"
        same("a sandbox killed under a %s process: the answer is cut, without an end" % name, (None, False),
             (stream.end, any("end" in e["event"] for e in events)))
        same("/health of a sandbox that was killed says 502 (%s)" % name, 502, health_then)
        same("a call to a sandbox that was killed says 502 (%s)" % name, 502, box.unary("List", {})[0])
        same("a stream to a sandbox that was killed says 502 (%s)" % name, 502, box.start("true").status)


def expired():
    box = Box({"timeout": 4})
    stream = box.start("sleep 60")
    begun(stream)
    r = Result(stream)
    same("a sandbox whose time is over: cut, and 502", (None, None, 502), (r.end, r.exit, box.health()))


def paused():
    box = Box()
    stream = box.start("echo 1; sleep 1; echo 2")
    begun(stream)
    same("a sandbox is paused under its process", 204, harness.ask("POST", "/sandboxes/%s/pause" % box.id, {}).status)
    same("a call is 502 meanwhile", 502, box.unary("List", {})[0])
    time.sleep(1.2)
    same("connect resumes a sandbox that was paused under its process", 201, harness.ask("POST", "/v2/sandboxes/%s/connect" % box.id, {"timeout": 60}).status)
    r = Result(stream)
    if harness.only("jail gvisor", "a process that was paused continues to its end", "a machine is larger than pause_hot_bytes, so it was on disk"):
        same("a process that was paused continues to its end", (b"1\n2\n", {}), (bytes(r.out), r.end))
    box.kill()


# ---- much, and many ----
def slow_reader():
    s = harness.server.connect()
    body = envelope({"process": {"cmd": "/bin/bash", "args": ["-c", "head -c 40000000 /dev/zero; touch /tmp/all-out"]},
                     "stdin": False})
    head = "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % len(body)
    for k, v in b.headers({"Content-Type": "application/connect+json"}).items():
        head += "%s: %s\r\n" % (k, v)
    s.sendall(head.encode() + b"\r\n" + body)
    time.sleep(1.5)
    same("a slow reader does not hold up other processes", b"x\n", bytes(b.run("echo x").out))
    same("a process waits while its client does not read", b"no\n", bytes(b.run("test -e /tmp/all-out && echo yes || echo no").out))
    s.settimeout(30)
    total = 0
    while True:
        data = s.recv(1 << 20)
        total += len(data)
        if not data or data.endswith(b"0\r\n\r\n"):
            break
    check("when it reads on, all of it comes", total > 40000000 * 4 / 3, total)
    same("a process whose client was slow ends", b"yes\n", bytes(b.run("test -e /tmp/all-out && echo yes || echo no").out))
    s.close()


def much():
    with open("/proc/%d/clear_refs" % harness.server.p.pid, "w") as f:
        f.write("5")  # the peak begins again
    before = harness.server.status("VmRSS")
    total = largest = 0
    end = None
    stream = b.start("head -c 104857600 /dev/zero")
    for message in stream:
        event = message["event"]
        if "data" in event:
            data = event["data"]["stdout"]
            size = len(data) * 3 // 4 - data.count("=", len(data) - 2)
            total += size
            largest = max(largest, size)
        end = event.get("end", end)
    stream.close()
    same("100 MiB of output arrive", (104857600, 0), (total, (end or {}).get("exitCode")))
    check("100 MiB of output come in pieces of 32 KiB at most", 0 < largest <= 32768, largest)
    grown = harness.server.status("VmHWM") - before
    check("100 MiB of output take flat memory: %d KiB more" % grown, grown < 8192, grown)


def many():
    key = os.environ["OTHER_KEY"]
    for name, box in (("local", b), ("a tenant", Box(key=key))):
        results = [None] * 100

        def one(i):
            results[i] = box.run("sleep 1; echo %d" % i)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        bad = [(i, r and (r.status, r.end, r.exit)) for i, r in enumerate(results)
               if not r or bytes(r.out) != b"%d\n" % i or r.end != {}]
        same("%s: a hundred commands at once" % name, [], bad)
        same("%s: no process is left of a hundred commands" % name, [], pids(box))
        if box is not b:
            box.kill(key)


def parts():
    global b
    b = Box()
    for part in (forms, exits, splits, malformed, headers, access, environment, inputs, foreign, connect, disconnect,
                 terminal, deadlines, killed, expired, paused, slow_reader, much, many):
        part()
    same("the sandbox is killed", 204, b.kill())


harness.run(parts, settings=("--e2b-policy", "standard"))  # or nothing would be denied
