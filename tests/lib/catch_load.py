"""Runs a command that loads a sandbox, and stops the load as soon as a process of it is there.

    catch_load.py KEEPER_PID loader COMMAND…    the loader itself, at its beginning
    catch_load.py KEEPER_PID kernel COMMAND…    gVisor's kernel: the load stands still in its middle

prints the pids of the loader and, of gVisor, of its bridge and its kernel; or `none` where the load was over before. Then it ends as
the command does. A load is short, so this program goes before all others and hardly pauses."""
import os
import signal
import subprocess
import sys
import time


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def text(pid, name):
    try:
        with open("/proc/%d/%s" % (pid, name)) as f:
            return f.read()
    except OSError:
        return ""


def below(pid):
    for child in children(pid):
        yield child
        yield from below(child)


def catch(keeper, what, command):
    while command.poll() is None:
        time.sleep(0.0002)
        for loader in children(keeper):
            if text(loader, "comm") != "cove-loader\n":
                continue
            if what == "loader":
                os.kill(loader, signal.SIGSTOP)
                return str(loader)
            for bridge in children(loader):
                for kernel in below(bridge):
                    if text(kernel, "cmdline").startswith("runsc-sandbox"):
                        os.kill(kernel, signal.SIGSTOP)
                        return "%d %d %d" % (loader, bridge, kernel)
    return "none"


started = subprocess.Popen(sys.argv[3:], stdout=sys.stderr)
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    pass
print(catch(int(sys.argv[1]), sys.argv[2], started), flush=True)
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
sys.exit(started.wait())
