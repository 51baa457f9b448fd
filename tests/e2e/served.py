"""For tests of the server: starts coved, asks it, checks. Imported, with COVED, STATE and LOG in the environment."""
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

COVED, STATE, LOG = (os.environ[n] for n in ("COVED", "STATE", "LOG"))
failed = 0


def check(sentence, good, why=""):
    global failed
    if good:
        print("ok - " + sentence)
    else:
        failed += 1
        print("not ok - %s: %s" % (sentence, str(why)[:300].replace("\n", " ")))
    sys.stdout.flush()


def same(sentence, want, got):
    check(sentence, want == got, "got %r, not %r" % (got, want))


def finish():
    sys.exit(1 if failed else 0)


def within(seconds, test):
    end = time.time() + max(seconds, 30)
    while time.time() < end:
        if test():
            return True
        time.sleep(0.02)
    return bool(test())


def log_since(at):
    with open(LOG, "rb") as f:
        f.seek(at)
        return f.read().decode("utf-8", "replace")


def log_size():
    return os.path.getsize(LOG) if os.path.exists(LOG) else 0


class Answer:
    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()
        self.json = None
        with contextlib.suppress(ValueError):
            self.json = json.loads(self.body)
        self.error = self.json.get("error", {}) if isinstance(self.json, dict) else {}


def end_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: also when this test is killed


class Server:
    def __init__(self, *args, wrap=()):
        self.args, self.wrap, self.port, self.p = args, list(wrap), 0, None

    def start(self, *more):
        at = log_size()
        with open(LOG, "ab") as log:
            self.p = subprocess.Popen([*self.wrap, COVED, "--state", STATE, "--listen", "127.0.0.1:%d" % self.port,
                                       *self.args, *more], stderr=log, stdout=log, stdin=subprocess.DEVNULL,
                                      preexec_fn=end_with_us)
        ready = None

        def is_ready():
            nonlocal ready
            ready = re.search(r"ready listen=127\.0\.0\.1:(\d+)", log_since(at))
            return ready or self.p.poll() is not None
        within(20, is_ready)
        if not ready:
            check("coved starts", False, log_since(at)[-300:])
            sys.exit(1)
        self.port = int(ready.group(1))
        return self

    def end(self, how=signal.SIGTERM):
        self.p.send_signal(how)
        return self.p.wait(60)

    def connect(self, timeout=30):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def ask(self, method, path, body=None, key=None, headers=None, timeout=60):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        h = dict(headers or {})
        if key:
            h["X-API-Key"] = key
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        c.request(method, path, body=body, headers=h)
        a = Answer(c.getresponse())
        c.close()
        return a

    def raw(self, data, timeout=10):
        """Sends bytes on a connection of their own, and returns all that comes back."""
        s = self.connect(timeout)
        s.sendall(data)
        return read_all(s)


def read_all(s):
    got = bytearray()
    with contextlib.suppress(OSError):
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    s.close()
    return bytes(got)


def status_of(answer):
    found = re.match(rb"HTTP/1\.1 (\d+)", answer)
    return int(found.group(1)) if found else 0
