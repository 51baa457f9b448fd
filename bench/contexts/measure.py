"""Times of forks and of fresh contexts, as a client sees them over loopback. Run by bench/contexts/run."""
import os
import statistics
import sys
import time

from harness import run

sys.path.insert(0, "tests/e2e")
from interpreter import Box  # noqa: E402

IMPORTS = "import json, decimal, sqlite3"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "50"))
PAUSE = 0.25


def ms(function):
    begin = time.perf_counter()
    value = function()
    return 1000 * (time.perf_counter() - begin), value


def fork(b, context):
    a = b.ask("POST", "/contexts/%s/fork" % context, {})
    assert a.status == 200, a.body
    return a.json["id"]


def fresh(b):
    context = b.context()
    b.run(IMPORTS, context_id=context)
    return context


def rounds(b, old, times):
    for _ in range(ROUNDS):
        for name, make in (("fork", lambda: fork(b, old)), ("fresh", lambda: fresh(b))):
            took, new = ms(make)
            times[name].append(took)
            if name == "fork":
                times["first"].append(ms(lambda: b.run("1+1", context_id=new))[0])
                times["later"].append(ms(lambda: b.run("1+1", context_id=new))[0])
            b.ask("DELETE", "/contexts/" + new)
            time.sleep(PAUSE)


def measure():
    names = {"fork": "fork of a context with its imports", "first": "its first cell, asked for at once",
             "later": "a later cell", "fresh": "fresh context, and a cell with the imports"}
    b = Box()
    for megabytes in (0, 200):
        old = fresh(b)
        if megabytes:
            b.run("big = bytearray(%d)\nfor i in range(0, len(big), 4096): big[i] = 1" % (megabytes << 20), context_id=old)
        times = {name: [] for name in names}
        rounds(b, old, times)
        print("# %d MB in the context, %d rounds, ms" % (megabytes, ROUNDS))
        for name, words in names.items():
            sorted_times = sorted(times[name])
            print("#   %-44s p50 %7.1f  p95 %7.1f  least %7.1f"
                  % (words, statistics.median(sorted_times), sorted_times[int(0.95 * (len(sorted_times) - 1))], sorted_times[0]))
        b.ask("DELETE", "/contexts/" + old)
    b.kill()


run(measure)
