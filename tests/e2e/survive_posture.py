"""survive_posture.py - all that the host sees of a sandbox's processes, as text in which nothing depends on when it was made.

   survive_posture.py PID ID      of PID 1, the sandbox

Two of the same sandbox, or of a sandbox and its copy, are to be the same."""
import fcntl
import os
import re
import struct
import sys

root, ident = int(sys.argv[1]), sys.argv[2]
base = int(open(f"/proc/{root}/uid_map").read().split()[1])
SPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
FIELDS = ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters",
          "Umask", "SigBlk", "SigIgn", "SigCgt", "Speculation_Store_Bypass", "SpeculationIndirectBranch", "THP_enabled")


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def ids(text):
    """Numbers of the sandbox's own range as those that it sees."""
    return re.sub(r"\d+", lambda m: f"+{int(m[0]) - base}" if base <= int(m[0]) < base + 65536 else m[0], text)


def status(pid):
    rows = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines())
    return {name: ids(" ".join(rows[name].split())) for name in FIELDS if name in rows} | {"inner": rows["NSpid"].split()[-1]}


def space(pid, name):
    own, theirs = os.readlink(f"/proc/self/ns/{name}"), os.readlink(f"/proc/{pid}/ns/{name}")
    return "the host's" if own == theirs else "the sandbox's" if theirs == os.readlink(f"/proc/{root}/ns/{name}") else "another"


def owner_of_userns(pid):
    """NS_GET_OWNER_UID"""
    fd = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    return ids(str(struct.unpack("I", fcntl.ioctl(fd, 0xb704, b"\0\0\0\0"))[0]))


def owners_of_spaces(pid):
    """Which user namespace owns the others: NS_GET_USERNS"""
    for name in ("ipc", "mnt", "net", "pid", "uts", "cgroup"):
        fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        try:
            owner = os.stat(fcntl.ioctl(fd, 0xb701)).st_ino
        except OSError as why:
            yield f"owner of {name}: {why.strerror}"
            continue
        finally:
            os.close(fd)
        mine = os.stat(f"/proc/{pid}/ns/user").st_ino
        yield f"owner of {name}: {'its own' if owner == mine else 'another'}"


def mounts(pid):
    """In the order of their places: those of the host's files have roots and devices that change."""
    for line in read(f"/proc/{pid}/mountinfo").splitlines():
        left, right = line.split(" - ")
        where, options = left.split()[4:6]
        more = " ".join(left.split()[6:])
        kind = right.split()[0]
        yield f"mount {where} {','.join(sorted(options.split(',')))} {re.sub(r'[0-9]+', 'N', more)} {kind}"


def cgroups(pid):
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, names, where = line.split(":", 2)
        yield f"cgroup {names or 'v2'} {re.sub('/(' + ident + '|spare-[0-9a-f]+)', '/ID', where)}"


def limits_of_cgroups(pid):
    """Every file with a limit, in each hierarchy."""
    names = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max", "memory.swappiness",
             "memory.oom_control", "memory.oom.group", "pids.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares", "cpu.max",
             "cpu.weight", "devices.list", "freezer.state", "cgroup.freeze", "memory.kmem.limit_in_bytes")
    tops = {}
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split()
        kind = line.split(" - ")[1].split()
        if kind[0] in ("cgroup", "cgroup2"):
            for key in kind[2].split(",") if kind[0] == "cgroup" else ("",):
                tops[key] = (fields[3], fields[4])
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, keys, where = line.split(":", 2)
        key = keys.split(",")[0]
        if key not in tops:
            continue
        top = tops[key][1] + where[len(tops[key][0].rstrip("/")):] if where.startswith(tops[key][0]) else tops[key][1] + where
        for name in names:
            if os.path.exists(f"{top}/{name}"):
                yield f"limit {keys or 'v2'} {name} " + " | ".join(sorted(read(f"{top}/{name}").splitlines()))


def files(pid):
    for fd in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
        target = os.readlink(f"/proc/{pid}/fd/{fd}")
        flags = re.search(r"flags:\s*(\S+)", read(f"/proc/{pid}/fdinfo/{fd}"))[1]
        yield f"fd {fd} {re.sub(r'[0-9]+', 'N', target)} {flags}"


def processes():
    mine = os.readlink(f"/proc/{root}/ns/pid")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") == mine:
                yield int(pid)
        except OSError:
            pass


def describe(pid):
    """A process: every thread's own rights, too."""
    rows = status(pid)
    print(f"== {rows.pop('inner')} {read(f'/proc/{pid}/comm').strip()}")
    for name, value in rows.items():
        print(name, value)
    for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int)[1:]:
        other = status(f"{pid}/task/{task}")
        inner = other.pop("inner")
        print("thread", inner, {k: v for k, v in other.items() if rows.get(k) != v and not k.startswith("Sig")})
    print("spaces", *(f"{name}={space(pid, name)}" for name in SPACES))
    print("owner", owner_of_userns(pid))
    print("time namespace:", space(pid, "time"))
    for line in owners_of_spaces(pid):
        print(line)
    print("maps", ids(" ".join(read(f"/proc/{pid}/uid_map").split() + read(f"/proc/{pid}/gid_map").split())),
          read(f"/proc/{pid}/setgroups").strip())
    print("oom", read(f"/proc/{pid}/oom_score_adj").strip(), "dumped by", ids(str(os.stat(f"/proc/{pid}/io").st_uid)),
          "sched", os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid), sorted(os.sched_getaffinity(pid)),
          "persona", read(f"/proc/{pid}/personality").strip(), "coredump", read(f"/proc/{pid}/coredump_filter").strip())
    print("exe", re.sub("[0-9a-f]{16}", "HASH", os.readlink(f"/proc/{pid}/exe")), "root", os.readlink(f"/proc/{pid}/root"))
    for line in (*cgroups(pid), *files(pid), *re.sub(" +", " ", read(f"/proc/{pid}/limits")).splitlines()):
        print(line)


def main():
    found = sorted(processes(), key=lambda pid: int(status(pid)["inner"]))
    for pid in found:
        if "State:\tZ" not in read(f"/proc/{pid}/status"):
            describe(pid)
    print("== of all")
    for line in (*sorted(mounts(root)), *sorted(set(limits_of_cgroups(root)))):
        print(line)
    spaces = {tuple(os.readlink(f"/proc/{pid}/ns/{name}") for name in SPACES) for pid in found}
    print("sets of namespaces", len(spaces))


main()
