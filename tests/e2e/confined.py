"""confined.py - whether a sandbox is confined as it should be, seen from the host and from inside.

   confined.py STATE BOX WORD…     prints ok and not ok lines, each beginning with STATE; exit code 1 if any is not ok

WORDs: listens   the filter asks the agent's listener, of which the keeper has a duplicate
       quiet     the filter refuses by itself, as after a restore
       saving    the agent has given up its listener for a moment; the keeper has it
       saver     … whose saver has it, because another keeper began that
       still     nothing can be run inside: only what the host sees is looked at
       landlock  Landlock is in force; without the word it must not be (docs/security.md says where it cannot)
       older     the filter is another version's: a listener of one's own is refused by it all the same

KEEPER_PID, BUILD and COVE_STATE come from the environment."""
import ctypes
import json
import os
import re
import subprocess
import sys

import harness

state, box, words = sys.argv[1], sys.argv[2], set(sys.argv[3:])
build, keeper = os.environ["BUILD"], int(os.environ["KEEPER_PID"])
AGENT_CAPS, NO_CAPS = 0x800405fb, 0
NOTIFY_FD, KCMP, KCMP_FILE = 5, 312, 0
LISTENER = "anon_inode:seccomp notify"
LIMITS = {"Max core file size": "0", "Max locked memory": "8388608", "Max msgqueue size": "819200", "Max pending signals": "4096",
          "Max nice priority": "0", "Max realtime priority": "0"}
COUNTS = ("user", "pid", "net", "ipc", "uts", "mnt", "cgroup", "time")
CALLS = {"mount": 165, "unshare": 272, "setns": 308, "bpf": 321, "io_uring_setup": 425, "keyctl": 250, "pidfd_getfd": 438,
         "perf_event_open": 298, "userfaultfd": 323}
libc = ctypes.CDLL(None, use_errno=True)


def check(sentence, good, got=""):
    harness.check(f"{state}: {sentence}", good, got)


def same(sentence, want, got):
    harness.same(f"{state}: {sentence}", want, got)


def cove(*args, timeout=60):
    return subprocess.run([f"{build}/direct/cove", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)


def inside(*argv, user="user"):
    return cove("exec", "--user", user, box, "--", *argv)


def link(path):
    try:
        return os.readlink(path)
    except OSError as why:
        return why.strerror


def find():
    for row in json.loads(cove("ps", "--json").stdout):
        if box in (row["id"], row["name"]):
            return row
    return None


def status(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def processes(root):
    mine = os.readlink(f"/proc/{root}/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if link(f"/proc/{pid}/ns/pid") == mine:
            try:
                yield int(pid), status(pid)
            except OSError:
                pass


def keepers_listeners():
    return [int(fd) for fd in os.listdir(f"/proc/{keeper}/fd") if link(f"/proc/{keeper}/fd/{fd}") == LISTENER]


def listeners_of_agent(agent):
    own = link(f"/proc/{agent}/fd/{NOTIFY_FD}")
    if "listens" in words and "saving" not in words:
        same("the agent has its listener", LISTENER, own)
        check("the keeper has the same one", any(libc.syscall(KCMP, agent, keeper, KCMP_FILE, NOTIFY_FD, fd) == 0
                                                 for fd in keepers_listeners()), keepers_listeners())
    elif "saver" in words:
        savers = subprocess.run(["pgrep", "-x", "cove-saver"], capture_output=True, text=True).stdout.split()
        check("the saver of the sandbox has the listener that the agent gave up",
              any(link(f"/proc/{pid}/fd/{fd}") == LISTENER for pid in savers for fd in os.listdir(f"/proc/{pid}/fd")), savers)
    elif "saving" in words:
        check("the keeper has the listener that the agent gave up", own != LISTENER and keepers_listeners(), own)
    else:
        check("the agent has no listener, and needs none", own != LISTENER, own)


def cgroup_files(pid):
    """Every file of the process' cgroups that has a limit, by its name."""
    tops = {}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            kind = line.split(" - ")[1].split()
            if kind[0] in ("cgroup", "cgroup2"):
                for key in kind[2].split(",") if kind[0] == "cgroup" else ("",):
                    tops[key] = line.split()[3].rstrip("/"), line.split()[4]
    with open(f"/proc/{pid}/cgroup") as file:
        groups = [line.rstrip("\n").split(":", 2)[1:] for line in file]
    for keys, where in groups:
        root, top = tops.get(keys.split(",")[0], ("", None))
        for name in ("memory.limit_in_bytes", "memory.max", "pids.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"):
            path = f"{top}{where.removeprefix(root)}/{name}"
            if top and where != "/" and os.path.exists(path):
                with open(path) as file:
                    yield name, file.read().strip()


def limits_of_cgroups(row):
    files, want = dict(cgroup_files(row["pid"])), row["limits"]
    quota, _, period = files.get("cpu.max", "%s %s" % (files.get("cpu.cfs_quota_us"), files.get("cpu.cfs_period_us"))).partition(" ")
    got = (files.get("memory.limit_in_bytes", files.get("memory.max")), files.get("pids.max"),
           round(1000 * int(quota) / int(period)) if quota.isdigit() and period.isdigit() else quota)
    same("the sandbox's cgroups have the limits of memory, processes and processors", (str(want["memory"]), str(want["pids"]), want["cpu_milli"]), got)


def from_the_host(row):
    agent, base = row["pid"], row["uid_base"]
    root = row["root"]
    listeners_of_agent(agent)
    if "saving" not in words:
        check("the agent's memory is closed to its sandbox", os.stat(f"/proc/{agent}/io").st_uid != base,
              os.stat(f"/proc/{agent}/io").st_uid)
    seen = 0
    for pid, rows in processes(agent):
        if rows["State"].startswith("Z"):
            continue
        seen += 1
        what = f"{rows['Name']}({rows['NSpid'].split()[-1]})"
        for name, want in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapInh", f"{0:016x}"), ("CapAmb", f"{0:016x}")):
            if rows[name] != want:
                same(f"{what} has {name}", want, rows[name])
        if int(rows.get("Seccomp_filters", 1)) < 1:
            check(f"{what} has a filter", False)
        most = AGENT_CAPS if root or rows["Uid"].split()[0] == str(base) else NO_CAPS
        for name in ("CapPrm", "CapEff", "CapBnd"):
            check_mask = int(rows[name], 16) & ~most
            if check_mask:
                check(f"{what} has no more than it may in {name}", False, rows[name])
    check(f"all {seen} processes have filter, no_new_privs and no capability too many", seen >= 1)
    same("the agent has one filter", "1", status(agent).get("Seccomp_filters", "1"))
    with open(f"/proc/{agent}/limits") as file:
        limits = file.read()
    for name, want in LIMITS.items():
        found = re.search(rf"^{name}\s+(\S+)\s+(\S+)", limits, re.M)
        if not found or found.groups() != (want, want):
            same(f"limit '{name}'", (want, want), found and found.groups())
    limits_of_cgroups(row)
    counts = subprocess.run(["nsenter", f"--user=/proc/{agent}/ns/user", "--preserve-credentials", "cat",
                             *(f"/proc/sys/user/max_{name}_namespaces" for name in COUNTS)], capture_output=True, text=True)
    same("no further namespace of any kind may be made", ["0"] * len(COUNTS), counts.stdout.split() or counts.stderr)


def from_inside(row):
    users = ("user", "root") if row["root"] else ("user",)
    same("a command runs", 0, inside("true").returncode)
    for name in ("lift", "seccomp_probe"):
        cove("cp", f"{build}/helpers/{name}", f"{box}:/tmp/{name}")
    for user in users:
        lift = inside("/tmp/lift", user=user)
        check(f"the filter cannot be lifted by {user}", lift.returncode == 0 and "LIFTED" not in lift.stdout, lift.stdout + lift.stderr)
        check(f"a listener is refused to {user} by the filter", "held a listener: Operation not permitted" in lift.stdout, lift.stdout)
        for call, number in CALLS.items():
            got = inside("/tmp/seccomp_probe", "refuse", str(number), "2", user=user)
            if got.returncode != 0:
                check(f"{call} is refused to {user}", False, got)
        check(f"{len(CALLS)} calls are refused to {user}", True)
        for file in ("mem", "environ", "maps", "fd"):
            got = inside("sh", "-c", f"exec 3<>/proc/1/{file} || ls /proc/1/{file} || cat /proc/1/{file}", user=user)
            if got.returncode == 0:
                check(f"/proc/1/{file} is closed to {user}", False, got)
    # A char device 0:0 may be made by anybody, unless Landlock says no.
    node = inside("python3", "-c", "import os, stat; os.mknod('/dev/shm/node', stat.S_IFCHR | 0o600, 0)")
    if not os.path.exists("/sys/kernel/security/landlock") and libc.syscall(444, None, 0, 1) < 2:
        print(f"skip - {state}: Landlock: this kernel has none")
    elif "landlock" in words:
        check("Landlock refuses device nodes", "PermissionError: [Errno 13]" in node.stderr, node)
    else: # other layers hold: what it is cannot be opened, and one that is something cannot be made
        opened = inside("python3", "-c", "import os; os.close(os.open('/dev/shm/node', os.O_RDONLY))")
        check("without Landlock, a device node is of no use", opened.returncode != 0, opened)
        other = inside("python3", "-c", "import os, stat; os.mknod('/dev/shm/mem', stat.S_IFCHR | 0o600, os.makedev(1, 1))")
        check("without Landlock, a node of a real device cannot be made", "PermissionError: [Errno 1]" in other.stderr, other)
        inside("rm", "-f", "/dev/shm/node")
    if "listens" in words:
        before = cove("stats", "--refusals", box).stdout
        inside("/tmp/seccomp_probe", "refuse", "272", "1")
        check("refused calls are counted", before != cove("stats", "--refusals", box).stdout, before)


row = find()
if row is None:
    check("the sandbox exists", False, cove("ps").stdout)
else:
    from_the_host(row)
    if "still" not in words:
        from_inside(row)
harness.finish()
