"""The code interpreter on the wire: what its SDKs send, and what they never would. Run by tests/e2e/interpreter_test."""
import http.client
import json
import os
import shutil
import socket
import time

import harness
import notebook
from harness import ask, check, same, within

TEMPLATE = os.environ.get("TEMPLATE", "host")

b = None  # the sandbox that most parts share


class Box:
    def __init__(self, **create):
        a = ask("POST", "/v2/sandboxes", {"templateID": TEMPLATE, "timeout": 600, **create},
                headers={"Content-Type": "application/json"})
        assert a.status == 201, a.body
        self.id, self.token = a.json["sandboxID"], a.json.get("envdAccessToken")
        self.traffic = a.json.get("trafficAccessToken")

    def headers(self, token=True):
        h = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "Content-Type": "application/json"}
        if token and self.token:
            h["X-Access-Token"] = self.token
        return h

    def ask(self, method, path, body=None, token=False, **more):
        return ask(method, path, body, headers={**self.headers(token), **more})

    def open(self, code, **more):
        """The answer as it comes: connection and response."""
        c = harness.server.http()
        c.request("POST", "/execute", json.dumps({"code": code, **more}), self.headers())
        return c, c.getresponse()

    def run(self, code, **more):
        c, r = self.open(code, **more)
        return Run(r.status, r.read())

    def context(self, **more):
        return self.ask("POST", "/contexts", more).json["id"]

    def kill(self):
        return ask("DELETE", "/sandboxes/" + self.id).status


class Run:
    def __init__(self, status, body):
        self.status, self.body = status, body
        self.events = [json.loads(line) for line in body.splitlines()] if status == 200 else []

    def of(self, kind):
        return [e for e in self.events if e["type"] == kind]

    @property
    def out(self):
        return "".join(e["text"] for e in self.of("stdout"))

    @property
    def err(self):
        return "".join(e["text"] for e in self.of("stderr"))

    @property
    def error(self):
        return (self.of("error") or [{}])[0]

    @property
    def text(self):
        return next((e.get("text") for e in self.of("result") if e["is_main_result"]), None)


def hang_up(c, r):
    """At once: the response has a hold on the socket, too."""
    c.sock and c.sock.shutdown(socket.SHUT_RDWR)
    r.close()
    c.close()


def connections():
    return sum(os.readlink("/proc/%d/fd/%s" % (harness.server.p.pid, n)).startswith("socket:") for n in os.listdir("/proc/%d/fd" % harness.server.p.pid))


def begun(r):
    """Reads until the cell has printed something: it runs."""
    while (line := r.readline()) and json.loads(line)["type"] != "stdout":
        pass


def wire():
    run = b.run("print('hi')\n1+1")
    same("events come in order, the end last", ["number_of_executions", "stdout", "result", "end_of_execution"],
         [e["type"] for e in run.events])
    same("the count is 1", 1, run.events[0]["execution_count"])
    check("output has a timestamp", run.of("stdout")[0]["timestamp"], run.events)
    same("a result says that it is the main one", {"type": "result", "text": "2", "is_main_result": True},
         run.of("result")[0])
    check("a line is ASCII, whatever it says", b.run("'\u00e9\U0001F600'").body.isascii())
    same("names stay from cell to cell", "6", (b.run("x = 5"), b.run("x + 1"))[1].text)
    same("nulls are as good as nothing, as the Python SDK sends them", "7",
         b.run("7", context_id=None, language=None, env_vars=None).text)
    same("health", (200, b"OK"), (lambda a: (a.status, a.body))(b.ask("GET", "/health")))


def refusals():
    for sentence, body in (("no JSON", "{"), ("an array", "[]"), ("no code", {}), ("code that is no text", {"code": 5}),
                           ("a language that is none", {"code": "1", "language": "cobol"}),
                           ("a language that is no text", {"code": "1", "language": 5}),
                           ("context and language", {"code": "1", "language": "python", "context_id": "x"}),
                           ("variables that are a list", {"code": "1", "env_vars": []}),
                           ("a variable that is a number", {"code": "1", "env_vars": {"A": 1}}),
                           ("a variable with = in its name", {"code": "1", "env_vars": {"A=B": "1"}})):
        a = b.ask("POST", "/execute", body, token=True)
        check("%s: 400 with words" % sentence, a.status == 400 and a.body and not a.body.startswith(b"{"),
              (a.status, a.body))
    for name in ("x", "../../etc", "0" * 36, "a" * 5000):
        a = b.ask("POST", "/execute", {"code": "1", "context_id": name}, token=True)
        same("a context that is none: 404 (%s)" % name[:10], (404, True), (a.status, b"not found" in a.body))
    same("removing what is not there: 404", 404, b.ask("DELETE", "/contexts/nope").status)
    same("restarting what is not there: 404", 404, b.ask("POST", "/contexts/nope/restart", {}).status)
    same("a context in no directory: 4xx", True, 400 <= b.ask("POST", "/contexts", {"cwd": "/nope"}).status < 500)
    same("a context of no language: 400", 400, b.ask("POST", "/contexts", {"language": "x"}).status)
    same("an execution without the token: 401", 401, b.ask("POST", "/execute", {"code": "1"}).status)
    same("an execution with a wrong token: 401", 401,
         b.ask("POST", "/execute", {"code": "1"}, **{"X-Access-Token": "0" * 64}).status)
    same("a sandbox that is none: 502", 502,
         ask("POST", "/execute", {"code": "1"}, headers={**b.headers(), "E2b-Sandbox-Id": "i" + "0" * 20}).status)
    same("a path that is none: 404", 404, b.ask("GET", "/nope").status)


def private():
    p = Box(network={"allowPublicTraffic": False})
    a = p.ask("GET", "/contexts")
    same("with public traffic off, contexts want the traffic token", 403, a.status)
    same("with public traffic off, contexts take the traffic token", 200, p.ask("GET", "/contexts", **{"E2B-Traffic-Access-Token": p.traffic}).status)
    same("a wrong one does not pass", 403, p.ask("GET", "/contexts", **{"E2B-Traffic-Access-Token": "x"}).status)
    p.kill()


def contexts():
    c = Box()
    listed = c.ask("GET", "/contexts").json
    same("two contexts at the start", ["python", "javascript"], [x["language"] for x in listed])
    same("contexts at the start are in /home/user", ["/home/user"] * 2, [x["cwd"] for x in listed])
    made = c.ask("POST", "/contexts", {"cwd": "/tmp"}).json
    same("a new one is the last of the list", made, c.ask("GET", "/contexts").json[-1])
    same("a new context has the directory that was asked for", "/tmp", c.run("import os; os.getcwd()", context_id=made["id"]).text)
    c.run("y = 1")
    same("a new context has its own names", "NameError", c.run("y", context_id=made["id"]).error.get("name"))
    same("the default one can be named", "1", c.run("y", context_id=listed[0]["id"]).text)
    same("restart: 200", 200, c.ask("POST", "/contexts/%s/restart" % made["id"], {}).status)
    run = c.run("'os' in globals()", context_id=made["id"])
    same("a restarted context has no names, and its count begins again", ("False", 1), (run.text, run.events[0]["execution_count"]))
    same("a restarted context has the same directory", "/tmp", c.run("import os; os.getcwd()", context_id=made["id"]).text)
    same("a restarted context keeps its place in the list", made, c.ask("GET", "/contexts").json[-1])
    same("remove: 200", 200, c.ask("DELETE", "/contexts/" + made["id"]).status)
    same("a removed context is not listed", listed, c.ask("GET", "/contexts").json)
    same("a removed context runs nothing", 404, c.run("1", context_id=made["id"]).status)
    same("remove of a removed context: 404", 404, c.ask("DELETE", "/contexts/" + made["id"]).status)
    harness.server.kill()
    harness.server.start()
    same("contexts survive a restart of the server", "1", c.run("y").text)
    same("removed contexts stay removed after a restart of the server", 404, c.run("1", context_id=made["id"]).status)
    c.kill()


def root():
    """As with E2B: cells are root's, where the sandbox has root."""
    same("cells are root's, and begin in /home/user", "root /root /home/user", b.run(
        "import getpass, os; ' '.join((getpass.getuser(), os.path.expanduser('~'), os.getcwd()))").text)
    same("a command in a cell is root's", "root\n", b.run("!whoami").out)
    same("a cell may use sudo", "root\n", b.run("!sudo whoami").out)
    same("cells of bash are root's", "root\n", b.run("whoami", language="bash").out)
    made = b.ask("POST", "/contexts", {"cwd": "/root"})
    same("a context in /root", (200, "/root"), (made.status, made.json["cwd"]))
    same("cells of a context in /root run there", "/root", b.run("import os; os.getcwd()", context_id=made.json["id"]).text)
    if harness.only("jail vm", "a fork is root's", "contexts are not forked in gVisor, which does not tell who is at the other end of a socket"):
        b.run("import os; os.makedirs('/opt/mine'); mine = 7")
        fork = b.ask("POST", "/contexts/%s/fork" % b.ask("GET", "/contexts").json[0]["id"], {})
        same("a fork is root's", (200, "0 7"), (fork.status, b.run("'%d %d' % (os.geteuid(), mine)", context_id=fork.json["id"]).text))
    a = ask("POST", "/v1/sandboxes", {"template": TEMPLATE, "timeout": 600})
    same("a sandbox without root", 201, a.status)
    s = object.__new__(Box)
    s.id = a.json["id"]
    s.token = ask("POST", "/sandboxes/%s/connect" % s.id, {"timeout": 600}, headers={"Content-Type": "application/json"}).json["envdAccessToken"]
    same("a sandbox without root has cells of its own user", "user", s.run("import getpass; getpass.getuser()").text)
    same("the sandbox without root is removed", 204, ask("DELETE", "/v1/sandboxes/" + s.id).status)


def environment():
    e = Box(envVars={"BOX": "of the box"})
    code = "import os; os.environ.get('A', 'none') + os.environ.get('BOX', 'none')"
    same("variables of a cell and of the sandbox", "bof the box", e.run(code, env_vars={"A": "b"}).text)
    same("variables of a cell are gone after the cell", "noneof the box", e.run(code).text)
    same("a cell's variable that hides the sandbox's comes and goes", ("nonex", "noneof the box"),
         (e.run(code, env_vars={"BOX": "x"}).text, e.run(code).text))
    same("javascript", ("b", "undefined"), (e.run("process.env.A", language="js", env_vars={"A": "b"}).text,
                                            e.run("typeof process.env.A", language="js").text))
    same("bash", ("b\n", "none\n"), (e.run("echo ${A-none}", language="bash", env_vars={"A": "b"}).out,
                                     e.run("echo ${A-none}", language="bash").out))
    e.kill()


def turns():
    """One at a time, in the order of their coming; one that hangs up leaves the queue."""
    b.run("import os, time; order = []")
    first = b.open("print('begun')\nwhile not os.path.exists('/tmp/turns'): time.sleep(0.01)")
    begun(first[1])
    waiting = []
    for i in range(4):
        waiting.append(b.open("order.append(%d)" % i))  # the head of its answer is there: it stands in the queue
    held = connections()
    hang_up(*waiting[1])
    within(30, lambda: connections() < held)  # the server looks now and then which clients still wait
    same("a cell of another context does not wait", "False",
         b.run("import os; was = os.path.exists('/tmp/turns'); open('/tmp/turns', 'w').close(); was", context_id=b.context()).text)
    for i in (0, 2, 3):
        waiting[i][1].read()
    first[1].read()
    same("cells wait for their turn", "[0, 2, 3]", b.run("order").text)


def disconnects():
    for sentence, code, again in (
            ("python that sleeps", "import time\nn = 1\nprint(n)\ntime.sleep(600)", ("n", "1")),
            ("python that loops", "n = 2\nprint(n)\nwhile True: pass", ("n", "2")),
            ("a program of python's", "n = 3\nprint(n)\nimport subprocess; subprocess.run(['sleep', '600'])", ("n", "3"))):
        c, r = b.open(code)
        begun(r)
        hang_up(c, r)
        same("%s is interrupted by a hang-up, and names stay" % sentence, again[1], b.run(again[0]).text)
    c, r = b.open("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint(1)\nwhile True: time.sleep(1)")
    begun(r)
    hang_up(c, r)
    same("a kernel that cannot be interrupted is killed, and another comes", "2", b.run("1+1").text)


def deaths():
    run = b.run("print('last words'); import os; os._exit(3)")
    same("a kernel that ends is an error", "UnexpectedEndOfExecution", run.error.get("name"))
    same("what a kernel printed before its end is there", "last words\n", run.out)
    same("the stream of a kernel that ended has an end", "end_of_execution", run.events[-1]["type"])
    same("the cell after the end of a kernel has a new kernel", ("1", 1), (lambda r: (r.text, r.events[0]["execution_count"]))(b.run("1")))
    same("a kernel that is killed from inside is an error", "UnexpectedEndOfExecution",
         b.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").error.get("name"))
    same("a kernel that was killed from inside is replaced", "1", b.run("1").text)
    own = b.run("import os, threading\nthreading.Timer(0.1, lambda: os._exit(1)).start()\nos.getpid()").text
    other = b.context()
    within(30, lambda: b.run("import os; os.path.exists('/proc/%s')" % own, context_id=other).text == "False")
    same("a kernel that ends between two cells is replaced", "2", b.run("1+1").text)
    m = Box()
    run = m.run("x = bytearray(8 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1")
    check("out of memory: an error, not the end", run.error.get("name") in ("UnexpectedEndOfExecution", "MemoryError"),
          run.events)
    if harness.only("jail vm", "a sandbox outlives a cell that ran out of memory", "gVisor's memory is one: the sandbox ends"):
        same("a sandbox outlives a cell that ran out of memory", "2", m.run("1+1").text)
    else:
        m = Box()
    c, r = m.open("import time; print(1); time.sleep(60)")
    begun(r)
    m.kill()
    try:
        cut = not r.read().endswith(b"end_of_execution\"}\n")
    except (http.client.HTTPException, ConnectionError):
        cut = True
    check("a sandbox that is killed cuts its streams", cut)


def resident():
    return harness.server.status("VmRSS") << 10


def much():
    before, most, size = resident(), 0, 0
    c, r = b.open("for i in range(100): print('x' * (1 << 20))")
    for line in r:
        e = json.loads(line)
        size += len(e.get("text", "")) if e["type"] == "stdout" else 0
        most = max(most, resident()) if size % 7 == 0 else most
    same("100 MiB of output come whole", 100 * ((1 << 20) + 1), size)
    check("coved does not grow by 100 MiB of output", most - before < 40 << 20, (before, most))
    c, r = b.open("for i in range(100): print('x' * (1 << 20))")
    time.sleep(1.5)
    check("coved does not grow when no client reads the output", resident() - before < 40 << 20, (before, resident()))
    hang_up(c, r)
    same("a cell runs after 100 MiB of output", "2", b.run("1+1").text)
    run = b.run("class P:\n  def _repr_png_(self): return b'p' * (6 << 20)\nP()")
    same("a picture of 6 MB", 8 << 20, len(run.of("result")[0]["png"]))
    run = b.run("class P:\n  def _repr_png_(self): return b'p' * (30 << 20)\nP()")
    same("a picture of 30 MB is not sent, and said to be too big", ([], True), (run.of("result"), "too big" in run.err))
    same("a program's output", 5 << 20, len(b.run("import os; os.system('yes | head -c %d')" % (5 << 20)).out))


GARBAGE = """
import os, sys
k = sys.modules['cove_python'].kernel
def raw(data):
    while data: data = data[os.write(k.events, data):]
"""


def hostile():
    b.run(GARBAGE)
    for sentence, data in (("bytes", "os.urandom(5000) + b'\\n'"), ("half an event", "b'{\"type\":\"stdout\",\\n'"),
                           ("deep nesting", "b'{\"type\":\"stdout\",\"text\":\"a\",\"x\":' + b'[' * 100000 + b'\\n'"),
                           ("an event of no type", "b'{\"type\":\"x\"}\\n'"),
                           ("ends of other cells", "b'{\"type\":\"end\",\"id\":\"0\"}\\n' * 1000")):
        run = b.run("raw(%s); 5" % data)
        same("%s on the control pipe: the cell continues" % sentence, ("5", "end_of_execution"),
             (run.text, run.events[-1]["type"]))
    run = b.run("raw(b'{\"type\":\"stdout\",\"text\":\"' + b'a' * (40 << 20) + b'\"}\\n'); 6")
    same("a line of 40 MiB is dropped with words, and the cell continues", ("ResultTooBig", "6"),
         (run.error.get("name"), run.text))
    run = b.run("raw(b'{\"type\":\"stdout\",\"text\":\"a\",\"evil\":1}\\n')")
    same("unknown fields of a kernel are dropped", {"type", "text", "timestamp"}, set(run.of("stdout")[0]))
    r = b.run("for fd in range(3, 300):\n  try: os.close(fd)\n  except OSError: pass")
    same("a kernel that closes its descriptors has ended", "UnexpectedEndOfExecution", r.error.get("name"))
    same("the cell after a kernel that closed its descriptors has a new kernel", "2", b.run("1+1").text)


def policy():
    """The server's own rules, where what E2B's SDKs make is not left open."""
    harness.server.kill()
    harness.server.start("--e2b-policy", "standard")
    p = Box()
    run = p.run("import os; os.system('rm -rf /')")
    same("the policy judges cells", "PolicyError", run.error.get("name"))
    same("the policy judges cells of bash", "PolicyError", p.run("rm -rf /", language="bash").error.get("name"))
    same("a long cell is judged to its end", "PolicyError",
         p.run("x = '%s'\nimport os; os.system('rm -rf /')" % ("a" * 300000)).error.get("name"))
    same("a long cell runs", "300000", p.run("len('%s')" % ("a" * 300000)).text)
    a = ask("GET", "/audit-logs?limit=50", headers={})
    check("cells are in the audit, by their hash", b"exec.cell" in a.body and b"rm -rf" not in a.body,
          (a.status, a.body[:200]))
    p.kill()
    harness.server.kill()
    harness.server.start()


def magics():
    for sentence, code, want in (
            ("a program", "!echo $((1+2))", "3\n"),
            ("the output of a program as a value", "x = !echo a; echo b\nprint(x)", "['a', 'b']\n"),
            ("names in a command", "n = 5\nfor i in range(2):\n    !echo {i} $n", "0 5\n1 5\n"),
            ("%pwd", "print(get_ipython().run_line_magic('pwd', ''))", "/home/user\n"),
            ("%%bash", "%%bash\nA=1; echo $A", "1\n"),
            ("%%writefile", "%%writefile /tmp/f.txt\nhello", "Writing /tmp/f.txt\n"),
            ("a text with magics in it is a text", "print('''\n!x\n%y\n''')", "\n!x\n%y\n\n")):
        same("magic: " + sentence, want, b.run(code).out)
    same("magic: one that is none", "UsageError", b.run("%nope").error.get("name"))
    same("%time shows the value", ("45", True), (lambda r: (r.text, "Wall time" in r.out))(b.run("%time sum(range(10))")))
    check("help", "Docstring" in b.run("len?").out)
    same("a semicolon keeps the value back", None, b.run("5;").text)
    same("top-level await", "3", b.run("import asyncio\nawait asyncio.sleep(0.01, 3)").text)
    same("input() says why not", "EOFError", b.run("input('x')").error.get("name"))
    run = b.run("def f():\n    return 1/0\nf()")
    check("a traceback has the lines of the cell", "----> 2" in run.error["traceback"].replace("     ", "")
          or "2     return 1/0" in run.error["traceback"], run.error)
    same("exit() ends the cell, not the kernel", None, b.run("exit()").error.get("name"))
    same("a thread's output", "t\n", b.run("import threading\nt = threading.Thread(target=print, args=('t',))\n"
                                           "t.start(); t.join()").out)
    run = b.run("class A:\n" + "".join("  def _repr_%s_(self): return %r\n" % (n, n) for n in (
        "html", "markdown", "svg", "latex", "javascript")) +
        "  def _repr_png_(self): return b'png'\n  def _repr_jpeg_(self): return b'jpg'\n"
        "  def _repr_pdf_(self): return b'pdf'\n  def _repr_json_(self): return {'a': float('nan')}\n"
        "  def _repr_mimebundle_(self, **_): return {'x/y': 1}\nA()")
    got = run.of("result")[0]
    same("every look", {"html": "html", "markdown": "markdown", "svg": "svg", "latex": "latex", "javascript": "javascript",
                        "png": "cG5n", "jpeg": "anBn", "pdf": "cGRm", "json": {"a": None}, "extra": {"x/y": 1}},
         {k: v for k, v in got.items() if k not in ("type", "text", "is_main_result")})
    run = b.run("from IPython.display import display, HTML\ndisplay(HTML('<b/>'))\n5")
    same("display()", [("<b/>", False), (None, True)], [(r.get("html"), r["is_main_result"]) for r in run.of("result")])
    run = b.run("import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')")
    same("a fork that comes back", {"child", "parent"}, set(run.out.split()))
    same("a cell that forks leaves one kernel", "2", b.run("1+1").text)


def notebooks():
    """The same cells in IPython, which the tests install, and in the kernel's own way for sandboxes without it."""
    for sentence, variables, lacks in (("with IPython", {}, []), ("without IPython", {"COVE_PLAIN_CELLS": "1"}, ["IPython"])):
        n = Box(envVars=variables)
        modules = [m for m in n.run(notebook.PROBE).out.splitlines() if m not in lacks]
        check("the host has what notebooks import (%s)" % sentence, set(notebook.NEEDED) - set(lacks) <= set(modules), modules)
        notebook.run_all(lambda code: n.run(code).events,
                         lambda what, ok, more: check("%s, %s" % (sentence, what), ok, more), modules, lambda group: False)
        n.kill()


def lacks(*programs):
    """Whether the template is the host's, and the host has none of these."""
    return TEMPLATE == "host" and not all(shutil.which(p) for p in programs)


def r_language():
    run = b.run("x <- 41; x + 1", language="r")
    if lacks("Rscript"):
        check("R that is not installed says what to install", "r-base-core" in run.error.get("value", ""), run.events)
        return
    same("R", "[1] 42", run.text)
    same("R keeps its state, and prints", ("[1] 43", "hi\n"), (lambda r: (r.text, r.out))(b.run('cat("hi\\n"); x + 2', language="r")))
    lines = [e["text"] for e in b.run('for (i in 1:3) { cat("line"); cat(i); cat("\\n") }', language="r").events if e["type"] == "stdout"]
    check("R prints in whole lines", "".join(lines) == "line1\nline2\nline3\n" and all(l.endswith("\n") for l in lines), lines)
    same("an error of R", ("Error", "bad 3"), (lambda e: (e.get("name"), e.get("value")))(
        b.run('f <- function(a) stop("bad ", a)\nf(3)', language="r").error))
    check("an error of R has its calls", "f(3)" in b.run("f(3)", language="r").error.get("traceback", ""))
    same("code that R cannot read", "Error", b.run("1 +", language="r").error.get("name"))
    same("the environment of a cell", ('[1] "b"', '[1] ""'), (b.run('Sys.getenv("A")', language="r", env_vars={"A": "b"}).text,
                                                         b.run('Sys.getenv("A")', language="r").text))
    c, r = b.open('cat("in it\\n"); repeat {}', language="r")
    begun(r)
    hang_up(c, r)
    same("a loop is interrupted, and variables stay", "[1] 41", b.run("x", language="r").text)
    same("quit ends R", "ExitCode", b.run("quit(status = 3)", language="r").error.get("name"))
    same("the cell after quit has a new R", "[1] FALSE", b.run('exists("x")', language="r").text)


def java():
    run = b.run("int f(int a) { return a * 2; }\nf(5) + 1", language="java")
    if lacks("jshell", "java"):
        check("java that is not installed says what to install", "default-jdk" in run.error.get("value", ""), run.events)
        return
    same("java", "11", run.text)
    same("java keeps its state, and prints", ("12", "hi\n"), (lambda r: (r.text, r.out))(b.run('System.out.println("hi");\nf(6)', language="java")))
    read = 'System.getProperty("A") + System.getProperty("user.dir")'
    same("the environment of a cell is in Java's properties while it runs", ('b \\" ü/x', "null"), (
        b.run(read, language="java", env_vars={"A": 'b " ü', "user.dir": "/x"}).text, b.run('System.getProperty("A")', language="java").text))
    same("an exception", "ArithmeticException", b.run("1/0", language="java").error.get("name"))
    same("an error of the compiler", "CompilationError", b.run('int y = "s";', language="java").error.get("name"))
    c, r = b.open('System.out.println("in it"); while (true) { }', language="java")
    begun(r)
    hang_up(c, r)
    same("a loop is interrupted", "14", b.run("f(7)", language="java").text)


def parts():
    global b
    b = Box()
    every = (wire, refusals, private, root, magics, environment, turns, disconnects, deaths, hostile, policy, much, notebooks, r_language, java)
    some = os.environ.get("PARTS", "").split()
    for part in every:
        if not some or part.__name__ in some:
            part()
    same("the sandbox is killed", 204, b.kill())
    if not some:
        contexts()


if __name__ == "__main__":
    harness.run(parts)
