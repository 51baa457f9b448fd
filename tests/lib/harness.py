"""What the Python programs of tests and benchmarks share: ok lines, waiting, a coved of their own and requests to it.

`run_python` of tests/e2e/lib.sh runs such a program with COVED, STATE and LOG in its environment:

    from harness import ask, check, run, same

    def health():
        same("the server is healthy", 200, ask("GET", "/health").status)

    run(health)

A program that starts more than one server, or none, uses Server by itself and ends with finish()."""
import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

COVED, STATE, LOG = (os.environ.get(name, "") for name in ("COVED", "STATE", "LOG"))
ISOLATION, SLOW = os.environ.get("COVE_TEST_ISOLATION") or "jail", int(os.environ.get("SLOW") or 1)  # as tests/e2e/lib.sh says
NO_SAVE = os.environ.get("COVE_TEST_NO_SAVE", "")
passed, failures = [], []


# ---- ok lines ----
def check(sentence, good, why=""):
    (passed if good else failures).append(sentence)
    print("ok - " + sentence if good else "not ok - %s: %s" % (sentence, str(why)[:600].replace("\n", " ")), flush=True)
    return good


def same(sentence, want, got):
    return check(sentence, want == got, "got %r, not %r" % (got, want))


def empty(sentence, found):
    """A list of what is wrong."""
    found = sorted(found)
    return check(sentence, not found, "; ".join(found[:5]))


def refused(sentence, answer, status, code, field=None):
    """An error of the native API: its status, its code, and the field that is to blame."""
    e = answer.error
    got = (answer.status, e.get("code"), e.get("field"))
    check(sentence, got == (status, code, field) and e.get("message"), "%s %s" % (got, answer.body[:200]))


def skip(sentence, reason):
    print("skip - %s: %s" % (sentence, reason), flush=True)


def only(isolations, what, reason):
    """Whether what follows holds for the isolation of this run. Where it does not, the line says so."""
    if ISOLATION.replace("-emulated", "") in isolations.split():
        return True
    skip(what, "only %s: %s" % (isolations.replace(" ", " and "), reason))
    return False


def must(sentence, good, why=""):
    """A check without which the rest makes no sense."""
    return good or (check(sentence, good, why), finish())


def finish():
    sys.exit(1 if failures else 0)


# ---- waiting ----
def within(seconds, condition):
    """What a condition returns once it is true, or after the time, which is half a minute at least: machines are slow, or busy."""
    end = time.time() + max(seconds, 30) * SLOW
    while time.time() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.05)
    return condition()


# ---- answers ----
class Answer:
    """json is None where there is none, and error the native API's, or empty."""

    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()
        self.type, self.json = r.headers.get("Content-Type", ""), None
        if "json" in self.type:
            with contextlib.suppress(ValueError):
                self.json = json.loads(self.body)
        self.error = self.json.get("error") if isinstance(self.json, dict) else None
        self.error = self.error if isinstance(self.error, dict) else {}


def request(c, method, path, body=None, key=None, headers=None, keep=False, **how):
    h = dict(headers or {})
    if key:
        h["X-API-Key"] = key
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    try:
        c.request(method, path, body=body, headers=h, **how)
        return Answer(c.getresponse())
    finally:
        if not keep:
            c.close()


def read_all(s):
    got = bytearray()
    with contextlib.suppress(OSError):
        while more := s.recv(65536):
            got += more
    s.close()
    return bytes(got)


def status_of(answer):
    found = re.match(rb"HTTP/1\.1 (\d+)", answer)
    return int(found.group(1)) if found else 0


# ---- the server ----
def log_size():
    return os.path.getsize(LOG) if os.path.exists(LOG) else 0


def log_since(at):
    with open(LOG, "rb") as f:
        f.seek(at)
        return f.read().decode("utf-8", "replace")


def end_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: also when this test is killed


class Server:
    """A coved with these flags. It keeps its port when it is started again."""

    def __init__(self, *flags, wrap=(), state=STATE):
        self.flags, self.wrap, self.state, self.port, self.p = flags, wrap, state, 0, None

    def start(self, *more):
        at = log_size()
        with open(LOG, "ab") as log:
            self.p = subprocess.Popen([*self.wrap, COVED, "--state", self.state, "--listen", "127.0.0.1:%d" % self.port, *self.flags, *more],
                                      stderr=log, stdout=log, stdin=subprocess.DEVNULL, preexec_fn=end_with_us)

        def ready():
            return re.search(r"ready listen=127\.0\.0\.1:(\d+)", log_since(at))
        within(20, lambda: ready() or self.p.poll() is not None)
        self.port = int(must("coved starts", ready(), log_since(at)[-300:]).group(1))
        return self

    def end(self, how=signal.SIGTERM):
        self.p.send_signal(how)
        try:
            return self.p.wait(60 * SLOW)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            return None

    def kill(self):
        return self.end(signal.SIGKILL)

    def status(self, field):
        """A number of /proc/PID/status: VmRSS and VmHWM in KiB, Threads."""
        with open("/proc/%d/status" % self.p.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith(field + ":"))

    def connect(self, timeout=30):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout * SLOW)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def http(self, timeout=60):
        """A connection for several requests, or for an answer that is read in pieces."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * SLOW)

    def ask(self, method, path, body=None, key=None, headers=None, timeout=60, link=None, **how):
        """One request, on a connection of its own unless link is one of http()'s. A dict or a list is sent as JSON."""
        return request(link or self.http(timeout), method, path, body, key, headers, keep=link is not None, **how)

    def raw(self, data, timeout=10):
        """Sends bytes on a connection of their own, and returns all that comes back."""
        s = self.connect(timeout)
        s.sendall(data)
        return read_all(s)


# ---- programs with one server ----
server = Server("--head-timeout", "1500ms")
ask = server.ask


def run(*parts, settings=()):
    """The parts of a test, against a server with these flags; then the end of both."""
    server.start(*settings)
    try:
        for part in parts:
            part()
    finally:
        ended = server.end()
    same("SIGTERM ends it cleanly", 0, ended)
    finish()
