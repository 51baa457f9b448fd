"""BOXES sandboxes on one image read a file of 32 MiB: the kernel has it in memory once. Run by image_cache_test, and by bench/image/run.

Page cache counts for the cgroup of the sandbox that read it first. So the sum of all sandboxes' cgroups grows by the file's size if they
share it, and by BOXES times as much if they do not; what others do on the machine does not matter. With CREATES, creates on the image,
on one of four files and on the template BASE are timed in turns, and the host's own count of page cache is shown."""
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from harness import Server, check, finish, same

BOXES, CREATES = int(os.environ["BOXES"]), int(os.environ.get("CREATES") or 0)
SIZE, OWN = 32 << 20, 8 << 20
CGROUPS = "/sys/fs/cgroup/memory" if os.path.isdir("/sys/fs/cgroup/memory") else "/sys/fs/cgroup"
server = Server("--local", "yes", "--pool", "off").start()
ask = server.ask


def create(template="large"):
    a = ask("POST", "/v1/sandboxes", {"template": template, "timeout": 3600, "limits": {"memory": "64m", "disk": "64m"}})
    return a.json["id"] if a.status == 201 else check("a sandbox is made", False, a.body) or ""


def run(box, command):
    return (ask("POST", "/v1/sandboxes/%s/exec" % box, {"args": ["/busybox", "sh", "-c", command]}).json or {}).get("exit_code")


def read(box):
    return run(box, "/busybox cat /large >/dev/null")


def cached():
    """Bytes of page cache on the host."""
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("Cached:"))


def charged(boxes):
    """Bytes of page cache that count for these sandboxes."""
    wanted, total = set(boxes), 0
    for path, dirs, _ in os.walk(CGROUPS):
        for name in wanted.intersection(dirs):
            with open(os.path.join(path, name, "memory.stat")) as f:
                stat = dict(line.split() for line in f)
            total += int(stat.get("total_cache", stat.get("file", 0)))
        dirs[:] = [name for name in dirs if name not in wanted]
    return total


def shared(sentence, boxes, act):
    """What `act` adds to the page cache of these is at most the file, and once more for the file below the image's file system."""
    before = charged(boxes)
    act()
    grown = charged(boxes) - before
    check(sentence, grown < SIZE * 5 // 2, "%.1f times the file's size" % (grown / SIZE))
    return grown


pool = ThreadPoolExecutor(4)
boxes = [box for box in pool.map(lambda _: create(), range(BOXES)) if box]
same("%d sandboxes are on one image" % BOXES, BOXES, len(boxes))
host = cached()
codes = []
grown = shared("the image's file is in memory once for %d sandboxes that read it" % BOXES, boxes, lambda: codes.extend(pool.map(read, boxes)))
same("every sandbox has read the file", {0}, set(codes))
print("# page cache of %d sandboxes grew by %.0f MiB for a file of %d MiB; the host's by %.0f MiB" % (BOXES, grown / 2**20, SIZE >> 20, (cached() - host) / 2**20))

before = charged(boxes[:3])
same("three sandboxes write a file each", {0}, {run(box, "/busybox dd if=/dev/urandom of=/tmp/own bs=1M count=%d 2>/dev/null" % (OWN >> 20)) for box in boxes[:3]})
check("a file of a sandbox's own is in memory for each sandbox", charged(boxes[:3]) - before > 3 * OWN * 9 // 10, charged(boxes[:3]) - before)

if os.environ.get("SAVES"):
    forks = ask("POST", "/v1/sandboxes/%s/fork" % boxes[3], {"count": 2}).json
    forks = [f["sandbox"]["id"] for f in forks.get("forks", []) if f.get("sandbox")]
    same("a sandbox on the image is forked", 2, len(forks))
    ask("POST", "/v1/sandboxes/%s/pause" % boxes[4], {"tier": "disk"})
    same("a sandbox on the image is paused to disk and resumed", 200, ask("POST", "/v1/sandboxes/%s/resume" % boxes[4]).status)
    some = forks + [boxes[4]]
    grown = shared("forks and a resumed sandbox share the file in memory", some, lambda: same("forks and a resumed sandbox read the file", {0}, {read(box) for box in some}))
    check("forks and a resumed sandbox have the file in memory already", grown < SIZE // 2, grown)
    boxes += forks

if CREATES:
    names = {"large": "an imported image", "several": "an image of four files"}
    took = {template: [] for template in [*names, os.environ["BASE"]]}
    for _ in range(CREATES):
        for template, times in took.items():
            begin = time.perf_counter()
            box = create(template)
            times.append((time.perf_counter() - begin) * 1000)
            ask("DELETE", "/v1/sandboxes/" + box)
    medians = {template: statistics.median(times) for template, times in took.items()}
    for template, ms in medians.items():
        print("create from %-34s %6.2f ms" % (names.get(template, "'%s'" % template), ms))
    print("the image's by that of '%s' (target 1.10)       %6.2f" % (os.environ["BASE"], medians["large"] / medians[os.environ["BASE"]]))
    print("that of four files by that of one (target 1.10)  %6.2f" % (medians["several"] / medians["large"]))

list(pool.map(lambda box: ask("DELETE", "/v1/sandboxes/" + box), boxes))
server.end()
finish()
