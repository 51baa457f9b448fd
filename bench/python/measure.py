"""The same calls by the blocking client, the asyncio client and curl, in turns, each on one kept connection.

    python3 measure.py [ROUNDS]      a table, as cove-bench prints it
"""
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

import cove

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
BLOCK = 20  # rounds of one side before the next has its turn
URL = os.environ["COVE_URL"]


def curl(method, path, body=None, accept=None):
    """Milliseconds of each of BLOCK requests of one curl, which keeps its connection; the first one, which connects, is left out."""
    with tempfile.NamedTemporaryFile("w", suffix=".curl") as config:
        for i in range(BLOCK + 1):
            config.write(f'{"next" if i else ""}\nurl = "{URL}{path}"\nrequest = {method}\noutput = /dev/null\nwrite-out = "%{{time_total}} %{{num_connects}} %{{http_code}}\\n"\nsilent\n')
            if body is not None:
                config.write(f'data = "{json.dumps(body)[:-1].replace(chr(34), chr(92) + chr(34))}}}"\nheader = "Content-Type: application/json"\n')
            if accept:
                config.write(f'header = "Accept: {accept}"\n')
        config.flush()
        said = subprocess.run(["curl", "-K", config.name], capture_output=True, text=True, check=True).stdout.split("\n")
    rows = [line.split() for line in said if line][1:]
    assert all(row[1:] == ["0", "200"] for row in rows), rows[:3]
    return [float(row[0]) * 1000 for row in rows]


def timed(function):
    times = []
    for _ in range(BLOCK):
        begun = time.perf_counter()
        function()
        times.append((time.perf_counter() - begun) * 1000)
    return times


async def timed_async(function):
    times = []
    for _ in range(BLOCK):
        begun = time.perf_counter()
        await function()
        times.append((time.perf_counter() - begun) * 1000)
    return times


def row(label, times, base=None):
    times = sorted(times)
    half, most = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
    print(f"  {label:<42} {len(times):>6} {times[0]:>9.3f} {half:>9.3f} {most:>9.3f} " + (f"{half - base:>+9.3f}" if base is not None else f"{'-':>9}"))
    return half


async def main():
    box = cove.Sandbox.create(timeout=600)
    far = cove.AsyncCove()
    remote = cove.AsyncSandbox(box.info, far)
    box.files.write("small", "x" * 1024)
    path = f"/v1/sandboxes/{box.id}"
    subjects = [
        ("GET a sandbox", lambda: curl("GET", path), box.get_info, remote.get_info),
        ("files.read, 1 kB", lambda: curl("GET", path + "/files?path=small"), lambda: box.files.read("small"), lambda: remote.files.read("small")),
        ("commands.run(['true'])", lambda: curl("POST", path + "/exec", {"args": ["true"], "stream": "ndjson"}),
         lambda: box.commands.run(["true"]), lambda: remote.commands.run(["true"])),
    ]
    print("\nThe Python client\n=================\n")
    print("One call at a time on one kept connection; more: the median's distance from curl's.\n")
    print(f"{'':<44} {'n':>6} {'min ms':>9} {'p50 ms':>9} {'p99 ms':>9} {'more ms':>9}")
    for name, by_curl, blocking, asynchronous in subjects:
        times = {"curl": [], "blocking": [], "asyncio": []}
        for _ in range(max(1, ROUNDS // BLOCK)):
            times["curl"] += by_curl()
            times["blocking"] += timed(blocking)
            times["asyncio"] += await timed_async(asynchronous)
        base = row(f"{name}: curl", times["curl"])
        row("  Sandbox", times["blocking"], base)
        row("  AsyncSandbox", times["asyncio"], base)
    far.close()
    box.kill()


asyncio.run(main())
