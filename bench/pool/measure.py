"""Creates from a pool and without, as a client sees them over one connection. Run by bench/pool/run.

The two differ in one thing alone: those that are made may open a few files less, which no pool has."""
import os
import re
import statistics
import time

from harness import Server, check, finish, within

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "100"))
FILES = 16384

server = Server("--pool", "host:8-8").start()
link = server.http()


def ask(method, path, body=None):
    return server.ask(method, path, body, link=link)


def pools():
    return ask("GET", "/v1/pools").json["pools"]


def ready():
    return any(p["ready"] == 8 for p in pools())


def row(name, times):
    times = sorted(times)
    print("#   %-34s p50 %7.2f  p95 %7.2f  least %7.2f" % (name, statistics.median(times), times[int(0.95 * (len(times) - 1))], times[0]))
    return statistics.median(times)


def spent():
    """Of the server on creates, in ms, since its start."""
    return 1000 * float(re.search(r"^sandbox_startup_time_seconds_sum (\S+)", ask("GET", "/metrics").body.decode(), re.M)[1])


took, server_took = {"pool": [], "cold": []}, {"pool": [], "cold": []}
for n in range(ROUNDS):
    within(30, ready)
    for name, files in (("pool", FILES), ("cold", FILES - 1 - n)):  # another each time: so that none is learned
        before = spent()
        begin = time.perf_counter()
        made = ask("POST", "/v1/sandboxes", {"limits": {"files": files}})
        took[name].append(1000 * (time.perf_counter() - begin))
        assert made.status == 201, made.body
        server_took[name].append(spent() - before)
        ask("DELETE", "/v1/sandboxes/" + made.json["id"])
print("# creates, %d rounds, ms" % ROUNDS)
ratio = row("made", took["cold"]) / row("taken from the pool", took["pool"])
row("made, in the server", server_took["cold"])
row("taken, in the server", server_took["pool"])
with open(os.environ["KEEPER_LOG"]) as f:
    row("of which the keeper", [int(us) / 1000 for us in re.findall(r"taken sandbox=.* us=(\d+)", f.read())])
print("# %.1f times as fast" % ratio)
hits = sum(p["hits"] for p in pools())
check("each of them was taken", hits == ROUNDS, hits)
finish()
