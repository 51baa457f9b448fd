"""First cells as a client sees them over loopback. Run by bench/cells/run."""
import json
import os
import statistics
import sys
import time

from harness import ask, check, run, within

sys.path.insert(0, "tests/e2e")
from interpreter import Box  # noqa: E402

TEMPLATE, HOW = os.environ["TEMPLATE"], os.environ["HOW"]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "15"))
WORDS = {"cold": "without a memory image", "warm": "with a memory image", "pool": "with a memory image, from a pool"}
POOL = ("--pool", "%s:2-4" % TEMPLATE, "--pool-memory", "1G")
CELL = ("import pandas as pd, matplotlib.pyplot as plt\n"
        "plt.figure()\n"
        "print(pd.DataFrame({'a': [1, 2]}).a.sum())")


def waits():
    """How many of the template wait, and how many creates found one."""
    pools = [p for p in ask("GET", "/v1/pools").json["pools"] if p["template"] == TEMPLATE]
    return sum(p["ready"] for p in pools), sum(p["hits"] for p in pools)


def first_output(box):
    link, answer = box.open(CELL)
    for line in answer:
        event = json.loads(line)
        assert event["type"] != "error", event
        if event.get("text") == "3\n":
            break
    else:
        raise AssertionError("the cell ended without its output")
    done = time.perf_counter()
    answer.read()
    link.close()
    return done


def row(words, times):
    times = sorted(times)
    print("#   %-28s p50 %7.1f  p95 %7.1f  least %7.1f" % (words, statistics.median(times), times[int(0.95 * (len(times) - 1))], times[0]))


def measure():
    creates, cells, both = [], [], []
    for _ in range(ROUNDS):
        if HOW == "pool":
            check("one waits in the pool", within(60, lambda: waits()[0] > 0))
        begin = time.perf_counter()
        box = Box()
        made = time.perf_counter()
        done = first_output(box)
        creates.append(1000 * (made - begin))
        cells.append(1000 * (done - made))
        both.append(1000 * (done - begin))
        box.kill()
    if HOW == "pool":
        check("every create found one", waits()[1] == ROUNDS, waits())
    print("# %s, %s, %d rounds, ms, load %.0f" % (TEMPLATE, WORDS[HOW], ROUNDS, os.getloadavg()[0]))
    row("create", creates)
    row("first output of a cell", cells)
    row("both", both)


run(measure, settings=POOL if HOW == "pool" else ("--pool", "off"))
