"""What tests that ask coved share: starting it, asking, and saying how it went. Arguments of the test: coved, state
directory, log file."""
import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
import time

COVED, STATE, LOG = sys.argv[1:4]
failures = []


def check(sentence, good, why=""):
    if good:
        print("ok - " + sentence)
    else:
        failures.append(sentence)
        print("not ok - %s: %s" % (sentence, str(why)[:300].replace("\n", " ")))
    sys.stdout.flush()


def same(sentence, want, got):
    check(sentence, want == got, "got %r, not %r" % (got, want))


def within(seconds, true):
    end = time.time() + seconds
    while not true():
        if time.time() > end:
            return False
        time.sleep(0.05)
    return True


# ---- the server ----
class Server:
    def start(self, *more):
        with open(LOG, "ab") as log:
            at = log.tell()
            self.p = subprocess.Popen([COVED, "--state", STATE, "--listen", "127.0.0.1:%d" % getattr(self, "port", 0),
                                       "--head-timeout", "1500ms", *more], stderr=log, stdin=subprocess.DEVNULL)
        end = time.time() + 20
        while time.time() < end:
            with open(LOG, "rb") as f:
                f.seek(at)
                found = re.search(rb"ready listen=127\.0\.0\.1:(\d+)", f.read())
            if found:
                self.port = int(found.group(1))
                return
            time.sleep(0.02)
        print("not ok - coved starts: " + open(LOG).read()[-300:])
        sys.exit(1)

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()


server = Server()


class Answer:
    pass


def ask(method, path, body=None, headers=None, key=None, raw=False):
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    h = dict(headers or {})
    if key:
        h["X-API-Key"] = key
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    c.request(method, path, body=body, headers=h)
    r = c.getresponse()
    a = Answer()
    a.status, a.headers, a.body = r.status, r.headers, r.read()
    a.json = None
    if not raw and a.body and "json" in r.headers.get("Content-Type", ""):
        with contextlib.suppress(ValueError):
            a.json = json.loads(a.body)
    c.close()
    return a


def refused(sentence, a, status, code, field=None):
    e = (a.json or {}).get("error", {})
    got = (a.status, e.get("code"), e.get("field"))
    check(sentence, got == (status, code, field) and e.get("message"), "%s %s" % (got, a.body[:200]))


def run(*parts, settings=()):
    """The parts of a test against a server of its own, with these flags; then ends both."""
    server.start(*settings)
    try:
        for part in parts:
            part()
    finally:
        server.p.send_signal(signal.SIGTERM)
        try:
            server.p.wait(40)
        except subprocess.TimeoutExpired:
            server.kill()
    same("SIGTERM ends it cleanly", 0, server.p.returncode)
    sys.exit(1 if failures else 0)
