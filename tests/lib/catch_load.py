"""Runs a command that loads a sandbox of gVisor, and stops gVisor's kernel as soon as that is there: the load stands still in its middle.

    catch_load.py KEEPER_PID COMMAND…

prints the pids of the loader, its bridge and gVisor's kernel, or `none` where the load was over before; then it ends as the command does.
It looks without a pause, since a load is short."""
import os
import signal
import subprocess
import sys


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


def catch(keeper, command):
    while command.poll() is None:
        for loader in children(keeper):
            if text(loader, "comm") != "cove-loader\n":
                continue
            for bridge in children(loader):
                for kernel in below(bridge):
                    if text(kernel, "cmdline").startswith("runsc-sandbox"):
                        os.kill(kernel, signal.SIGSTOP)
                        return "%d %d %d" % (loader, bridge, kernel)
    return "none"


started = subprocess.Popen(sys.argv[2:], stdout=sys.stderr)
print(catch(int(sys.argv[1]), started), flush=True)
sys.exit(started.wait())
