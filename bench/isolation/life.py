"""What a sandbox of each isolation costs while it lives: memory of many idle ones, and how long it takes to put one on disk and to copy it.

Each row is of one server without a pool. What an isolation cannot do is said, with its own words."""
import os
import time

ALIVE = {"jail": int(os.environ.get("BENCH_JAILS", "100")), "gvisor": int(os.environ.get("BENCH_GVISORS", "10"))}
MACHINES = int(os.environ.get("BENCH_MACHINES", "100"))
SLEEPS = int(os.environ.get("BENCH_SLEEPS", "3"))


def available_mb():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) / 1024


def made(client, isolation, template, memory):
    status, box = client.ask("POST", "/v1/sandboxes", {"isolation": isolation, "template": template, "limits": {"memory": memory}, "timeout": 3600})
    if status != 201:
        raise RuntimeError(box["error"]["message"])
    return box["id"]


def answers(client, box):
    _, said = client.ask("POST", f"/v1/sandboxes/{box}/exec", {"command": "echo hi"})
    if said.get("stdout") != "hi\n":
        raise RuntimeError(f"{box} printed {said}")


def crowd(client, isolation, template, memory):
    """So many alive at once: seconds to make them, MB of the host for each, and whether all answer."""
    count = ALIVE.get(isolation, MACHINES)
    if count == 0:
        return
    boxes, why = [], None
    try:
        client.ask("DELETE", "/v1/sandboxes/" + made(client, isolation, template, memory))  # the first of its size makes the memory of the others
    except RuntimeError as error:
        print(f"{isolation}: {error}")
        return
    before, begin = available_mb(), time.perf_counter()
    try:
        while len(boxes) < count:
            boxes.append(made(client, isolation, template, memory))
            answers(client, boxes[-1])
        took, used = time.perf_counter() - begin, before - available_mb()
        for box in boxes:
            answers(client, box)
        print(f"{isolation}: {count} alive at once, made in {took:.1f} s, {used / count:.1f} MB of the host each, all answer")
    except RuntimeError as error:
        why = error
    for box in boxes:
        client.ask("DELETE", f"/v1/sandboxes/{box}")
    if why:
        print(f"{isolation}: {len(boxes)} of {count} alive at once: {why}")


def step(client, box, path, body):
    begin = time.perf_counter()
    status, said = client.ask("POST", f"/v1/sandboxes/{box}/{path}", body)
    if status >= 300:
        raise RuntimeError(said["error"]["message"])
    return (time.perf_counter() - begin) * 1000, said


def sleep_once(client, isolation, template, memory, rows):
    box = made(client, isolation, template, memory)
    boxes = [box]
    try:
        answers(client, box)
        took, paused = step(client, box, "pause", {"tier": "disk"})
        if paused.get("tier") != "disk":
            raise RuntimeError(f"isolation '{isolation}' has no pause to disk")
        rows.setdefault("pause to disk", []).append(took)
        begin = time.perf_counter()
        step(client, box, "resume", {})
        answers(client, box)
        rows.setdefault("resume from disk to the first answer", []).append((time.perf_counter() - begin) * 1000)
        begin = time.perf_counter()
        fork = step(client, box, "fork", {"count": 1})[1]["forks"][0]
        if fork["error"]:
            raise RuntimeError(fork["error"]["message"])
        boxes.append(fork["sandbox"]["id"])
        answers(client, boxes[-1])
        rows.setdefault("fork to the first answer of the copy", []).append((time.perf_counter() - begin) * 1000)
    finally:
        for box in boxes:
            client.ask("DELETE", f"/v1/sandboxes/{box}")


def sleeping(client, isolation, template, memory, row):
    rows = {}
    try:
        for _ in range(SLEEPS):
            sleep_once(client, isolation, template, memory, rows)
    except RuntimeError as why:
        print(f"{isolation}, on disk: {why}")
    for name, values in rows.items():
        row(f"{isolation}, {name}", values)


def lives(client, kinds, row):
    """kinds: (isolation, template). Machines are small, so that as many as possible fit."""
    print("\nmemory of idle sandboxes, 128 MiB each\n")
    for isolation, template in kinds:
        crowd(client, isolation, template, "128m")
    print(f"\non disk and back, {SLEEPS} rounds, ms\n\n| | p50 | p95 | least |\n|---|---|---|---|")
    for isolation, template in kinds:
        sleeping(client, isolation, template, "128m", row)
