"""Submissions of a judge: each a python program with a sandbox of its own. Run by bench/run/run.

In turns, so that whatever else the machine does is shared by all: bare processes, POST /v1/run, and the three requests
that it stands for (create, exec, delete). As many at once as there are processors."""
import http.client
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "e2e"))
from served import Server, check, finish, within  # noqa: E402

SUBMISSIONS = int(os.environ.get("BENCH_SUBMISSIONS", "200"))
TURNS = 10
CORES = os.cpu_count()
CODE = "print(sum(range(1000)))"
PYTHON = "/usr/bin/python3"

server = Server("--pool", "host:8-32").start()


def ask(c, method, path, body=None):
    c.request(method, path, json.dumps(body) if body is not None else None)
    r = c.getresponse()
    return r.status, r.read()


def bare(c):
    return subprocess.run([PYTHON, "-c", CODE], capture_output=True, stdin=subprocess.DEVNULL).stdout


def one(c):
    status, body = ask(c, "POST", "/v1/run", {"args": [PYTHON, "-c", CODE], "timeout": 10, "cpu_timeout": 5})
    return json.loads(body)["stdout"].encode() if status == 200 else body


def three(c):
    status, body = ask(c, "POST", "/v1/sandboxes", {"timeout": 60})
    at = "/v1/sandboxes/" + json.loads(body)["id"]
    status, body = ask(c, "POST", at + "/exec", {"args": [PYTHON, "-c", CODE], "timeout": 10})
    ask(c, "DELETE", at)
    return json.loads(body)["stdout"].encode() if status == 200 else body


WAYS = {"bare processes": bare, "POST /v1/run": one, "three requests": three}
took = dict.fromkeys(WAYS, 0.0)
wrong = []


def work(way, count):
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    for _ in range(count):
        said = way(c)
        if said != b"499500\n":
            wrong.append(said)


def turn(name, count):
    threads = [threading.Thread(target=work, args=(WAYS[name], count // CORES)) for _ in range(CORES)]
    begin = time.perf_counter()
    [t.start() for t in threads]
    [t.join() for t in threads]
    return time.perf_counter() - begin


def pool_full():
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    return any(p["ready"] >= 8 for p in json.loads(ask(c, "GET", "/v1/pools")[1])["pools"])


for name in WAYS:
    turn(name, 2 * CORES)
for n in range(TURNS):
    for name in WAYS:
        within(30, pool_full)  # each begins with the same pool
        took[name] += turn(name, SUBMISSIONS // TURNS)
done = SUBMISSIONS // TURNS // CORES * CORES * TURNS
rate = {name: done / seconds for name, seconds in took.items()}
print("# python one-shots, %d of each, %d at once, per second" % (done, CORES))
for name in WAYS:
    print("#   %-20s %8.1f" % (name, rate[name]))
print("# one request: %.2f times three requests (target 1.5), %.0f %% of bare processes (target 70)" %
      (rate["POST /v1/run"] / rate["three requests"], 100 * rate["POST /v1/run"] / rate["bare processes"]))
check("each gave its answer", not wrong, wrong[:1])
server.end()
finish()
