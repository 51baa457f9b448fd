"""Measures what bench/isolation/run says, and prints it as a table. Times are of one client over one connection."""
import json
import os
import shutil
import subprocess
import time

from harness import Server, within
from life import lives

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "20"))
BOOTS = int(os.environ.get("BENCH_BOOTS", "2"))
scratch = os.environ["SCRATCH"]


class Client:
    """One connection to a server with these flags."""

    def __init__(self, *flags):
        self.server = Server("--policy", "minimal", *flags).start()
        self.link = self.server.http()

    def ask(self, method, path, body=None):
        answer = self.server.ask(method, path, body, link=self.link)
        return answer.status, answer.json


LOGIN = {"command": "echo hi"}  # in a login shell, as the sandbox's user
PLAIN = {"args": ["/bin/sh", "-c", "echo hi"]}  # what `runsc run` starts, too


def one(client, isolation, template="host", look=None, command=None):
    """Milliseconds from the create to the end of a command that prints a line, and of one more; the sandbox is gone behind it."""
    command = command or LOGIN
    begin = time.perf_counter()
    status, made = client.ask("POST", "/v1/sandboxes", {"isolation": isolation, "template": template})
    if status != 201:
        raise RuntimeError(made["error"]["message"])
    _, said = client.ask("POST", f"/v1/sandboxes/{made['id']}/exec", command)
    first = time.perf_counter()
    if said["stdout"] != "hi\n":
        raise RuntimeError(f"printed {said}")
    client.ask("POST", f"/v1/sandboxes/{made['id']}/exec", command)
    second = time.perf_counter()
    if look:
        look(made["id"])
    client.ask("DELETE", f"/v1/sandboxes/{made['id']}")
    return (first - begin) * 1000, (second - first) * 1000


def wait_for_pool(client, isolation):
    """Until a sandbox was made ahead; the numbers would be those of a create otherwise. If possible until all were: no other is made meanwhile."""
    def ready(least):
        return any(p["isolation"] == isolation and p["ready"] >= min(p["target"], least) > 0 for p in client.ask("GET", "/v1/pools")[1]["pools"])
    if not within(10, lambda: ready(100)) and not within(300, lambda: ready(1)):
        raise RuntimeError(f"no sandbox with isolation {isolation} was made ahead")


def qemu_of(sandbox):
    """Processor seconds and private MB of the QEMU of a sandbox: it is in the sandbox's cgroup."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup") as cgroup, open(f"/proc/{pid}/cmdline") as line, \
                    open(f"/proc/{pid}/smaps_rollup") as maps:
                if sandbox in cgroup.read() and "/machine/qemu" in line.read():
                    fields = fields_of(pid)
                    private = sum(int(text.split()[1]) for text in maps if text.startswith("Private"))
                    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), private / 1024
        except OSError:
            pass
    raise RuntimeError("no QEMU is there")


def fields_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()


def qemus():
    """Processor milliseconds of each QEMU of this keeper: of what waits, the cgroup does not say the sandbox."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as line:
                if "/machine/qemu" not in line.read():
                    continue
            fields = fields_of(pid)
            if fields_of(fields[1])[1] == os.environ["KEEPER"]:
                found[pid] = (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return found


def first_answer(client, isolation):
    """Processor milliseconds of the QEMU of a machine that waited, from the create to the output of its first command."""
    before = qemus()
    _, made = client.ask("POST", "/v1/sandboxes", {"isolation": isolation, "template": "small"})
    client.ask("POST", f"/v1/sandboxes/{made['id']}/exec", {"command": "echo hi"})
    after = qemus()
    client.ask("DELETE", f"/v1/sandboxes/{made['id']}")
    return max(after[pid] - before[pid] for pid in before if pid in after)


def machines(results, execs):
    """The rows of virtual machines; those of copies need an image."""
    client = Client("--pool", "*:0-0")
    for name in ("vm", "vm-emulated"):
        try:
            one(client, name, "small")  # the memory is made
            break
        except RuntimeError as why:
            print(f"{name} is left out: {why}")
    else:
        client.server.end()
        return None
    seen = {"boot": [], "copy": [], "pool": []}
    for _ in range(BOOTS):
        results.setdefault((name, "its kernel starts"), []).append(one(client, name, look=lambda box: seen["boot"].append(qemu_of(box)))[0])
    for _ in range(ROUNDS):
        first, second = one(client, name, "small", lambda box: seen["copy"].append(qemu_of(box)))
        results.setdefault((name, "copy"), []).append(first)
        execs.setdefault(name, []).append(second)
    client.server.end()
    client = Client("--pool", "*:1-2")
    for _ in range(2):
        one(client, name, "small")
    for _ in range(ROUNDS):
        wait_for_pool(client, name)
        results.setdefault((name, "pool"), []).append(one(client, name, "small")[0])
    for _ in range(ROUNDS):
        wait_for_pool(client, name)
        seen["pool"].append(first_answer(client, name))
    client.server.end()
    return name, seen


def runsc():
    """`runsc run` of the same command, by itself, with the host's /usr."""
    bundle = os.path.join(scratch, "bundle")
    root = os.path.join(bundle, "rootfs")
    os.makedirs(os.path.join(root, "usr"), exist_ok=True)
    for name in ("bin", "lib", "lib64"):
        if not os.path.islink(os.path.join(root, name)):
            os.symlink("usr/" + name, os.path.join(root, name))
    spec = {"ociVersion": "1.0.2", "process": {"user": {"uid": 0, "gid": 0}, "args": ["/bin/sh", "-c", "echo hi"], "env": ["PATH=/usr/bin"], "cwd": "/"},
            "root": {"path": root, "readonly": True},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["ro", "rbind"]}],
            "linux": {"namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount", "network")]}}
    with open(os.path.join(bundle, "config.json"), "w") as file:
        json.dump(spec, file)
    begin = time.perf_counter()
    child = subprocess.Popen(["runsc", "--root", os.path.join(scratch, "runsc"), "--network=none", "--ignore-cgroups", "run", "--bundle", bundle,
                              f"bench{time.monotonic_ns()}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = child.stdout.readline()
    first = time.perf_counter()
    child.wait()
    if line != b"hi\n":
        raise RuntimeError(f"runsc run printed {line}")
    return (first - begin) * 1000


def row(name, values):
    values = sorted(values)
    print(f"| {name} | {values[len(values) // 2]:.1f} | {values[int(len(values) * 0.95)]:.1f} | {values[0]:.1f} |")
    return values[0], values[len(values) // 2]


def main():
    results, execs = {}, {}
    client = Client("--pool", "*:0-0")
    names = ["jail"]
    try:
        one(client, "gvisor")
        names.append("gvisor")
    except RuntimeError as why:
        print(f"gvisor is left out: {why}")
    for _ in range(ROUNDS):
        for name in names:
            first, second = one(client, name)
            results.setdefault((name, "cold"), []).append(first)
            execs.setdefault(name, []).append(second)
        if "gvisor" in names and shutil.which("runsc"):
            results.setdefault(("gvisor", "cold, sh -c"), []).append(one(client, "gvisor", command=PLAIN)[0])
            results.setdefault(("runsc run", "cold, sh -c"), []).append(runsc())
    client.server.end()
    client = Client("--pool", "*:2-4")
    for name in names:
        for _ in range(2):  # a kind that was asked for twice has a pool
            one(client, name)
        for _ in range(ROUNDS):
            wait_for_pool(client, name)
            results.setdefault((name, "pool"), []).append(one(client, name)[0])
            wait_for_pool(client, name)
            first, second = one(client, name, command=PLAIN)
            results.setdefault((name, "pool, sh -c"), []).append(first)
            execs.setdefault(f"{name}, sh -c", []).append(second)
    client.server.end()
    vm = machines(results, execs)
    print(f"\n{ROUNDS} rounds, ms to the first output\n\n| | p50 | p95 | least |\n|---|---|---|---|")
    least = {key: row(f"{key[0]}, {key[1]}", values) for key, values in results.items()}
    for name, values in execs.items():
        row(f"{name}, one more command", values)
    if vm:
        name, seen = vm
        print()
        for kind in ("boot", "copy"):
            values = seen[kind]
            if not values:  # BENCH_BOOTS=0
                continue
            cpu, private = (sorted(column)[0] for column in zip(*values))
            print(f"{name}, {kind}: least of QEMU: {cpu:.2f} s of a processor with two commands, {private:.0f} MB private (target of a copy: 25)")
        print(f"{name}, from the pool: least {min(seen['pool']):.0f} ms of a processor to the first answer (target 60)")
        started = least.get((name, "its kernel starts"))
        ratio = started[0] / least[name, "copy"][0] if started else float("nan")
        print(f"{name}: a copy is {ratio:.1f} times as fast as a start (target 10)")
    if "gvisor" in names:
        print(f"\ngvisor from the pool: least {least['gvisor', 'pool'][0]:.1f} ms, {least['gvisor', 'pool, sh -c'][0]:.1f} without a login shell (target 20)")
        if ("runsc run", "cold, sh -c") in least:
            ours, theirs = least["gvisor", "cold, sh -c"], least["runsc run", "cold, sh -c"]
            print(f"gvisor cold: {ours[0] / theirs[0]:.2f} of runsc run with the same command, p50 {ours[1] / theirs[1]:.2f} (target 1)")
    client = Client("--pool", "*:0-0")
    lives(client, [(name, "host") for name in names] + ([(vm[0], "small")] if vm else []), row)
    client.server.end()


main()
