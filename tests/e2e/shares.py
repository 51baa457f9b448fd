"""Shares of what all tenants use together: one tenant exceeds each, and another does not notice. Run by shares_test."""
import os
import threading
import time

from served import Server, check, finish, same

GREEDY, OTHER = os.environ["GREEDY"], os.environ["OTHER"]
HANG = 60


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
    same("and told why", ("too_many", "policy", "quota", "1"),
         (refused[0].error["code"], refused[0].error["rule"], refused[0].error["layer"], refused[0].headers["Retry-After"]) if refused else None)
    check("another tenant's commands run meanwhile", other.count > 3 and not other.bad, (other.count, other.bad[:3]))
    end = time.time() + HANG
    work_again = lambda: s.ask("POST", "/v1/policy/analyze", {"command": "ls"}, key=GREEDY).status
    while work_again() == 429 and time.time() < end:
        time.sleep(0.05)
    same("the share comes back with time", 200, work_again())


s = Server("--policy-share", "1").start()
policy(s)
s.end()
finish()
