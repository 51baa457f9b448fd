"""Submissions of a judge: each a python program with a sandbox of its own. Run by bench/run/run.

In turns, so that whatever else the machine does is shared by all: bare processes, POST /v1/run, and the three requests
that it stands for (create, exec, delete). As many at once as there are processors. A turn ends when the pools are as full
as at its beginning: sandboxes that were made ahead are paid for in the turn that took them. While they are made, one processor
is idle; so the processor time of the whole machine is measured, too."""
import os
import subprocess
import threading
import time

from harness import Server, check, finish

SUBMISSIONS = int(os.environ.get("BENCH_SUBMISSIONS", "400"))  # of each way
TURNS = 2
CORES = os.cpu_count()
CODE = "print(sum(range(1000)))"
PYTHON = "/usr/bin/python3"

server = Server("--pool", "host:8-32").start()


def ask(c, method, path, body=None):
    return server.ask(method, path, body, link=c)


def said(a):
    return a.json["stdout"].encode() if a.status == 200 else a.body


def bare(c):
    return subprocess.run([PYTHON, "-c", CODE], capture_output=True, stdin=subprocess.DEVNULL).stdout


def one(c):
    return said(ask(c, "POST", "/v1/run", {"args": [PYTHON, "-c", CODE], "timeout": 10, "cpu_timeout": 5}))


def three(c):
    at = "/v1/sandboxes/" + ask(c, "POST", "/v1/sandboxes", {"timeout": 60}).json["id"]
    a = ask(c, "POST", at + "/exec", {"args": [PYTHON, "-c", CODE], "timeout": 10})
    ask(c, "DELETE", at)
    return said(a)


WAYS = {"bare processes": bare, "POST /v1/run": one, "three requests": three}
took = dict.fromkeys(WAYS, 0.0)
busy = dict.fromkeys(WAYS, 0.0)
wrong = []


def work(way, count):
    c = server.http()
    for _ in range(count):
        output = way(c)
        if output != b"499500\n":
            wrong.append(output)


def turn(name, count):
    threads = [threading.Thread(target=work, args=(WAYS[name], count // CORES)) for _ in range(CORES)]
    begin, used = time.perf_counter(), processor_ms()
    [t.start() for t in threads]
    [t.join() for t in threads]
    while not pool_full():  # a sleep of within's would be a part of what is measured
        time.sleep(0.002)
    return time.perf_counter() - begin, processor_ms() - used


def processor_ms():
    """What all processors of this machine worked so far: not idle, not waiting for a disk, not taken by its host."""
    with open("/proc/stat") as f:
        user, nice, system, idle, wait, irq, softirq = map(int, f.readline().split()[1:8])
    return (user + nice + system + irq + softirq) * 1000 / os.sysconf("SC_CLK_TCK")


def pool_full():
    return all(p["ready"] >= p["target"] for p in server.ask("GET", "/v1/pools").json["pools"])


for name in WAYS:
    turn(name, SUBMISSIONS // TURNS)  # not counted: the pools grow with what is asked of them
for n in range(TURNS):
    for name in WAYS:
        seconds, ms = turn(name, SUBMISSIONS // TURNS)
        took[name] += seconds
        busy[name] += ms
done = SUBMISSIONS // TURNS // CORES * CORES * TURNS
rate = {name: done / seconds for name, seconds in took.items()}
print("# python one-shots, %d of each, %d at once: per second, and processor time of each" % (done, CORES))
for name in WAYS:
    print("#   %-20s %8.1f %8.1f ms" % (name, rate[name], busy[name] / done))
print("# one request: %.2f times three requests (target 1.5), %.0f %% of bare processes (target 70)" %
      (rate["POST /v1/run"] / rate["three requests"], 100 * rate["POST /v1/run"] / rate["bare processes"]))
print("# by processor time: %.2f times three requests, %.0f %% of bare processes" %
      (busy["three requests"] / busy["POST /v1/run"], 100 * busy["bare processes"] / busy["POST /v1/run"]))
check("each gave its answer", not wrong, wrong[:1])
server.end()
finish()
