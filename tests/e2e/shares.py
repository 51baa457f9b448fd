"""Shares of what all tenants use together: one tenant exceeds each, and another does not notice. Run by shares_test."""
import os
import select
import subprocess
import threading
import time

from harness import STATE, Server, check, finish, read_all, same, status_of, within

GREEDY, OTHER = os.environ["GREEDY"], os.environ["OTHER"]
HANG = 60


def cove(*args):
    subprocess.run([os.environ["COVE"], "--state", STATE, *args], check=True)


class Other:
    """Another tenant, that runs a command again and again."""

    def __init__(self, server):
        self.s, self.bad, self.count, self.over = server, [], 0, False
        self.box = server.ask("POST", "/v1/sandboxes", {"timeout": 600}, key=OTHER).json["id"]

    def loop(self):
        while not self.over:
            a = self.s.ask("POST", "/v1/sandboxes/%s/exec" % self.box, {"command": "echo hello | cat"}, key=OTHER, timeout=HANG)
            self.count += 1
            if a.status != 200 or a.json["exit_code"] != 0:
                self.bad.append((a.status, a.body[:200]))

    def __enter__(self):
        self.t = threading.Thread(target=self.loop)
        self.t.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.t.join()
        self.s.ask("DELETE", "/v1/sandboxes/" + self.box, key=OTHER)


def crowd(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]


def policy(s):
    """Analyses of commands: long texts that are much work."""
    text = {"command": "".join("cat f%d > g%d;" % (i, i) for i in range(14000))}
    answers, end = [], time.time() + HANG

    def work():
        while time.time() < end and sum(a.status == 429 for a in answers) < 20:
            answers.append(s.ask("POST", "/v1/policy/analyze", text, key=GREEDY, timeout=HANG))

    with Other(s) as other:
        crowd(4, work)
    refused = [a for a in answers if a.status == 429]
    check("a tenant that has the policy analyse all the time is refused in between", len(refused) >= 20, [a.status for a in answers])
    same("a refusal of the policy's analysis says why", ("too_many", "policy", "quota", "1"),
         (refused[0].error["code"], refused[0].error["rule"], refused[0].error["layer"], refused[0].headers["Retry-After"]) if refused else None)
    check("another tenant's commands run while one has the policy analyse all the time", other.count > 3 and not other.bad, (other.count, other.bad[:3]))
    check("the share comes back with time", within(HANG, lambda: s.ask("POST", "/v1/policy/analyze", {"command": "ls"}, key=GREEDY).status == 200))


HANGING = """
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        while self.path == "/hang":
            time.sleep(1)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")
http.server.ThreadingHTTPServer(("127.0.0.1", 3000), Handler).serve_forever()
"""


def visitors(s):
    """Visitors of a public port whom nobody knows: 130 that hang."""
    box = s.ask("POST", "/v1/sandboxes", {"timeout": 600, "preview": {"public": True}}, key=GREEDY).json["id"]
    s.ask("PUT", "/v1/sandboxes/%s/files?path=site.py" % box, HANGING, key=GREEDY)
    s.ask("POST", "/v1/sandboxes/%s/processes" % box, {"command": "exec python3 site.py"}, key=GREEDY)
    host = {"Host": "3000-%s.localhost" % box}
    check("a visitor sees a public port", within(HANG, lambda: s.ask("GET", "/", headers=host).body == b"hi"))

    def hang(path="/hang"):
        c = s.connect(HANG)
        c.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host["Host"])).encode())
        return c

    with Other(s) as other:
        waiting = [hang() for _ in range(130)]
        ready = lambda: sum(bool(select.select([c], [], [], 0)[0]) for c in waiting)
        check("of 130 visitors that hang, 80 are refused", within(HANG, lambda: ready() >= 80), ready())
        refused = [read_all(c) for c in waiting if select.select([c], [], [], 0)[0]]
        same("visitors beyond half of the streams are refused at once, and told to come again", [(429, True)] * 80,
             [(status_of(r), b"Retry-After: " in r) for r in refused][:80])
        same("the owner reaches the port", b"hi", s.ask("GET", "/", headers=host, key=GREEDY).body)
        same("the owner of a port has streams while visitors hang", 200, s.ask("GET", "/v1/sandboxes/%s/ports/3000/" % box, key=GREEDY).status)
        link = s.ask("POST", "/v1/sandboxes/%s/ports/3000/link" % box, {}, key=GREEDY).json["token"]
        same("a client with the owner's link has streams while visitors hang", 303, s.ask("GET", "/?cove_token=" + link, headers=host).status)
        same("a client with the cookie of a link has streams while visitors hang", 200, s.ask("GET", "/", headers={**host, "Cookie": "cove-preview=" + link}).status)
        held = [c for c in waiting if c.fileno() >= 0]
        check("a server that lets visitors wait is given up", within(HANG, lambda: all(select.select([c], [], [], 0)[0] for c in held)))
        same("a server that lets visitors wait is given up with 504", {504}, {status_of(read_all(c)) for c in held})
        same("visitors are served again after a server that let them wait", 200, s.ask("GET", "/", headers=host).status)
    check("another tenant's commands run while visitors hang", other.count > 3 and not other.bad, (other.count, other.bad[:3]))
    # The rate, too.
    cove("tenant", "set", "greedy", "--requests-per-s", "40")
    check("visitors get no more than half of the tenant's requests", within(HANG, lambda: 429 in [s.ask("GET", "/", headers=host).status for _ in range(40)]))
    same("the owner has the other half", [200] * 5, [s.ask("GET", "/v1/sandboxes", key=GREEDY).status for _ in range(5)])
    cove("tenant", "set", "greedy", "--requests-per-s", "0")
    s.ask("DELETE", "/v1/sandboxes/" + box, key=GREEDY)


def images(s):
    """Saved images: the keeper has room for so many of all tenants."""
    cove("tenant", "set", "greedy", "--images", "3")
    box = s.ask("POST", "/v1/sandboxes", {"timeout": 600}, key=GREEDY).json["id"]
    save = lambda key, box: s.ask("POST", "/v1/sandboxes/%s/snapshots" % box, {"memory": False}, key=key)
    own = s.ask("POST", "/v1/sandboxes", {"timeout": 600}, key=OTHER).json["id"]
    check("a tenant's quota counts within a second", within(HANG, lambda: save(GREEDY, box).status == 429))
    kept = [i["id"] for i in s.ask("GET", "/v1/snapshots", key=GREEDY).json["snapshots"]]
    check("no more images than the quota says", len(kept) >= 3, kept)
    a = save(GREEDY, box)
    same("a snapshot beyond the quota names the quota", (429, "too_many", "images", "quota"), (a.status, a.error.get("code"), a.error.get("rule"), a.error.get("layer")))
    a = s.ask("POST", "/v1/sandboxes/%s/pause" % box, {"tier": "disk"}, key=GREEDY)
    check("a pause to disk is none of them: the sandbox stays in memory", a.status == 200 and a.json["tier"] != "disk" and
          "quota of images" in (a.json["fallback_reason"] or ""), a.body)
    s.ask("POST", "/v1/sandboxes/%s/resume" % box, {}, key=GREEDY)
    a = s.ask("POST", "/v1/sandboxes/%s/fork" % box, {}, key=GREEDY)
    same("a fork beyond the quota of images is refused", (429, "images"), (a.status, a.error.get("rule")))
    a = save(OTHER, own)
    same("another tenant's snapshot is made while one is at its quota", 201, a.status)
    s.ask("DELETE", "/v1/snapshots/" + a.json["id"], key=OTHER)
    while len(kept) >= 3:
        s.ask("DELETE", "/v1/snapshots/" + kept.pop(), key=GREEDY)
    a = save(GREEDY, box)
    same("what is removed leaves room", 201, a.status)
    for i in kept + [a.json["id"]]:
        s.ask("DELETE", "/v1/snapshots/" + i, key=GREEDY)
    for key, i in ((GREEDY, box), (OTHER, own)):
        s.ask("DELETE", "/v1/sandboxes/" + i, key=key)


s = Server().start()
images(s)
s.end()
s = Server("--policy-share", "1").start()
policy(s)
s.end()
s = Server("--visitor-timeout", "5s").start()
visitors(s)
s.end()
finish()
